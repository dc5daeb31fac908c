//! What people allow and deny.

use everturn_kernel::{Answer, Input};
use everturn_wire::{ApprovalAnswer, ApprovalScope, Approvals, ConversationId, Verdict};
use tokio::sync::oneshot;

use super::Orchestrator;
use crate::{Error, conversation::Control};

/// Longest reason that a person gives, in bytes.
const MAX_REASON: usize = 4 << 10;

/// Longest name of a person, or of what they answer with, in bytes.
const MAX_NAME: usize = 200;

impl Orchestrator {
    /// The tool calls of a conversation that wait for a person, and the tools that were allowed for all of it.
    ///
    /// # Errors
    /// When there is no such conversation, or the state store fails.
    pub async fn approvals(&self, id: &ConversationId) -> Result<Approvals, Error> {
        let conversation = self.find(id).await?;
        let allowed = self.ports.permissions.grants.read(id, &conversation.grants).await?;
        let pending = conversation.state().live.running.as_ref().map(|turn| turn.approvals.to_vec());
        Ok(Approvals {
            conversation_id: id.clone(),
            pending: pending.unwrap_or_default(),
            allowed_tools: allowed.into_iter().collect(),
        })
    }

    /// Answers a request for approval. Returns when the answer is durable; says whether the call was waiting for it. A late
    /// or second answer changes nothing.
    ///
    /// # Errors
    /// When there is no such conversation, the answer is neither a yes nor a no, or it could not be saved.
    pub async fn answer_approval(&self, id: &ConversationId, answer: ApprovalAnswer) -> Result<bool, Error> {
        let bad = |why: &str| Err(Error::BadAnswer { why: why.to_owned() });
        let ApprovalAnswer { turn_id, step_id, tool_call_id, verdict, scope, reason, name, via } = answer;
        let allows = match verdict {
            Verdict::Allowed => true,
            Verdict::Denied => false,
            _ => return bad("the verdict must be \"allowed\" or \"denied\""),
        };
        if scope == Some(ApprovalScope::Unknown) {
            return bad("the scope must be \"call\" or \"conversation\"");
        }
        if reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON) {
            return bad("the reason has more than 4096 bytes");
        }
        if [&name, &via].into_iter().flatten().any(|text| text.len() > MAX_NAME) {
            return bad("`name` and `via` may have 200 bytes each");
        }
        let conversation = self.find(id).await?;
        let Some(tool) = conversation.asked_tool(&turn_id, &step_id, &tool_call_id) else { return Ok(false) };
        let Some(step) = step_id.step_of(&turn_id) else { return Ok(false) };
        let whole_tool = allows && scope == Some(ApprovalScope::Conversation);
        let grants = &self.ports.permissions.grants;
        let mut is_new_grant = false;
        if whole_tool {
            // First: a call that is allowed runs, and the next one must not ask again.
            is_new_grant = grants.change(id, &conversation.grants, &tool, true).await?;
        }
        let (taken, is_taken) = oneshot::channel();
        let answer = Answer { step, call_id: tool_call_id, allows, whole_tool, reason, name, via };
        let control = Control { taken: Some(taken), ..Control::from(Input::Answer(Box::new(answer))) };
        let sent = self.send(&conversation, control);
        let answered = matches!(sent, Ok(true)) && is_taken.await.is_ok();
        if !answered && is_new_grant {
            // It went with an answer that did not count.
            grants.change(id, &conversation.grants, &tool, false).await?;
        }
        if sent? && !answered {
            // Another answer was quicker, unless it could not be saved.
            conversation.check_kept()?;
        }
        Ok(answered)
    }

    /// Asks again before each call of a tool that was allowed for the conversation. Durable when it returns; says whether it
    /// was allowed until now.
    ///
    /// # Errors
    /// When there is no such conversation, or the state store fails.
    pub async fn revoke_tool(&self, id: &ConversationId, tool: &str) -> Result<bool, Error> {
        let conversation = self.find(id).await?;
        Ok(self.ports.permissions.grants.change(id, &conversation.grants, tool, false).await?)
    }
}
