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
mod view;

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{
    Chunk, EventBody, Image, OutputStream, QueuedMessage, RetryOutcome, Role, StepId, TurnId, Usage,
};

use crate::{
    Effects, Input, Ledger, Millis, Op, Schedule, Settings,
    call::OpenCall,
    hint::Hints,
    phase::{Phase, Piece, Streaming},
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
    /// Number of calls for an answer that have ended, over all steps. Those for summaries are not among them.
    pub(crate) answer_calls: u32,
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
            answer_calls: 0,
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
