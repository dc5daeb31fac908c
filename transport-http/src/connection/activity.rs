//! What a connection does right now, and for how long it may.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::ConnectionLimits;

/// What a connection does right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It was accepted, and nothing has come yet.
    Silent,
    /// Some of a request's head has come.
    Head,
    /// The head of a request has come, and its body has not come whole.
    Body,
    /// A request is being answered.
    Answering,
    /// Its last request was answered.
    Idle,
    /// It is a WebSocket, which has limits of its own.
    Upgraded,
    /// It makes room for another one.
    Evicted,
}

/// What a connection does, since when, and whether its client takes what it is sent.
#[derive(Debug)]
pub(super) struct Activity {
    now: Mutex<Now>,
    evicted: Notify,
}

#[derive(Clone, Copy, Debug)]
struct Now {
    phase: Phase,
    since: Instant,
    /// Since when the client has taken nothing of what there is for it.
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

    /// Something came from the client.
    pub(super) fn heard(&self) {
        let mut now = self.lock();
        if let Phase::Silent | Phase::Idle = now.phase {
            (now.phase, now.since) = (Phase::Head, Instant::now());
        }
    }

    /// It does that from now on. `false` when it makes room already, so that nothing may be begun.
    pub(super) fn enter(&self, phase: Phase) -> bool {
        let mut now = self.lock();
        if !matches!(now.phase, Phase::Upgraded | Phase::Evicted) {
            (now.phase, now.since) = (phase, Instant::now());
        }
        now.phase != Phase::Evicted
    }

    /// The body of the request has come, or nobody wants the rest of it. `false` when it makes room already.
    pub(super) fn has_body(&self) -> bool {
        let mut now = self.lock();
        if now.phase == Phase::Body {
            (now.phase, now.since) = (Phase::Answering, Instant::now());
        }
        now.phase != Phase::Evicted
    }

    /// Whether nothing has come yet, so that nobody waits for anything.
    pub(super) fn is_silent(&self) -> bool {
        self.lock().phase == Phase::Silent
    }

    /// The client has taken some of what there is for it, or nothing.
    pub(super) fn sent(&self, some: bool) {
        let mut now = self.lock();
        now.stalled = if some { None } else { now.stalled.or_else(|| Some(Instant::now())) };
    }

    /// When it must be closed unless something happens, and why.
    pub(super) fn deadline(&self, limits: &ConnectionLimits) -> Option<(Instant, &'static str)> {
        let now = *self.lock();
        let (since, limit, why): (_, Duration, _) = match now.phase {
            Phase::Upgraded | Phase::Evicted => return None,
            _ if let Some(stalled) = now.stalled => (stalled, limits.send, "send"),
            Phase::Silent => (now.since, limits.head, "silent"),
            Phase::Head => (now.since, limits.head, "head"),
            Phase::Idle => (now.since, limits.idle, "idle"),
            // The body has limits where it is read, and an answer may take as long as a turn.
            Phase::Body | Phase::Answering => return None,
        };
        Some((since + limit, why))
    }

    /// How readily it makes room for another one: the least goes first. `None` while it is being served.
    pub(super) fn rank(&self) -> Option<(u8, Instant)> {
        self.lock().rank()
    }

    /// Has it make room for another one. `false` when it is being served, which may have begun since it was ranked.
    pub(super) fn evict(&self) -> bool {
        let mut now = self.lock();
        let may = now.rank().is_some();
        if may {
            now.phase = Phase::Evicted;
            self.evicted.notify_one();
        }
        may
    }

    /// Waits until it must make room.
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
