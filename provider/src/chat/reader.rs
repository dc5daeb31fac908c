//! Reads a stream of the Chat Completions API.

use everturn_kernel::StreamEvent;
use everturn_wire::{Echo, Value};
use serde_json::Map;

use super::{
    detail::Details,
    frame::{CallFragment, Choice, Content, Delta, Frame, FunctionFragment, usage},
};
use crate::{
    SseEvent,
    answer::Answer,
    assembly::Fragment,
    exchange::{Facts, Flaw, Reader, Reading},
};

/// The last event of a stream.
const DONE: &str = "[DONE]";

#[derive(Debug)]
pub(super) struct ChatReader {
    answer: Answer,
    details: Details,
    /// The origin of echoes, if reasoning details are sent back.
    origin: Option<String>,
}

impl ChatReader {
    pub(super) fn new(answer: Answer, origin: Option<String>) -> Self {
        Self { answer, details: Details::default(), origin }
    }

    fn complete(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        if let (Some(origin), Some(data)) = (&self.origin, self.details.take()) {
            facts.push_back(StreamEvent::Echo(Echo { origin: origin.clone(), data }));
        }
        self.answer.complete(facts)
    }

    fn choice(&mut self, choice: Choice<'_>, facts: &mut Facts) -> Result<(), Flaw> {
        // Ignore additional choices, which were not requested.
        if choice.index != 0 {
            return Ok(());
        }
        self.answer.finish(choice.finish_reason());
        self.answer.usage(choice.usage.as_deref().and_then(usage));
        choice.delta.map_or(Ok(()), |delta| self.delta(delta, facts))
    }

    fn delta(&mut self, mut delta: Delta<'_>, facts: &mut Facts) -> Result<(), Flaw> {
        let reasoning = delta.take_reasoning();
        let (text, thought) = delta.content.map(Content::split).unwrap_or_default();
        for piece in delta.reasoning_details.take().into_iter().flatten() {
            self.detail(piece)?;
        }
        self.answer.reasoning(&reasoning, facts)?;
        self.answer.reasoning(&thought, facts)?;
        self.answer.text(&text, facts)?;
        self.answer.text(delta.refusal.as_deref().unwrap_or_default(), facts)?;
        for fragment in delta.tool_calls.into_iter().flatten() {
            self.fragment(fragment, facts)?;
        }
        delta.function_call.map_or(Ok(()), |function| {
            self.fragment(CallFragment { index: Some(0), id: None, function: Some(*function) }, facts)
        })
    }

    fn detail(&mut self, piece: Map<String, Value>) -> Result<(), Flaw> {
        if self.origin.is_some() {
            let grown = self.details.add(piece);
            self.answer.charge(grown)?;
        }
        Ok(())
    }

    fn fragment(&mut self, fragment: CallFragment, facts: &mut Facts) -> Result<(), Flaw> {
        let CallFragment { index, id, function } = fragment;
        let FunctionFragment { name, arguments } = function.unwrap_or_default();
        let arguments = match arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(piece)) => piece,
            Some(whole) => whole.to_string(),
        };
        let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
        let fragment = Fragment { index, id: &id, name: &name, arguments: &arguments, echo: None };
        let current = self.answer.call(fragment)?;
        // The API does not signal the end of a call, except by the start of another.
        self.answer.turned_to(current, facts);
        Ok(())
    }
}

impl Reader for ChatReader {
    fn event(&mut self, event: &SseEvent<'_>, facts: &mut Facts) -> Result<Reading, Flaw> {
        let payload = event.data.trim();
        // A comment that a proxy sent as data only shows that the connection is alive.
        if payload.is_empty() || payload.starts_with(':') {
            return Ok(Reading::More);
        }
        if payload == DONE {
            self.answer.keep(payload);
            return self.complete(facts).map(|()| Reading::Complete);
        }
        let frame = if event.name == "error" { None } else { Frame::parse(payload) };
        let frame = frame.ok_or_else(|| Flaw::Payload(payload.to_owned()))?;
        self.answer.usage(frame.usage.as_deref().and_then(usage));
        frame.report(&mut self.answer.reported);
        for choice in frame.choices.into_iter().flatten() {
            self.choice(choice, facts)?;
        }
        self.answer.keep(payload);
        Ok(Reading::More)
    }

    fn end(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        self.complete(facts)
    }

    fn said(&self) -> usize {
        self.answer.said()
    }

    fn collected(&self) -> usize {
        self.answer.collected()
    }
}

#[cfg(test)]
mod tests;
