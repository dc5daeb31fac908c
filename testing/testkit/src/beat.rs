//! Shorthands for what a scripted model does: single beats and whole attempts.

use everturn_kernel::{Arguments, FINAL_REPORT, FinishReason, StreamEvent, Summary, ToolCall};
use everturn_wire::{Category, Echo, Failure, Usage, Value};

/// A beat of a stream. The stream ends after the last beat, which is a truncation unless that was a terminal event. The
/// functions of this module create the usual ones.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "a script is short")]
pub enum Beat {
    /// Yields an event.
    Say(StreamEvent),
    /// Silence for this many milliseconds.
    Wait(u64),
    /// Silence for ever.
    Hang,
}

/// Yields visible text.
pub fn text(delta: &str) -> Beat {
    Beat::Say(StreamEvent::Text(delta.into()))
}

/// Yields reasoning.
pub fn thought(delta: &str) -> Beat {
    Beat::Say(StreamEvent::Reasoning(delta.into()))
}

/// Yields an [`echo`] of the preceding reasoning.
pub fn echoes(data: &str) -> Beat {
    Beat::Say(StreamEvent::Echo(echo(data)))
}

/// Returns opaque provider data.
pub fn echo(data: &str) -> Echo {
    Echo { origin: "api host".into(), data: data.into() }
}

/// Yields a call of this tool with the arguments `{"n":1}`.
pub fn call(id: &str, name: &str) -> Beat {
    let arguments = Arguments::Parsed(Value::Object([("n".into(), 1.into())].into_iter().collect()));
    Beat::Say(StreamEvent::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, echo: None }))
}

/// Yields a call of this tool whose arguments are not JSON.
pub fn malformed_call(id: &str, name: &str) -> Beat {
    let arguments = Arguments::Malformed { raw: "{\"n\":".into(), reason: "it ends early".into() };
    Beat::Say(StreamEvent::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, echo: None }))
}

/// Yields a call of `final_report` with the argument `{"valid":true}` or `{"valid":false}`. A scripted host judges the
/// report by it.
pub fn report(id: &str, valid: bool) -> Beat {
    let arguments = Arguments::Parsed(Value::Object([("valid".into(), valid.into())].into_iter().collect()));
    let name = FINAL_REPORT.into();
    Beat::Say(StreamEvent::ToolCall(ToolCall { id: id.into(), name, arguments, echo: None }))
}

/// Yields token counts.
pub fn usage(input_tokens: u64, output_tokens: u64) -> Beat {
    Beat::Say(StreamEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }))
}

/// Yields the terminal event of a successful call.
pub fn finish(reason: FinishReason) -> Beat {
    Beat::Say(StreamEvent::Finished(reason))
}

/// Yields the terminal event of a failed call.
pub fn failed(failure: Failure) -> Beat {
    Beat::Say(StreamEvent::Failed(failure))
}

/// Returns a transient network failure.
pub fn network_failure(message: &str) -> Failure {
    Failure::new(Category::Network, true, message)
}

/// Returns a complete answer with this text.
pub fn says(what: &str) -> Vec<Beat> {
    vec![text(what), finish(FinishReason::Stop)]
}

/// Returns an HTTP 429 failure due to overload, without a hint.
pub fn overloaded() -> Vec<Beat> {
    vec![failed(overload())]
}

/// Returns such a failure with a hint, in milliseconds.
pub fn overloaded_for(hint_ms: u64) -> Vec<Beat> {
    vec![failed(Failure { hint_ms: Some(hint_ms), ..overload() })]
}

/// Yields a summary of the history up to chunk 7.
pub fn summary(text: &str) -> Beat {
    Beat::Say(StreamEvent::Summary(Box::new(Summary { text: text.into(), keeps_from: 7 })))
}

/// Returns a failure because the history does not fit the model's context.
pub fn overflow() -> Vec<Beat> {
    vec![failed(Failure::new(Category::ContextOverflow, false, "HTTP 400: too long"))]
}

fn overload() -> Failure {
    Failure { code: Some("429".into()), ..Failure::new(Category::Overloaded, true, "HTTP 429: busy") }
}
