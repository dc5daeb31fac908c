//! What a caller does with its conversations.

use everturn_wire::{
    ApprovalAnswer, ConversationId, ModelSettings, QuestionAnswer, QueueCancelled, Queued, RetryPatch,
    RetrySettingsState, TurnId,
};

use super::View;
use crate::{Error, RetryTurn, StartTurn, Started};

impl View {
    fn started(&self, started: Result<Started, Error>) -> Result<Started, Error> {
        let started = started.map_err(|error| self.told(error))?;
        Ok(Started { conversation_id: self.local(&started.conversation_id), ..started })
    }

    /// See [`Orchestrator::start`](crate::Orchestrator::start). A conversation that it creates is the caller's.
    ///
    /// # Errors
    /// As there. The administrator can continue another's conversation, but not create one.
    pub async fn start(&self, mut start: StartTurn) -> Result<Started, Error> {
        if let Some(id) = &start.conversation_id {
            let id = self.full(id)?;
            if self.name().is_none() && id.caller().is_some() {
                self.all.title(&id).await?;
            }
            start.conversation_id = Some(id);
        }
        start.caller = self.name().cloned();
        self.started(self.all.start(start).await)
    }

    /// See [`Orchestrator::retry_with`](crate::Orchestrator::retry_with).
    ///
    /// # Errors
    /// As there.
    pub async fn retry_with(&self, id: &ConversationId, what: RetryTurn) -> Result<Started, Error> {
        self.started(self.all.retry_with(&self.full(id)?, what).await)
    }

    /// See [`Orchestrator::compact`](crate::Orchestrator::compact).
    ///
    /// # Errors
    /// As there.
    pub async fn compact(&self, id: &ConversationId) -> Result<Started, Error> {
        self.started(self.all.compact(&self.full(id)?).await)
    }

    /// See [`Orchestrator::enqueue`](crate::Orchestrator::enqueue).
    ///
    /// # Errors
    /// As there.
    pub async fn enqueue(
        &self,
        id: &ConversationId,
        text: String,
        message_id: Option<String>,
    ) -> Result<Queued, Error> {
        let id = self.full(id)?;
        let queued = self.all.enqueue(&id, text, message_id).await.map_err(|error| self.told(error))?;
        Ok(Queued { conversation_id: self.local(&id), ..queued })
    }

    /// See [`Orchestrator::cancel_queued`](crate::Orchestrator::cancel_queued).
    ///
    /// # Errors
    /// As there.
    pub async fn cancel_queued(
        &self,
        id: &ConversationId,
        message_id: &str,
    ) -> Result<QueueCancelled, Error> {
        let id = self.full(id)?;
        let cancelled = self.all.cancel_queued(&id, message_id).await.map_err(|error| self.told(error))?;
        Ok(QueueCancelled { conversation_id: self.local(&id), ..cancelled })
    }

    /// See [`Orchestrator::stop`](crate::Orchestrator::stop).
    ///
    /// # Errors
    /// As there.
    pub async fn stop(&self, id: &ConversationId) -> Result<bool, Error> {
        self.all.stop(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::stop_turn`](crate::Orchestrator::stop_turn).
    ///
    /// # Errors
    /// As there.
    pub async fn stop_turn(&self, id: &ConversationId, turn_id: &TurnId) -> Result<bool, Error> {
        self.all.stop_turn(&self.full(id)?, turn_id).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::close`](crate::Orchestrator::close).
    ///
    /// # Errors
    /// As there.
    pub async fn close(&self, id: &ConversationId) -> Result<bool, Error> {
        self.all.close(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::delete`](crate::Orchestrator::delete).
    ///
    /// # Errors
    /// As there.
    pub async fn delete(&self, id: &ConversationId) -> Result<bool, Error> {
        self.all.delete(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::rename`](crate::Orchestrator::rename).
    ///
    /// # Errors
    /// As there.
    pub async fn rename(&self, id: &ConversationId, title: &str) -> Result<String, Error> {
        self.all.rename(&self.full(id)?, title).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::answer_approval`](crate::Orchestrator::answer_approval).
    ///
    /// # Errors
    /// As there.
    pub async fn answer_approval(&self, id: &ConversationId, answer: ApprovalAnswer) -> Result<bool, Error> {
        self.all.answer_approval(&self.full(id)?, answer).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::answer_question`](crate::Orchestrator::answer_question).
    ///
    /// # Errors
    /// As there.
    pub async fn answer_question(&self, id: &ConversationId, answer: QuestionAnswer) -> Result<bool, Error> {
        self.all.answer_question(&self.full(id)?, answer).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::revoke_tool`](crate::Orchestrator::revoke_tool).
    ///
    /// # Errors
    /// As there.
    pub async fn revoke_tool(&self, id: &ConversationId, tool: &str) -> Result<bool, Error> {
        self.all.revoke_tool(&self.full(id)?, tool).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::abort_retry`](crate::Orchestrator::abort_retry).
    ///
    /// # Errors
    /// As there.
    pub async fn abort_retry(&self, id: &ConversationId) -> Result<bool, Error> {
        self.all.abort_retry(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::retry_now`](crate::Orchestrator::retry_now).
    ///
    /// # Errors
    /// As there.
    pub async fn retry_now(&self, id: &ConversationId) -> Result<bool, Error> {
        self.all.retry_now(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::retry_now_with`](crate::Orchestrator::retry_now_with).
    ///
    /// # Errors
    /// As there.
    pub async fn retry_now_with(&self, id: &ConversationId, model: &str) -> Result<bool, Error> {
        self.all.retry_now_with(&self.full(id)?, model).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::set_model_settings`](crate::Orchestrator::set_model_settings).
    ///
    /// # Errors
    /// As there.
    pub async fn set_model_settings(
        &self,
        id: &ConversationId,
        settings: ModelSettings,
    ) -> Result<ModelSettings, Error> {
        self.all.set_model_settings(&self.full(id)?, settings).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::change_retry_settings`](crate::Orchestrator::change_retry_settings).
    ///
    /// # Errors
    /// As there. Only the administrator can change the global ones.
    pub async fn change_retry_settings(
        &self,
        id: Option<&ConversationId>,
        patch: &RetryPatch,
    ) -> Result<RetrySettingsState, Error> {
        let id = match id {
            Some(id) => Some(self.full(id)?),
            None if self.name().is_none() => None,
            None => return Err(Error::NotAllowed { what: "change the retry settings of all conversations" }),
        };
        let changed = self.all.change_retry_settings(id.as_ref(), patch).await;
        self.settings(changed)
    }
}
