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

    pub(super) fn enter(&self, phase: Phase) {
        let mut now = self.lock();
        if !matches!(now.phase, Phase::Upgraded | Phase::Evicted) {
            (now.phase, now.since) = (phase, Instant::now());
        }
    }

    /// The body of the request has come, or nobody wants the rest of it.
    pub(super) fn has_body(&self) {
        if self.lock().phase == Phase::Body {
            self.enter(Phase::Answering);
        }
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
        let now = *self.lock();
        match now.phase {
            Phase::Silent | Phase::Head | Phase::Idle if now.stalled.is_none() => Some((0, now.since)),
            Phase::Silent | Phase::Head | Phase::Idle | Phase::Body => Some((1, now.since)),
            Phase::Answering | Phase::Upgraded | Phase::Evicted => None,
        }
    }

    /// Has it make room for another one.
    pub(super) fn evict(&self) {
        self.enter(Phase::Evicted);
        self.evicted.notify_one();
    }

    /// Waits until it must make room.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
