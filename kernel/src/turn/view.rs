//! What a turn says of itself.

use alloc::string::String;

use everturn_wire::{Decision, QueuedMessage, RetryState, TurnId, Usage};

use super::Turn;
use crate::{
    Ledger, Millis, Moment, Outcome, Settings, Target, ToolCall, Wait, Want,
    call::OpenCall,
    phase::{Backoff, Phase},
};

impl Turn {
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

    /// Returns the last decision on whether this call may run, if there is one.
    pub fn decision(&self, call_id: &str) -> Option<&Decision> {
        self.calls().iter().find(|open| open.call.id == call_id)?.decisions.last()
    }

    /// Returns the tool calls that a host may still have to run after a recovery ([`Input::Recover`](crate::Input::Recover)).
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

    /// Whether [`Input::RetryNow`](crate::Input::RetryNow) would call the provider at once: the turn is waiting for a retry, or subscribers
    /// were told that the provider is silent and have seen nothing of its answer.
    pub fn takes_retry_now(&self) -> bool {
        match &self.phase {
            Phase::Backoff(_) => true,
            Phase::Streaming(streaming) => streaming.is_silent && !streaming.has_content(),
            Phase::Tools(_) | Phase::Sealed(_) => false,
        }
    }

    /// Returns since when the turn has wanted its current call, moved back by the waits of its step. Calls are admitted in this
    /// order.
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

    pub(super) fn target_name(&self, index: usize) -> Option<String> {
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

    /// Returns the number of calls for an answer that have ended, failed ones included, over all steps; without calls for
    /// summaries, and without those that a restart repeated.
    pub fn answer_calls(&self) -> u32 {
        self.answer_calls
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
}
