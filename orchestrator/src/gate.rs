//! Gates: turns that call the same target share what one of them learned about it, and are admitted one by one.

mod inner;
mod pass;
mod saved;
mod shared;
mod slot;
mod state;
mod window;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::{Hold, Millis};
use everturn_wire::{Category, ConversationId, Failure, TurnId, Unreached};
use tokio::sync::watch;

use crate::{
    JournalError, StateStore,
    clock::Clock,
    notice::{Notice, Teller},
    state::save_changes,
};
pub(crate) use pass::Pass;
use saved::Saved;
use state::{Entered, Gate, State, Why};
use window::RequestQuota;

/// The name of the gates' document in the store.
const NAME: &str = "gates";

/// Minimum interval between saves of when a target last answered, in milliseconds. That is used for a day, so a few
/// minutes make no difference.
const SAVE_ANSWERED_MS: u64 = 5 * 60 * 1_000;

/// How long after a target's last answer a failed connection counts as a failure of our own network, in milliseconds:
/// 24 h.
const KNOWN_MS: u64 = 24 * 60 * 60 * 1_000;

/// The gates of targets that not every turn may call right now, by model id, and when each target last answered. Shared
/// by all turns of the process, told to other nodes, and saved for the next process.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    inner: Mutex<Inner>,
    /// Notified of every change to save.
    changed: watch::Sender<()>,
    pub(crate) teller: Teller,
}

#[derive(Debug, Default)]
struct Inner {
    gates: HashMap<String, Gate>,
    answered: HashMap<String, Answered>,
    /// Whether there is a change to save.
    is_changed: bool,
    /// What to tell other nodes.
    news: Vec<Notice>,
}

/// When a target last answered, and when that was last saved.
#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Millis,
    saved_at: Millis,
}

impl Gates {
    /// Restores what an earlier process knew, and saves changes from now on.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn keep_in(
        self: &Arc<Self>,
        store: Arc<dyn StateStore>,
        clock: Arc<dyn Clock>,
    ) -> Result<(), JournalError> {
        match store.read(NAME).await?.as_deref().map(serde_json::from_str::<Saved>) {
            Some(Ok(saved)) => saved.restore(&mut self.lock(), clock.now()),
            // From another version, or damaged. The next turn will find out again.
            Some(Err(error)) => {
                tracing::warn!(%error, "saved limits of targets cannot be read; ignoring them");
            }
            None => {}
        }
        let json = move |gates: &Self| gates.json(clock.now());
        tokio::spawn(save_changes(NAME, Arc::downgrade(self), self.changed.subscribe(), store, json));
        Ok(())
    }

    /// Returns the document to save.
    fn json(&self, now: Millis) -> serde_json::Result<String> {
        let saved = Saved::of(&self.lock(), now);
        serde_json::to_string(&saved)
    }

    /// Admits the conversation's turn to the target now, or returns how long it must wait.
    pub(crate) fn enter(
        &self,
        target: &str,
        id: &ConversationId,
        turn: &TurnId,
        now: Millis,
    ) -> Option<Box<Hold>> {
        self.change(|inner| {
            let gate = inner.gates.get_mut(target)?;
            match gate.enter(turn, now) {
                Entered::Go => {
                    inner.note_probe(target);
                    None
                }
                Entered::Gone => {
                    inner.gates.remove(target);
                    inner.is_changed = true;
                    None
                }
                Entered::Wait(until) => {
                    if matches!(gate.state, State::Closed { .. }) {
                        gate.waiting.insert(id.clone(), gate.put_off);
                    }
                    Some(gate.why.hold(until.since(now), true))
                }
            }
        })
    }

    /// Records that a limit refused a turn, which asks again at `until`.
    pub(crate) fn limited(&self, target: &str, turn: &TurnId, failure: Failure, until: Millis, now: Millis) {
        let why = Why { failure, hint_ends: None, is_offline: false };
        self.change(|inner| {
            let before = inner.closed(target);
            inner.decided(target, turn, why, until, now);
            if inner.closed(target) != before {
                inner.note_closed(target, now);
            }
        });
    }

    /// Records that a turn's call failed. Returns how long the turn must wait if there is no network. A failure other
    /// than a limit opens the gate: the waiting turns then come by themselves.
    fn failed(&self, call: &Pass, failure: &Failure, now: Millis) -> Option<Box<Hold>> {
        let Pass { target, turn, asked_at, waits_for_network, quota, .. } = call;
        self.change(|inner| {
            let is_unreached = *waits_for_network && failure.unreached.is_some();
            if is_unreached && inner.is_offline(target, failure, *asked_at, now) {
                let why = Why { failure: offline(failure), hint_ends: None, is_offline: true };
                return Some(why.hold(inner.unreached(target, turn, &why, now), false));
            }
            // Only a rate limit keeps the gate closed.
            if failure.category == Category::RateLimited {
                inner.undecided(target, turn, failure, now);
                inner.note_limit(target, quota.as_ref());
            } else {
                _ = inner.open(target, *asked_at, *quota, now);
                if failure.unreached.is_some() {
                    // That is this node's network.
                    inner.news.clear();
                }
            }
            None
        })
    }

    /// Whether the conversation's turn may end its wait early, because the gate is opening. Returns true only once.
    pub(crate) fn lets_go_of(&self, id: &ConversationId) -> bool {
        let mut inner = self.lock();
        let mut opening = inner.gates.values_mut().filter(|gate| matches!(gate.state, State::Opening { .. }));
        opening.any(|gate| gate.waiting.remove(id).is_some())
    }

    /// Records that the target answered a call made at `asked_at`. Returns which conversations need not wait any
    /// longer, and when to wake each.
    fn answered(
        &self,
        target: &str,
        asked_at: Millis,
        quota: Option<RequestQuota>,
        now: Millis,
    ) -> Vec<(Millis, ConversationId)> {
        self.change(|inner| {
            let released = inner.open(target, asked_at, quota, now);
            match inner.answered.get_mut(target) {
                Some(answered) => {
                    answered.at = now;
                    if now.since(answered.saved_at) >= SAVE_ANSWERED_MS {
                        answered.saved_at = now;
                        inner.is_changed = true;
                    }
                }
                None => {
                    inner.answered.insert(target.to_owned(), Answered { at: now, saved_at: now });
                    inner.is_changed = true;
                }
            }
            released
        })
    }

    /// Records that a turn ended. If it was to ask first, and only its own schedule determined when, the next turn asks
    /// instead.
    pub(crate) fn ended(&self, target: &str, turn: &TurnId, now: Millis) {
        self.change(|inner| {
            if let Some(Gate { state: State::Closed { until, first }, why, .. }) = inner.gates.get_mut(target)
                && first == turn
            {
                (*until, *first) = ((*until).min(why.hint_ends.unwrap_or(now)), TurnId::from(""));
                inner.is_changed = true;
                inner.note_closed(target, now);
            }
        });
    }

    /// Records that a turn's call ended before its outcome was known. If that turn was probing the target, the next one
    /// does.
    fn left(&self, target: &str, turn: &TurnId, now: Millis) {
        self.change(|inner| {
            if let Some(gate) = inner.gates.get_mut(target)
                && matches!(&gate.state, State::Probing { turn: asking } if asking == turn)
            {
                gate.state = State::Closed { until: now, first: TurnId::from("") };
                inner.note_closed(target, now);
            }
        });
    }

    /// Applies a change, triggers a save if necessary, and tells other nodes.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let result = change(&mut inner);
        let is_changed = std::mem::take(&mut inner.is_changed);
        let news = std::mem::take(&mut inner.news);
        drop(inner);
        if is_changed {
            self.changed.send_replace(());
        }
        news.iter().for_each(|notice| self.teller.tell(notice));
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the failure to show while the target cannot be reached.
fn offline(failure: &Failure) -> Failure {
    let waiting = match failure.unreached {
        // It may be a local provider that is not running.
        Some(Unreached::NoConnection) => "No connection, waiting for the provider or the network",
        _ => "Offline, waiting for the network",
    };
    let message = format!("{waiting}: {}", failure.message);
    Failure { message, hint_ms: None, ..failure.clone() }
}

#[cfg(test)]
mod tests;
