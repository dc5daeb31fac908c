//! An answer in one piece.

use everturn_wire::EventBody;
use serde_json::json;

use super::{
    Head, Refusal,
    ending::{Ending, counts},
};
use crate::{
    Event,
    event::{STEP_GAP, escaped},
};

/// An answer in one piece, without withdrawn text.
#[derive(Debug)]
pub struct Completion {
    head: Head,
    text: Text,
    reasoning: Text,
    ending: Ending,
    is_over: bool,
}

/// Text as in JSON, without the quotes.
#[derive(Debug, Default)]
struct Text {
    json: String,
    /// Where the current step begins.
    step: usize,
}

impl Completion {
    /// Creates an answer without events.
    pub fn new(head: Head) -> Self {
        let (text, reasoning) = (Text::default(), Text::default());
        Self { head, text, reasoning, ending: Ending::default(), is_over: false }
    }

    /// Handles an event.
    pub fn push(&mut self, event: &Event<'_>) {
        match event {
            _ if self.ending.finish.is_some() && !event.is_seal() => {}
            Event::Text(json) => self.say(json),
            Event::Reasoning(json) => self.reasoning.json.push_str(json),
            Event::Other(EventBody::TextDelta { delta }) => self.say(&escaped(delta)),
            Event::Other(EventBody::ReasoningDelta { delta }) => {
                self.reasoning.json.push_str(&escaped(delta));
            }
            Event::Other(event) => {
                self.ending.take(event);
                if let EventBody::FinalReport(report) = event
                    && let Some(report) = report.report.as_ref().filter(|_| self.text.json.is_empty())
                {
                    self.text.json.push_str(&escaped(&report.to_string()));
                }
                for text in [&mut self.text, &mut self.reasoning] {
                    match event {
                        EventBody::StepRewound { .. } => text.json.truncate(text.step),
                        EventBody::StepComplete { .. } => text.step = text.json.len(),
                        _ => {}
                    }
                }
                self.is_over |= matches!(event, EventBody::TurnSealed);
            }
        }
    }

    fn say(&mut self, json: &str) {
        let text = &mut self.text;
        if text.step > 0 && text.step == text.json.len() && !json.is_empty() {
            text.json.push_str(STEP_GAP);
        }
        text.json.push_str(json);
    }

    /// Ends the answer for a reason outside the turn.
    pub fn fail(&mut self, why: Refusal) {
        self.ending.fail(why);
        self.is_over = true;
    }

    /// Whether the turn has ended.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the answer as JSON.
    ///
    /// # Errors
    /// Returns the reason if the turn failed.
    pub fn body(self) -> Result<String, Refusal> {
        if let Some(why) = self.ending.failure {
            return Err(why);
        }
        let calls = self.ending.calls.is_empty();
        let calls =
            if calls { String::new() } else { format!(r#","tool_calls":{}"#, self.ending.tool_calls(false)) };
        let content = match self.text.json.is_empty() && !calls.is_empty() {
            true => "null".to_owned(),
            false => format!("\"{}\"", self.text.json),
        };
        let reasoning = match self.reasoning.json.as_str() {
            "" => String::new(),
            reasoning => format!(r#","reasoning_content":"{reasoning}""#),
        };
        let usage = self
            .ending
            .usage
            .map(|usage| format!(r#","usage":{}"#, counts(&usage, &self.ending.reported)))
            .unwrap_or_default();
        let Head { id, model, created } = &self.head;
        Ok(format!(
            r#"{{"id":{},"object":"chat.completion","created":{created},"model":{},"choices":[{{"index":0,"message":{{"role":"assistant","content":{content},"refusal":null{reasoning}{calls}}},"logprobs":null,"finish_reason":{}}}]{usage}{}}}"#,
            json!(id),
            json!(self.ending.reported.model.as_ref().unwrap_or(model)),
            json!(self.ending.finish.unwrap_or("stop")),
            self.ending.fields(),
        ))
    }
}
