//! Proof that this node drives a turn, without which it starts no tool.
//!
//! An append that was stored proves that nobody had taken the turn over when it was sent, and no more: the process may be
//! frozen before it reads the answer. Two rules keep a call from starting after another node reported it as interrupted:
//! a call starts at most [`PROVES_FOR`](super::rules::PROVES_FOR) after the turn's last stored append was sent, and whoever
//! takes a turn over lets [`UNDECIDED_FOR`](super::rules::UNDECIDED_FOR) pass after reading it before it decides about calls that may be starting. Both are measured with one
//! clock each, so clocks may differ, but must run at about the same speed.
//!
//! What remains: a freeze between the check and the first instruction of the tool that is longer than the difference.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use everturn_kernel::{Input, Millis, Turn};
use everturn_wire::ConversationId;
use tokio::sync::{Notify, mpsc};

use super::rules::{is_proof, undecided_left};
use crate::{Version, clock::Clock};

/// Maximum number of turns about which a node remembers when it read them.
const MAX_UNDECIDED: usize = 100_000;

/// When the session of a turn last proved that it drives the turn.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// When the last stored append was sent, in epoch milliseconds.
    sent_at: AtomicU64,
    /// Notified of every stored append.
    renewed: Notify,
}

impl Proof {
    /// Records that an append which was sent at this time was stored.
    pub(crate) fn renew(&self, sent_at: Millis) {
        self.sent_at.store(sent_at.0, Ordering::Relaxed);
        self.renewed.notify_waiters();
    }

    /// Returns once the proof is recent. If it is not, makes the session save its turn again, which fails if another node
    /// has taken the turn over; then this never returns.
    pub(crate) async fn is_recent(&self, clock: &dyn Clock, session: &mpsc::Sender<Box<Input>>) {
        loop {
            let mut renewed = pin!(self.renewed.notified());
            // Register before checking, so that no notification is missed.
            renewed.as_mut().enable();
            let age = clock.now().since(Millis(self.sent_at.load(Ordering::Relaxed)));
            if is_proof(Duration::from_millis(age)) {
                return;
            }
            // Fails only if the session has ended, and this with it.
            let _ = session.send(Box::new(Input::Save)).await;
            renewed.await;
        }
    }
}

/// Turns that this node is about to take over, and when it first read them as they are.
#[derive(Debug, Default)]
pub(crate) struct Undecided(Mutex<HashMap<ConversationId, (Version, Millis)>>);

impl Undecided {
    /// Returns after how long the turn may be taken over at this version. Zero only once: it is then forgotten.
    pub(crate) fn left(&self, id: &ConversationId, version: Version, now: Millis) -> Duration {
        let mut read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = read.get(id).copied();
        let left = undecided_left(
            known.map(|(known, since)| (known, Duration::from_millis(now.since(since)))),
            &version,
        );
        if left.is_zero() {
            read.remove(id);
        } else {
            if read.len() >= MAX_UNDECIDED {
                // Most of them were taken over elsewhere.
                read.clear();
            }
            let since = known.filter(|(known, _)| *known == version).map_or(now, |(_, since)| since);
            read.insert(id.clone(), (version, since));
        }
        left
    }
}

/// Whether calls of a turn that is taken over may be about to start where it was driven before. Others that run may start
/// again.
pub(crate) fn may_be_starting(turn: &Turn) -> bool {
    let may_start_again = |name: &String| turn.settings().idempotent_tools.contains(name);
    turn.running_calls().any(|call| !may_start_again(&call.name))
}
