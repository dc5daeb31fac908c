//! The end of a turn, for both forms of the answer.

use everturn_wire::{CallerCall, DoneReason, EventBody, Reported, Usage};
use serde_json::{Value, json};

use super::Refusal;
use crate::event::escaped;

/// What is known about the end of a turn.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) failure: Option<Refusal>,
    /// The API's finish reason.
    pub(super) finish: Option<&'static str>,
    pub(super) calls: Vec<CallerCall>,
    /// The token counts of the last call: a client adds up what its requests cost, and takes them for the context's size.
    pub(super) usage: Option<Usage>,
    /// What the provider reports of the last answer.
    pub(super) reported: Reported,
}

impl Ending {
    /// Records what an event says about the end. Only the first of each kind counts.
    pub(super) fn take(&mut self, event: &EventBody) {
        match event {
            EventBody::Error(report) if self.failure.is_none() => {
                self.failure = Some(Refusal::of_failure(report));
            }
            EventBody::Done { reason, usage, calls, .. } if self.finish.is_none() => {
                self.usage = self.usage.or(*usage);
                self.calls.clone_from(calls);
                self.finish = Some(finish(reason, calls));
                match reason {
                    DoneReason::Aborted => self.fail(Refusal::stopped()),
                    DoneReason::Error => self.fail(Refusal::new(502, "the turn failed")),
                    _ => {}
                }
            }
            EventBody::Usage { usage, .. } => self.usage = Some(*usage),
            EventBody::StepComplete { reported, .. } => {
                self.reported = reported.as_deref().cloned().unwrap_or_default();
            }
            EventBody::TurnSealed if self.finish.is_none() => {
                self.fail(Refusal::new(502, "the turn ended without a reason"));
            }
            _ => {}
        }
    }

    /// Fails for this reason, unless the turn has failed already.
    pub(super) fn fail(&mut self, why: Refusal) {
        self.failure.get_or_insert(why);
    }

    /// Returns fields of the answer that only the provider knows, as JSON: each after a comma.
    pub(super) fn fields(&self) -> String {
        let Reported { system_fingerprint, service_tier, .. } = &self.reported;
        let fields = [("system_fingerprint", system_fingerprint), ("service_tier", service_tier)];
        let known = fields.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        known.map(|(name, value)| format!(r#","{name}":"{}""#, escaped(value))).collect()
    }

    /// Returns the calls that the client must run.
    pub(super) fn tool_calls(&self, with_index: bool) -> Value {
        let calls = self.calls.iter().enumerate().map(|(index, call)| {
            let arguments = match &call.input {
                // They did not parse, so the client gets the model's text.
                Value::String(raw) => raw.clone(),
                input => input.to_string(),
            };
            let function = json!({ "name": call.tool_name, "arguments": arguments });
            match with_index {
                true => {
                    json!({ "index": index, "id": call.tool_call_id, "type": "function", "function": function })
                }
                false => json!({ "id": call.tool_call_id, "type": "function", "function": function }),
            }
        });
        calls.collect()
    }
}

/// Returns token counts with the API's names, and the cost that the provider reports.
pub(super) fn counts(usage: &Usage, reported: &Reported) -> Value {
    let mut counts = json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens.saturating_add(usage.output_tokens),
    });
    if let Some(cached) = usage.cache_read_tokens {
        counts["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        counts["completion_tokens_details"] = json!({ "reasoning_tokens": reasoning });
    }
    if let Some(cost) = &reported.cost {
        counts["cost"] = Value::Number(cost.clone());
    }
    counts
}

/// Returns the finish reason. Clients know four values; any other reason becomes `stop`.
fn finish(reason: &DoneReason, calls: &[CallerCall]) -> &'static str {
    match reason {
        _ if !calls.is_empty() => "tool_calls",
        DoneReason::Length | DoneReason::MaxSteps => "length",
        DoneReason::ContentFilter => "content_filter",
        _ => "stop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_counted_where_the_provider_reports_them() {
        let usage = Usage { input_tokens: 3, output_tokens: 9, ..Usage::default() };
        let none = Reported::default();
        assert_eq!(
            counts(&usage, &none),
            json!({ "prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12 })
        );
        let costs = Reported { cost: Some(3.into()), ..none };
        let counts =
            counts(&Usage { cache_read_tokens: Some(2), reasoning_tokens: Some(7), ..usage }, &costs);
        assert_eq!(counts["cost"], 3);
        assert_eq!(counts["prompt_tokens_details"], json!({ "cached_tokens": 2 }));
        assert_eq!(counts["completion_tokens_details"], json!({ "reasoning_tokens": 7 }));
    }
}
