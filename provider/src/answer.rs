//! An answer while it is being read.

use std::mem;

use everturn_kernel::{FinishReason, StreamEvent};
use everturn_wire::{Echo, Reported, Usage};

use crate::{
    assembly::{Assembly, AssemblyError, Fragment, Wholeness},
    bulk::weight,
    exchange::{Facts, Flaw},
};

/// Maximum length of text joined from pieces that arrived together, in bytes.
const MAX_JOINED: usize = 64 << 10;

/// Maximum length of what a provider reports about an answer, in bytes. Longer texts are ignored.
const LONGEST_REPORT: usize = 256;

/// Maximum number of bytes kept of the payloads that end an answer, to explain an empty one.
const LONGEST_CLOSING: usize = 4096;

/// Collects an answer. Text and reasoning are yielded at once, eager calls as soon as they are complete, and everything
/// else at the end.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Prefix for the ids that the provider omits.
    seed: String,
    /// Byte limit of the answer.
    limit: usize,
    room: usize,
    calls: Assembly,
    is_eager: bool,
    /// The call that the last fragment belonged to.
    current: Option<usize>,
    usage: Option<Usage>,
    pub(crate) reported: Reported,
    finish: Option<FinishReason>,
    has_content: bool,
    /// Grows with all content received.
    said: usize,
    /// Number of bytes kept for events that follow later.
    collected: usize,
    closing: String,
}

impl Answer {
    pub(crate) fn new(seed: String, limit: usize) -> Self {
        Self {
            seed,
            limit,
            room: limit,
            calls: Assembly::default(),
            is_eager: false,
            current: None,
            usage: None,
            reported: Reported::default(),
            finish: None,
            has_content: false,
            said: 0,
            collected: 0,
            closing: String::new(),
        }
    }

    /// Sets whether calls are yielded as soon as they are complete.
    pub(crate) fn eager(self, is_eager: bool) -> Self {
        Self { is_eager, ..self }
    }

    /// Adds visible text, joined with the preceding text if that has not been yielded yet.
    pub(crate) fn text(&mut self, text: &str, facts: &mut Facts) -> Result<(), Flaw> {
        let before = match facts.back_mut() {
            Some(StreamEvent::Text(before)) => Some(before),
            _ => None,
        };
        if !self.say(text, before)? {
            facts.push_back(StreamEvent::Text(text.to_owned()));
        }
        Ok(())
    }

    /// Adds reasoning, joined like text.
    pub(crate) fn reasoning(&mut self, text: &str, facts: &mut Facts) -> Result<(), Flaw> {
        let before = match facts.back_mut() {
            Some(StreamEvent::Reasoning(before)) => Some(before),
            _ => None,
        };
        if !self.say(text, before)? {
            facts.push_back(StreamEvent::Reasoning(text.to_owned()));
        }
        Ok(())
    }

    /// Counts text, and joins it with the preceding text if there is room. Returns whether nothing is left to add.
    fn say(&mut self, text: &str, before: Option<&mut String>) -> Result<bool, Flaw> {
        if text.is_empty() {
            return Ok(true);
        }
        self.pass(text.len())?;
        self.has_content = true;
        let joined = before.filter(|before| before.len() + text.len() <= MAX_JOINED);
        Ok(joined.map(|before| before.push_str(text)).is_some())
    }

    /// Adds an echo to the preceding reasoning, which it closes.
    pub(crate) fn echo(&mut self, echo: Echo, facts: &mut Facts) -> Result<(), Flaw> {
        self.pass(size(&echo))?;
        facts.push_back(StreamEvent::Echo(echo));
        Ok(())
    }

    /// Adds a fragment of a call. Returns the call's index.
    pub(crate) fn call(&mut self, fragment: Fragment<'_>) -> Result<usize, Flaw> {
        self.charge(fragment.arguments.len() + besides(fragment))?;
        self.calls.add(fragment).map_err(flaw)
    }

    /// Handles the end of the call with this index, as far as the API signals it. Yields the call if it is eager.
    pub(crate) fn call_ended(&mut self, index: u64, how: Wholeness, facts: &mut Facts) {
        if self.is_eager {
            facts.extend(self.calls.release(index, how, &self.seed).map(StreamEvent::ToolCall));
        }
    }

    /// Handles content of the call at `current`. Yields other complete calls if they are eager.
    pub(crate) fn turned_to(&mut self, current: usize, facts: &mut Facts) {
        if self.is_eager && self.current.replace(current) != Some(current) {
            facts.extend(self.calls.release_others(current, &self.seed).map(StreamEvent::ToolCall));
        }
    }

    /// Adds a call with complete arguments, which may have arrived in fragments before.
    pub(crate) fn whole_call(&mut self, fragment: Fragment<'_>) -> Result<(), Flaw> {
        let grown = self.calls.replace(fragment).map_err(flaw)?;
        self.charge(grown + besides(fragment))
    }

    /// Replaces the token counts.
    pub(crate) fn usage(&mut self, usage: Option<Usage>) {
        self.stir(usize::from(usage.is_some() && usage != self.usage));
        self.usage = usage.or(self.usage);
    }

    /// Sets the reason why the model stopped. The stream may continue.
    pub(crate) fn finish(&mut self, reason: Option<FinishReason>) {
        self.stir(usize::from(reason.is_some() && self.finish.is_none()));
        self.finish = reason.or(self.finish.take());
    }

    /// Keeps a payload that arrived after the model stopped.
    pub(crate) fn keep(&mut self, payload: &str) {
        if self.finish.is_some() && self.closing.len() + payload.len() <= LONGEST_CLOSING {
            self.closing.extend(["data: ", payload, "\n\n"]);
        }
    }

    /// Handles the proper end of the stream. The answer is complete if the model stopped and said something.
    pub(crate) fn complete(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        let Some(finish) = self.finish.take() else {
            return Err(Flaw::Truncated("the stream ended early: no finish_reason received"));
        };
        let cut = matches!(finish, FinishReason::Length | FinishReason::ContentFilter);
        let has_calls = !self.calls.is_empty();
        let calls = mem::take(&mut self.calls).finish(&self.seed, cut).map_err(flaw)?;
        // Some servers say "stop" when they mean tools, and the reverse.
        let finish = match finish {
            FinishReason::Stop if has_calls => FinishReason::ToolCalls,
            FinishReason::ToolCalls if !has_calls => FinishReason::Stop,
            finish => finish,
        };
        let unhindered = matches!(finish, FinishReason::Stop | FinishReason::Other(_));
        if unhindered && !has_calls && !self.has_content {
            return Err(Flaw::Payload(mem::take(&mut self.closing)));
        }
        facts.extend(calls.into_iter().map(StreamEvent::ToolCall));
        facts.extend(self.usage.map(StreamEvent::Usage));
        if self.reported != Reported::default() {
            facts.push_back(StreamEvent::Reported(Box::new(mem::take(&mut self.reported))));
        }
        facts.push_back(StreamEvent::Finished(finish));
        Ok(())
    }

    /// Records progress of the answer, whether its content is kept or not.
    pub(crate) fn stir(&mut self, bytes: usize) {
        self.said = self.said.wrapping_add(bytes);
    }

    /// Returns a number that grows with all content received.
    pub(crate) fn said(&self) -> usize {
        self.said
    }

    /// Returns the number of bytes that were kept for events that follow later.
    pub(crate) fn collected(&self) -> usize {
        self.collected
    }

    /// Counts bytes that are kept against the limit.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Flaw> {
        self.collected = self.collected.saturating_add(bytes);
        self.pass(bytes)
    }

    /// Counts bytes that are yielded against the limit.
    fn pass(&mut self, bytes: usize) -> Result<(), Flaw> {
        self.stir(bytes);
        self.room = self
            .room
            .checked_sub(bytes)
            .ok_or_else(|| Flaw::Excess(format!("the answer exceeds the limit of {} bytes", self.limit)))?;
        Ok(())
    }
}

/// Replaces what a provider reported about an answer, if it does again.
pub(crate) fn note(noted: &mut Option<String>, text: Option<&str>) {
    let text = text.filter(|text| !text.is_empty() && text.len() <= LONGEST_REPORT);
    if text.is_some() && noted.as_deref() != text {
        *noted = text.map(str::to_owned);
    }
}

/// Returns the size of a fragment without its arguments, in bytes.
fn besides(fragment: Fragment<'_>) -> usize {
    fragment.id.len() + fragment.name.len() + fragment.echo.map_or(0, size)
}

/// Returns the size of an echo in memory, in bytes.
fn size(echo: &Echo) -> usize {
    echo.origin.len() + weight(&echo.data)
}

/// Converts a provider's own finish reason, truncating it.
pub(crate) fn own_word(reason: &str) -> FinishReason {
    FinishReason::Other(reason.chars().take(64).collect())
}

fn flaw(error: AssemblyError) -> Flaw {
    match error {
        AssemblyError::TooMany | AssemblyError::Overrun => Flaw::Excess(error.to_string()),
        AssemblyError::Nameless => Flaw::Truncated("the answer has a tool call without a name"),
    }
}
