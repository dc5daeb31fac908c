//! Who waits for which target, and the task that wakes those whose wait is over.

use std::{
    collections::{BTreeMap, HashMap},
    future,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use everturn_kernel::Millis;
use everturn_wire::{ConversationId, TurnId};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

use super::{Inner, Pacing};
use crate::{
    clock::Clock,
    runs::{Running, Runs},
    timer::Timers,
};

/// How many turns are let go at once, and the pause that follows, in milliseconds: the timer wakes a thousand per second.
const AT_ONCE: usize = 50;
const PAUSE_MS: u64 = 50;

/// How a call that waits learns that it may be made.
pub(super) enum Waiter {
    /// Its turn was told to wait, and is woken.
    Turn(ConversationId),
    /// It asks again by itself.
    Nobody,
    /// It waits for this.
    Here(oneshot::Sender<()>),
}

/// The calls that wait.
#[derive(Default)]
pub(super) struct Line {
    waiters: HashMap<TurnId, (Arc<str>, Waiter)>,
    /// How many wait for each target.
    targets: BTreeMap<Arc<str>, usize>,
    /// Turns that were let go and have not been woken yet, by conversation.
    released: HashMap<ConversationId, TurnId>,
}

impl Line {
    /// Adds a turn. It waits for one target at a time.
    pub(super) fn enter(&mut self, target: &str, turn: &TurnId, waiter: Waiter) {
        self.leave(turn);
        let known = self.targets.get_key_value(target).map(|(known, _)| known.clone());
        let target = known.unwrap_or_else(|| target.into());
        *self.targets.entry(target.clone()).or_default() += 1;
        self.waiters.insert(turn.clone(), (target, waiter));
    }

    /// Removes a turn. Returns what it waited for.
    pub(super) fn leave(&mut self, turn: &TurnId) -> Option<Arc<str>> {
        self.take(turn).map(|(target, _)| target)
    }

    fn take(&mut self, turn: &TurnId) -> Option<(Arc<str>, Waiter)> {
        let taken = self.waiters.remove(turn)?;
        if let Some(count) = self.targets.get_mut(&taken.0) {
            *count -= 1;
            if *count == 0 {
                self.targets.remove(&taken.0);
            }
        }
        Some(taken)
    }

    pub(super) fn has_any(&self) -> bool {
        !self.waiters.is_empty()
    }

    pub(super) fn waits_for(&self, target: &str) -> bool {
        self.targets.contains_key(target)
    }
}

/// Wakes turns, as soon as there is somebody to wake.
#[derive(Default)]
pub(super) struct Woken {
    /// Set once there are timers.
    by: OnceLock<(Weak<Timers>, Arc<dyn Clock>)>,
    looks: Arc<Notify>,
    runs: Runs,
}

impl Woken {
    /// Returns the clock of turns.
    pub(super) fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.by.get().map(|(_, clock)| clock.clone())
    }
}

/// The place of a call that waits here. Dropping it gives the place up.
pub(super) struct Place<'a> {
    pub(super) pacing: &'a Arc<Pacing>,
    pub(super) target: &'a str,
    pub(super) turn: &'a TurnId,
    pub(super) clock: &'a dyn Clock,
}

impl Pacing {
    /// Wakes turns by this timer from now on.
    pub(crate) fn wake_by(&self, timers: &Arc<Timers>, clock: Arc<dyn Clock>) {
        let _ = self.woken.by.set((Arc::downgrade(timers), clock));
    }

    /// Looks soon who may be let go.
    pub(super) fn look(self: &Arc<Self>) {
        self.woken.looks.notify_one();
        self.start();
    }

    /// Starts the task that wakes turns, unless it runs.
    pub(super) fn start(self: &Arc<Self>) {
        let woken = &self.woken;
        let Some(running) = woken.runs.begin() else { return };
        // No runtime: the process is ending and wakes no more turns.
        let (Ok(runtime), Some((_, clock))) = (Handle::try_current(), woken.by.get()) else { return };
        runtime.spawn(run(running, Arc::downgrade(self), clock.clone(), woken.looks.clone()));
    }

    /// Takes the turn of this conversation that was let go and has not been woken yet.
    pub(crate) fn take_released(&self, conversation: &ConversationId) -> Option<TurnId> {
        self.lock().line.released.remove(conversation)
    }

    /// Whether a turn is in line.
    pub(crate) fn has(&self, turn: &TurnId) -> bool {
        self.lock().line.waiters.contains_key(turn)
    }

    /// Wakes those who may be let go. Returns when to look again, and whether many may be left.
    fn let_go(&self, now: Millis) -> (Option<Millis>, bool) {
        let mut inner = self.lock();
        let Inner { pacer, line, .. } = &mut *inner;
        let released = pacer.let_go(AT_ONCE, now);
        let is_full = released.len() >= AT_ONCE;
        let mut woken = Vec::new();
        for turn in released {
            match line.take(&turn) {
                Some((_, Waiter::Turn(conversation))) => {
                    line.released.insert(conversation.clone(), turn);
                    woken.push(conversation);
                }
                Some((_, Waiter::Here(tell))) => _ = tell.send(()),
                Some((_, Waiter::Nobody)) | None => {}
            }
        }
        let next = pacer.next_at(now);
        drop(inner);
        if let Some(timers) = self.woken.by.get().and_then(|(timers, _)| timers.upgrade()) {
            // One after another, in this order.
            for (after, conversation) in (0..).zip(woken) {
                timers.look_at(now.plus(after), conversation);
            }
        }
        (next, is_full)
    }
}

impl Drop for Pacing {
    fn drop(&mut self) {
        self.woken.looks.notify_one();
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // If it was let go, its call is reserved, and the next attempt takes it.
        let mut inner = self.pacing.lock();
        if inner.line.leave(self.turn).is_some() {
            inner.pacer.forget(self.target, self.turn, self.clock.now());
        }
    }
}

/// Lets turns go, as long as somebody asks for calls.
async fn run(_running: Running, pacing: Weak<Pacing>, clock: Arc<dyn Clock>, looks: Arc<Notify>) {
    while let Some(strong) = pacing.upgrade() {
        let (next, is_full) = strong.let_go(clock.now());
        drop(strong);
        if is_full {
            clock.sleep(Duration::from_millis(PAUSE_MS)).await;
            continue;
        }
        let sleep = async {
            match next {
                Some(at) => clock.sleep(Duration::from_millis(at.since(clock.now()))).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = looks.notified() => {}
            () = sleep => {}
        }
    }
}
