//! Reads a stream of the Responses API.

mod call;
mod closing;
mod thought;

use std::mem;

use super::{
    echo::Retained,
    frame::{Frame, Item, Message, Piece, Placed, told},
    output::{Kind, Output, Voice},
};
use crate::{
    SseEvent,
    answer::Answer,
    assembly::Wholeness,
    exchange::{Facts, Flaw, Reader, Reading},
};

/// Sent last by some servers, because another API does so.
const DONE: &str = "[DONE]";

/// Separates texts that the model wrote separately.
const PARAGRAPH: &str = "\n\n";

#[derive(Debug)]
pub(super) struct ResponsesReader {
    answer: Answer,
    /// Origin of the echoes.
    origin: String,
    output: Output,
    retained: Retained,
    /// The message shown last.
    spoken: Option<usize>,
}

impl ResponsesReader {
    pub(super) fn new(answer: Answer, origin: String) -> Self {
        Self { answer, origin, output: Output::default(), retained: Retained::default(), spoken: None }
    }

    fn begun(&mut self, placed: &Placed) -> Result<(), Flaw> {
        let Some(sign) = placed.item.sign(placed.output_index) else { return Ok(()) };
        let at = self.output.begin(sign)?;
        match &placed.item {
            Item::Message(message) => self.meet(at, message),
            Item::FunctionCall(call) => self.call(at, call),
            Item::Reasoning(_) | Item::Other => Ok(()),
        }
    }

    fn ended(&mut self, placed: Placed, facts: &mut Facts) -> Result<(), Flaw> {
        let Some(sign) = placed.item.sign(placed.output_index) else { return Ok(()) };
        let at = self.output.find(sign)?;
        match placed.item {
            Item::Message(message) => self.message(at, message, facts)?,
            Item::Reasoning(reasoning) => self.reasoning(at, reasoning, facts)?,
            Item::FunctionCall(call) => {
                self.call(at, &call)?;
                self.answer.call_ended(at as u64, Wholeness::Call, facts);
            }
            Item::Other => {}
        }
        self.output.entry(at).ended = true;
        Ok(())
    }

    fn meet(&mut self, at: usize, message: &Message) -> Result<(), Flaw> {
        let again = mem::replace(&mut self.output.entry(at).met, true);
        if let Some(phase) = message.phase.as_deref().filter(|_| !again) {
            self.answer.charge(phase.len())?;
            self.retained.phase(phase);
        }
        Ok(())
    }

    /// Handles a complete message: shows the text that did not arrive in fragments.
    fn message(&mut self, at: usize, message: Message, facts: &mut Facts) -> Result<(), Flaw> {
        self.meet(at, &message)?;
        let shown = self.output.entry(at).parts;
        for (part, content) in (0..).zip(message.content.unwrap_or_default()) {
            if part >= shown {
                self.speak(at, part, content.into_text(), facts)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, mut piece: Piece, is_whole: bool, facts: &mut Facts) -> Result<(), Flaw> {
        let at = self.output.find(piece.sign(Kind::Message))?;
        let part = piece.part();
        if is_whole && part < self.output.entry(at).parts {
            return Ok(());
        }
        self.speak(at, part, piece.take(), facts)
    }

    fn speak(&mut self, at: usize, part: u64, text: String, facts: &mut Facts) -> Result<(), Flaw> {
        if text.is_empty() {
            return Ok(());
        }
        let entry = self.output.entry(at);
        entry.parts = entry.parts.max(part.saturating_add(1));
        if let Some(echo) = self.retained.take(&self.origin) {
            self.answer.echo(echo, facts)?;
        }
        let apart = self.spoken.replace(at).is_some_and(|spoken| spoken != at);
        self.answer.text(&if apart { format!("{PARAGRAPH}{text}") } else { text }, facts)
    }
}

impl Reader for ResponsesReader {
    fn event(&mut self, event: &SseEvent<'_>, facts: &mut Facts) -> Result<Reading, Flaw> {
        let payload = event.data.trim();
        if payload.is_empty() || payload.starts_with(':') {
            return Ok(Reading::More);
        }
        if payload == DONE {
            return self.end(facts).map(|()| Reading::Complete);
        }
        let frame = if event.name == "error" { None } else { Frame::parse(payload) };
        match frame.ok_or_else(|| Flaw::Payload(told(payload)))? {
            Frame::Begun(placed) => self.begun(&placed)?,
            Frame::Ended(placed) => self.ended(placed, facts)?,
            Frame::Text(piece) => self.text(piece, false, facts)?,
            Frame::WholeText(piece) => self.text(piece, true, facts)?,
            Frame::Summary(piece) => self.thought(piece, Voice::Summary, facts)?,
            Frame::Thought(piece) => self.thought(piece, Voice::Full, facts)?,
            Frame::Arguments(piece) => self.arguments(piece, false, facts)?,
            Frame::WholeArguments(piece) => self.arguments(piece, true, facts)?,
            Frame::Completed { response } => return self.closed(response, false, payload, facts),
            Frame::Incomplete { response } => return self.closed(response, true, payload, facts),
            Frame::Failed | Frame::Other => {}
        }
        Ok(Reading::More)
    }

    fn end(&mut self, _: &mut Facts) -> Result<(), Flaw> {
        Err(Flaw::Truncated("the stream ended early: no response.completed received"))
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
