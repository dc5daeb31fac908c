//! Decides what must happen before a tool call runs: policies, reviews, approvals.

use std::{panic::AssertUnwindSafe, time::Duration};

use everturn_kernel::{
    Arguments, Check, Checked, FINAL_REPORT, Host as _, ReviewAnswer, ReviewAttempt, ToolCall, Turn, Want,
};
use everturn_wire::{Category, Chunk, Failure, Role, Value};
use futures_core::future::BoxFuture;
use futures_util::{FutureExt as _, future};

use super::TurnHost;
use crate::{
    panic::panic_text,
    report,
    reviewer::{ReviewRequest, Switches},
    session::request,
    tool::excerpt,
};

/// Maximum number of user messages that a reviewer is given, and their maximum length in bytes.
const MAX_SAID: usize = 20;
const MAX_MESSAGE: usize = 8 << 10;

impl TurnHost<'_> {
    pub(super) fn check_call(&self, call: &ToolCall) -> Checked {
        if let Arguments::Malformed { raw, reason } = &call.arguments {
            let (turn, tool) = (&self.turn_id, &call.name);
            tracing::error!(%turn, tool, reason, payload = raw, "the arguments of a tool call are not valid JSON");
        }
        if let Some(required) = self.settings.definition.final_report.as_deref()
            && call.name == FINAL_REPORT
        {
            return report::judge(required, &self.shared.permissions.schemas, call).into();
        }
        let specs = self.settings.tools.specs();
        let spec = specs.iter().find(|spec| spec.name == call.name);
        if (spec.is_some() && self.settings.has_callers_tools()) || self.settings.is_bare() {
            return Check::Caller.into();
        }
        let (Some(tool), Some(spec)) = (self.settings.tools.get(&call.name), spec) else {
            // Refused now, not when it runs: a restart may bring the tool back, and then the call would run unchecked.
            return Check::Refused(self.no_such_tool(&call.name)).into();
        };
        let mode = self.settings.definition.approvals;
        self.shared.permissions.check(call, tool.as_ref(), spec, mode, &self.conversation.grants)
    }

    /// Returns the message to the model about a call of an unknown tool.
    pub(super) fn no_such_tool(&self, name: &str) -> String {
        let known: Vec<_> = self.settings.tools.names().collect();
        format!("(tool failed: there is no tool {name:?}; there are: {})", known.join(", "))
    }

    pub(super) fn review_call(
        &mut self,
        turn: &Turn,
        call: &ToolCall,
        attempt: ReviewAttempt,
    ) -> BoxFuture<'static, ReviewAnswer> {
        let specs = self.settings.tools.specs();
        let tool = specs.iter().find(|spec| spec.name == call.name).cloned();
        let (Some(reviewer), Some(tool)) = (self.shared.reviewer.clone(), tool) else {
            let failure = Failure::new(Category::NotFound, false, "no reviewer is configured for this call");
            return future::ready(ReviewAnswer::Failed(failure)).boxed();
        };
        let step = match turn.want() {
            Want::Tools { step, .. } | Want::Person { step, .. } => step,
            Want::Stream(op) | Want::Wake(op, _) => op.step,
            Want::Nothing => turn.steps(),
        };
        let switches = Switches { step, call_id: call.id.clone(), inbox: self.inbox() };
        let request = ReviewRequest {
            conversation_id: self.conversation.id.clone(),
            turn_id: turn.id().clone(),
            call_id: call.id.clone(),
            tool,
            input: match &call.arguments {
                Arguments::Parsed(value) => value.clone(),
                Arguments::Malformed { raw, .. } => Value::String(raw.clone()),
            },
            said: self.said(),
            attempt: attempt.number,
            left: Duration::from_millis(attempt.deadline.since(self.now())),
            switches,
        };
        let shared = self.shared.clone();
        async move {
            let review = AssertUnwindSafe(async { reviewer.review(&shared, request).await }).catch_unwind();
            review.await.unwrap_or_else(|panic| {
                let text = format!("the reviewer panicked: {}", panic_text(panic.as_ref()));
                ReviewAnswer::Failed(Failure::new(Category::Internal, false, text))
            })
        }
        .boxed()
    }

    /// Returns the user's latest messages on the turn's branch.
    fn said(&self) -> Vec<String> {
        let chunks = self.conversation.state().record.chunks.clone();
        let messages =
            request::messages(None, &request::sent(&chunks, self.settings.definition.supersedes, None));
        let said = messages.iter().filter(|message| message.role == Role::User);
        let texts = said.flat_map(|message| &message.chunks).filter_map(|chunk| match &**chunk {
            Chunk::Text { text } => Some(excerpt(text.clone(), MAX_MESSAGE)),
            _ => None,
        });
        let mut texts: Vec<_> = texts.collect();
        texts.drain(..texts.len().saturating_sub(MAX_SAID));
        texts
    }
}
