//! The turn: everything from one user message until the seal.

mod backoff;
mod charge;
mod check;
mod compact;
mod go_to;
mod hold;
mod last_step;
mod recover;
mod reply;
mod report;
mod retry;
mod rewind;
mod seal;
mod series;
mod streaming;
mod tools;

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{
    Chunk, EventBody, Image, OutputStream, QueuedMessage, RetryOutcome, RetryState, Role, StepId, TurnId,
    Usage,
};

use crate::{
    Effects, Input, Ledger, Millis, Moment, Op, Outcome, Schedule, Settings, Target, ToolCall, Wait, Want,
    call::OpenCall,
    hint::Hints,
    phase::{Backoff, Phase, Piece, Streaming},
    report::Reporting,
    review::Breaker,
};

/// One turn, as a value.
///
/// Start with [`begin`](Self::begin), or [`restore`](Self::restore) followed by [`Input::Recover`]. After each
/// [`handle`](Self::handle), commit the effects, with a [`snapshot`](Self::snapshot) if the
/// [`revision`](Self::revision) changed. Only then do what [`want`](Self::want) says. [`crate::run_turn`] implements
/// this loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub(crate) id: TurnId,
    /// The turn that this one repeats, if any.
    pub(crate) retry_of: Option<TurnId>,
    pub(crate) settings: Settings,
    pub(crate) phase: Phase,
    pub(crate) revision: u64,
    pub(crate) started_at: Millis,
    /// Number of streams that have ended, successfully or not.
    pub(crate) steps: u32,
    /// The target that is being asked, or was asked last, as an index into the settings.
    pub(crate) target: usize,
    /// Whether a person chose that target.
    pub(crate) is_chosen: bool,
    /// Number of retries scheduled so far, over all steps.
    pub(crate) retries: u32,
    pub(crate) waited_ms: u64,
    /// When the first token was shown.
    pub(crate) first_token_at: Option<Millis>,
    /// Token counts, summed over the calls so far.
    pub(crate) usage: Option<Usage>,
    /// Input plus output tokens of the last step.
    pub(crate) context_size: Option<u64>,
    /// Number of recoveries of the current step after a crash.
    pub(crate) recoveries: u32,
    /// The latest decisions of reviewers.
    pub(crate) breaker: Breaker,
    /// What providers asked for that still matters.
    pub(crate) hints: Hints,
    /// Progress with the report, if the turn must end with one. Boxed because most turns need none.
    pub(crate) reporting: Option<Box<Reporting>>,
    /// What was last withdrawn from the current step. Kept if nothing replaces it.
    pub(crate) withdrawn: Vec<Piece>,
    /// User messages queued for the next tool-result boundary.
    pub(crate) queue: Vec<QueuedMessage>,
}

/// The input that starts a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The user message.
    pub text: String,
    /// Images attached to the message.
    pub images: Vec<Image>,
}

impl Turn {
    /// Begins a turn: saves and publishes the prompt, and wants the first provider call.
    pub fn begin(id: TurnId, settings: Settings, prompt: Prompt, now: Millis, fx: &mut Effects) -> Self {
        for Image { url, mime_type } in prompt.images {
            fx.keep(Role::User, Chunk::Image { url, mime_type });
        }
        // Providers reject a message with an empty text.
        if !prompt.text.is_empty() {
            fx.keep(Role::User, Chunk::Text { text: prompt.text.clone() });
        }
        fx.tell(EventBody::UserMessage { text: prompt.text });
        fx.tell(EventBody::TurnStart { retry_of: None, message_seq: None, supersedes: None });
        let turn = Self::new(id, settings, now);
        turn.tell_last_step(0, fx);
        turn
    }

    /// Begins a turn and first saves these chunks, which are new to the history. Without a prompt, the chunks must end
    /// with the tool results that the turn answers.
    pub fn begin_over(
        id: TurnId,
        settings: Settings,
        history: Vec<(Role, Chunk)>,
        prompt: Option<Prompt>,
        now: Millis,
        fx: &mut Effects,
    ) -> Self {
        for (role, chunk) in history {
            fx.keep(role, chunk);
        }
        if let Some(prompt) = prompt {
            return Self::begin(id, settings, prompt, now, fx);
        }
        fx.tell(EventBody::TurnStart { retry_of: None, message_seq: None, supersedes: None });
        Self::new(id, settings, now)
    }

    /// Chooses the target of the first step. Call it right after [`Self::begin`]. Later it has no effect, because each
    /// step chooses its own target.
    pub fn choose_first_target(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        let is_first = |streaming: &Streaming| streaming.op == Op::default() && !streaming.has_content();
        if matches!(&self.phase, Phase::Streaming(streaming) if is_first(streaming)) {
            let ledger = Ledger::new(self.target);
            self.choose_first(now, &ledger, schedule, fx);
            let ledger = Ledger::new(self.target);
            self.phase = Phase::Streaming(Streaming::new(Op::default(), ledger, now));
        }
    }

    fn new(id: TurnId, settings: Settings, now: Millis) -> Self {
        let reporting = settings.final_report.map(|_| Box::default());
        Self {
            id,
            retry_of: None,
            reporting,
            settings,
            phase: Phase::Streaming(Streaming::new(Op::default(), Ledger::default(), now)),
            target: 0,
            is_chosen: false,
            revision: 1,
            started_at: now,
            steps: 0,
            retries: 0,
            waited_ms: 0,
            first_token_at: None,
            usage: None,
            context_size: None,
            recoveries: 0,
            breaker: Breaker::default(),
            hints: Hints::default(),
            withdrawn: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Begins a turn that repeats another one over the same history, without a new message.
    pub fn begin_again(id: TurnId, settings: Settings, again: TurnId, now: Millis, fx: &mut Effects) -> Self {
        let retry_of = Some(again.clone());
        fx.tell(EventBody::TurnStart { retry_of, message_seq: None, supersedes: None });
        let turn = Self { retry_of: Some(again), ..Self::new(id, settings, now) };
        turn.tell_last_step(0, fx);
        turn
    }

    /// Handles one input. An input that does not apply to the phase changes nothing.
    pub fn handle(&mut self, now: Millis, input: Input, schedule: &dyn Schedule, fx: &mut Effects) {
        if matches!(self.phase, Phase::Sealed(_)) {
            return;
        }
        match input {
            Input::Provider(op, event) => self.on_provider(now, op, event, schedule, fx),
            Input::ToolOutput { call_id, stream, data } => self.on_tool_output(call_id, stream, data, fx),
            Input::ToolAsks { call_id, event } => self.on_tool_asks(&call_id, *event, fx),
            Input::ToolDone { step, call_id, answer } => {
                self.on_tool_done(now, step, &call_id, answer, schedule, fx);
            }
            Input::Tick(op) => self.on_tick(now, op, schedule, fx),
            Input::RetryNow => self.on_retry_now(now, fx),
            Input::Release => self.on_release(now, schedule, fx),
            Input::GoTo(target) => self.on_go_to(now, target, fx),
            Input::MoveAway => self.on_move_away(now, fx),
            Input::Abort => self.abort(now, None, fx),
            Input::AbortRetry => self.on_abort_retry(now, fx),
            Input::Steer(message) => self.on_steer(message, fx),
            Input::Unsteer { message_id } => self.on_unsteer(&message_id, fx),
            Input::Fault(failure) => self.fail(now, failure, RetryOutcome::Cancelled.into(), fx),
            Input::Unsaved(failure) => self.on_unsaved(now, failure, fx),
            Input::Checkpoint => self.on_checkpoint(),
            Input::Save => self.revision += 1,
            Input::Recover => self.on_recover(now, schedule, fx),
            Input::Answer(answer) => self.on_answer(now, *answer, schedule, fx),
            Input::Reviewed { step, call_id, attempt, answer } => {
                self.on_reviewed(now, (step, &call_id, attempt), *answer, schedule, fx);
            }
            Input::ReviewerSwitched(switch) => self.on_reviewer_switched(*switch, fx),
            Input::Due { step } => self.on_due(now, step, schedule, fx),
        }
    }

    /// Returns what the turn needs next.
    pub fn want(&self) -> Want {
        match &self.phase {
            Phase::Streaming(streaming) => Want::Stream(streaming.op),
            Phase::Backoff(Backoff { op, resume_at, .. }) => Want::Wake(*op, *resume_at),
            Phase::Tools(tools) if self.waits_for_people() => {
                Want::Person { step: tools.step, until: tools.due_at() }
            }
            Phase::Tools(tools) => Want::Tools { step: tools.step, until: tools.due_at() },
            Phase::Sealed(_) => Want::Nothing,
        }
    }

    /// Returns the tool calls that should be running: at most as many as the settings allow, each until it has a
    /// result.
    pub fn running_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.calls().iter().filter(|open| open.is_running()).map(|open| &open.call)
    }

    /// Returns the tool calls that a host may still have to run after a recovery ([`Input::Recover`]).
    pub fn calls_to_run(&self) -> impl Iterator<Item = &ToolCall> {
        // A step without results is streamed again.
        let is_kept = matches!(self.phase, Phase::Tools(_)) || self.calls().iter().any(OpenCall::has_begun);
        let idempotent = &self.settings.idempotent_tools;
        self.calls().iter().filter(move |open| is_kept && open.is_to_run(idempotent)).map(|open| &open.call)
    }

    /// Returns how the turn ended, once it is sealed.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Sealed(outcome) => Some(outcome),
            Phase::Streaming(_) | Phase::Backoff(_) | Phase::Tools(_) => None,
        }
    }

    /// Returns the retry in progress: one that is waiting, or whose call has shown nothing yet.
    pub fn retry(&self) -> Option<RetryState> {
        let state = match &self.phase {
            Phase::Backoff(backoff) => backoff.ledger.state(Some(backoff.resume_at)),
            Phase::Streaming(streaming) if streaming.is_retry() => streaming.ledger.state(None),
            Phase::Streaming(_) | Phase::Tools(_) | Phase::Sealed(_) => return None,
        };
        Some(RetryState { target: self.target_name(self.target), ..state })
    }

    /// Whether [`Input::RetryNow`] would call the provider at once: the turn is waiting for a retry, or subscribers
    /// were told that the provider is silent and have seen nothing of its answer.
    pub fn takes_retry_now(&self) -> bool {
        match &self.phase {
            Phase::Backoff(_) => true,
            Phase::Streaming(streaming) => streaming.is_silent && !streaming.has_content(),
            Phase::Tools(_) | Phase::Sealed(_) => false,
        }
    }

    /// Returns since when the turn has wanted the call that it makes now: the waits of its step are left out. Calls are
    /// admitted in this order.
    pub fn wants_since(&self, now: Millis) -> Millis {
        let Phase::Streaming(streaming) = &self.phase else { return now };
        let Ledger { waited_ms, walled_ms, .. } = streaming.ledger;
        Millis(streaming.since.0.saturating_sub(waited_ms).saturating_sub(walled_ms))
    }

    /// Whether a person asked for the wanted call. Make it even if its target is known to be unavailable.
    pub fn is_asked_by_person(&self) -> bool {
        matches!(&self.phase, Phase::Streaming(streaming) if streaming.by_person)
    }

    /// Returns what the turn waits for before it can continue.
    pub fn wait(&self) -> Wait {
        match &self.phase {
            Phase::Backoff(Backoff { resume_at, decided_ms, .. }) => {
                Wait::Until(Moment { at: *resume_at, decided_ms: *decided_ms })
            }
            Phase::Tools(tools) => self.wait_for_people(tools),
            Phase::Streaming(_) | Phase::Sealed(_) => Wait::Now,
        }
    }

    /// Whether the turn waits because its call was put off ([`crate::Hold`]).
    pub fn is_held(&self) -> bool {
        matches!(&self.phase, Phase::Backoff(backoff) if backoff.held)
    }

    /// Returns the target that is being asked, will be asked next, or was asked last; `None` if the turn has no named
    /// targets.
    pub fn target(&self) -> Option<&Target> {
        self.targets().get(self.target)
    }

    fn target_name(&self, index: usize) -> Option<String> {
        self.targets().get(index).map(|target| target.name.clone())
    }

    /// Returns the turn's id.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// Returns the turn that this one repeats, if any.
    pub fn retry_of(&self) -> Option<&TurnId> {
        self.retry_of.as_ref()
    }

    /// Returns the settings fixed when the turn began.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns when the turn began.
    pub fn started_at(&self) -> Millis {
        self.started_at
    }

    /// Returns the number of completed steps (model round trips).
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Returns the number of retries scheduled so far, over all steps. For a sealed turn, the number made.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Returns the sum of the waits scheduled so far, over all steps, in milliseconds, without the rest of those that ended
    /// early.
    pub fn waited_ms(&self) -> u64 {
        self.waited_ms
    }

    /// Returns when the first token was shown.
    pub fn first_token_at(&self) -> Option<Millis> {
        self.first_token_at
    }

    /// Returns the token counts, summed over the completed steps.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns input plus output tokens of the last completed step, if the provider reported them.
    pub fn context_size(&self) -> Option<u64> {
        self.context_size
    }

    /// Returns the queued user messages. Those left when the turn is sealed belong to the next turn.
    pub fn queue(&self) -> &[QueuedMessage] {
        &self.queue
    }

    /// Returns a number that changes with everything that must survive a crash: phases and tool results, but not
    /// streamed text.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn on_tool_output(&self, tool_call_id: String, stream: OutputStream, data: String, fx: &mut Effects) {
        if self.running_calls().any(|call| call.id == tool_call_id) && !data.is_empty() {
            let step_id = self.step().map(|step| self.step_id(step));
            fx.tell(EventBody::ToolOutput { step_id, tool_call_id, data, stream });
        }
    }

    fn on_tool_asks(&mut self, tool_call_id: &str, event: EventBody, fx: &mut Effects) {
        let is_it = |open: &&mut OpenCall| open.is_running() && open.call.id == tool_call_id;
        let Some(call) = self.calls_mut().iter_mut().find(is_it) else { return };
        if let Some(settled) = event.settled_question() {
            call.settle(settled);
            self.revision += 1;
        }
        fx.tell(event);
    }

    fn on_steer(&mut self, message: QueuedMessage, fx: &mut Effects) {
        let known = self.queue.iter().any(|waiting| waiting.message_id == message.message_id);
        if known || message.text.is_empty() {
            return;
        }
        self.queue.push(message);
        self.queue_changed(fx);
    }

    fn on_unsteer(&mut self, message_id: &str, fx: &mut Effects) {
        let before = self.queue.len();
        self.queue.retain(|waiting| waiting.message_id != message_id);
        if self.queue.len() != before {
            self.queue_changed(fx);
        }
    }

    fn queue_changed(&mut self, fx: &mut Effects) {
        self.revision += 1;
        fx.tell(EventBody::QueueChanged { queue: self.queue.clone() });
    }

    /// Enters a phase. The phase changes nowhere else.
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.revision += 1;
    }

    /// Returns the current step.
    fn step(&self) -> Option<u32> {
        match &self.phase {
            Phase::Streaming(streaming) => Some(streaming.op.step),
            Phase::Backoff(backoff) => Some(backoff.op.step),
            Phase::Tools(tools) => Some(tools.step),
            Phase::Sealed(_) => None,
        }
    }

    fn step_id(&self, step: u32) -> StepId {
        StepId::new(&self.id, step)
    }

    pub(crate) fn calls(&self) -> &[OpenCall] {
        match &self.phase {
            Phase::Streaming(streaming) => &streaming.calls,
            Phase::Tools(tools) => &tools.calls,
            Phase::Backoff(_) | Phase::Sealed(_) => &[],
        }
    }

    fn calls_mut(&mut self) -> &mut [OpenCall] {
        match &mut self.phase {
            Phase::Streaming(streaming) => &mut streaming.calls,
            Phase::Tools(tools) => &mut tools.calls,
            Phase::Backoff(_) | Phase::Sealed(_) => &mut [],
        }
    }
}
