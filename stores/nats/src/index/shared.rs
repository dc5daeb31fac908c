//! What the index's feed and its readers share.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use everturn_ports::{ListEvent, NodeId};
use tokio::sync::{Notify, broadcast, watch};

use super::projection::Projection;
use crate::{label::REMOVAL_KEPT, leader::Newest};

/// How many changes a slow receiver may lag behind.
const PLACES: usize = 1024;

/// How long a leader may count less than was delivered until the rest is taken for lost. One that was replaced notices within seconds, but
/// its machine may be slow. Meanwhile, the list cannot be read.
const LOST: Duration = Duration::from_secs(30);

/// How many messages are taken in before readers check whether they have all that they wait for.
const BETWEEN: u64 = 256;

#[derive(Debug)]
pub(super) struct Shared {
    /// This node, whose own changes are not announced.
    pub(super) node: NodeId,
    state: Mutex<State>,
    /// Notified as the index grows.
    moved: watch::Sender<()>,
    /// Asks the feed for another consumer.
    pub(super) restart: Notify,
    events: broadcast::Sender<ListEvent>,
}

/// The index, and how far it reaches.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) projection: Projection,
    /// The last message that was delivered. The next consumer continues after it.
    delivered: u64,
    /// Nothing up to here is missing. Beyond `delivered` if the messages in between are of no use.
    known: u64,
    /// Counts how often the index was begun anew.
    generation: u64,
    /// How many messages are left of those that were there when its consumer began; `None` = it has none yet, 0 = it follows.
    left: Option<u64>,
    /// Whether a consumer feeds it.
    is_fed: bool,
    /// When the stream was created.
    created: Option<SystemTime>,
    /// When it was last known to be complete.
    confirmed: Option<Moment>,
    /// Since when, and when last, the leader was seen to count less than was delivered.
    behind: Option<(Instant, Instant)>,
}

/// Now, by two clocks: one does not count while the machine is suspended, and the other can be set.
#[derive(Clone, Copy, Debug)]
struct Moment(Instant, SystemTime);

impl Moment {
    fn now() -> Self {
        Self(Instant::now(), SystemTime::now())
    }

    /// Whether this may be so long ago that a mark of a removal has expired since.
    fn is_long_ago(self) -> bool {
        is_too_long(self.0.elapsed(), self.1.elapsed().unwrap_or_default())
    }
}

fn is_too_long(steady: Duration, wall: Duration) -> bool {
    steady.max(wall) > REMOVAL_KEPT / 2
}

impl State {
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether it contains everything up to this message.
    pub(super) fn has(&self, newest: u64) -> bool {
        self.is_filled() && self.known >= newest
    }

    /// Whether everything that was there when it was begun is in it.
    pub(super) fn is_filled(&self) -> bool {
        self.left == Some(0)
    }

    /// Whether a consumer feeds it.
    pub(super) fn is_fed(&self) -> bool {
        self.is_fed
    }

    /// Records that it is complete now.
    pub(super) fn confirm(&mut self) {
        self.confirmed = Some(Moment::now());
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether it was read from this stream.
    pub(super) fn is_of(&self, newest: &Newest) -> bool {
        self.created.is_none_or(|created| created == newest.created)
    }

    /// Notes that the leader counts less than was delivered. Returns whether that has been so for long enough that the rest must be
    /// lost. What was seen long ago, by a reading that was given up, says nothing about the time since.
    pub(super) fn is_behind_for_long(&mut self, now: Instant) -> bool {
        let recent = self.behind.filter(|(_, last)| now.duration_since(*last) <= LOST);
        let since = recent.map_or(now, |(since, _)| since);
        self.behind = Some((since, now));
        now.duration_since(since) > LOST
    }

    fn clear(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }
}

impl Shared {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            state: Mutex::default(),
            moved: watch::Sender::new(()),
            restart: Notify::new(),
            events: broadcast::Sender::new(PLACES),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that notices when the index grows.
    pub(super) fn moves(&self) -> watch::Receiver<()> {
        self.moved.subscribe()
    }

    /// Subscribes to changes by other nodes.
    pub(super) fn events(&self) -> broadcast::Receiver<ListEvent> {
        self.events.subscribe()
    }

    /// Has everything read again if the stream is another one, or if a removal may have been missed. Returns the sequence of
    /// its newest message.
    pub(super) fn check(&self, newest: &Newest) -> u64 {
        let mut state = self.lock();
        if !state.is_of(newest) || state.confirmed.is_some_and(Moment::is_long_ago) {
            state.clear();
            self.restart();
        }
        state.created = Some(newest.created);
        state.behind = None;
        newest.sequence
    }

    /// Has everything read again, because the stream has lost messages.
    pub(super) fn lost(&self, newest: &Newest) {
        tracing::warn!(
            "the stream of the journal has lost its newest messages: was it restored from a backup?"
        );
        let mut state = self.lock();
        state.clear();
        state.created = Some(newest.created);
        self.restart();
    }

    /// Records that nothing up to this message is missing, unless the index was begun anew meanwhile.
    pub(super) fn skip(&self, generation: u64, until: u64) {
        let mut state = self.lock();
        if state.generation == generation {
            state.known = state.known.max(until);
        }
    }

    /// Asks the feed for another consumer.
    pub(super) fn restart(&self) {
        self.restart.notify_one();
    }

    /// Returns the generation that a new consumer is for, and the message after which it continues.
    pub(super) fn begin(&self) -> (u64, u64) {
        let mut state = self.lock();
        state.is_fed = false;
        (state.generation, state.delivered)
    }

    /// A consumer has begun, with so many messages that are there already.
    pub(super) fn begun(&self, generation: u64, waiting: u64) {
        let mut state = self.lock();
        if state.generation != generation {
            return;
        }
        state.is_fed = true;
        if !state.is_filled() {
            state.left = Some(waiting);
            if waiting == 0 {
                self.filled(&state);
            }
        }
    }

    /// Takes a message in. Returns false if the index was begun anew: then its consumer is of no more use.
    pub(super) fn take(
        &self,
        generation: u64,
        sequence: u64,
        pending: u64,
        change: impl FnOnce(&mut Projection) -> Option<ListEvent>,
    ) -> bool {
        let mut state = self.lock();
        if state.generation != generation {
            return false;
        }
        let event = change(&mut state.projection);
        state.delivered = state.delivered.max(sequence);
        state.known = state.known.max(sequence);
        if let Some(left) = state.left.filter(|left| *left > 0) {
            let left = pending.min(left - 1);
            state.left = Some(left);
            if left == 0 {
                self.filled(&state);
            }
        } else if let Some(event) = event {
            // Fails only if nobody listens.
            let _ = self.events.send(event);
        }
        let is_time = pending == 0 || sequence.is_multiple_of(BETWEEN);
        drop(state);
        if is_time {
            self.moved.send_replace(());
        }
        true
    }

    /// All that was there when the index was begun is in it: from now on, changes are announced one by one.
    fn filled(&self, state: &State) {
        if state.generation > 0 {
            let _ = self.events.send(ListEvent::Missed);
        }
        self.moved.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_behind_for_long_if_nothing_else_was_seen_for_half_a_minute() {
        let (mut state, begun) = (State::default(), Instant::now());
        let mut seen = |seconds| state.is_behind_for_long(begun + Duration::from_secs(seconds));
        assert_eq!([0, 10, 30, 31].map(&mut seen), [false, false, false, true]);
        assert_eq!([62, 80, 92, 93].map(seen), [false, false, false, true], "after a pause, it begins anew");
    }

    #[test]
    fn a_removal_may_be_missed_after_half_the_time_that_its_mark_lasts() {
        let [short, long] = [REMOVAL_KEPT / 2, REMOVAL_KEPT / 2 + Duration::from_secs(1)];
        assert!(!is_too_long(short, short));
        assert!(is_too_long(long, short), "whatever the wall clock was set to");
        assert!(is_too_long(short, long), "the machine was suspended");
    }
}
