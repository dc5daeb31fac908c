//! An answer while it is read: what it has said, and whether it is one.

use std::mem;

use everturn_kernel::{FinishReason, StreamEvent};
use everturn_wire::{Echo, Usage};

use crate::{
    assembly::{Assembly, AssemblyError, Fragment, Wholeness},
    bulk::weight,
    exchange::{Facts, Flaw},
};

/// Longest text that is joined from pieces that arrived together, in bytes.
const MAX_JOINED: usize = 64 << 10;

/// What is kept of the payloads that end an answer, in bytes, to explain an empty one.
const LONGEST_CLOSING: usize = 4096;

/// Collects an answer. Text and reasoning become facts at once; calls too where that was asked for, as soon as they are
/// whole; everything else waits for the end.
#[derive(Debug)]
pub(crate) struct Answer {
    /// What the ids begin with that the provider leaves out.
    seed: String,
    /// Bytes that it may have in all, and that are left of them.
    limit: usize,
    room: usize,
    calls: Assembly,
    is_eager: bool,
    /// The call that the last piece belonged to.
    current: Option<usize>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    has_content: bool,
    /// Moves on with everything that is said.
    said: usize,
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
            finish: None,
            has_content: false,
            said: 0,
            closing: String::new(),
        }
    }

    /// Has calls told as soon as they are whole.
    pub(crate) fn eager(self, is_eager: bool) -> Self {
        Self { is_eager, ..self }
    }

    /// Adds visible text, joined with the text before it if that has not been handed on yet.
    pub(crate) fn text(&mut self, text: &str, facts: &mut Facts) -> Result<(), Flaw> {
        self.say(text)?;
        match facts.back_mut() {
            Some(StreamEvent::Text(before)) if before.len() + text.len() <= MAX_JOINED => {
                before.push_str(text);
            }
            _ if text.is_empty() => {}
            _ => facts.push_back(StreamEvent::Text(text.to_owned())),
        }
        Ok(())
    }

    /// Adds reasoning, joined like text.
    pub(crate) fn reasoning(&mut self, text: &str, facts: &mut Facts) -> Result<(), Flaw> {
        self.say(text)?;
        match facts.back_mut() {
            Some(StreamEvent::Reasoning(before)) if before.len() + text.len() <= MAX_JOINED => {
                before.push_str(text);
            }
            _ if text.is_empty() => {}
            _ => facts.push_back(StreamEvent::Reasoning(text.to_owned())),
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), Flaw> {
        self.has_content |= !text.is_empty();
        self.charge(text.len())
    }

    /// Takes what the provider wants back with the reasoning before it, which ends there.
    pub(crate) fn echo(&mut self, echo: Echo, facts: &mut Facts) -> Result<(), Flaw> {
        self.charge(size(&echo))?;
        facts.push_back(StreamEvent::Echo(echo));
        Ok(())
    }

    /// Takes a piece of a call. Says which one it is.
    pub(crate) fn call(&mut self, fragment: Fragment<'_>) -> Result<usize, Flaw> {
        self.charge(fragment.arguments.len() + besides(fragment))?;
        self.calls.add(fragment).map_err(flaw)
    }

    /// The call of this index is whole, as far as the API says: it is told where that was asked for.
    pub(crate) fn call_ended(&mut self, index: u64, how: Wholeness, facts: &mut Facts) {
        if self.is_eager {
            facts.extend(self.calls.release(index, how, &self.seed).map(StreamEvent::ToolCall));
        }
    }

    /// The answer goes on with the call at `current`: others that are whole are told where that was asked for.
    pub(crate) fn turned_to(&mut self, current: usize, facts: &mut Facts) {
        if self.is_eager && self.current.replace(current) != Some(current) {
            facts.extend(self.calls.release_others(current, &self.seed).map(StreamEvent::ToolCall));
        }
    }

    /// Takes a call with its whole arguments, which may have come in pieces before.
    pub(crate) fn whole_call(&mut self, fragment: Fragment<'_>) -> Result<(), Flaw> {
        let grown = self.calls.replace(fragment).map_err(flaw)?;
        self.charge(grown + besides(fragment))
    }

    /// Takes newer token counts.
    pub(crate) fn usage(&mut self, usage: Option<Usage>) {
        self.stir(usize::from(usage.is_some() && usage != self.usage));
        self.usage = usage.or(self.usage);
    }

    /// Takes the reason why the model stopped, which is not yet the end of the stream.
    pub(crate) fn finish(&mut self, reason: Option<FinishReason>) {
        self.stir(usize::from(reason.is_some() && self.finish.is_none()));
        self.finish = reason.or(self.finish.take());
    }

    /// Remembers a payload that came when the model had stopped.
    pub(crate) fn keep(&mut self, payload: &str) {
        if self.finish.is_some() && self.closing.len() + payload.len() <= LONGEST_CLOSING {
            self.closing.extend(["data: ", payload, "\n\n"]);
        }
    }

    /// The stream ended as it should: so did the answer, if the model had stopped and said something.
    pub(crate) fn complete(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        let Some(finish) = self.finish.take() else {
            return Err(Flaw::Truncated(
                "the stream ended before its answer did: the model gave no reason to stop",
            ));
        };
        let cut = matches!(finish, FinishReason::Length | FinishReason::ContentFilter);
        let has_calls = !self.calls.is_empty();
        let calls = mem::take(&mut self.calls).finish(&self.seed, cut).map_err(flaw)?;
        // Some servers say "stop" when they mean tools, and some the other way round.
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
        facts.push_back(StreamEvent::Finished(finish));
        Ok(())
    }

    /// Something of the answer arrived, kept or not: it gets on.
    pub(crate) fn stir(&mut self, bytes: usize) {
        self.said = self.said.wrapping_add(bytes);
    }

    /// Moves on with everything that is said.
    pub(crate) fn said(&self) -> usize {
        self.said
    }

    /// Counts what is kept or told.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Flaw> {
        self.stir(bytes);
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            Flaw::Excess(format!(
                "the answer has more than {} bytes, the limit that was set for it",
                self.limit
            ))
        })?;
        Ok(())
    }
}

/// What a fragment has besides its arguments, in bytes.
fn besides(fragment: Fragment<'_>) -> usize {
    fragment.id.len() + fragment.name.len() + fragment.echo.map_or(0, size)
}

/// Bytes of an echo at rest.
fn size(echo: &Echo) -> usize {
    echo.origin.len() + weight(&echo.data)
}

/// A reason in a provider's own word, which may be of any length.
pub(crate) fn own_word(reason: &str) -> FinishReason {
    FinishReason::Other(reason.chars().take(64).collect())
}

fn flaw(error: AssemblyError) -> Flaw {
    match error {
        AssemblyError::TooMany | AssemblyError::Overrun => Flaw::Excess(error.to_string()),
        AssemblyError::Nameless => Flaw::Truncated("the answer has a tool call without a name"),
    }
}
