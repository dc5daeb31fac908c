//! The handle that everything is asked of.

mod again;
mod approval;
mod command;
mod end;
mod query;
mod request_key;
mod resume;
mod retry_settings;
mod start;
mod waker;

use std::sync::Arc;

use everturn_wire::{
    ApprovalMode, CallerTool, ConversationId, Image, Message, Parameters, RetrySettings, TurnId,
};
use tokio::sync::broadcast;

use crate::{
    Clock, Cursor, Journal, conversation::Home, observer::Observers, registry::Registry,
    retry_settings::RetryScopes, session::Ports, shutdown::Shutdown, status::StatusChange, timer::Timers,
};
pub use again::RetryTurn;
pub use command::MAX_MESSAGE;
use waker::Waker;

/// Runs conversations. Cheap to clone; all clones are the same orchestrator.
#[derive(Clone)]
pub struct Orchestrator {
    registry: Arc<Registry>,
    ports: Arc<Ports>,
    /// In which reviewers are asked.
    hidden: Option<Arc<Self>>,
}

/// What a turn is started with: [`StartTurn::new`], then what differs from the defaults.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StartTurn {
    /// The conversation; a new one when absent, also made when there is none of that id yet.
    pub conversation_id: Option<ConversationId>,
    /// The user message.
    pub text: String,
    /// Images that go with it.
    pub images: Vec<Image>,
    /// `credential/model`; else the conversation's last one; else the default.
    pub model: Option<String>,
    /// How hard the model should think, in the provider's words.
    pub reasoning_effort: Option<String>,
    /// Retry settings of this turn alone; they go before those of its conversation.
    pub retry: Option<RetrySettings>,
    /// What happens to calls that need a person's approval.
    pub approvals: ApprovalMode,
    /// The whole history, oldest first, in place of `text` and `images`. System messages at its start replace the configured
    /// system prompt for this turn. Every tool call has exactly one result, and the last message is of the user or a tool.
    /// What the conversation already has of it stays, what differs is superseded, the rest is added.
    pub history: Option<Vec<Message>>,
    /// Tools that the caller runs, offered in place of the orchestrator's. A call of one ends the turn and is told in its
    /// `done` event; the next request brings the result in its history.
    pub tools: Option<Vec<CallerTool>>,
    /// What is passed on to the model's API. A turn is refused if a target lacks one of them.
    pub parameters: Parameters,
    /// Whether the conversation is only for this request: it is in no list, and [`Orchestrator::drop_ephemeral`] removes it.
    pub ephemeral: bool,
    /// The same request with the same key is the same turn: it is begun once, also across a restart. Keys are per
    /// conversation; those of requests that name none are for all.
    pub idempotency_key: Option<String>,
}

impl StartTurn {
    /// A turn of a new conversation, with the default model.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// In this conversation, which is made when there is none of that id yet.
    #[must_use]
    pub fn conversation(self, id: impl Into<ConversationId>) -> Self {
        Self { conversation_id: Some(id.into()), ..self }
    }

    /// With these images.
    #[must_use]
    pub fn images(self, images: Vec<Image>) -> Self {
        Self { images, ..self }
    }

    /// Asks this model, as `credential/model`.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// How hard the model should think, in the provider's words.
    #[must_use]
    pub fn reasoning_effort(self, effort: impl Into<String>) -> Self {
        Self { reasoning_effort: Some(effort.into()), ..self }
    }

    /// With these retry settings, for this turn alone.
    #[must_use]
    pub fn retry(self, settings: RetrySettings) -> Self {
        Self { retry: Some(settings), ..self }
    }

    /// A turn over a history that comes whole with it.
    pub fn over(history: Vec<Message>) -> Self {
        Self { history: Some(history), ..Self::default() }
    }

    /// With tools that the caller runs.
    #[must_use]
    pub fn tools(self, tools: Vec<CallerTool>) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// With parameters for the model's API.
    #[must_use]
    pub fn parameters(self, parameters: Parameters) -> Self {
        Self { parameters, ..self }
    }

    /// In a conversation of its own that is in no list and is removed some time after the turn.
    #[must_use]
    pub fn ephemeral(self) -> Self {
        Self { ephemeral: true, ..self }
    }

    /// With this idempotency key.
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// With nobody there to approve tool calls: those that need approval are denied at once.
    #[must_use]
    pub fn unattended(self) -> Self {
        Self { approvals: ApprovalMode::Deny, ..self }
    }
}

/// A turn that has begun, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Started {
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The turn.
    pub turn_id: TurnId,
    /// Where its first event begins: subscribe from here to see all of it.
    pub from: Cursor,
    /// Whether this request began it; otherwise one with the same idempotency key did.
    pub is_new: bool,
}

impl Orchestrator {
    /// `ports` is given the timer and what says how far a shutdown is.
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        observers: Observers,
        retry: Arc<RetryScopes>,
        ports: impl FnOnce(Arc<Timers>, Arc<Shutdown>) -> Ports,
    ) -> Self {
        let waker = Waker::default();
        let shutdown: Arc<Shutdown> = Arc::default();
        let timers = Arc::new(Timers::new(clock, waker.clone()));
        let ports = Arc::new(ports(timers.clone(), shutdown.clone()));
        let home = Home { shelf: Arc::default(), timers, shutdown, observers };
        let registry = Arc::new(Registry::new(journal, retry, home));
        waker.set(&registry, &ports);
        Self { registry, ports, hidden: None }
    }

    pub(crate) fn with_hidden(self, hidden: Option<Self>) -> Self {
        Self { hidden: hidden.map(Arc::new), ..self }
    }

    /// The conversations in which a model reviews tool calls, which people do not see among their own: those under way, and
    /// some of the latest. `None` where no model does. They are there to be read.
    pub fn hidden(&self) -> Option<&Self> {
        self.hidden.as_deref()
    }

    #[cfg(test)]
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Told of every status change from now on. A listener that falls far behind misses some.
    pub fn status_changes(&self) -> broadcast::Receiver<StatusChange> {
        self.ports.status.subscribe()
    }
}
