//! Translates the events of a turn to chunks of a streamed answer.
//!
//! ```text
//!   (comment)*  role  (content | reasoning | comment)*  tool_calls?  finish  usage?  [DONE]
//!                 '------- a failure: one error, and nothing after it -------'
//! ```

use everturn_wire::EventBody;
use serde_json::{Value, json};

use super::{
    Head, Refusal,
    ending::{Ending, counts},
    wait,
};
use crate::{
    Event,
    event::{STARTS_AGAIN, STEP_GAP, escaped},
    sse,
};

/// A streamed answer: the state of the translation.
#[derive(Debug)]
pub struct Chunks {
    head: Head,
    /// The start of every chunk, up to its choices.
    start: String,
    include_usage: bool,
    /// Whether text is held back until its step is complete, so that it is never withdrawn.
    holds: bool,
    held: Vec<u8>,
    /// Whether the role was sent, which comes first.
    has_role: bool,
    /// Whether text of the current step was sent or held back.
    has_shown: bool,
    /// Whether there is visible text in earlier steps, and in the current one.
    has_text: (bool, bool),
    ending: Ending,
    is_over: bool,
    /// What the turn waits for.
    wait: Option<String>,
}

impl Chunks {
    /// Creates an answer without events.
    pub fn new(head: &Head, include_usage: bool, holds: bool) -> Self {
        Self {
            head: head.clone(),
            start: start(head, &head.model, ""),
            include_usage,
            holds,
            held: Vec::new(),
            has_role: false,
            has_shown: false,
            has_text: (false, false),
            ending: Ending::default(),
            is_over: false,
            wait: None,
        }
    }

    /// Writes what an event means for the client, if anything.
    pub fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        match event {
            _ if self.ending.finish.is_some() && !event.is_seal() => {}
            Event::Text(json) => self.delta("content", json, out),
            Event::Reasoning(json) => self.delta("reasoning_content", json, out),
            Event::Other(EventBody::TextDelta { delta }) => self.delta("content", &escaped(delta), out),
            Event::Other(EventBody::ReasoningDelta { delta }) => {
                self.delta("reasoning_content", &escaped(delta), out);
            }
            Event::Other(event) => self.other(event, out),
        }
    }

    fn other(&mut self, event: &EventBody, out: &mut Vec<u8>) {
        self.ending.take(event);
        match event {
            EventBody::StepRewound { .. } => self.rewind(out),
            EventBody::StepComplete { .. } => {
                self.release(out);
                self.has_shown = false;
                self.has_text.0 |= std::mem::take(&mut self.has_text.1);
            }
            EventBody::FinalReport(report) => {
                if let (Some(report), (false, false)) = (&report.report, self.has_text) {
                    self.delta("content", &escaped(&report.to_string()), out);
                }
            }
            EventBody::Done { .. } => self.finish(out),
            EventBody::TurnSealed => self.end(out),
            _ => {}
        }
        if wait::ends(event) {
            self.wait = None;
        }
        if let Some(line) = wait::line(event) {
            comment(&line, out);
            self.wait = Some(line);
        }
    }

    /// Ends the answer for a reason outside the turn.
    pub fn fail(&mut self, why: Refusal, out: &mut Vec<u8>) {
        if !self.is_over {
            self.ending.fail(why);
            self.end(out);
        }
    }

    /// Writes a comment that keeps the connection alive and says what the turn waits for.
    pub fn keep_alive(&self, out: &mut Vec<u8>) {
        comment(self.wait.as_deref().unwrap_or(""), out);
    }

    /// Whether the answer has been written completely.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether anything other than comments was written, so that a failure can no longer be reported by a status.
    pub fn has_begun(&self) -> bool {
        self.has_role
    }

    /// Returns why there is no answer, once that is certain.
    pub fn failure(&self) -> Option<&Refusal> {
        self.ending.failure.as_ref()
    }

    fn delta(&mut self, field: &str, json: &str, out: &mut Vec<u8>) {
        if json.is_empty() {
            return;
        }
        self.wait = None;
        if !self.holds {
            self.role(out);
        }
        self.has_shown = true;
        let mut gap = "";
        if field == "content" {
            gap = if self.has_text == (true, false) { STEP_GAP } else { "" };
            self.has_text.1 = true;
        }
        let head = self.start.as_bytes();
        let to = if self.holds { &mut self.held } else { out };
        for part in [
            head,
            br#"{"index":0,"delta":{""#,
            field.as_bytes(),
            br#"":""#,
            gap.as_bytes(),
            json.as_bytes(),
            b"\"},\"finish_reason\":null}]}\n\n",
        ] {
            to.extend_from_slice(part);
        }
    }

    fn role(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_role, true) {
            self.choice(&json!({ "role": "assistant", "content": "" }), None, out);
        }
    }

    /// Handles a rewind of the step, which will be streamed again.
    fn rewind(&mut self, out: &mut Vec<u8>) {
        if self.holds {
            self.held.clear();
            self.has_text.1 = false;
        } else if self.has_shown {
            self.delta("content", &escaped(STARTS_AGAIN), out);
        }
        self.has_shown = false;
    }

    /// Sends what was held back, unless the step failed.
    fn release(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        if self.ending.failure.is_none() && !held.is_empty() {
            self.role(out);
            out.extend_from_slice(&held);
        }
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.release(out);
        if self.ending.failure.is_some() {
            return;
        }
        self.role(out);
        // From here on it is known what the provider reports: clients take it from the last chunks.
        let model = self.ending.reported.model.as_ref().unwrap_or(&self.head.model);
        self.start = start(&self.head, model, &self.ending.fields());
        if !self.ending.calls.is_empty() {
            let calls = self.ending.tool_calls(true);
            self.choice(&json!({ "tool_calls": calls }), None, out);
        }
        self.choice(&json!({}), self.ending.finish, out);
        if let Some(usage) = self.ending.usage.filter(|_| self.include_usage) {
            let counts = counts(&usage, &self.ending.reported);
            out.extend_from_slice(format!("{}],\"usage\":{counts}}}\n\n", self.start).as_bytes());
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.is_over = true;
        self.held = Vec::new();
        match &self.ending.failure {
            Some(why) => {
                let why = if self.has_role { &why.in_mid_answer() } else { why };
                out.extend_from_slice(format!("data: {}\n\n", why.body()).as_bytes());
            }
            None => sse::done(out),
        }
    }

    fn choice(&self, delta: &Value, finish: Option<&str>, out: &mut Vec<u8>) {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        out.extend_from_slice(format!("{}{choice}]}}\n\n", self.start).as_bytes());
    }
}

/// Returns the start of a chunk, up to its choices.
fn start(head: &Head, model: &str, fields: &str) -> String {
    let Head { id, created, .. } = head;
    format!(
        r#"data: {{"id":"{}","object":"chat.completion.chunk","created":{created},"model":"{}"{fields},"choices":["#,
        escaped(id),
        escaped(model)
    )
}

fn comment(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(format!(": {text}\n\n").as_bytes());
}
