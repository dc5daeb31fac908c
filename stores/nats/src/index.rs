//! The index: what the headers of the last append of each conversation say, kept in memory.
//!
//! One consumer reads these headers, then follows new appends, titles and removals. Listing conversations, finding unsealed
//! turns and idle ephemeral conversations then costs one request, however many conversations there are: the stream's leader
//! says which message is the newest, and the index waits until it has seen it.
//!
//! What a caller may rely on (`notes/decisions.md` says what could make it diverge, and why it does not):
//!
//! - A reading contains every append, title and removal that was acknowledged before it began, by any process, as far as the
//!   leader tells the truth: one that was isolated and has not noticed may be behind.
//! - If the index gets no further for as long as other operations are repeated (10 s by default), the reading fails.
//!   There is no scan instead: it would need the same consumer from the same servers.
//! - It decides nothing. Removals check the version that they saw, and who takes a turn over loads it and appends.
//! - A last append that cannot be read, because a newer version or another program wrote it, is logged, and its
//!   conversation left out. Loading it says what is wrong.

mod feed;
mod list;
mod projection;
mod shared;
mod words;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_nats::connection::State;
use everturn_ports::{JournalError, NodeId};
use tokio::{
    task::AbortHandle,
    time::{self, Instant, timeout},
};

use crate::{
    error::{OUTDATED, failed},
    leader::Leader,
};
pub(crate) use list::NatsList;
pub(crate) use projection::Projection;
use shared::Shared;

/// How long the newest message may take to be delivered before the leader is asked whether there is one to wait for: it may
/// be a part of an append, or deleted.
const SOON: Duration = Duration::from_millis(20);

/// Pause before the leader is asked again, if it knows less than was delivered.
const BEHIND: Duration = Duration::from_millis(100);

/// The index. It begins to read when it is first used.
#[derive(Debug)]
pub(crate) struct Index {
    leader: Leader,
    shared: Arc<Shared>,
    feed: OnceLock<AbortHandle>,
}

impl Drop for Index {
    fn drop(&mut self) {
        if let Some(feed) = self.feed.get() {
            feed.abort();
        }
    }
}

impl Index {
    pub(crate) fn new(leader: Leader, node: NodeId) -> Self {
        Self { leader, shared: Arc::new(Shared::new(node)), feed: OnceLock::new() }
    }

    /// Reads the index once it contains everything that was acknowledged before.
    pub(crate) async fn read<T>(&self, read: impl FnOnce(&Projection) -> T) -> Result<T, JournalError> {
        self.feed
            .get_or_init(|| tokio::spawn(feed::run(self.shared.clone(), self.leader.clone())).abort_handle());
        // A server that begins a consumer of very many conversations answers nothing else meanwhile.
        self.reach(0).await?;
        loop {
            let newest = self.newest().await?;
            self.reach(newest).await?;
            let mut state = self.shared.lock();
            // Otherwise it was begun anew meanwhile.
            if state.has(newest) {
                state.confirm();
                return Ok(read(&state.projection));
            }
        }
    }

    /// Returns the sequence of the stream's newest message. Has everything read again if the stream is not what it was.
    async fn newest(&self) -> Result<u64, JournalError> {
        let patience = Instant::now() + self.leader.give_up_after;
        loop {
            let delivered = self.shared.lock().delivered();
            let newest = self.leader.newest().await?;
            if newest.sequence >= delivered || !self.shared.lock().is_of(&newest) {
                return Ok(self.shared.check(&newest));
            }
            // A server may deliver a message a moment before the leader counts it. A leader that was replaced while it was frozen or
            // cut off counts less until it notices, and the list must not go back to what it has.
            if self.shared.lock().is_behind_for_long(std::time::Instant::now()) {
                self.shared.lost(&newest);
                return Ok(newest.sequence);
            }
            if Instant::now() > patience {
                return Err(failed(&self.leader.place, OUTDATED));
            }
            time::sleep(BEHIND).await;
        }
    }

    /// Waits until everything up to this message is in the index.
    async fn reach(&self, newest: u64) -> Result<(), JournalError> {
        let mut moves = self.shared.moves();
        let (mut moved, mut restarted, mut last) = (Instant::now(), Instant::now(), None);
        loop {
            let (generation, delivered, is_fed, is_filled) = {
                let state = self.shared.lock();
                if state.has(newest) {
                    return Ok(());
                }
                (state.generation(), state.delivered(), state.is_fed(), state.is_filled())
            };
            if last.replace((generation, delivered, is_fed)) != Some((generation, delivered, is_fed)) {
                moved = Instant::now();
            }
            // Cannot fail otherwise: the sender is shared.
            if timeout(SOON, moves.changed()).await.is_ok() || self.shared.lock().delivered() != delivered {
                continue;
            }
            let Leader { give_up_after, answer_within, .. } = self.leader;
            let is_connected = self.leader.client.connection_state() == State::Connected;
            let (patience, restart_after) = match is_filled || !is_connected {
                true => (give_up_after, answer_within),
                false => (give_up_after.max(feed::OPEN), feed::STALL),
            };
            if moved.elapsed() > patience {
                let what =
                    format!("the index of conversations did not get beyond message {delivered} of {newest}");
                return Err(failed(&self.leader.place, &what));
            }
            // Before it is filled there certainly is more, and the question is expensive.
            if is_filled && !self.is_more(delivered, newest).await? {
                self.shared.skip(generation, newest);
            } else if is_fed && moved.elapsed() > restart_after && restarted.elapsed() > restart_after {
                restarted = Instant::now();
                self.shared.restart();
            }
        }
    }

    /// Whether the stream has appends or titles after one message and up to another.
    async fn is_more(&self, after: u64, until: u64) -> Result<bool, JournalError> {
        for subject in feed::subjects(self.leader.names()) {
            let next = self.leader.next(&subject, after + 1).await?;
            if next.is_some_and(|next| next.sequence <= until) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
