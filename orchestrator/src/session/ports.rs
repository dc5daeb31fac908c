//! What sessions need to run turns.

use std::{path::PathBuf, sync::Arc, time::Duration};

use everturn_kernel::{Settings, Target};
use everturn_pacing::RetryPolicy;
use everturn_wire::{ConversationId, Priority};

use super::Reviews;
use crate::{
    catalog::Offered,
    clock::Clock,
    cluster::Peers,
    compaction::Compactions,
    conversation::Conversation,
    health::SharedHealth,
    journal::{Commit, Configured, Journal, JournalError, Version},
    memory::Memory,
    model::Choice,
    model_settings::ModelSettingsStore,
    pacing::Pacing,
    permission::Permissions,
    report::RequiredReports,
    retry_settings::{Base, RetryScopes, Set},
    route::Route,
    schedule,
    shutdown::{Shutdown, Stage},
    state::{StateStore, delete_documents},
    status::StatusChanges,
    timed_retry::TimedRetry,
    timer::Timers,
    toolbox::Toolbox,
    usage::UsageBook,
};

/// What sessions need to run turns. It gives no access to conversations: a session has only its own.
pub(crate) struct Ports {
    pub(crate) models: Offered,
    pub(crate) health: Arc<SharedHealth>,
    pub(crate) pacing: Arc<Pacing>,
    pub(crate) usage: Arc<UsageBook>,
    /// Where health and pacing are persisted; `None` = in memory only.
    pub(crate) state: Option<Arc<dyn StateStore>>,
    /// Where the documents of conversations are.
    pub(crate) documents: Arc<dyn StateStore>,
    pub(crate) tools: Toolbox,
    /// Decides what must happen before a tool call runs.
    pub(crate) permissions: Permissions,
    /// Reviews calls; `None` = nobody does, and calls that need a review fail it.
    pub(crate) reviewer: Option<Arc<Reviews>>,
    /// The reports that turns must end with, unless their message specifies one.
    pub(crate) reports: RequiredReports,
    /// The maximum number of steps if the settings have none and no report is required.
    pub(crate) usual_max_steps: Option<u32>,
    /// How histories are shortened to fit a model's context.
    pub(crate) compactions: Compactions,
    pub(crate) policy: RetryPolicy,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    /// The persisted definition of turns that begin now.
    pub(crate) configured: Arc<Configured>,
    /// How long ephemeral conversations are kept after their last turn.
    pub(crate) keep_ephemeral: Duration,
    /// Where bodies of calls are put that wait while memory is short.
    pub(crate) spool: Option<PathBuf>,
    /// Maximum size of a tool result, in bytes.
    pub(crate) max_tool_result: usize,
    /// Maximum live output of each call, in bytes.
    pub(crate) max_live_output: usize,
    /// Retry settings that can be changed at run time.
    pub(crate) retry: Arc<RetryScopes>,
    /// What conversations set for their model.
    pub(crate) model_settings: ModelSettingsStore,
    pub(crate) memory: Arc<Memory>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) status: StatusChanges,
    /// The other nodes; `None` = the journal is not shared.
    pub(crate) peers: Option<Arc<Peers>>,
}

impl Ports {
    /// Reads a conversation's settings again: another node may have changed them since they were loaded.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn read_settings(&self, conversation: &Conversation) -> Result<(), JournalError> {
        if self.peers.is_some() {
            conversation.retry.set(self.retry.of_conversation(&conversation.id).await?);
            conversation.model_settings.set(self.model_settings.of(&conversation.id).await?);
        }
        Ok(())
    }

    /// Deletes the documents of a conversation that was removed.
    ///
    /// # Errors
    /// When the store fails; some may be deleted.
    pub(crate) async fn delete_documents(&self, id: &ConversationId) -> Result<(), JournalError> {
        delete_documents(&*self.documents, id).await
    }

    /// Rebuilds the route of a turn that was saved with these targets, after the route was removed from the
    /// configuration.
    pub(crate) fn route_of(&self, id: &str, targets: &[Target]) -> Route {
        let policy = self.policy.clone().on_route();
        let (targets, configured) = (targets.to_vec(), self.configured.clone());
        let priority = Priority::default();
        Route { id: id.to_owned(), targets, configured, policy, is_own: false, priority }
    }

    /// Extends a model or route with the fallback chain set for it: the result is a route over its own targets, then
    /// those of the chain.
    pub(crate) fn with_chain(&self, choice: Choice, set: Set<'_>) -> Choice {
        // The bare model or route, as the previous turn may have had another chain.
        let models = self.models.now();
        let choice = models.choose(Some(choice.id()), None).unwrap_or(choice);
        let chain = self.retry.chain_of(set, choice.id());
        if chain.is_empty() {
            return choice;
        }
        let ids: Vec<String> = [choice.id().to_owned()].into_iter().chain(chain).collect();
        let targets = models.targets_of(&ids);
        Choice::Route(Arc::new(match choice.as_route() {
            Some(route) => Route { targets, ..route.clone() },
            None => {
                let policy = self.policy.clone().on_route();
                let saved = Configured { schedule: schedule::saved(&policy), ..(*self.configured).clone() };
                let (id, configured) = (choice.id().to_owned(), Arc::new(saved));
                Route { id, targets, policy, is_own: false, priority: Priority::default(), configured }
            }
        }))
    }

    /// Returns the defaults of a turn for which no retry settings are set at run time.
    pub(crate) fn base<'a>(&'a self, model: &'a Choice) -> Base<'a> {
        match model.as_route() {
            Some(route) => Base {
                route: Some(&route.id),
                is_own: route.is_own,
                policy: &route.policy,
                configured: &route.configured,
                after_content: self.settings.after_content,
                usual: &self.retry.configured,
            },
            None => self.plain_base(),
        }
    }

    /// Like [`base`](Self::base), for a plain model.
    pub(crate) fn plain_base(&self) -> Base<'_> {
        Base {
            route: None,
            is_own: false,
            policy: &self.policy,
            configured: &self.configured,
            after_content: self.settings.after_content,
            usual: &self.retry.configured,
        }
    }

    /// Adds the shared health and the clock to a turn's policy.
    pub(crate) fn timed(&self, policy: RetryPolicy) -> TimedRetry {
        TimedRetry { policy, health: self.health.clone(), clock: self.clock.clone(), switch: None }
    }

    /// Appends to the journal and tells the timers whether the journal works.
    pub(crate) async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        if self.shutdown.stage() == Stage::Abandoned {
            // Never save this: it may only be a consequence of the process ending.
            return std::future::pending().await;
        }
        let appended = self.journal.append(id, expected, commit).await;
        self.timers.journal_fails(appended.as_ref().is_err_and(JournalError::is_outage));
        appended
    }
}
