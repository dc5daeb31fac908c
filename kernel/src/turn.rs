//! A turn: one user message until sealed.

mod backoff;
mod recover;
mod retry;
mod seal;
mod streaming;
mod tools;

use alloc::{string::String, vec::Vec};

use everturn_wire::{
    Chunk, EventBody, Image, OutputStream, QueuedMessage, RetryOutcome, RetryState, Role, StepId, TurnId,
    Usage,
};

use crate::{
    Effects, Input, Millis, Moment, Op, Outcome, Schedule, Settings, ToolCall, Wait, Want,
    call::OpenCall,
    phase::{Backoff, Phase, Streaming, Tally},
};

/// One turn, as a value.
///
/// Four kinds of methods, to be called in this order: [`begin`](Self::begin) (or [`restore`](Self::restore) and then
/// [`Input::Recover`]); after each [`handle`](Self::handle) commit the effects, with a [`snapshot`](Self::snapshot)
/// when the [`revision`](Self::revision) moved; only then do what [`want`](Self::want) says. [`crate::run_turn`] does
/// just that.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    pub(crate) id: TurnId,
    /// The turn that this one tries again.
    pub(crate) retry_of: Option<TurnId>,
    pub(crate) settings: Settings,
    pub(crate) phase: Phase,
    pub(crate) revision: u64,
    pub(crate) started_at: Millis,
    /// Streams that ended, well or not.
    pub(crate) steps: u32,
    /// Retries scheduled so far, over all steps, and the sum of their waits.
    pub(crate) retries: u32,
    pub(crate) waited_ms: u64,
    /// When its first token was shown.
    pub(crate) first_token_at: Option<Millis>,
    /// Sum over the calls so far.
    pub(crate) usage: Option<Usage>,
    /// Input plus output tokens of the last step.
    pub(crate) context_size: Option<u64>,
    /// Times that the current step was taken up after a crash.
    pub(crate) recoveries: u32,
    /// User messages that wait for the next tool-result boundary.
    pub(crate) queue: Vec<QueuedMessage>,
}

/// What a turn begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The user message.
    pub text: String,
    /// Images that go with it.
    pub images: Vec<Image>,
}

impl Turn {
    /// Begins a turn: keeps and tells the prompt, and wants the first provider call.
    pub fn begin(id: TurnId, settings: Settings, prompt: Prompt, now: Millis, fx: &mut Effects) -> Self {
        for Image { url, mime_type } in prompt.images {
            fx.keep(Role::User, Chunk::Image { url, mime_type });
        }
        // A provider refuses a message with an empty text in it.
        if !prompt.text.is_empty() {
            fx.keep(Role::User, Chunk::Text { text: prompt.text.clone() });
        }
        fx.tell(EventBody::UserMessage { text: prompt.text });
        fx.tell(EventBody::TurnStart { retry_of: None });
        Self::new(id, settings, now)
    }

    fn new(id: TurnId, settings: Settings, now: Millis) -> Self {
        Self {
            id,
            retry_of: None,
            settings,
            phase: Phase::Streaming(Streaming::new(Op::default(), Tally::default(), now)),
            revision: 1,
            started_at: now,
            steps: 0,
            retries: 0,
            waited_ms: 0,
            first_token_at: None,
            usage: None,
            context_size: None,
            recoveries: 0,
            queue: Vec::new(),
        }
    }

    /// Begins a turn that tries another one again, over the same history: there is no new message.
    pub fn begin_again(id: TurnId, settings: Settings, again: TurnId, now: Millis, fx: &mut Effects) -> Self {
        fx.tell(EventBody::TurnStart { retry_of: Some(again.clone()) });
        Self { retry_of: Some(again), ..Self::new(id, settings, now) }
    }

    /// Takes in one fact. Whatever does not apply to the phase changes nothing.
    pub fn handle(&mut self, now: Millis, input: Input, schedule: &dyn Schedule, fx: &mut Effects) {
        if matches!(self.phase, Phase::Sealed(_)) {
            return;
        }
        match input {
            Input::Provider(op, event) => self.on_provider(now, op, event, schedule, fx),
            Input::ToolOutput { call_id, stream, data } => self.on_tool_output(call_id, stream, data, fx),
            Input::ToolDone { step, call_id, answer } => self.on_tool_done(now, step, &call_id, answer, fx),
            Input::Tick(op) => self.on_tick(now, op, fx),
            Input::RetryNow => self.on_retry_now(now, schedule, fx),
            Input::Abort => self.abort(now, None, fx),
            Input::AbortRetry => self.on_abort_retry(now, fx),
            Input::Steer(message) => self.on_steer(message, fx),
            Input::Unsteer { message_id } => self.on_unsteer(&message_id, fx),
            Input::Fault(failure) => self.fail(now, failure, RetryOutcome::Cancelled.into(), fx),
            Input::Checkpoint => self.on_checkpoint(),
            Input::Recover => self.on_recover(now, fx),
        }
    }

    /// What the turn wants done now.
    pub fn want(&self) -> Want {
        match &self.phase {
            Phase::Streaming(streaming) => Want::Stream(streaming.op),
            Phase::Backoff(Backoff { op, resume_at, .. }) => Want::Wake(*op, *resume_at),
            Phase::Tools(tools) => Want::Tools { step: tools.step },
            Phase::Sealed(_) => Want::Nothing,
        }
    }

    /// The tool calls that are wanted run now: never more than the settings allow, each until it has its result.
    pub fn running_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.calls().iter().filter(|open| open.is_running()).map(|open| &open.call)
    }

    /// How the turn ended, once it is sealed.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.phase {
            Phase::Sealed(outcome) => Some(outcome),
            Phase::Streaming(_) | Phase::Backoff(_) | Phase::Tools(_) => None,
        }
    }

    /// The chain of retries that the current step is in: it waits for a retry, or was asked again and has shown nothing
    /// yet.
    pub fn retry(&self) -> Option<RetryState> {
        match &self.phase {
            Phase::Backoff(backoff) => Some(backoff.tally.state(Some(backoff.resume_at))),
            Phase::Streaming(streaming) if streaming.is_retry() => Some(streaming.tally.state(None)),
            Phase::Streaming(_) | Phase::Tools(_) | Phase::Sealed(_) => None,
        }
    }

    /// Whether [`Input::RetryNow`] would ask the provider at once: the turn waits for a retry, or watchers were told that
    /// its call is silent and were shown nothing of it.
    pub fn takes_retry_now(&self) -> bool {
        match &self.phase {
            Phase::Backoff(_) => true,
            Phase::Streaming(streaming) => streaming.is_silent && !streaming.has_content(),
            Phase::Tools(_) | Phase::Sealed(_) => false,
        }
    }

    /// What the turn waits for before it goes on, as someone sees it who is to go on with it. No phase waits for a
    /// person yet.
    pub fn wait(&self) -> Wait {
        match &self.phase {
            Phase::Backoff(Backoff { resume_at, decided_ms, .. }) => {
                Wait::Until(Moment { at: *resume_at, decided_ms: *decided_ms })
            }
            Phase::Streaming(_) | Phase::Tools(_) | Phase::Sealed(_) => Wait::Now,
        }
    }

    /// The turn's id.
    pub fn id(&self) -> &TurnId {
        &self.id
    }

    /// The turn that this one tries again.
    pub fn retry_of(&self) -> Option<&TurnId> {
        self.retry_of.as_ref()
    }

    /// What was decided when it began.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// When it began.
    pub fn started_at(&self) -> Millis {
        self.started_at
    }

    /// Model round trips that ended.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Retries scheduled so far, over all steps; of a sealed turn, those that were made.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// The sum of the waits that were scheduled so far, over all steps, in milliseconds; of a sealed turn, without what was
    /// left of a wait that someone ended.
    pub fn waited_ms(&self) -> u64 {
        self.waited_ms
    }

    /// When its first token was shown.
    pub fn first_token_at(&self) -> Option<Millis> {
        self.first_token_at
    }

    /// Token counts, summed over the steps that ended.
    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Input plus output tokens of the last step that ended, where the provider told them.
    pub fn context_size(&self) -> Option<u64> {
        self.context_size
    }

    /// The user messages that still wait; what is left when the turn is sealed belongs to the next one.
    pub fn queue(&self) -> &[QueuedMessage] {
        &self.queue
    }

    /// Moves with every change that must survive a crash: phases and tool results, not streamed text.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn on_tool_output(&self, tool_call_id: String, stream: OutputStream, data: String, fx: &mut Effects) {
        if self.running_calls().any(|call| call.id == tool_call_id) && !data.is_empty() {
            let step_id = self.step().map(|step| self.step_id(step));
            fx.tell(EventBody::ToolOutput { step_id, tool_call_id, data, stream });
        }
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

    /// The one way from phase to phase.
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.revision += 1;
    }

    /// The step under way.
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

    fn calls(&self) -> &[OpenCall] {
        match &self.phase {
            Phase::Streaming(streaming) => &streaming.calls,
            Phase::Tools(tools) => &tools.calls,
            Phase::Backoff(_) | Phase::Sealed(_) => &[],
        }
    }
}
