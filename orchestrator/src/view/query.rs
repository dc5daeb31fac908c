//! What a caller reads of its conversations, and of what all share.

use std::sync::Arc;

use everturn_wire::{
    Approvals, Attempts, ClusterState, ConversationId, ConversationState, ConversationSummary, HistoryWindow,
    ModelSettings, RetrySettingsState, TargetState, Tools, TurnId, TurnMetrics, UsageReport,
};
use tokio::sync::broadcast;

use super::View;
use crate::{Error, ListCursor, Page, SearchCursor, StatusChange, UsageQuery, Window};

impl View {
    /// Returns a page of the caller's conversations. See [`Orchestrator::conversations`](crate::Orchestrator::conversations).
    ///
    /// # Errors
    /// As there.
    pub async fn conversations(
        &self,
        page: Page,
    ) -> Result<(Vec<ConversationSummary>, Option<ListCursor>), Error> {
        let after = page.after.as_ref().map(|after| self.full_cursor(after)).transpose()?;
        let page = Page { after, caller: self.name().cloned(), ..page };
        let (list, next) = self.all.conversations(page).await?;
        Ok((self.listed(list), next.map(|next| self.local_cursor(&next))))
    }

    /// Searches the caller's conversations. See [`Orchestrator::search`](crate::Orchestrator::search).
    ///
    /// # Errors
    /// As there.
    pub async fn search(
        &self,
        text: &str,
        after: Option<SearchCursor>,
        limit: usize,
    ) -> Result<(Vec<ConversationSummary>, Option<SearchCursor>), Error> {
        let after = match after {
            Some(after) => Some(SearchCursor { at: self.full_cursor(&after.at)?, ..after }),
            None => None,
        };
        let (list, next) = self.all.search_of(self.name(), text, after, limit).await?;
        let next = next.map(|next| SearchCursor { at: self.local_cursor(&next.at), ..next });
        Ok((self.listed(list), next))
    }

    fn listed(&self, mut list: Vec<ConversationSummary>) -> Vec<ConversationSummary> {
        list.iter_mut().for_each(|listed| listed.id = self.local(&listed.id));
        list
    }

    fn full_cursor(&self, cursor: &ListCursor) -> Result<ListCursor, Error> {
        Ok(ListCursor { id: self.translated(&cursor.id)?, ..*cursor })
    }

    fn local_cursor(&self, cursor: &ListCursor) -> ListCursor {
        ListCursor { id: self.local(&cursor.id), ..*cursor }
    }

    /// See [`Orchestrator::history`](crate::Orchestrator::history).
    ///
    /// # Errors
    /// As there.
    pub async fn history(&self, id: &ConversationId, window: Window) -> Result<HistoryWindow, Error> {
        self.all.history(&self.full(id)?, window).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::status`](crate::Orchestrator::status).
    ///
    /// # Errors
    /// As there.
    pub async fn status(&self, id: &ConversationId) -> Result<ConversationState, Error> {
        let id = self.full(id)?;
        let state = self.all.status(&id).await.map_err(|error| self.told(error))?;
        Ok(ConversationState { conversation_id: self.local(&id), ..state })
    }

    /// See [`Orchestrator::metrics`](crate::Orchestrator::metrics).
    ///
    /// # Errors
    /// As there.
    pub async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, Error> {
        self.all.metrics(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::user_messages`](crate::Orchestrator::user_messages).
    ///
    /// # Errors
    /// As there.
    pub async fn user_messages(&self, id: &ConversationId) -> Result<Vec<u64>, Error> {
        self.all.user_messages(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::turn`](crate::Orchestrator::turn).
    ///
    /// # Errors
    /// As there.
    pub async fn turn(&self, id: &ConversationId, turn_id: &TurnId) -> Result<TurnMetrics, Error> {
        self.all.turn(&self.full(id)?, turn_id).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::attempts`](crate::Orchestrator::attempts).
    ///
    /// # Errors
    /// As there.
    pub async fn attempts(
        &self,
        id: &ConversationId,
        turn_id: Option<&TurnId>,
        limit: usize,
    ) -> Result<Attempts, Error> {
        self.all.attempts(&self.full(id)?, turn_id, limit).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::approvals`](crate::Orchestrator::approvals).
    ///
    /// # Errors
    /// As there.
    pub async fn approvals(&self, id: &ConversationId) -> Result<Approvals, Error> {
        let id = self.full(id)?;
        let approvals = self.all.approvals(&id).await.map_err(|error| self.told(error))?;
        Ok(Approvals { conversation_id: self.local(&id), ..approvals })
    }

    /// See [`Orchestrator::model_settings`](crate::Orchestrator::model_settings).
    ///
    /// # Errors
    /// As there.
    pub async fn model_settings(&self, id: &ConversationId) -> Result<ModelSettings, Error> {
        self.all.model_settings(&self.full(id)?).await.map_err(|error| self.told(error))
    }

    /// See [`Orchestrator::retry_settings`](crate::Orchestrator::retry_settings).
    ///
    /// # Errors
    /// As there.
    pub async fn retry_settings(&self, id: Option<&ConversationId>) -> Result<RetrySettingsState, Error> {
        let id = id.map(|id| self.full(id)).transpose()?;
        let read = self.all.retry_settings(id.as_ref()).await;
        self.settings(read)
    }

    pub(super) fn settings(
        &self,
        state: Result<RetrySettingsState, Error>,
    ) -> Result<RetrySettingsState, Error> {
        let state = state.map_err(|error| self.told(error))?;
        let conversation_id = state.conversation_id.as_ref().map(|id| self.local(id));
        Ok(RetrySettingsState { conversation_id, ..state })
    }

    /// Subscribes to changes of retry settings of all callers; [`Self::shown_settings`] says which ones this one sees.
    pub fn retry_settings_changes(&self) -> broadcast::Receiver<Arc<RetrySettingsState>> {
        self.all.retry_settings_changes()
    }

    /// Subscribes to status changes of all callers; [`Self::shown`] says which ones this one sees.
    pub fn status_changes(&self) -> broadcast::Receiver<StatusChange> {
        self.all.status_changes()
    }

    /// See [`Orchestrator::models`](crate::Orchestrator::models).
    pub fn models(&self) -> Vec<String> {
        self.all.models_of_any(self.name())
    }

    /// Returns what the caller used; the administrator sees the usage of all. See [`Orchestrator::usage`](crate::Orchestrator::usage).
    ///
    /// # Errors
    /// As there.
    pub async fn usage(&self, query: UsageQuery) -> Result<UsageReport, Error> {
        self.all.usage_of(query, self.name()).await
    }

    /// Returns the targets that the caller's calls can go to. See [`Orchestrator::targets`](crate::Orchestrator::targets).
    pub fn targets(&self) -> Vec<TargetState> {
        self.all.targets_of_any(self.name())
    }

    /// See [`Orchestrator::tools`](crate::Orchestrator::tools).
    pub fn tools(&self) -> Tools {
        self.all.tools()
    }

    /// See [`Orchestrator::cluster`](crate::Orchestrator::cluster).
    ///
    /// # Errors
    /// As there.
    pub async fn cluster(&self) -> Result<ClusterState, Error> {
        self.all.cluster().await
    }
}
