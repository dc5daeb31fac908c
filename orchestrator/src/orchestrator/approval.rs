//! Answers of people: to requests for approval, and to questions of tools.

use std::sync::Arc;

use everturn_kernel::{Answer, Input};
use everturn_wire::{ApprovalAnswer, ApprovalScope, Approvals, ConversationId, QuestionAnswer, Verdict};
use tokio::sync::oneshot;

use super::Orchestrator;
use crate::{
    Error, JournalError,
    cluster::Command,
    conversation::{Control, Conversation},
};

/// Maximum length of a person's reason, in bytes.
const MAX_REASON: usize = 4 << 10;

/// Maximum length of a person's name, or of what they answered with (`via`), in bytes.
const MAX_NAME: usize = 200;

impl Orchestrator {
    /// Returns the tool calls of a conversation that wait for a person, and the tools allowed for the whole
    /// conversation.
    ///
    /// # Errors
    /// When the conversation does not exist, or the state store fails.
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

    /// Answers a request for approval. Returns when the answer is durable, and whether the call was waiting for it. A
    /// late or second answer changes nothing.
    ///
    /// # Errors
    /// When the conversation does not exist, the answer is invalid, or it could not be saved.
    pub async fn answer_approval(&self, id: &ConversationId, answer: ApprovalAnswer) -> Result<bool, Error> {
        let bad = |why: &str| Err(Error::BadAnswer { why: why.to_owned() });
        let ApprovalAnswer { turn_id, step_id, tool_call_id, verdict, scope, reason, name, via } = answer;
        if !matches!(verdict, Verdict::Allowed | Verdict::Denied) {
            return bad("the verdict must be \"allowed\" or \"denied\"");
        }
        if scope == Some(ApprovalScope::Unknown) {
            return bad("the scope must be \"call\" or \"conversation\"");
        }
        if reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON) {
            return bad("the reason has more than 4096 bytes");
        }
        check_who(name.as_ref(), via.as_ref())?;
        let answer = ApprovalAnswer { turn_id, step_id, tool_call_id, verdict, scope, reason, name, via };
        self.switch(id, Command::Answer(Box::new(answer))).await
    }

    /// Carries out an answer that was checked.
    pub(super) async fn answer_here(
        &self,
        conversation: &Arc<Conversation>,
        answer: ApprovalAnswer,
    ) -> Result<bool, Error> {
        let ApprovalAnswer { turn_id, step_id, tool_call_id, verdict, scope, reason, name, via } = answer;
        let (id, allows) = (&conversation.id, verdict == Verdict::Allowed);
        let Some(tool) = conversation.asked_tool(&turn_id, &step_id, &tool_call_id) else { return Ok(false) };
        let Some(step) = step_id.step_of(&turn_id) else { return Ok(false) };
        let whole_tool = allows && scope == Some(ApprovalScope::Conversation);
        let (grants, own) = (&self.ports.permissions.grants, &conversation.grants);
        if whole_tool {
            grants.check_room(id, own, &tool).await?;
        }
        let (taken, is_taken) = oneshot::channel();
        let answer = Answer { step, call_id: tool_call_id, allows, whole_tool, reason, name, via };
        let control = Control { taken: Some(taken), ..Control::from(Input::Answer(Box::new(answer))) };
        if !self.send(conversation, control)? {
            return Ok(false);
        }
        if is_taken.await.is_err() {
            // Either another answer came first, or this one could not be saved.
            conversation.check_kept()?;
            return Ok(false);
        }
        // The session that took the answer also saves the grant, whether or not anybody waits for this.
        if whole_tool && !own.allows(&tool) {
            let why = format!(
                "the call was allowed, but the permission for the whole conversation could not be saved: {tool:?} will ask again"
            );
            return Err(JournalError::Storage(why).into());
        }
        Ok(true)
    }

    /// Answers a question of a running tool. Returns whether the question was open: a late or second answer changes nothing.
    ///
    /// # Errors
    /// When the conversation does not exist, or the answer does not fit; then the question stays open.
    pub async fn answer_question(&self, id: &ConversationId, answer: QuestionAnswer) -> Result<bool, Error> {
        check_who(answer.name.as_ref(), answer.via.as_ref())?;
        self.switch(id, Command::Question(Box::new(answer))).await
    }

    pub(super) fn answer_question_here(
        &self,
        conversation: &Conversation,
        answer: QuestionAnswer,
    ) -> Result<bool, Error> {
        conversation.questions.answer(answer).map_err(|why| Error::BadAnswer { why })
    }

    /// Revokes a tool's grant for the conversation: its calls need approval again. Durable when it returns. Returns
    /// whether the tool was allowed until now.
    ///
    /// # Errors
    /// When the conversation does not exist, or the state store fails.
    pub async fn revoke_tool(&self, id: &ConversationId, tool: &str) -> Result<bool, Error> {
        self.switch(id, Command::RevokeTool { tool: tool.to_owned() }).await
    }

    pub(super) async fn revoke_tool_here(
        &self,
        conversation: &Conversation,
        tool: &str,
    ) -> Result<bool, Error> {
        let grants = &self.ports.permissions.grants;
        Ok(grants.change(&conversation.id, &conversation.grants, tool, false).await?)
    }
}

/// Checks who answers, and with what.
fn check_who(name: Option<&String>, via: Option<&String>) -> Result<(), Error> {
    if [name, via].into_iter().flatten().any(|text| text.len() > MAX_NAME) {
        return Err(Error::BadAnswer { why: "`name` and `via` may have 200 bytes each".to_owned() });
    }
    Ok(())
}
