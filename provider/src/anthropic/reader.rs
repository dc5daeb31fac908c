//! Reads a stream of the Messages API.

use everturn_kernel::StreamEvent;
use everturn_wire::{Echo, Value};
use serde_json::json;

use super::frame::{Block, Counts, Delta, Frame};
use crate::{
    SseEvent,
    answer::{Answer, note},
    assembly::{Fragment, Wholeness},
    exchange::{Facts, Flaw, Reader, Reading},
};

#[derive(Debug)]
pub(super) struct AnthropicReader {
    answer: Answer,
    /// Origin of the echoes.
    origin: String,
    counts: Counts,
    /// Index of the latest block that is neither text, thinking nor a call of an offered tool, such as a search run by
    /// the provider.
    foreign: Option<u64>,
    /// Ids of the calls that began since the last text or thinking.
    calls: Vec<String>,
}

impl AnthropicReader {
    pub(super) fn new(answer: Answer, origin: String) -> Self {
        Self { answer, origin, counts: Counts::default(), foreign: None, calls: Vec::new() }
    }

    fn count(&mut self, newer: Option<Counts>) {
        if let Some(newer) = newer {
            self.counts.update(newer);
            self.answer.usage(Some(self.counts.usage()));
        }
    }

    fn block(&mut self, index: u64, block: Block, facts: &mut Facts) -> Result<(), Flaw> {
        // Some servers give all blocks the same index.
        self.foreign = self.foreign.filter(|foreign| *foreign != index);
        if matches!(block, Block::Text { .. } | Block::Thinking { .. } | Block::RedactedThinking { .. }) {
            // Thinking between two calls must go back between them.
            facts.extend(self.calls.drain(..).map(StreamEvent::CallHere));
        }
        match block {
            Block::Text { text } => self.answer.text(&text, facts),
            Block::Thinking { thinking, signature } => {
                self.answer.reasoning(&thinking, facts)?;
                self.sign(&signature, facts)
            }
            Block::RedactedThinking { data } => {
                self.echo(json!({ "type": "redacted_thinking", "data": data }), facts)
            }
            Block::ToolUse { id, name, input } => {
                // Usually empty here, with the arguments following in fragments; a proxy may send them complete.
                let whole = input.as_object().is_some_and(|fields| !fields.is_empty());
                let arguments = if whole { input.to_string() } else { String::new() };
                let fragment = Fragment { index: Some(index), id: &id, name: &name, ..Fragment::default() };
                self.answer.call(Fragment { arguments: &arguments, ..fragment })?;
                self.calls.push(id);
                Ok(())
            }
            Block::Other => {
                self.foreign = Some(index);
                Ok(())
            }
        }
    }

    fn delta(&mut self, index: u64, delta: Delta, facts: &mut Facts) -> Result<(), Flaw> {
        match delta {
            // A tool run by the provider makes progress, although none of it is yielded.
            _ if self.foreign == Some(index) => {
                self.answer.stir(1);
                Ok(())
            }
            Delta::Text { text } => self.answer.text(&text, facts),
            Delta::Thinking { thinking } => self.answer.reasoning(&thinking, facts),
            Delta::Input { partial_json } => {
                let (index, arguments) = (Some(index), &*partial_json);
                self.answer.call(Fragment { index, arguments, ..Fragment::default() }).map(drop)
            }
            Delta::Signature { signature } => self.sign(&signature, facts),
            Delta::Other => Ok(()),
        }
    }

    fn sign(&mut self, signature: &str, facts: &mut Facts) -> Result<(), Flaw> {
        // Empty at the start of the block; the real one comes at its end.
        if signature.is_empty() {
            return Ok(());
        }
        self.echo(json!({ "type": "thinking", "signature": signature }), facts)
    }

    /// Yields the block without its text as an echo.
    fn echo(&mut self, data: Value, facts: &mut Facts) -> Result<(), Flaw> {
        self.answer.echo(Echo { origin: self.origin.clone(), data }, facts)
    }
}

impl Reader for AnthropicReader {
    fn event(&mut self, event: &SseEvent<'_>, facts: &mut Facts) -> Result<Reading, Flaw> {
        let payload = event.data.trim();
        if payload.is_empty() || payload.starts_with(':') {
            return Ok(Reading::More);
        }
        let flaw = |_| Flaw::Payload(payload.to_owned());
        match serde_json::from_str(payload).map_err(flaw)? {
            _ if event.name == "error" => return Err(Flaw::Payload(payload.to_owned())),
            Frame::Error => return Err(Flaw::Payload(payload.to_owned())),
            Frame::MessageStart { message } => {
                note(&mut self.answer.reported.model, message.model.as_ref().and_then(Value::as_str));
                self.count(message.usage);
            }
            Frame::ContentBlockStart { index, content_block } => self.block(index, content_block, facts)?,
            Frame::ContentBlockDelta { index, delta } => self.delta(index, delta, facts)?,
            Frame::ContentBlockStop { index } => {
                if let Some(index) = index.as_u64() {
                    self.answer.call_ended(index, Wholeness::Call, facts);
                }
            }
            Frame::MessageDelta { delta, usage } => {
                self.answer.finish(delta.finish_reason());
                self.count(usage);
                self.answer.keep(payload);
            }
            Frame::MessageStop => return self.answer.complete(facts).map(|()| Reading::Complete),
            Frame::Other => {}
        }
        Ok(Reading::More)
    }

    fn end(&mut self, _: &mut Facts) -> Result<(), Flaw> {
        Err(Flaw::Truncated("the stream ended early: no message_stop received"))
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
