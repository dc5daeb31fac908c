//! What is answered: a stream of the Chat Completions API as facts.

use everturn_kernel::{FinishReason, StreamEvent};
use everturn_wire::{Usage, Value};

use super::frame::{CallFragment, Choice, Content, Delta, Frame, FunctionFragment, usage};
use crate::{
    SseEvent,
    assembly::{Assembly, AssemblyError, Fragment},
    exchange::{Facts, Flaw, Reader, Reading},
};

/// What the API sends last.
const DONE: &str = "[DONE]";

/// What is kept of the payloads that end an answer, in bytes, to explain an empty one.
const LONGEST_CLOSING: usize = 4096;

#[derive(Debug)]
pub(super) struct ChatReader {
    /// What the ids begin with that the provider leaves out.
    seed: String,
    /// Bytes that the answer may still have, and may have in all.
    room: usize,
    limit: usize,
    calls: Assembly,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    has_content: bool,
    closing: String,
}

impl ChatReader {
    pub(super) fn new(seed: String, limit: usize) -> Self {
        Self {
            seed,
            room: limit,
            limit,
            calls: Assembly::default(),
            usage: None,
            finish: None,
            has_content: false,
            closing: String::new(),
        }
    }

    fn choice(&mut self, choice: Choice, facts: &mut Facts) -> Result<(), Flaw> {
        // Nobody asked for a second answer.
        if choice.index != 0 {
            return Ok(());
        }
        self.finish = choice.finish_reason().or(self.finish.take());
        self.usage = choice.usage.as_ref().and_then(usage).or(self.usage);
        choice.delta.map_or(Ok(()), |delta| self.delta(delta, facts))
    }

    fn delta(&mut self, mut delta: Delta, facts: &mut Facts) -> Result<(), Flaw> {
        let reasoning = delta.take_reasoning();
        let (text, thought) = delta.content.map(Content::split).unwrap_or_default();
        for reasoning in [reasoning, thought] {
            self.say(reasoning, StreamEvent::Reasoning, facts)?;
        }
        for text in [text, delta.refusal.unwrap_or_default()] {
            self.say(text, StreamEvent::Text, facts)?;
        }
        for fragment in delta.tool_calls.into_iter().flatten() {
            self.fragment(fragment)?;
        }
        delta.function_call.map_or(Ok(()), |function| {
            self.fragment(CallFragment { index: Some(0), id: None, function: Some(function) })
        })
    }

    fn say(&mut self, text: String, fact: fn(String) -> StreamEvent, facts: &mut Facts) -> Result<(), Flaw> {
        if !text.is_empty() {
            self.charge(text.len())?;
            self.has_content = true;
            facts.push_back(fact(text));
        }
        Ok(())
    }

    fn fragment(&mut self, fragment: CallFragment) -> Result<(), Flaw> {
        let CallFragment { index, id, function } = fragment;
        let id = id.unwrap_or_default();
        let FunctionFragment { name, arguments } = function.unwrap_or_default();
        let name = name.unwrap_or_default();
        let arguments = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(piece)) => piece,
            Some(whole) => whole.to_string(),
        };
        self.charge(id.len() + name.len() + arguments.len())?;
        self.calls.add(Fragment { index, id: &id, name: &name, arguments: &arguments }).map_err(flaw)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Flaw> {
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            Flaw::Excess(format!(
                "the answer has more than {} bytes, the limit that was set for it",
                self.limit
            ))
        })?;
        Ok(())
    }

    /// The stream ended as it should, if the model said that it was done.
    fn complete(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        let Some(finish) = self.finish.take() else {
            return Err(Flaw::Truncated("the stream ended before its answer did: no finish_reason came"));
        };
        let cut = matches!(finish, FinishReason::Length | FinishReason::ContentFilter);
        let calls = std::mem::take(&mut self.calls).finish(&self.seed, cut).map_err(flaw)?;
        // Some servers say "stop" when they mean tools, and some the other way round.
        let finish = match finish {
            FinishReason::Stop if !calls.is_empty() => FinishReason::ToolCalls,
            FinishReason::ToolCalls if calls.is_empty() => FinishReason::Stop,
            finish => finish,
        };
        let unhindered = matches!(finish, FinishReason::Stop | FinishReason::Other(_));
        if unhindered && calls.is_empty() && !self.has_content {
            return Err(Flaw::Payload(std::mem::take(&mut self.closing)));
        }
        facts.extend(calls.into_iter().map(StreamEvent::ToolCall));
        facts.extend(self.usage.map(StreamEvent::Usage));
        facts.push_back(StreamEvent::Finished(finish));
        Ok(())
    }

    fn keep(&mut self, payload: &str) {
        if self.closing.len() + payload.len() <= LONGEST_CLOSING {
            self.closing.extend(["data: ", payload, "\n\n"]);
        }
    }
}

impl Reader for ChatReader {
    fn event(&mut self, event: &SseEvent<'_>, facts: &mut Facts) -> Result<Reading, Flaw> {
        let payload = event.data.trim();
        // A comment that a proxy took for data is a sign of life, no more.
        if payload.is_empty() || payload.starts_with(':') {
            return Ok(Reading::More);
        }
        if payload == DONE {
            self.keep(DONE);
            return self.complete(facts).map(|()| Reading::Complete);
        }
        let frame = if event.name == "error" { None } else { Frame::parse(payload) };
        let frame = frame.ok_or_else(|| Flaw::Payload(payload.to_owned()))?;
        let counted = frame.usage.as_ref().and_then(usage);
        self.usage = counted.or(self.usage);
        for choice in frame.choices.into_iter().flatten() {
            self.choice(choice, facts)?;
        }
        if self.finish.is_some() {
            self.keep(payload);
        }
        Ok(Reading::More)
    }

    fn end(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        self.complete(facts)
    }
}

fn flaw(error: AssemblyError) -> Flaw {
    match error {
        AssemblyError::TooMany => Flaw::Excess(error.to_string()),
        AssemblyError::Nameless => Flaw::Truncated("the answer has a tool call without a name"),
    }
}

#[cfg(test)]
mod tests;
