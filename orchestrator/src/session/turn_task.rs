//! A turn for a session to drive, new or resumed.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use everturn_kernel::{AfterContent, Budget, Effects, Input, NoRetry, Prompt, Settings, Turn};
use everturn_pacing::RetryPolicy;
use everturn_wire::{Category, Chunk, Failure, ModelSettings, QueuedMessage, RetrySettings, Role, TurnId};
use tokio::sync::oneshot;

use super::Ports;
use crate::{
    conversation::{Conversation, LeftoverMessages, Parked},
    cursor::Cursor,
    journal::{Definition, Inherited, JournalError, RequestScope},
    model::Choice,
    model_settings::over,
    new_id,
    panic::panic_text,
    report,
    retry_settings::{Begun, Set},
    schedule,
    tool::ToolSet,
};

/// A turn for a session to drive.
pub(crate) struct TurnTask {
    pub(super) turn: Turn,
    pub(super) effects: Effects,
    pub(super) settings: TurnSettings,
    pub(super) owed: PendingReplies,
    pub(super) opening: Opening,
}

/// What the turn's first commit publishes besides its effects.
#[derive(Default)]
pub(super) struct Opening {
    /// Messages that no saved event names yet: published as queued before one of them begins the turn, because another node that
    /// got no reply searches the events for its message.
    pub(super) accepted: Vec<QueuedMessage>,
    /// Whether to publish the queue afterwards, because subscribers have an outdated one.
    pub(super) tells_queue: bool,
}

/// Replies to send once a turn has begun.
#[derive(Default)]
pub(super) struct PendingReplies {
    /// Receives the cursor at which the turn's events begin once it is durable, or the error if it cannot be saved.
    pub(super) started: Option<oneshot::Sender<Result<Cursor, JournalError>>>,
    /// Replied to once the beginning of the turn is durable.
    pub(super) taken: Vec<oneshot::Sender<()>>,
}

impl PendingReplies {
    /// Reports to the caller that the turn could not be saved, unless it was already told that the turn began.
    pub(super) fn refuse(self, error: JournalError) {
        if let Some(started) = self.started {
            let _ = started.send(Err(error));
        }
    }
}

/// The settings that a turn runs with.
#[derive(Clone)]
pub(crate) struct TurnSettings {
    pub(crate) model: Choice,
    pub(crate) tools: ToolSet,
    pub(crate) policy: RetryPolicy,
    /// The persisted form of the settings, by name, and other decisions made when the turn began.
    pub(crate) definition: Definition,
    /// What happens when a step of a new turn fails after content.
    pub(crate) after_content: AfterContent,
    /// How long a new turn may wait.
    pub(crate) budget: Budget,
}

impl TurnSettings {
    /// Creates the settings of a new turn from the current configuration and the conversation's settings.
    pub(crate) fn new(
        ports: &Ports,
        conversation: &Conversation,
        model: Choice,
        reasoning_effort: Option<String>,
        supersedes: Option<u64>,
    ) -> Self {
        Self::of_message(ports, conversation, model, reasoning_effort, supersedes, None, None)
    }

    /// Like [`new`](Self::new), for a message with its own retry settings, and with settings for the model that its conversation
    /// does not have yet.
    pub(crate) fn of_message(
        ports: &Ports,
        conversation: &Conversation,
        model: Choice,
        reasoning_effort: Option<String>,
        supersedes: Option<u64>,
        retry: Option<&RetrySettings>,
        model_settings: Option<&ModelSettings>,
    ) -> Self {
        let (own, global) = (conversation.retry.get(), ports.retry.global.get());
        let set = Set { message: retry, conversation: own.as_deref(), global: global.as_deref() };
        let model = ports.with_chain(model, set);
        let begun = ports.retry.begin(&ports.base(&model), set);
        let Begun { policy, configured, after_content } = begun;
        let tools = ports.tools.current();
        let configured = ports.tools.defining(configured, &tools);
        let configured = match model_settings {
            Some(own) => over(own, &configured),
            None => conversation.model_settings.over(configured),
        };
        let final_report = ports.reports.of(model.id());
        let definition = Definition {
            reasoning_effort,
            supersedes,
            final_report,
            configured,
            ..Definition::new(model.id())
        };
        let budget = ports.settings.budget;
        Self { model, tools, policy, definition, after_content, budget }
    }

    /// Applies what the turn's request specifies, such as its own tools.
    pub(crate) fn bring(&mut self, scope: Arc<RequestScope>) {
        if let Some(specs) = scope.specs() {
            self.tools = ToolSet::of_caller(specs);
        }
        self.definition.bring(scope);
    }

    /// Returns what a turn inherits that repeats this one or follows it.
    pub(crate) fn inherited(&self, ports: &Ports) -> Inherited {
        let Definition { request, reasoning_effort, final_report, priority, summarizes, .. } =
            &self.definition;
        let (scope, reasoning_effort) = (request.clone(), reasoning_effort.clone());
        // What the configuration requires, it requires anew.
        let configured = ports.reports.of(self.model.id());
        let final_report = final_report.clone().filter(|_| *final_report != configured);
        Inherited { scope, reasoning_effort, final_report, priority: *priority, summarizes: *summarizes }
    }

    /// Applies what an earlier turn's request specified.
    pub(crate) fn inherit(&mut self, from: Inherited) {
        let Inherited { scope, reasoning_effort, final_report, priority, summarizes } = from;
        (self.definition.reasoning_effort, self.definition.priority) = (reasoning_effort, priority);
        self.definition.summarizes = summarizes;
        if final_report.is_some() {
            self.definition.final_report = final_report;
        }
        if let Some(scope) = scope {
            self.bring(scope);
        }
    }

    /// Whether the caller runs the tools.
    pub(super) fn has_callers_tools(&self) -> bool {
        self.definition.request.as_ref().is_some_and(|scope| scope.tools.is_some())
    }

    /// Whether nothing is added to the caller's request.
    pub(super) fn is_bare(&self) -> bool {
        self.definition.request.as_ref().is_some_and(|scope| scope.bare)
    }

    /// Returns the kernel's settings for a new turn.
    pub(super) fn of_turn(&self, ports: &Ports) -> Settings {
        let targets = self.model.as_route().map(|route| route.targets.clone()).unwrap_or_default();
        let idempotent_tools = self.tools.idempotent();
        let final_report = self.definition.final_report.as_deref().map(report::rule);
        let usual = ports.usual_max_steps.filter(|_| final_report.is_none());
        Settings {
            targets,
            after_content: self.after_content,
            budget: self.budget,
            idempotent_tools,
            final_report,
            max_steps: ports.settings.max_steps.or(usual),
            compaction: ports.settings.compaction.clone().filter(|_| !self.is_bare()),
            ..ports.settings.clone()
        }
    }

    /// Restores the settings of a saved turn, independent of the current configuration. The second value says what is
    /// missing, if anything.
    fn restore(
        ports: &Ports,
        turn: &Turn,
        mut model: Choice,
        definition: Definition,
    ) -> (Self, Option<String>) {
        let configured = &definition.configured;
        let mut is_gone = model.id() != definition.model && !definition.model.is_empty();
        if is_gone && turn.target().is_some() {
            // The route was removed from the configuration, but its targets were saved with the turn.
            let route = ports.route_of(&definition.model, &turn.settings().targets);
            (model, is_gone) = (Choice::Route(Arc::new(route)), false);
        }
        let mut gone =
            is_gone.then(|| format!("the model {} of this turn is no longer configured", definition.model));
        let policy = configured.schedule.as_ref().map(schedule::restore).transpose().unwrap_or_else(|name| {
            gone.get_or_insert_with(|| format!("the schedule of this turn is not known here: {name}"));
            None
        });
        let tools = ports.tools.current();
        let tools = configured.tools.as_ref().map_or_else(|| tools.clone(), |names| tools.only(names));
        let callers = definition.request.as_deref().and_then(RequestScope::specs);
        let tools = callers.map_or(tools, ToolSet::of_caller);
        if let Some(scope) = &definition.request
            && let Err(refused) = ports.models.now().check_parameters(&model, &scope.parameters)
        {
            gone.get_or_insert_with(|| refused.to_string());
        }
        let configured = || model.as_route().map_or(&ports.policy, |route| &route.policy).clone();
        let policy = policy.unwrap_or_else(configured);
        let Settings { after_content, budget, .. } = *turn.settings();
        (Self { model, tools, policy, definition, after_content, budget }, gone)
    }
}

impl TurnTask {
    /// A turn that owes no reply, and has nothing to publish but its effects.
    pub(super) fn of(turn: Turn, effects: Effects, settings: TurnSettings) -> Self {
        Self { turn, effects, settings, owed: PendingReplies::default(), opening: Opening::default() }
    }

    /// Returns the turn's id, and what receives its start ([`PendingReplies::started`]).
    pub(crate) fn started(&mut self) -> (TurnId, oneshot::Receiver<Result<Cursor, JournalError>>) {
        let (started, begun) = oneshot::channel();
        self.owed.started = Some(started);
        (self.turn.id().clone(), begun)
    }

    /// The same turn, begun by a message that was to be queued.
    pub(crate) fn announcing(self, message: QueuedMessage) -> Self {
        Self { opening: Opening { accepted: vec![message], tells_queue: true }, ..self }
    }

    /// Creates a new turn over a history that the request brought along.
    pub(crate) fn over(
        ports: &Ports,
        id: TurnId,
        history: Vec<(Role, Chunk)>,
        prompt: Option<Prompt>,
        settings: TurnSettings,
    ) -> Self {
        let mut effects = Effects::new();
        let (now, of_turn) = (ports.clock.now(), settings.of_turn(ports));
        let mut turn = Turn::begin_over(id, of_turn, history, prompt, now, &mut effects);
        turn.choose_first_target(now, &ports.timed(settings.policy.clone()), &mut effects);
        Self::of(turn, effects, settings)
    }

    /// Creates a turn that retries turn `again`.
    pub(crate) fn retry(ports: &Ports, id: TurnId, again: TurnId, settings: TurnSettings) -> Self {
        if settings.definition.summarizes {
            return Self::compaction(ports, id, Some(again), settings);
        }
        let mut effects = Effects::new();
        let (now, of_turn) = (ports.clock.now(), settings.of_turn(ports));
        let mut turn = Turn::begin_again(id, of_turn, again, now, &mut effects);
        turn.choose_first_target(now, &ports.timed(settings.policy.clone()), &mut effects);
        Self::of(turn, effects, settings)
    }

    /// Creates a turn that only summarizes the older part of the history. It may retry turn `again`.
    pub(crate) fn compaction(
        ports: &Ports,
        id: TurnId,
        again: Option<TurnId>,
        mut settings: TurnSettings,
    ) -> Self {
        (settings.definition.final_report, settings.definition.summarizes) = (None, true);
        let (now, of_turn, mut effects) = (ports.clock.now(), settings.of_turn(ports), Effects::new());
        let policy = ports.timed(settings.policy.clone());
        let turn = Turn::begin_compaction(id, of_turn, again, now, &policy, &mut effects);
        Self::of(turn, effects, settings)
    }

    /// Creates the next turn from the first of the leftover messages. The others stay queued.
    pub(super) fn queued(
        ports: &Ports,
        conversation: &Conversation,
        left: LeftoverMessages,
        settings: TurnSettings,
    ) -> Option<Self> {
        let LeftoverMessages { messages, are_new, taken } = left;
        let opening = Opening {
            accepted: if are_new { messages.clone() } else { Vec::new() },
            // Otherwise, the turn tells it when it queues the others.
            tells_queue: messages.len() == 1,
        };
        let mut left = messages.into_iter();
        let prompt = Prompt { text: left.next()?.text, images: Vec::new() };
        let (inherited, approvals) = (settings.inherited(ports), settings.definition.approvals);
        let mut settings = TurnSettings::new(ports, conversation, settings.model, None, None);
        settings.inherit(inherited);
        (settings.definition.approvals, settings.definition.summarizes) = (approvals, false);
        let mut job = Self::new(ports, new_id::turn(), prompt, settings);
        (job.owed.taken, job.opening) = (taken, opening);
        for message in left {
            job.turn.handle(ports.clock.now(), Input::Steer(message), &NoRetry, &mut job.effects);
        }
        Some(job)
    }

    /// Resumes an unsealed turn from the journal. `is_unrun`: it did not run since it was last taken up.
    pub(super) fn again(ports: &Ports, parked: Parked, is_unrun: bool, asked: Option<&str>) -> Self {
        let Parked { mut turn, definition, .. } = parked;
        let asked = Some(definition.model.as_str()).filter(|model| !model.is_empty()).or(asked);
        // Without any model, that of the turn is gone: it goes on with its saved targets, or ends.
        let model = ports
            .models
            .now()
            .choose(None, asked)
            .unwrap_or_else(|_| Choice::Route(Arc::new(ports.route_of("", &turn.settings().targets))));
        let (settings, gone) = TurnSettings::restore(ports, &turn, model, definition);
        // Without any model, it is only stopped.
        let gone = gone.filter(|_| !ports.models.now().is_empty());
        let input = gone.map_or(Input::Recover, |gone| fault(&gone));
        let (mut effects, now) = (Effects::new(), ports.clock.now());
        // A new step may begin here, and the schedule chooses its target.
        let policy = ports.timed(settings.policy.clone());
        let recover = AssertUnwindSafe(|| {
            if is_unrun {
                turn.handle(now, Input::Checkpoint, &policy, &mut effects);
            }
            turn.handle(now, input, &policy, &mut effects);
        });
        if let Err(panic) = catch_unwind(recover) {
            // As with a later panic, only this turn ends.
            let broke = fault(&format!("the turn broke: {}", panic_text(panic.as_ref())));
            turn.handle(now, broke, &NoRetry, &mut effects);
        }
        Self::of(turn, effects, settings)
    }

    /// Creates a new turn.
    pub(crate) fn new(ports: &Ports, id: TurnId, prompt: Prompt, settings: TurnSettings) -> Self {
        let mut effects = Effects::new();
        let (now, of_turn) = (ports.clock.now(), settings.of_turn(ports));
        let mut turn = Turn::begin(id, of_turn, prompt, now, &mut effects);
        turn.choose_first_target(now, &ports.timed(settings.policy.clone()), &mut effects);
        Self::of(turn, effects, settings)
    }
}

fn fault(message: &str) -> Input {
    Input::Fault(Failure::new(Category::Internal, false, message))
}
