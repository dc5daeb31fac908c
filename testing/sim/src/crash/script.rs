//! What the model says: a function of the message and of the turn's progress, so that every process, and the
//! undisturbed world, gets the same.

use everturn_orchestrator::kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::{Category, Failure, Usage, Value};

/// With more transient failures in a step, the schedules of the worlds would give up.
pub(super) const MAX_PASSING: u64 = 4;

/// Maximum sum of the waits of a step in every world, in milliseconds.
pub(super) const BUDGET_MS: u64 = 8 * 3_600_000;

pub(super) const HOUR_MS: u64 = 3_600_000;

/// A position in the script: the message being answered, and the number of assistant messages since.
pub(super) type Position = (String, usize);

/// A cue of a call.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "a script is short")]
pub(super) enum Cue {
    Say(StreamEvent),
    Pause(u64),
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With the provider's terminal event, after some content.
    Well,
    /// With a retryable failure, and its hint.
    Passing { hint_ms: u64 },
    /// With a failure that ends the turn.
    Final,
    /// With a context overflow.
    Overflow,
    /// With a summary.
    Summary,
}

/// A provider call: its cues, and its end.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) cues: Vec<Cue>,
    pub(super) end: End,
}

/// The script of the model in a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    pub(super) seed: u64,
    /// The longest hint after which a call succeeds, in milliseconds.
    pub(super) longest_ms: u64,
}

impl Script {
    /// Returns the call with this number, from 0, at a position.
    pub(super) fn call(self, place: &Position, number: usize) -> Call {
        let mut rng = self.rng(place);
        let passing = if rng.u8(0..3) == 0 { 0 } else { rng.u64(0..=MAX_PASSING) };
        let last = last(&mut rng);
        if (number as u64) < passing {
            // Each number has a failure of its own.
            return refused(&mut fastrand::Rng::with_seed(rng.u64(..) ^ number as u64), self.longest_ms);
        }
        let answer = answer(&mut rng, place);
        match last {
            Last::Answer => answer,
            Last::Refusal => refusal("HTTP 403: not for you", Category::Permission, false),
            Last::Overload => refusal("HTTP 529: overloaded", Category::Overloaded, true),
            Last::Wall => {
                let mut wall = Failure::new(Category::RateLimited, true, "HTTP 429: come back tomorrow");
                wall.hint_ms = Some(20 * HOUR_MS);
                Call { cues: vec![Cue::Say(StreamEvent::Failed(wall))], end: End::Final }
            }
            Last::Cut => cut(&mut rng, answer),
        }
    }

    /// Returns the call with this number, from 0, for the summary at a position.
    pub(super) fn summary(self, place: &Position, text: &str, number: usize) -> Call {
        let mut rng = self.rng(place);
        let passing = if rng.bool() { 0 } else { rng.u64(1..=MAX_PASSING / 2) };
        if (number as u64) < passing {
            return refused(&mut fastrand::Rng::with_seed(rng.u64(..) ^ number as u64), self.longest_ms);
        }
        let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
        let say = |text: &str| Cue::Say(StreamEvent::Text(text.to_owned()));
        let end = Cue::Say(StreamEvent::Finished(FinishReason::Stop));
        let cues = vec![
            Cue::Pause(rng.u64(1..2_000)),
            say(&text[..middle]),
            Cue::Pause(rng.u64(0..500)),
            say(&text[middle..]),
            end,
        ];
        Call { cues, end: End::Summary }
    }

    fn rng(self, (text, step): &Position) -> fastrand::Rng {
        let mut hash = self.seed ^ 0x9E37_79B9_7F4A_7C15;
        for byte in text.bytes().chain([0xFF, *step as u8]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
        fastrand::Rng::with_seed(hash)
    }
}

/// What happens at a position after the transient failures.
enum Last {
    Answer,
    /// A final failure each time.
    Refusal,
    /// An overload each time, until the retries are exhausted.
    Overload,
    /// A hint beyond the budget.
    Wall,
    /// A truncation each time, in the middle of the answer.
    Cut,
}

fn last(rng: &mut fastrand::Rng) -> Last {
    match rng.u8(0..40) {
        0 => Last::Refusal,
        1 => Last::Overload,
        2 => Last::Wall,
        3 | 4 => Last::Cut,
        _ => Last::Answer,
    }
}

/// Returns a call that fails with a context overflow.
pub(super) fn overflow() -> Call {
    let failure = Failure::new(Category::ContextOverflow, false, "HTTP 400: too many tokens");
    Call { cues: vec![Cue::Pause(5), Cue::Say(StreamEvent::Failed(failure))], end: End::Overflow }
}

fn refusal(message: &str, category: Category, retryable: bool) -> Call {
    let end = if retryable { End::Passing { hint_ms: 0 } } else { End::Final };
    let failure = Failure::new(category, retryable, message);
    Call { cues: vec![Cue::Pause(5), Cue::Say(StreamEvent::Failed(failure))], end }
}

/// Returns a call that fails before any content.
fn refused(rng: &mut fastrand::Rng, longest_ms: u64) -> Call {
    let (category, message) = match rng.u8(0..8) {
        0..=2 => (Category::RateLimited, "HTTP 429: slow down"),
        3 => (Category::Overloaded, "HTTP 529: overloaded"),
        4 => (Category::ServerError, "HTTP 502: <html>bad gateway</html>"),
        5 => (Category::Timeout, "nothing arrived"),
        6 => {
            // A clean but empty end.
            let cues = vec![Cue::Pause(10), Cue::Say(StreamEvent::Finished(FinishReason::Stop))];
            return Call { cues, end: End::Passing { hint_ms: 0 } };
        }
        // Truncated before the first piece.
        _ => return Call { cues: vec![Cue::Pause(20)], end: End::Passing { hint_ms: 0 } },
    };
    let mut failure = Failure::new(category, true, message);
    if category == Category::RateLimited && rng.bool() {
        let most = [500, 30_000, longest_ms][rng.usize(0..3)];
        failure.hint_ms = Some(rng.u64(1..most));
    }
    let hint_ms = failure.hint_ms.unwrap_or(0);
    let silence = if category == Category::Timeout { rng.u64(20_000..90_000) } else { rng.u64(0..300) };
    Call {
        cues: vec![Cue::Pause(silence), Cue::Say(StreamEvent::Failed(failure))],
        end: End::Passing { hint_ms },
    }
}

/// Truncates an answer after its first pieces, with or without a failure.
fn cut(rng: &mut fastrand::Rng, answer: Call) -> Call {
    let mut cues = answer.cues;
    let first = cues.iter().position(|cue| matches!(cue, Cue::Say(_))).unwrap_or(0);
    let end = cues.iter().rposition(|cue| matches!(cue, Cue::Say(_))).unwrap_or(0);
    cues.truncate(rng.usize(first + 1..=end.max(first + 1)));
    if rng.bool() {
        let failure = Failure::new(Category::Network, true, "the connection was reset");
        cues.push(Cue::Say(StreamEvent::Failed(failure)));
    }
    Call { cues, end: End::Final }
}

/// Returns the model's answer at a position.
fn answer(rng: &mut fastrand::Rng, place: &Position) -> Call {
    let (text, step) = place;
    let mut cues = vec![Cue::Pause(rng.u64(1..2_000))];
    let mut say = |rng: &mut fastrand::Rng, event| {
        cues.push(Cue::Say(event));
        if rng.bool() {
            cues.push(Cue::Pause(rng.u64(0..500)));
        }
    };
    if rng.u8(0..4) == 0 {
        say(rng, StreamEvent::Reasoning(format!("<thinking about {text}.{step}>")));
    }
    let asks = *step < 3 && rng.u8(0..5) < 2;
    if !asks || rng.bool() {
        for piece in 0..rng.usize(1..6) {
            say(rng, StreamEvent::Text(format!("[{text}.{step}.{piece} ü]")));
        }
    }
    let calls = if asks { rng.usize(1..4) } else { 0 };
    for number in 0..calls {
        let call = tool_call(rng, place, number);
        say(rng, StreamEvent::ToolCall(call));
    }
    if rng.bool() {
        say(rng, StreamEvent::Usage(Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() }));
    }
    let reason = match rng.u8(0..12) {
        0 => FinishReason::Length,
        _ if asks => FinishReason::ToolCalls,
        _ => FinishReason::Stop,
    };
    say(rng, StreamEvent::Finished(reason));
    Call { cues, end: End::Well }
}

fn tool_call(rng: &mut fastrand::Rng, (text, step): &Position, number: usize) -> ToolCall {
    let name = ["charge", "charge", "lookup", "missing"][rng.usize(0..4)].to_owned();
    // Some models give all their calls the same id.
    let id =
        if rng.u8(0..6) == 0 { format!("{text}.{step}-same") } else { format!("{text}.{step}-{number}") };
    let ms = [0, 50, 3_000, 20_000][rng.usize(0..4)];
    let fields =
        [("text", Value::from(text.as_str())), ("step", Value::from(*step)), ("ms", Value::from(ms))];
    let arguments = if rng.u8(0..8) == 0 {
        Arguments::Malformed { raw: "{\"amount\": 1".to_owned(), reason: "it ends too early".to_owned() }
    } else {
        Arguments::Parsed(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    };
    ToolCall { id, name, arguments, echo: None }
}
