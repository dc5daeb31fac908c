//! The orchestrator's handle.

mod again;
mod approval;
mod ask;
mod cluster;
mod command;
mod compact;
mod delete;
mod elsewhere;
mod end;
mod export;
mod key_claim;
mod list;
mod lost_reply;
mod model_settings;
mod query;
mod relay;
mod request_key;
mod resume;
mod retry_settings;
mod search;
mod start;
mod waker;

use std::{sync::Arc, time::Duration};

use everturn_pacing::Terms;
use everturn_wire::{
    ApprovalMode, CallerName, CallerTool, ConversationId, Image, Message, ModelSettings, Parameters,
    Priority, RequiredReport, RetrySettings, TraceContext, TurnId,
};
use tokio::sync::broadcast;

use crate::{
    Catalog, Clock, Cursor, Journal, cluster::Peers, conversation::Home, memory::Memory, model::Allowed,
    observer::Observers, registry::Registry, relay::Calls, retry_settings::RetryScopes, session::Ports,
    shutdown::Shutdown, status::StatusChange, timer::Timers,
};
pub use again::RetryTurn;
pub use command::MAX_MESSAGE;
pub use export::Export;
pub use search::SearchCursor;
use waker::Waker;

/// Runs conversations. Cheap to clone; all clones are the same orchestrator.
///
/// Keep a clone for as long as turns may wait. Without any clone or [`Subscription`](crate::Subscription), running turns go on to
/// their next wait, and waiting ones stay parked until the next process calls [`resume`](Self::resume); with a
/// [`MemoryJournal`](crate::MemoryJournal), they are lost.
///
/// Every future of its methods may be dropped. What it was for may then have happened or not, unless the method says more:
/// [`start`](Self::start) with an idempotency key completes all the same. [`delete`](Self::delete) may have stopped the turn without
/// deleting the conversation: call it again.
#[derive(Clone)]
pub struct Orchestrator {
    registry: Arc<Registry>,
    ports: Arc<Ports>,
    calls: Arc<Calls>,
}

/// A request to start a turn: [`StartTurn::new`], then whatever differs from the defaults.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StartTurn {
    /// The conversation. Created if it does not exist; if absent, a new one gets its own id.
    pub conversation_id: Option<ConversationId>,
    /// The user message.
    pub text: String,
    /// Images attached to the message.
    pub images: Vec<Image>,
    /// The model, as `credential/model`. Default: the conversation's last model, else the default model.
    pub model: Option<String>,
    /// Reasoning effort, in the provider's terms.
    pub reasoning_effort: Option<String>,
    /// Retry settings of this turn. They override those of its conversation.
    pub retry: Option<RetrySettings>,
    /// What happens to calls that need a person's approval.
    pub approvals: ApprovalMode,
    /// Whether the turn gives way to others when calls have to wait.
    pub priority: Priority,
    /// The complete history, oldest first, instead of `text` and `images`. Leading system messages replace the configured
    /// system prompt for this turn. Every tool call needs exactly one result, and the last message must come from the user
    /// or a tool. Messages that the conversation already has are kept, differing ones are superseded, the rest is added.
    pub history: Option<Vec<Message>>,
    /// Tools that the caller runs, offered instead of the orchestrator's. A call of one ends the turn and is reported in its
    /// `done` event; the next request carries the result in its history.
    pub tools: Option<Vec<CallerTool>>,
    /// Parameters passed to the model's API. The turn is refused if a target does not support one of them.
    pub parameters: Parameters,
    /// Whether nothing is added to the request: no configured tools, no system prompt, no summary of its history. Calls of
    /// unknown tools go to the caller.
    pub bare: bool,
    /// Whether nobody receives a part of an answer before it is complete. Then a failure after content is retried like one
    /// before it, unless `retry` says what to do about it.
    pub whole: bool,
    /// Whether the conversation exists for this request only: it is not listed, and [`Orchestrator::drop_ephemeral`] removes it.
    pub ephemeral: bool,
    /// Idempotency key: a repeated request with the same key returns the same turn, even after a restart. Keys are scoped to
    /// the conversation, or global if the request names none.
    pub idempotency_key: Option<String>,
    /// How long after its start the turn may wait for a provider at most. Never more than configured, which is the default.
    pub budget: Option<Duration>,
    /// The report that the turn must end with. Default: that of its route, else of all turns ([`Builder::final_report`]).
    ///
    /// [`Builder::final_report`]: crate::Builder::final_report
    pub final_report: Option<RequiredReport>,
    /// What the conversation sets for its model from this turn on, in place of what it set before.
    pub model_settings: Option<ModelSettings>,
    /// The trace that the request belongs to. It is kept with the turn and sent on to providers.
    pub trace: Option<TraceContext>,
    /// Whose idempotency key it is, and whose conversation, if none is named. `None` = the administrator's.
    pub(crate) caller: Option<CallerName>,
}

impl StartTurn {
    /// Starts a turn in a new conversation, with the default model.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Sets the conversation, which is created if it does not exist.
    #[must_use]
    pub fn conversation(self, id: impl Into<ConversationId>) -> Self {
        Self { conversation_id: Some(id.into()), ..self }
    }

    /// Requires a final report that matches this schema; otherwise the turn ends with a failure that says why.
    #[must_use]
    pub fn final_report(self, report: RequiredReport) -> Self {
        Self { final_report: Some(report), ..self }
    }

    /// Sets the trace that the request belongs to.
    #[must_use]
    pub fn trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Attaches images.
    #[must_use]
    pub fn images(self, images: Vec<Image>) -> Self {
        Self { images, ..self }
    }

    /// Sets the model, as `credential/model`.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets the reasoning effort, in the provider's terms.
    #[must_use]
    pub fn reasoning_effort(self, effort: impl Into<String>) -> Self {
        Self { reasoning_effort: Some(effort.into()), ..self }
    }

    /// Sets retry settings for this turn.
    #[must_use]
    pub fn retry(self, settings: RetrySettings) -> Self {
        Self { retry: Some(settings), ..self }
    }

    /// Sets whether the turn gives way to others when calls have to wait.
    #[must_use]
    pub fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Sets how long after its start the turn may wait for a provider at most.
    #[must_use]
    pub fn budget(self, most: Duration) -> Self {
        Self { budget: Some(most), ..self }
    }

    /// Starts a turn over a complete history.
    pub fn over(history: Vec<Message>) -> Self {
        Self { history: Some(history), ..Self::default() }
    }

    /// Offers tools that the caller runs.
    #[must_use]
    pub fn tools(self, tools: Vec<CallerTool>) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// Sets parameters for the model's API.
    #[must_use]
    pub fn parameters(self, parameters: Parameters) -> Self {
        Self { parameters, ..self }
    }

    /// Uses a separate conversation that is not listed and is removed some time after the turn.
    #[must_use]
    pub fn ephemeral(self) -> Self {
        Self { ephemeral: true, ..self }
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// Immediately denies calls that need approval, because nobody is there to answer.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { approvals: ApprovalMode::Deny, ..self }
    }
}

/// A started turn. Its start is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Started {
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The turn.
    pub turn_id: TurnId,
    /// The position of its first event: subscribe from here to receive all of it.
    pub from: Cursor,
    /// Whether this request started it; false if an earlier request with the same idempotency key did.
    pub is_new: bool,
}

impl Orchestrator {
    /// Creates an orchestrator. `ports` receives the timers and the shutdown state.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        observers: Observers,
        retry: Arc<RetryScopes>,
        peers: Option<Arc<Peers>>,
        memory: Arc<Memory>,
        ports: impl FnOnce(Arc<Timers>, Arc<Shutdown>) -> Ports,
    ) -> Self {
        let waker = Waker::default();
        let shutdown: Arc<Shutdown> = Arc::default();
        let timers = Arc::new(Timers::new(clock.clone(), waker.clone()));
        let ports = Arc::new(ports(timers.clone(), shutdown.clone()));
        let calls = Arc::new(Calls::new(memory.clone(), observers.clone(), ports.spool.clone()));
        let home = Home { loaded: Arc::default(), timers, shutdown, observers, peers, memory };
        let registry = Arc::new(Registry::new(journal, clock, retry, ports.model_settings.clone(), home));
        waker.set(&registry, &ports, &calls);
        Self { registry, ports, calls }
    }

    /// Replaces all models and routes. Turns that are running keep theirs by name: their next call uses the new provider, and
    /// fails if their model is gone.
    pub fn offer(&self, catalog: Catalog) {
        self.ports.models.replace(catalog);
        // A key may have been replaced.
        self.ports.health.forget_rejected_keys();
    }

    /// Replaces the limits of callers, at once, also for calls that wait. What callers have used still counts, even after a
    /// restart.
    pub fn limit_callers(&self, all: Vec<(CallerName, Terms)>) {
        self.ports.pacing.set_callers(all);
    }

    /// Sets which models and routes callers may ask for, by patterns of their ids with `*`; whoever is not named, or has no
    /// pattern, may ask for all. Turns that have begun go on.
    pub fn allow_models(&self, all: Vec<(CallerName, Vec<String>)>) {
        let allowed =
            all.into_iter().filter_map(|(name, patterns)| Some((name, Arc::new(Allowed::new(patterns)?))));
        self.ports.models.allow(allowed.collect());
    }

    #[cfg(test)]
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Subscribes to status changes. A receiver that falls far behind misses some.
    pub fn status_changes(&self) -> broadcast::Receiver<StatusChange> {
        self.ports.status.subscribe()
    }
}
