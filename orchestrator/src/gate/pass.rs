//! A call that was let through: it is measured, and its gate and the health hear how it ended.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use everturn_kernel::{Millis, RequestQuota, StreamEvent, Target};
use everturn_wire::TurnId;
use futures_core::Stream;
use futures_util::StreamExt as _;

use super::Gates;
use crate::{clock::Clock, health::SharedHealth, telemetry, timer::Timers};

/// A call that was let through.
pub(crate) struct Pass {
    /// None for a turn that neither waits for others nor tells them.
    pub(crate) gates: Option<Arc<Gates>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Who wakes those that need not wait any longer.
    pub(crate) timers: Arc<Timers>,
    /// The id of the model that is asked.
    pub(crate) target: String,
    pub(crate) turn: TurnId,
    pub(crate) asked_at: Millis,
    /// Where it is noted how the target does, if nobody else does.
    pub(crate) health: Option<(Arc<SharedHealth>, Target)>,
    /// Whether the turn is put off where there is no network.
    pub(crate) waits_for_network: bool,
    /// What its provider says is left of the limit on requests.
    pub(crate) quota: Option<RequestQuota>,
}

impl Pass {
    /// The events of the call. Of one that reached nobody for want of a network, the turn hears that it is put off.
    pub(crate) fn watch<S>(self, events: S) -> Watched<S> {
        Watched { events, pass: Some(self) }
    }

    fn hears(&self, event: StreamEvent) -> StreamEvent {
        let now = self.clock.now();
        let failure = if let StreamEvent::Failed(failure) = &event { Some(failure.category) } else { None };
        telemetry::provider_answered(&self.target, failure, now.since(self.asked_at));
        match event {
            StreamEvent::Failed(failure) => {
                if let Some((health, target)) = &self.health {
                    health.failed(now, target, &failure);
                }
                match self.gates.as_ref().and_then(|gates| gates.failed(self, &failure, now)) {
                    Some(hold) => StreamEvent::Held(hold),
                    None => StreamEvent::Failed(failure),
                }
            }
            event => {
                if let Some(gates) = &self.gates {
                    for (at, id) in gates.answered(&self.target, self.asked_at, self.quota, now) {
                        self.timers.wake_at(at, id);
                    }
                }
                if let Some((health, target)) = &self.health {
                    health.answered(self.asked_at, target);
                }
                event
            }
        }
    }
}

/// The events of a call, which its gate hears of.
pub(crate) struct Watched<S> {
    events: S,
    /// Until something is known of the call.
    pass: Option<Pass>,
}

impl<S: Stream<Item = StreamEvent> + Unpin> Stream for Watched<S> {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let event = loop {
            let polled = self.events.poll_next_unpin(cx);
            let Poll::Ready(Some(event)) = polled else { return polled };
            let StreamEvent::Quota(quota) = event else { break event };
            if let Some(pass) = &mut self.pass {
                pass.quota = Some(quota);
            }
        };
        // That nothing came says nothing.
        let pass = if matches!(event, StreamEvent::Silent(_)) { None } else { self.pass.take() };
        Poll::Ready(Some(match pass {
            Some(pass) => pass.hears(event),
            None => event,
        }))
    }
}

impl<S> Drop for Watched<S> {
    fn drop(&mut self) {
        if let Some(Pass { gates: Some(gates), target, turn, clock, .. }) = &self.pass {
            gates.left(target, turn, clock.now());
        }
    }
}
