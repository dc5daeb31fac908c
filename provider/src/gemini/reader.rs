//! Reads a stream of the Gemini API.

use everturn_wire::{Echo, Value};
use serde_json::json;

use super::{
    echo_data::EchoData,
    frame::{Candidate, Counts, Ending, Frame, FunctionCall, Part},
};
use crate::{
    SseEvent,
    answer::{Answer, note},
    assembly::{Fragment, Wholeness},
    exchange::{Facts, Flaw, Reader, Reading},
};

#[derive(Debug)]
pub(super) struct GeminiReader {
    answer: Answer,
    /// Origin of the echoes.
    origin: String,
    counts: Counts,
    /// Number of calls so far.
    calls: u64,
}

impl GeminiReader {
    pub(super) fn new(answer: Answer, origin: String) -> Self {
        Self { answer, origin, counts: Counts::default(), calls: 0 }
    }

    fn frame(&mut self, frame: Frame, payload: &str, facts: &mut Facts) -> Result<(), Flaw> {
        if let Some(reason) = frame.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(Flaw::Payload(format!("the prompt was blocked ({reason}): {payload}")));
        }
        note(&mut self.answer.reported.model, frame.model_version.as_ref().and_then(Value::as_str));
        if let Some(newer) = frame.usage_metadata {
            self.counts.update(newer);
            self.answer.usage(Some(self.counts.usage()));
        }
        for candidate in frame.candidates.into_iter().flatten() {
            self.candidate(candidate, payload, facts)?;
        }
        self.answer.keep(payload);
        Ok(())
    }

    fn candidate(&mut self, candidate: Candidate, payload: &str, facts: &mut Facts) -> Result<(), Flaw> {
        // Ignore additional candidates, which were not requested.
        if candidate.index != 0 {
            return Ok(());
        }
        let ending = candidate.ending();
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            self.part(part, facts)?;
        }
        match ending {
            Some(Ending::Finished(reason)) => self.answer.finish(Some(reason)),
            Some(Ending::Broken) => return Err(Flaw::Payload(payload.to_owned())),
            None => {}
        }
        Ok(())
    }

    fn part(&mut self, part: Part, facts: &mut Facts) -> Result<(), Flaw> {
        let thought_signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            return self.call(call, thought_signature, facts);
        }
        let (text, thought) = (part.text.unwrap_or_default(), part.thought.unwrap_or_default());
        if thought {
            self.answer.reasoning(&text, facts)?;
        } else {
            self.answer.text(&text, facts)?;
        }
        let Some(thought_signature) = thought_signature else { return Ok(()) };
        let kept = EchoData { thought, thought_signature: Some(thought_signature), id: None };
        self.answer.echo(self.echo(&kept), facts)
    }

    fn call(
        &mut self,
        call: FunctionCall,
        thought_signature: Option<String>,
        facts: &mut Facts,
    ) -> Result<(), Flaw> {
        let index = self.calls;
        self.calls += 1;
        let arguments = call.args.map(|args| json!(args).to_string()).unwrap_or_default();
        let kept = EchoData { thought: false, thought_signature, id: call.id.filter(|id| !id.is_empty()) };
        let echo = (kept != EchoData::default()).then(|| self.echo(&kept));
        self.answer.call(Fragment {
            index: Some(index),
            id: kept.id.as_deref().unwrap_or_default(),
            name: &call.name,
            arguments: &arguments,
            echo: echo.as_ref(),
        })?;
        self.answer.call_ended(index, Wholeness::Call, facts);
        Ok(())
    }

    fn echo(&self, kept: &EchoData) -> Echo {
        Echo { origin: self.origin.clone(), data: json!(kept) }
    }
}

impl Reader for GeminiReader {
    fn event(&mut self, event: &SseEvent<'_>, facts: &mut Facts) -> Result<Reading, Flaw> {
        let payload = event.data.trim();
        // A comment that a proxy sent as data only shows that the connection is alive.
        if payload.is_empty() || payload.starts_with(':') {
            return Ok(Reading::More);
        }
        let frame = if event.name == "error" { None } else { Frame::parse(payload) };
        let frame = frame.ok_or_else(|| Flaw::Payload(payload.to_owned()))?;
        self.frame(frame, payload, facts).map(|()| Reading::More)
    }

    /// Token counts, further parts or an error may follow the finish reason, so the answer ends only with the stream.
    fn end(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        self.answer.complete(facts)
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
