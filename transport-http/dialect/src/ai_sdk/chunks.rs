//! Translates the events of a turn to chunks.
//!
//! ```text
//!   start  (start-step  (text | reasoning | tool call)*  finish-step | reset-step | tool result | data)*
//!          (finish | abort | error)  [DONE]
//! ```

use std::collections::BTreeSet;

use everturn_wire::{
    ApprovalRequest, ConversationId, Decider, Decision, DoneReason, EventBody, StepId, TurnId, Usage, Verdict,
};
use serde_json::{Value, json};

use super::{
    Version,
    data::{told, transient},
};
use crate::{
    Asked, Event, Translator, call_key,
    event::{STARTS_AGAIN, escaped},
    failure::{brief, explanation},
    sse::{self, put},
};

const TEXT: &str = "text";
const REASONING: &str = "reasoning";

/// An answer: the state of the translation.
#[derive(Debug)]
pub struct Chunks {
    version: Version,
    /// Whether a step has begun and not ended.
    in_step: bool,
    /// The kind of the open text part, and the prefix of its deltas.
    part: Option<(&'static str, String)>,
    /// Number of text parts begun, used for their ids.
    parts: u32,
    /// The calls that the client knows, and those made in the current step.
    known: BTreeSet<String>,
    fresh: Vec<String>,
    /// Calls for which the client was asked for approval: in this answer, and in this or an earlier one.
    requested: BTreeSet<String>,
    asked_for: BTreeSet<String>,
    asked: Asked,
    /// Whether there is visible text in earlier steps, and in the current one.
    has_text: (bool, bool),
    /// Whether the client was told how it ended.
    has_ended: bool,
    is_over: bool,
}

impl Chunks {
    /// Starts the answer of a turn from its start.
    pub fn new(
        version: Version,
        conversation_id: &ConversationId,
        turn_id: &TurnId,
        out: &mut Vec<u8>,
    ) -> Self {
        let metadata = json!({ "turnId": turn_id, "conversationId": conversation_id });
        put(&json!({ "type": "start", "messageId": turn_id, "messageMetadata": metadata }), out);
        Self::begun(version)
    }

    /// Continues the answer of a turn whose beginning the client has. The client knows these calls, and these requests
    /// for approval were open.
    pub fn continued(
        version: Version,
        known: impl IntoIterator<Item = String>,
        pending: &[ApprovalRequest],
        out: &mut Vec<u8>,
    ) -> Self {
        put(&json!({ "type": "start" }), out);
        let keys = pending.iter().map(|asked| call_key(&asked.step_id, &asked.tool_call_id));
        let asked_for: BTreeSet<String> = keys.collect();
        Self {
            known: known.into_iter().chain(asked_for.iter().cloned()).collect(),
            asked_for,
            asked: Asked::of(pending),
            ..Self::begun(version)
        }
    }

    fn begun(version: Version) -> Self {
        Self {
            version,
            in_step: false,
            part: None,
            parts: 0,
            known: BTreeSet::new(),
            fresh: Vec::new(),
            requested: BTreeSet::new(),
            asked_for: BTreeSet::new(),
            asked: Asked::default(),
            has_text: (false, false),
            has_ended: false,
            is_over: false,
        }
    }

    /// Closes a call that no longer waits for approval. Otherwise the client would send its approval again and again.
    pub fn close_call(&mut self, call: &str, why: &str, out: &mut Vec<u8>) {
        if self.known.contains(call) && !self.has_ended {
            put(
                &json!({ "type": "tool-output-error", "toolCallId": call, "errorText": why, "dynamic": true }),
                out,
            );
        }
    }

    /// Ends an answer to which nothing is added.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.end(&json!({ "type": "finish", "finishReason": "stop" }), out);
        self.close(out);
    }

    fn event(&mut self, event: &EventBody, out: &mut Vec<u8>) {
        self.asked.take(event);
        match event {
            EventBody::ToolCall { step_id, tool_call_id, tool_name, input, .. } => {
                self.call(call_key(step_id, tool_call_id), tool_name, input, out);
            }
            EventBody::ToolResult {
                step_id, tool_call_id, tool_name, content, is_error, decisions, ..
            } => {
                let call = self.known_call(step_id, tool_call_id, tool_name, out);
                self.result(&call, content, *is_error, decisions, out);
            }
            EventBody::ToolOutput { step_id: Some(step_id), tool_call_id, data, stream } => {
                let call = call_key(step_id, tool_call_id);
                transient("tool-output", &json!({ "toolCallId": call, "stream": stream, "data": data }), out);
            }
            EventBody::ApprovalRequested { step_id, tool_call_id, tool_name, reason, .. } => {
                let call = self.known_call(step_id, tool_call_id, tool_name, out);
                self.request(call, reason.as_deref(), event, out);
            }
            EventBody::ApprovalResolved { step_id, tool_call_id, verdict, reason, .. } => {
                self.resolve(&call_key(step_id, tool_call_id), *verdict, reason.as_deref(), out);
            }
            EventBody::StepComplete { .. } => self.finish_step(out),
            EventBody::StepRewound { .. } => self.rewind(event, out),
            EventBody::FinalReport(report) => {
                if let (Some(report), (false, false)) = (&report.report, self.has_text) {
                    self.delta(TEXT, &escaped(&report.to_string()), out);
                }
                told(event, out);
            }
            EventBody::Error(report) => {
                self.end(&json!({ "type": "error", "errorText": explanation(report) }), out);
            }
            EventBody::Done { reason, usage, .. } => self.done(reason, usage.as_ref(), out),
            EventBody::TurnSealed => {
                self.end(&json!({ "type": "error", "errorText": "the turn ended without a reason" }), out);
                self.close(out);
            }
            EventBody::Status { .. }
            | EventBody::UserMessage { .. }
            | EventBody::TurnStart { .. }
            | EventBody::Usage { .. } => {}
            event => told(event, out),
        }
    }

    fn delta(&mut self, kind: &'static str, json: &str, out: &mut Vec<u8>) {
        if json.is_empty() {
            return;
        }
        self.start_step(out);
        if self.part.as_ref().is_none_or(|(open, _)| *open != kind) {
            self.close_part(out);
            let id = self.parts;
            put(&json!({ "type": format!("{kind}-start"), "id": id.to_string() }), out);
            self.part = Some((kind, format!(r#"data: {{"type":"{kind}-delta","id":"{id}","delta":""#)));
        }
        self.has_text.1 |= kind == TEXT;
        let Some((_, head)) = &self.part else { return };
        for part in [head, json, "\"}\n\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    fn close_part(&mut self, out: &mut Vec<u8>) {
        if let Some((kind, _)) = self.part.take() {
            put(&json!({ "type": format!("{kind}-end"), "id": self.parts.to_string() }), out);
            self.parts += 1;
        }
    }

    fn start_step(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.in_step, true) {
            put(&json!({ "type": "start-step" }), out);
        }
    }

    fn finish_step(&mut self, out: &mut Vec<u8>) {
        self.close_part(out);
        if std::mem::take(&mut self.in_step) {
            put(&json!({ "type": "finish-step" }), out);
        }
        self.fresh.clear();
        self.has_text.0 |= std::mem::take(&mut self.has_text.1);
    }

    fn call(&mut self, call: String, name: &str, input: &Value, out: &mut Vec<u8>) {
        self.start_step(out);
        self.close_part(out);
        let chunk = json!({
            "type": "tool-input-available", "toolCallId": call, "toolName": name, "input": input, "dynamic": true,
        });
        put(&chunk, out);
        self.fresh.push(call.clone());
        self.known.insert(call);
    }

    /// Returns the id of a call. Announces the call if the client does not know it, because its event is no longer
    /// kept.
    fn known_call(&mut self, step_id: &StepId, id: &str, name: &str, out: &mut Vec<u8>) -> String {
        let call = call_key(step_id, id);
        if !self.known.contains(&call) {
            self.call(call.clone(), name, &json!({}), out);
        }
        call
    }

    fn result(
        &mut self,
        call: &str,
        content: &str,
        is_error: bool,
        decisions: &[Decision],
        out: &mut Vec<u8>,
    ) {
        let denied = |decision: &Decision| {
            decision.by == Decider::Person && matches!(decision.verdict, Verdict::Denied | Verdict::TimedOut)
        };
        let was_denied = self.version >= Version::Six
            && self.asked_for.contains(call)
            && decisions.last().is_some_and(denied);
        let chunk = match is_error {
            _ if was_denied => json!({ "type": "tool-output-denied", "toolCallId": call }),
            true => {
                json!({ "type": "tool-output-error", "toolCallId": call, "errorText": content, "dynamic": true })
            }
            false => {
                json!({ "type": "tool-output-available", "toolCallId": call, "output": content, "dynamic": true })
            }
        };
        put(&chunk, out);
    }

    fn request(&mut self, call: String, reason: Option<&str>, event: &EventBody, out: &mut Vec<u8>) {
        if self.version >= Version::Six {
            let mut chunk =
                json!({ "type": "tool-approval-request", "approvalId": call, "toolCallId": call });
            if let Some(reason) = reason.filter(|_| self.version >= Version::Seven) {
                chunk["reason"] = reason.into();
            }
            put(&chunk, out);
            self.requested.insert(call.clone());
            self.asked_for.insert(call);
        } else {
            told(event, out);
        }
    }

    /// Handles an answer to a request for approval, by this client in an earlier request or by another.
    fn resolve(&mut self, call: &str, verdict: Verdict, reason: Option<&str>, out: &mut Vec<u8>) {
        if self.version < Version::Seven || !self.requested.remove(call) {
            return;
        }
        let approved = verdict == Verdict::Allowed;
        let mut chunk = json!({ "type": "tool-approval-response", "approvalId": call, "approved": approved });
        if let Some(reason) = reason {
            chunk["reason"] = reason.into();
        }
        put(&chunk, out);
    }

    /// Withdraws what was shown of the step, which will be streamed again.
    fn rewind(&mut self, event: &EventBody, out: &mut Vec<u8>) {
        told(event, out);
        if self.in_step && self.version >= Version::Seven {
            put(&json!({ "type": "reset-step" }), out);
            self.part = None;
            self.parts += 1;
            for call in self.fresh.drain(..) {
                self.known.remove(&call);
                self.requested.remove(&call);
                self.asked_for.remove(&call);
            }
        } else {
            // Older clients cannot withdraw anything, so they are told in the text.
            for call in std::mem::take(&mut self.fresh) {
                self.close_call(&call, "withdrawn: the answer broke off and starts again", out);
            }
            self.close_part(out);
            if self.has_text.1 {
                self.delta(TEXT, &escaped(STARTS_AGAIN.trim()), out);
                self.close_part(out);
            }
        }
        self.has_text.1 = false;
    }

    fn done(&mut self, reason: &DoneReason, usage: Option<&Usage>, out: &mut Vec<u8>) {
        let finish = match reason {
            DoneReason::Stop => "stop",
            DoneReason::Length => "length",
            DoneReason::ContentFilter => "content-filter",
            DoneReason::ToolCalls => "tool-calls",
            DoneReason::Error => {
                return self.end(&json!({ "type": "error", "errorText": "the turn failed" }), out);
            }
            DoneReason::Aborted => {
                self.close_part(out);
                return self.end(&json!({ "type": "abort", "reason": "stopped" }), out);
            }
            _ => "other",
        };
        self.finish_step(out);
        let mut chunk = json!({ "type": "finish", "finishReason": finish });
        if let Some(usage) = usage {
            let total = usage.input_tokens.saturating_add(usage.output_tokens);
            let mut counts = json!(usage);
            counts["totalTokens"] = total.into();
            chunk["messageMetadata"] = json!({ "usage": counts });
        }
        self.end(&chunk, out);
    }

    /// Writes how the answer ended, once.
    fn end(&mut self, chunk: &Value, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.has_ended, true) {
            put(chunk, out);
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        self.is_over = true;
        sse::done(out);
    }
}

impl Translator for Chunks {
    fn push(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.is_over || (self.has_ended && !event.is_seal()) {
            return;
        }
        match (event.delta(), event) {
            (Some((json, true)), _) => self.delta(REASONING, &json, out),
            (Some((json, false)), _) => self.delta(TEXT, &json, out),
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
        // An older client cannot answer, so its stream continues until somebody answers elsewhere.
        if self.is_over || self.version < Version::Six {
            return;
        }
        if !self.has_ended {
            self.finish_step(out);
        }
        self.end(&json!({ "type": "finish", "finishReason": "tool-calls" }), out);
        self.close(out);
    }

    fn fail(&mut self, why: &str, out: &mut Vec<u8>) {
        if !self.is_over {
            self.end(&json!({ "type": "error", "errorText": brief(why.to_owned()) }), out);
            self.close(out);
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}
