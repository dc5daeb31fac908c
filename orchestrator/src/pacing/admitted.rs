//! An admitted call: its outcome is reported to the pacer and the health.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use everturn_kernel::{Limits, Millis, StreamEvent, Target};
use everturn_pacing::{Call, Priority, Size, Ticket};
use everturn_wire::{CallerName, ConversationId, Failure, TurnId};
use futures_core::Stream;
use futures_util::StreamExt as _;

use super::Pacing;
use crate::{
    clock::Clock,
    health::SharedHealth,
    telemetry,
    usage::{Figures, Price},
};

/// Who wants to make a call.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    pub(crate) turn: TurnId,
    /// Whose turn it is; `None` = the administrator's.
    pub(crate) caller: Option<CallerName>,
    /// Who is woken when the call may be made; `None` = it does not wait.
    pub(crate) conversation: Option<ConversationId>,
    /// Since when it has wanted to make the call.
    pub(crate) since: Millis,
    pub(crate) priority: Priority,
    /// The estimated size.
    pub(crate) size: Size,
    /// What tokens cost, if that is known.
    pub(crate) price: Option<Price>,
}

impl Asker {
    pub(super) fn call(&self) -> Call<'_> {
        let Self { turn, caller, since, priority, size, .. } = self;
        Call { turn, caller: caller.as_ref(), since: *since, priority: *priority, size: *size }
    }
}

/// Returns the size of a call with these tokens.
pub(crate) fn size(tokens: &Figures, price: Option<&Price>) -> Size {
    let money = price.map_or(0, |price| price.money(tokens));
    Size { input: tokens.input, cached: tokens.cache_read, output: tokens.output, money }
}

/// A call that may be made. Report what becomes of it; dropping it reports that its outcome stays unknown.
pub(crate) struct Admitted {
    pacing: Arc<Pacing>,
    target: String,
    caller: Option<CallerName>,
    /// `None` once the call is over.
    ticket: Option<Ticket>,
    asked_at: Millis,
    /// The estimate of its tokens that are sent.
    estimated: u64,
    used: Option<Size>,
}

impl Admitted {
    pub(super) fn new(
        pacing: &Arc<Pacing>,
        target: &str,
        asker: &Asker,
        ticket: Ticket,
        asked_at: Millis,
    ) -> Self {
        let (pacing, caller) = (pacing.clone(), asker.caller.clone());
        let (target, estimated) = (target.to_owned(), asker.size.input);
        Self { pacing, target, caller, ticket: Some(ticket), asked_at, estimated, used: None }
    }

    /// The provider accepted the call. `limits`: what its response reports.
    pub(crate) fn heard(&self, limits: &Limits, now: Millis) {
        if let Some(ticket) = self.ticket {
            self.pacing.heard(&self.target, ticket, limits, self.asked_at, now);
        }
    }

    /// The call failed.
    pub(crate) fn refused(mut self, failure: &Failure, limits: &Limits, now: Millis) {
        if let Some(ticket) = self.ticket.take() {
            self.pacing.refused(&self.target, ticket, failure, limits, self.asked_at, now);
            self.pacing.keep_counts(self.caller.as_ref());
        }
    }

    /// Sets the real size of the call, to be reported when it is over.
    pub(crate) fn used(&mut self, size: Size) {
        self.used = Some(size);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.pacing.ended(&self.target, ticket, self.estimated, self.used);
            self.pacing.keep_counts(self.caller.as_ref());
        }
    }
}

/// An admitted call of a turn.
pub(crate) struct AdmittedCall {
    pub(crate) admitted: Admitted,
    pub(crate) asker: Asker,
    pub(crate) clock: Arc<dyn Clock>,
    /// Records how the target does, if nothing else does.
    pub(crate) health: Option<(Arc<SharedHealth>, Target)>,
    /// Whether the turn waits if there is no network.
    pub(crate) waits_for_network: bool,
}

impl AdmittedCall {
    /// Returns the events of the call. If it reached nobody because there is no network, the turn receives a hold instead of the
    /// failure.
    pub(crate) fn watch<S>(self, events: S) -> Watched<S> {
        Watched { events, call: Some(self), limits: Limits::default(), told_at: Millis(0), is_heard: false }
    }

    fn fails(self, failure: Failure, limits: &Limits) -> StreamEvent {
        let Self { mut admitted, asker, clock, health, waits_for_network } = self;
        let now = clock.now();
        telemetry::provider_answered(&admitted.target, Some(failure.category), now.since(admitted.asked_at));
        if let Some((health, target)) = &health {
            health.failed(now, target, &failure);
        }
        if waits_for_network && let Some(ticket) = admitted.ticket {
            let Admitted { pacing, target, .. } = &admitted;
            if let Some(hold) = pacing.unreached(target, ticket, &asker, &failure, now) {
                admitted.ticket = None;
                return StreamEvent::Held(hold);
            }
        }
        admitted.refused(&failure, limits, now);
        StreamEvent::Failed(failure)
    }

    fn hears(&self, limits: &Limits) {
        let (now, admitted) = (self.clock.now(), &self.admitted);
        telemetry::provider_answered(&admitted.target, None, now.since(admitted.asked_at));
        admitted.heard(limits, now);
        if let Some((health, target)) = &self.health {
            health.answered(admitted.asked_at, target, now);
        }
    }
}

/// The events of a call, reported to the pacer.
pub(crate) struct Watched<S> {
    events: S,
    /// Present until the call is over.
    call: Option<AdmittedCall>,
    /// What its response reports, and when its head came.
    limits: Limits,
    told_at: Millis,
    is_heard: bool,
}

impl<S> Watched<S> {
    /// Returns what the response reports, as of now: content may come minutes after its head.
    fn limits(&mut self) -> Limits {
        let Limits(mut limits) = std::mem::take(&mut self.limits);
        let age = self.call.as_ref().map_or(0, |call| call.clock.now().since(self.told_at));
        limits.retain_mut(|told| {
            let is_over = told.reset_ms > 0 && told.reset_ms <= age;
            told.reset_ms = told.reset_ms.saturating_sub(age);
            !is_over
        });
        Limits(limits)
    }

    /// Takes note of an event. `None`: it is for the pacer alone.
    fn see(&mut self, event: StreamEvent) -> Option<StreamEvent> {
        match event {
            StreamEvent::Limits(limits) => {
                self.limits = limits;
                self.told_at = self.call.as_ref().map_or(Millis(0), |call| call.clock.now());
                return None;
            }
            StreamEvent::Failed(failure) => {
                let limits = self.limits();
                return Some(match self.call.take() {
                    Some(call) if !self.is_heard => call.fails(failure, &limits),
                    _ => StreamEvent::Failed(failure),
                });
            }
            // Silence says nothing about the outcome.
            StreamEvent::Silent(_) => return Some(event),
            _ => {}
        }
        if !std::mem::replace(&mut self.is_heard, true) {
            let limits = self.limits();
            if let Some(call) = &self.call {
                call.hears(&limits);
            }
        }
        if let Some(call) = &mut self.call {
            match &event {
                StreamEvent::Usage(usage) => {
                    call.admitted.used(size(&Figures::from(usage), call.asker.price.as_ref()));
                }
                StreamEvent::Finished(_) => self.call = None,
                _ => {}
            }
        }
        Some(event)
    }
}

impl<S: Stream<Item = StreamEvent> + Unpin> Stream for Watched<S> {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        loop {
            let polled = self.events.poll_next_unpin(cx);
            let Poll::Ready(Some(event)) = polled else { return polled };
            if let Some(event) = self.see(event) {
                return Poll::Ready(Some(event));
            }
        }
    }
}
