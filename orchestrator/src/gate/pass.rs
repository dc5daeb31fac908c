//! An admitted call: it is measured, and its outcome is reported to its gate and the health.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use everturn_kernel::{Millis, StreamEvent, Target};
use everturn_wire::TurnId;
use futures_core::Stream;
use futures_util::StreamExt as _;

use super::{Gates, window::RequestQuota};
use crate::{clock::Clock, health::SharedHealth, telemetry, timer::Timers};

/// An admitted call.
pub(crate) struct Pass {
    /// `None` for a turn that neither waits for others nor informs them.
    pub(crate) gates: Option<Arc<Gates>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Wakes turns that need not wait any longer.
    pub(crate) timers: Arc<Timers>,
    /// The id of the model that is called.
    pub(crate) target: String,
    pub(crate) turn: TurnId,
    pub(crate) asked_at: Millis,
    /// Records how the target does, if nothing else does.
    pub(crate) health: Option<(Arc<SharedHealth>, Target)>,
    /// Whether the turn waits if there is no network.
    pub(crate) waits_for_network: bool,
    /// The remaining quota that its provider reported.
    pub(crate) quota: Option<RequestQuota>,
}

impl Pass {
    /// Returns the events of the call. If it reached nobody because there is no network, the turn receives a hold
    /// instead of the failure.
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
                        self.timers.look_at(at, id);
                    }
                }
                if let Some((health, target)) = &self.health {
                    health.answered(self.asked_at, target, now);
                }
                event
            }
        }
    }
}

/// The events of a call, reported to its gate.
pub(crate) struct Watched<S> {
    events: S,
    /// Present until something is known about the call.
    pass: Option<Pass>,
}

impl<S: Stream<Item = StreamEvent> + Unpin> Stream for Watched<S> {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let event = loop {
            let polled = self.events.poll_next_unpin(cx);
            let Poll::Ready(Some(event)) = polled else { return polled };
            let StreamEvent::Limits(limits) = event else { break event };
            if let Some(pass) = &mut self.pass {
                pass.quota = RequestQuota::of(&limits);
            }
        };
        // Silence says nothing about the outcome.
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
