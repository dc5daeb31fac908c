//! Gates: turns that ask the same target share what one of them found out, and are let through one by one.

mod inner;
mod pass;
mod saved;
mod slot;
mod state;
mod window;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::{Hold, Millis, RequestQuota};
use everturn_wire::{Category, ConversationId, Failure, TurnId};
use tokio::sync::watch;

use crate::{JournalError, StateStore, clock::Clock, state::save_changes};
pub(crate) use pass::Pass;
use saved::Saved;
use state::{Entered, Gate, State, Why};

/// The name of their document in the store.
const NAME: &str = "gates";

/// How often it is saved that a target answers, in milliseconds. It is known for a day: a few minutes make no difference.
const SAVE_ANSWERED_MS: u64 = 5 * 60 * 1_000;

/// For how long after a target last answered a connection that fails counts as our own network, in milliseconds: 24 h.
const KNOWN_MS: u64 = 24 * 60 * 60 * 1_000;

/// The gates of the targets that cannot be asked by everyone right now, by the id of the model, and when each target
/// answered last. Shared by all turns of the process, and kept for the next one.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    inner: Mutex<Inner>,
    /// Told of every change that is saved.
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Inner {
    gates: HashMap<String, Gate>,
    answered: HashMap<String, Answered>,
    /// Whether something changed that is saved.
    is_changed: bool,
}

/// When a target answered last, and the moment that was saved.
#[derive(Clone, Copy, Debug)]
struct Answered {
    at: Millis,
    saved_at: Millis,
}

impl Gates {
    /// Takes over what an earlier process knew, and saves what changes from now on.
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
            // Of another version, or damaged. The next turn finds it out again.
            Some(Err(error)) => {
                tracing::warn!(%error, "saved limits of targets cannot be read; ignoring them");
            }
            None => {}
        }
        let json = move |gates: &Self| gates.json(clock.now());
        tokio::spawn(save_changes(NAME, Arc::downgrade(self), self.changed.subscribe(), store, json));
        Ok(())
    }

    /// The document that is saved.
    fn json(&self, now: Millis) -> serde_json::Result<String> {
        let saved = Saved::of(&self.lock(), now);
        serde_json::to_string(&saved)
    }

    /// Lets the turn of a conversation ask this target now, unless it is put off.
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
                Entered::Go => None,
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

    /// A turn was refused by a limit, and asks again then.
    pub(crate) fn limited(&self, target: &str, turn: &TurnId, failure: Failure, until: Millis, now: Millis) {
        let why = Why { failure, hint_ends: None, is_offline: false };
        self.change(|inner| inner.decided(target, turn, why, until, now));
    }

    /// The call of a turn failed. Says how long it is put off if that was for want of a network. A failure that is no limit
    /// opens the gate: those who wait come by themselves then.
    fn failed(&self, call: &Pass, failure: &Failure, now: Millis) -> Option<Box<Hold>> {
        let Pass { target, turn, asked_at, waits_for_network, quota, .. } = call;
        self.change(|inner| {
            let is_unreached = *waits_for_network && failure.unreached.is_some();
            if is_unreached && inner.is_offline(target, failure, *asked_at, now) {
                let why = Why { failure: offline(failure), hint_ends: None, is_offline: true };
                return Some(why.hold(inner.unreached(target, turn, &why, now), false));
            }
            // Any other failure is no limit.
            if failure.category == Category::RateLimited {
                inner.undecided(target, turn, failure, now);
                inner.note_limit(target, quota.as_ref());
            } else {
                _ = inner.open(target, *asked_at, *quota, now);
            }
            None
        })
    }

    /// Whether what the turn of this conversation waits for is over, so that it need not wait to the end. Says so once.
    pub(crate) fn lets_go_of(&self, id: &ConversationId) -> bool {
        let mut inner = self.lock();
        let mut opening = inner.gates.values_mut().filter(|gate| matches!(gate.state, State::Opening { .. }));
        opening.any(|gate| gate.waiting.remove(id).is_some())
    }

    /// The target answers a call that was made then. Says who need not wait any longer, and when each is to be woken.
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

    /// A turn ended. Where it was the first to ask again, and only its own schedule said when, the next one asks.
    pub(crate) fn ended(&self, target: &str, turn: &TurnId, now: Millis) {
        self.change(|inner| {
            if let Some(Gate { state: State::Closed { until, first }, why, .. }) = inner.gates.get_mut(target)
                && first == turn
            {
                (*until, *first) = ((*until).min(why.hint_ends.unwrap_or(now)), TurnId::from(""));
                inner.is_changed = true;
            }
        });
    }

    /// The call of a turn ended before anything was known of it. If it was the one that asked, the next one does.
    fn left(&self, target: &str, turn: &TurnId, now: Millis) {
        let mut inner = self.lock();
        if let Some(gate) = inner.gates.get_mut(target)
            && matches!(&gate.state, State::Probing { turn: asking } if asking == turn)
        {
            gate.state = State::Closed { until: now, first: TurnId::from("") };
        }
    }

    /// Makes a change, and has it saved if it is of that kind.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let result = change(&mut inner);
        let is_changed = std::mem::take(&mut inner.is_changed);
        drop(inner);
        if is_changed {
            self.changed.send_replace(());
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The failure that is shown while there is no network.
fn offline(failure: &Failure) -> Failure {
    let message = format!("Offline, waiting for the network: {}", failure.message);
    Failure { message, hint_ms: None, ..failure.clone() }
}

#[cfg(test)]
mod tests;
