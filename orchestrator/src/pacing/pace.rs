//! When a call is made: now, after a moment, or later.

use std::sync::Arc;

use everturn_kernel::{StreamEvent, Target};
use everturn_pacing::{Because, Wait};
use everturn_wire::Failure;
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, future, stream};

use super::{Admitted, AdmittedCall, Asker, Entry, Pacing, callers};
use crate::{clock::Clock, health::SharedHealth, telemetry};

/// When a call is made.
pub(crate) enum Paced {
    Now(AdmittedCall),
    /// After a moment that nobody needs to be told of.
    Soon(Pace),
    /// Not now: this is said instead.
    Held(StreamEvent),
}

/// A call that is to be made.
pub(crate) struct Pace {
    pub(crate) pacing: Arc<Pacing>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The id of the model that is called.
    pub(crate) model: String,
    /// One that has no conversation does not wait: it fails, and its owner waits.
    pub(crate) asker: Asker,
    /// The refusal that the call would get, because its key is known to be rejected. The call is not made then.
    pub(crate) rejection: Option<Failure>,
    /// Whether the call is made whatever is known of the target.
    pub(crate) insists: bool,
    /// Whether it waits if a limit of its caller holds it; otherwise it fails.
    pub(crate) waits_for_caller: bool,
    /// Whether it then waits however long that takes.
    pub(crate) parks_for_caller: bool,
    /// How long the turn can afford to wait, in milliseconds.
    pub(crate) affordable_ms: u64,
    /// Records how the target does, if nothing else does.
    pub(crate) health: Option<(Arc<SharedHealth>, Target)>,
    /// Whether the turn waits if there is no network.
    pub(crate) waits_for_network: bool,
}

impl Pace {
    /// Asks whether the call may be made.
    pub(crate) fn enter(self) -> Paced {
        let now = self.clock.now();
        if let Some(failure) = self.rejection {
            telemetry::call_rejected(&self.model);
            self.pacing.forget(&self.model, &self.asker.turn, now);
            return Paced::Held(StreamEvent::Failed(failure));
        }
        if self.asker.price.is_none() && self.pacing.is_limited_in_money(&self.asker) {
            self.pacing.forget(&self.model, &self.asker.turn, now);
            return Paced::Held(StreamEvent::Failed(callers::unpriced(&self.model)));
        }
        if self.insists {
            match self.pacing.insist(&self.model, &self.asker, now) {
                Ok(admitted) => return Paced::Now(self.begin(admitted)),
                Err(wait) if !self.waits_for_caller => return self.refused(wait),
                Err(_) => {}
            }
        }
        match self.pacing.enter(&self.model, &self.asker, now) {
            Entry::Go(admitted) => Paced::Now(self.begin(admitted)),
            Entry::Wait(wait) if is_silent(wait) => Paced::Soon(self),
            Entry::Wait(wait) => self.held(wait),
        }
    }

    /// Waits a moment, then makes the call.
    pub(crate) fn soon(
        self,
        start: impl FnOnce(AdmittedCall) -> BoxStream<'static, StreamEvent> + Send + 'static,
    ) -> BoxStream<'static, StreamEvent> {
        let entered = async move {
            let Self { pacing, clock, model, asker, .. } = &self;
            let paced = match pacing.admitted(model, asker, &**clock, |wait| !is_silent(wait)).await {
                Entry::Go(admitted) => Paced::Now(self.begin(admitted)),
                // In line again, so that its conversation is woken.
                Entry::Wait(_) => self.enter(),
            };
            match paced {
                Paced::Now(call) => start(call),
                Paced::Held(event) => stream::once(future::ready(event)).boxed(),
                Paced::Soon(pace) => pace.soon(start),
            }
        };
        stream::once(entered).flatten().boxed()
    }

    fn held(self, wait: Wait) -> Paced {
        let now = self.clock.now();
        if self.asker.conversation.is_none() {
            return self.refused(wait);
        }
        let mut hold = self.pacing.hold(&self.model, &self.asker, wait, now);
        hold.in_budget &= wait.because != Because::CallerLimit || !self.parks_for_caller;
        hold.open_ended = self.affordable_ms > 0 && self.pacing.is_open_ended(&self.asker, wait, now);
        // A turn that cannot afford the wait calls the provider and gets its error, unless its caller may not.
        if hold.in_budget && !hold.open_ended && hold.wait_ms > self.affordable_ms {
            return match self.pacing.insist(&self.model, &self.asker, now) {
                Ok(admitted) => Paced::Now(self.begin(admitted)),
                Err(wait) => self.refused(wait),
            };
        }
        telemetry::call_held(&self.model);
        Paced::Held(StreamEvent::Held(hold))
    }

    /// The call fails instead of waiting.
    fn refused(self, wait: Wait) -> Paced {
        let now = self.clock.now();
        let hold = self.pacing.hold(&self.model, &self.asker, wait, now);
        telemetry::call_held(&self.model);
        self.pacing.forget(&self.model, &self.asker.turn, now);
        let refused = Failure { hint_ms: Some(hold.wait_ms), ..hold.failure };
        Paced::Held(StreamEvent::Failed(refused))
    }

    fn begin(self, admitted: Admitted) -> AdmittedCall {
        let Self { asker, clock, health, waits_for_network, .. } = self;
        AdmittedCall { admitted, asker, clock, health, waits_for_network }
    }
}

/// Whether nobody is told of a wait: nothing was refused, and it is over soon.
fn is_silent(wait: Wait) -> bool {
    wait.because == Because::Ramp
}
