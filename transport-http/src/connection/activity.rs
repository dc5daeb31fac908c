//! The phase of a connection, and its deadline.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::ConnectionLimits;

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Accepted, but nothing has arrived.
    Silent,
    /// Part of a request's head has arrived.
    Head,
    /// The head has arrived, and the body is incomplete.
    Body,
    /// A request is being answered.
    Answering,
    /// The last request was answered.
    Idle,
    /// A WebSocket, which has its own limits.
    Upgraded,
    /// Being closed to make room for another connection.
    Evicted,
}

/// The phase of a connection, its start, and whether the client accepts what is sent.
#[derive(Debug)]
pub(super) struct Activity {
    now: Mutex<Now>,
    evicted: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Now {
    phase: Phase,
    since: Instant,
    /// Since when the client has accepted nothing of the pending data.
    stalled: Option<Instant>,
}

impl Now {
    fn rank(&self) -> Option<(u8, Instant)> {
        match self.phase {
            Phase::Silent | Phase::Head | Phase::Idle if self.stalled.is_none() => Some((0, self.since)),
            Phase::Silent | Phase::Head | Phase::Idle | Phase::Body => Some((1, self.since)),
            Phase::Answering | Phase::Upgraded | Phase::Evicted => None,
        }
    }
}

impl Activity {
    pub(super) fn new() -> Self {
        let now = Now { phase: Phase::Silent, since: Instant::now(), stalled: None };
        Self { now: Mutex::new(now), evicted: Notify::new() }
    }

    /// Records that data arrived from the client.
    pub(super) fn heard(&self) {
        let mut now = self.lock();
        if let Phase::Silent | Phase::Idle = now.phase {
            (now.phase, now.since) = (Phase::Head, Instant::now());
        }
    }

    /// Enters a phase. Returns false if the connection is being evicted, so that nothing may begin.
    pub(super) fn enter(&self, phase: Phase) -> bool {
        let mut now = self.lock();
        if !matches!(now.phase, Phase::Upgraded | Phase::Evicted) {
            (now.phase, now.since) = (phase, Instant::now());
        }
        now.phase != Phase::Evicted
    }

    /// Records that the request's body is complete, or that nobody wants the rest. Returns false if the connection is
    /// being evicted.
    pub(super) fn has_body(&self) -> bool {
        let mut now = self.lock();
        if now.phase == Phase::Body {
            (now.phase, now.since) = (Phase::Answering, Instant::now());
        }
        now.phase != Phase::Evicted
    }

    /// Whether nothing has arrived yet, so that nobody waits for anything.
    pub(super) fn is_silent(&self) -> bool {
        self.lock().phase == Phase::Silent
    }

    /// Records whether the client accepted any of the pending data.
    pub(super) fn sent(&self, some: bool) {
        let mut now = self.lock();
        now.stalled = if some { None } else { now.stalled.or_else(|| Some(Instant::now())) };
    }

    /// Returns when the connection must be closed unless something happens, and why.
    pub(super) fn deadline(&self, limits: &ConnectionLimits) -> Option<(Instant, &'static str)> {
        let now = *self.lock();
        let (since, limit, why): (_, Duration, _) = match now.phase {
            Phase::Upgraded | Phase::Evicted => return None,
            _ if let Some(stalled) = now.stalled => (stalled, limits.send, "send"),
            Phase::Silent => (now.since, limits.head, "silent"),
            Phase::Head => (now.since, limits.head, "head"),
            Phase::Idle => (now.since, limits.idle, "idle"),
            // The body has limits of its own, and a response may take as long as a turn.
            Phase::Body | Phase::Answering => return None,
        };
        Some((since + limit, why))
    }

    /// Returns the eviction rank; the lowest goes first. `None` while a request is being served.
    pub(super) fn rank(&self) -> Option<(u8, Instant)> {
        self.lock().rank()
    }

    /// Evicts the connection. Returns false if a request is being served, which may have begun since it was ranked.
    pub(super) fn evict(&self) -> bool {
        let mut now = self.lock();
        let may = now.rank().is_some();
        if may {
            now.phase = Phase::Evicted;
            self.evicted.notify_one();
        }
        may
    }

    /// Waits until the connection is evicted.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_to_be_served_since_it_was_ranked_is_not_evicted() {
        for (phase, makes_room) in [
            (Phase::Silent, true),
            (Phase::Head, true),
            (Phase::Body, true),
            (Phase::Idle, true),
            (Phase::Answering, false),
            (Phase::Upgraded, false),
        ] {
            let activity = Activity::new();
            assert!(activity.rank().is_some());
            assert!(activity.enter(phase));
            assert_eq!(activity.evict(), makes_room, "{phase:?}");
            assert!(!(makes_room && activity.evict()), "it gives one place");
            assert_eq!(activity.enter(Phase::Answering), !makes_room, "{phase:?}");
        }
    }

    #[test]
    fn a_body_that_comes_whole_too_late_is_not_served() {
        let activity = Activity::new();
        assert!(activity.enter(Phase::Body) && activity.has_body() && !activity.evict());
        assert!(activity.enter(Phase::Body) && activity.evict() && !activity.has_body());
    }
}
