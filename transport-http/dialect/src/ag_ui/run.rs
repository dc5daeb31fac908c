//! Translates the events of a turn to AG-UI events.
//!
//! ```text
//!   RUN_STARTED  (text | reasoning | call | result | MESSAGES_SNAPSHOT | CUSTOM)*  (RUN_FINISHED | RUN_ERROR)
//! ```
//!
//! Every step has one assistant message and one reasoning message. Each may be interrupted and resumed.

use std::collections::BTreeSet;

use everturn_wire::{ApprovalRequest, Category, DoneReason, EventBody, StepId, TurnId, Usage};
use serde_json::{Value, json};

use super::{
    Kept,
    head::{Head, custom},
};
use crate::{
    Asked, Event, Translator, call_key,
    event::{STARTS_AGAIN, escaped},
    failure::{brief, explanation},
    sse::{self, put},
};

/// The open part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Text,
    Reasoning,
}

/// A run: the state of the translation.
#[derive(Debug)]
pub struct Run {
    head: Head,
    turn_id: TurnId,
    /// Whether to send the user's message, for a client that connects.
    tells_user: bool,
    /// The number of the current step.
    step: u32,
    /// The open part, and the prefix of its deltas.
    part: Option<(Part, String)>,
    kept: Kept,
    asked: Asked,
    /// Requests for approval as interrupts, with the keys of their calls.
    interrupts: Vec<(String, Value)>,
    /// Whether the current step has visible text, and whether any earlier step has.
    has_text: (bool, bool),
    /// Whether anything of the step was shown.
    has_shown: bool,
    users: u32,
    /// Calls whose results the client has.
    results: BTreeSet<String>,
    is_over: bool,
    has_ended: bool,
}

impl Run {
    /// Starts the run of a turn from its start. `kept`: the messages that the client has.
    pub fn new(head: Head, turn_id: &TurnId, kept: Kept, out: &mut Vec<u8>) -> Self {
        head.started(out);
        Self {
            head,
            turn_id: turn_id.clone(),
            tells_user: false,
            step: 0,
            part: None,
            kept,
            asked: Asked::default(),
            interrupts: Vec::new(),
            has_text: (false, false),
            has_shown: false,
            users: 0,
            results: BTreeSet::new(),
            is_over: false,
            has_ended: false,
        }
    }

    /// Continues a turn for which these requests for approval were open.
    pub fn continued(
        head: Head,
        turn_id: &TurnId,
        pending: &[ApprovalRequest],
        kept: Kept,
        out: &mut Vec<u8>,
    ) -> Self {
        let step = pending.iter().filter_map(|asked| asked.step_id.step()).max();
        let mut run = Self::new(head, turn_id, kept, out);
        run.step = step.map_or(0, |step| step + 1);
        run.asked = Asked::of(pending);
        for asked in pending {
            let call = call_key(&asked.step_id, &asked.tool_call_id);
            run.interrupt(call, &asked.tool_name, asked.reason.as_deref());
        }
        run
    }

    /// Starts the run of a client that connects, which needs the whole conversation and the user's message.
    pub fn connected(head: Head, turn_id: &TurnId, messages: &Value, out: &mut Vec<u8>) -> Self {
        let kept = Kept::of(&messages.to_string());
        let mut run = Self::new(head, turn_id, kept, out);
        run.tells_user = true;
        put(&json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages }), out);
        run
    }

    /// Ends a run to which nothing is added.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.close_part(out);
        self.end(Some(json!({ "type": "success" })), None, out);
        self.is_over = true;
    }

    fn event(&mut self, event: &EventBody, out: &mut Vec<u8>) {
        self.asked.take(event);
        match event {
            EventBody::UserMessage { text } | EventBody::Steering { text } if self.tells_user => {
                self.user(text, out);
            }
            EventBody::ToolCall { step_id, tool_call_id, tool_name, input, .. } => {
                self.call(step_id, tool_call_id, tool_name, input, out);
            }
            EventBody::ToolResult { step_id, tool_call_id, content, .. } => {
                self.result(&call_key(step_id, tool_call_id), content, out);
            }
            EventBody::ApprovalRequested { step_id, tool_call_id, tool_name, reason, .. } => {
                self.interrupt(call_key(step_id, tool_call_id), tool_name, reason.as_deref());
                custom(event, out);
            }
            EventBody::StepComplete { .. } => self.finish_step(out),
            EventBody::StepRewound { step_id, .. } => self.rewind(step_id, event, out),
            EventBody::FinalReport(report) => {
                if let (Some(report), (false, false)) = (&report.report, self.has_text) {
                    self.delta(Part::Text, &escaped(&report.to_string()), out);
                }
                custom(event, out);
            }
            EventBody::Error(report) => {
                let code = report.category.map(Category::as_str);
                self.error(&explanation(report), code, out);
            }
            EventBody::Done { reason, usage, .. } => self.done(reason, usage.as_ref(), event, out),
            EventBody::TurnSealed => {
                if !self.has_ended {
                    self.error("the turn ended without a reason", None, out);
                }
                self.is_over = true;
            }
            EventBody::Status { .. }
            | EventBody::UserMessage { .. }
            | EventBody::TurnStart { .. }
            | EventBody::Usage { .. } => {}
            event => custom(event, out),
        }
    }

    /// Returns the id of the step's message of this kind.
    fn message_id(&self, part: Part) -> String {
        let step = StepId::new(&self.turn_id, self.step);
        match part {
            Part::Text => format!("{step}:m"),
            Part::Reasoning => format!("{step}:r"),
        }
    }

    fn delta(&mut self, part: Part, json: &str, out: &mut Vec<u8>) {
        if json.is_empty() {
            return;
        }
        if self.part.as_ref().is_none_or(|(open, _)| *open != part) {
            self.close_part(out);
            self.open_part(part, out);
        }
        self.has_shown = true;
        self.has_text.0 |= part == Part::Text;
        self.kept.append(json);
        let Some((_, head)) = &self.part else { return };
        for piece in [head, json, "\"}\n\n"] {
            out.extend_from_slice(piece.as_bytes());
        }
    }

    fn open_part(&mut self, part: Part, out: &mut Vec<u8>) {
        let id = self.message_id(part);
        let kind = match part {
            Part::Text => {
                put(&json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }), out);
                "TEXT_MESSAGE_CONTENT"
            }
            Part::Reasoning => {
                put(&json!({ "type": "REASONING_START", "messageId": id }), out);
                put(&json!({ "type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning" }), out);
                "REASONING_MESSAGE_CONTENT"
            }
        };
        let id = escaped(&id);
        self.part = Some((part, format!(r#"data: {{"type":"{kind}","messageId":"{id}","delta":""#)));
    }

    fn close_part(&mut self, out: &mut Vec<u8>) {
        // After the end, no part is open.
        let Some((part, _)) = self.part.take().filter(|_| !self.has_ended) else { return };
        let id = self.message_id(part);
        match part {
            Part::Text => {
                put(&json!({ "type": "TEXT_MESSAGE_END", "messageId": id }), out);
                self.kept.close_text(&id);
            }
            Part::Reasoning => {
                put(&json!({ "type": "REASONING_MESSAGE_END", "messageId": id }), out);
                put(&json!({ "type": "REASONING_END", "messageId": id }), out);
                self.kept.close_reasoning(&id);
            }
        }
    }

    fn finish_step(&mut self, out: &mut Vec<u8>) {
        self.close_part(out);
        self.kept.commit();
        self.step += 1;
        self.has_text.1 |= std::mem::take(&mut self.has_text.0);
        self.has_shown = false;
    }

    fn user(&mut self, text: &str, out: &mut Vec<u8>) {
        self.close_part(out);
        let id = format!("{}:u{}", self.turn_id, self.users);
        self.users += 1;
        put(&json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "user" }), out);
        if !text.is_empty() {
            put(&json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text }), out);
        }
        put(&json!({ "type": "TEXT_MESSAGE_END", "messageId": id }), out);
        self.kept.message(json!({ "id": id, "role": "user", "content": text }), text.len());
        if !self.has_shown {
            self.kept.commit();
        }
    }

    fn call(&mut self, step_id: &StepId, id: &str, name: &str, input: &Value, out: &mut Vec<u8>) {
        self.close_part(out);
        let (call, parent) = (call_key(step_id, id), self.message_id(Part::Text));
        let arguments = match input {
            // They did not parse, so the client gets the model's text.
            Value::String(raw) => raw.clone(),
            input => input.to_string(),
        };
        put(
            &json!({ "type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": name, "parentMessageId": parent }),
            out,
        );
        if !arguments.is_empty() {
            put(&json!({ "type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": arguments }), out);
        }
        put(&json!({ "type": "TOOL_CALL_END", "toolCallId": call }), out);
        self.kept.call(&parent, &call, name, &arguments);
        self.has_shown = true;
    }

    fn result(&mut self, call: &str, content: &str, out: &mut Vec<u8>) {
        self.interrupts.retain(|(key, _)| key != call);
        if !self.results.insert(call.to_owned()) {
            return;
        }
        self.close_part(out);
        let id = format!("{call}:result");
        put(
            &json!({ "type": "TOOL_CALL_RESULT", "messageId": id, "toolCallId": call, "content": content, "role": "tool" }),
            out,
        );
        self.kept.message(
            json!({ "id": id, "role": "tool", "toolCallId": call, "content": content }),
            content.len(),
        );
        // The step of the call is over, so a rewind does not affect it.
        if !self.has_shown {
            self.kept.commit();
        }
    }

    fn interrupt(&mut self, call: String, name: &str, reason: Option<&str>) {
        let message = match reason {
            Some(reason) => format!("{name} needs approval: {reason}"),
            None => format!("{name} needs approval"),
        };
        let schema = json!({
            "type": "object", "required": ["approved"],
            "properties": { "approved": { "type": "boolean" }, "reason": { "type": "string" } },
        });
        let interrupt = json!({
            "id": call, "reason": "tool_call", "toolCallId": call, "message": brief(message), "responseSchema": schema,
        });
        self.interrupts.retain(|(key, _)| *key != call);
        self.interrupts.push((call, interrupt));
    }

    /// Withdraws what was shown of the step, which will be streamed again.
    fn rewind(&mut self, step_id: &StepId, event: &EventBody, out: &mut Vec<u8>) {
        // A call of the new answer may have the same id, and has a result of its own.
        let of_step = call_key(step_id, "");
        self.results.retain(|call| !call.starts_with(&of_step));
        self.close_part(out);
        custom(event, out);
        if std::mem::take(&mut self.has_shown) {
            match self.kept.rewind() {
                Some(messages) => {
                    let snapshot =
                        format!("data: {{\"type\":\"MESSAGES_SNAPSHOT\",\"messages\":{messages}}}\n\n");
                    out.extend_from_slice(snapshot.as_bytes());
                    self.has_text.0 = false;
                }
                // The remaining messages are unknown, so the text says that it starts again.
                None => self.delta(Part::Text, &escaped(STARTS_AGAIN), out),
            }
        }
    }

    fn done(&mut self, reason: &DoneReason, usage: Option<&Usage>, event: &EventBody, out: &mut Vec<u8>) {
        self.close_part(out);
        let outcome = match reason {
            DoneReason::Error => return self.error("the turn failed", None, out),
            DoneReason::Aborted => {
                custom(event, out);
                // Older clients do not have this outcome, which is not an error.
                self.head.is_one().then(|| json!({ "type": "cancelled" }))
            }
            DoneReason::Stop | DoneReason::ToolCalls => Some(json!({ "type": "success" })),
            _ => {
                custom(event, out);
                Some(json!({ "type": "success" }))
            }
        };
        self.end(outcome, usage, out);
    }

    fn end(&mut self, outcome: Option<Value>, usage: Option<&Usage>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.head.finished(outcome, usage, out);
        }
    }

    fn error(&mut self, message: &str, code: Option<&str>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut event = json!({ "type": "RUN_ERROR", "message": message });
        if let Some(code) = code {
            event["code"] = code.into();
        }
        put(&event, out);
    }
}

impl Translator for Run {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.is_over || (self.has_ended && !event.is_seal()) {
            return;
        }
        match (event.delta(), event) {
            (Some((json, true)), _) => self.delta(Part::Reasoning, &json, out),
            (Some((json, false)), _) => self.delta(Part::Text, &json, out),
            (None, Event::Other(event)) => self.event(event, out),
            (None, _) => {}
        }
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        sse::keep_alive(out);
    }

    fn asked(&self) -> &Asked {
        &self.asked
    }

    fn wait_for_people(&mut self, out: &mut Vec<u8>) {
        if self.is_over {
            return;
        }
        self.close_part(out);
        let interrupts: Vec<Value> = std::mem::take(&mut self.interrupts)
            .into_iter()
            .filter_map(|(call, interrupt)| self.asked.has(&call).then_some(interrupt))
            .collect();
        self.end(Some(json!({ "type": "interrupt", "interrupts": interrupts })), None, out);
        self.is_over = true;
    }

    fn fail(&mut self, why: &str, out: &mut Vec<u8>) {
        if !self.is_over {
            self.error(&brief(why.to_owned()), None, out);
            self.is_over = true;
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}
