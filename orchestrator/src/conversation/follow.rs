//! Follows what other nodes do with a conversation.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use everturn_kernel::Input;
use everturn_wire::StoredChunk;
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use tokio::task::AbortHandle;

use super::{Control, Conversation, Loss, continues, from_record, seat::Follows};
use crate::{
    Commit, Cursor, Frame, Journal, NodeId, Stored, StoredEvent, SubscribeFrom, TurnRecord, Version, Window,
    clock::Clock,
    cluster::{Appended, Heard, LiveEvent, Reply, Request, Streamed, heard},
    log::EventLog,
};

/// Interval at which a follower reads the journal although it has heard nothing: an event may have been lost.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// When a follower reads the journal for the first time after it has begun: an event may have been on its way past it.
const LOOK_FIRST: Duration = Duration::from_secs(1);

/// How long the owner of a turn may take to send the text that a late follower lacks.
const TAIL_WITHIN: Duration = Duration::from_secs(1);

/// Maximum number of pieces of text held until the append that they follow arrives.
const MAX_EARLY: usize = 256;

/// Follows a conversation until it is dropped.
pub(crate) struct Follower(AbortHandle);

impl Drop for Follower {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The result of telling a conversation about another node's append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Followed {
    /// It is up to date, or need not be.
    Done,
    /// Something is missing in between: the journal has it.
    Gap,
}

/// The result of telling a conversation about streamed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Done,
    /// The append that it follows has not arrived.
    Early,
    /// Text before it is missing.
    Gap,
}

impl Conversation {
    /// Follows the conversation from now on. `live` must have begun before the conversation was loaded.
    pub(crate) fn follow(
        self: &Arc<Self>,
        live: BoxStream<'static, LiveEvent>,
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
    ) {
        let task = Following { conversation: Arc::downgrade(self), journal, early: VecDeque::new() };
        let _ = self.follower.set(Follower(tokio::spawn(task.run(live, clock)).abort_handle()));
    }

    /// Reads the journal and follows what it has. Returns whether the journal has more than a session that drives here has
    /// published.
    pub(crate) async fn catch_up(&self, journal: &dyn Journal) -> Result<bool, crate::JournalError> {
        // Boxed, as it is rare and takes 4 kB: futures that may call it are held by each subscriber.
        Box::pin(self.read_newer(journal)).await
    }

    async fn read_newer(&self, journal: &dyn Journal) -> Result<bool, crate::JournalError> {
        match journal.load(&self.id).await? {
            Some(stored) if stored.version > self.state().record.version => match self.seat.follows() {
                // An append of this node is stored although it was given up: nobody drives its turn.
                Follows::Yes if stored.turn.is_some() && self.is_owned(&stored) => self.lose(Loss::Moved),
                Follows::Yes => self.reload(stored, journal).await?,
                Follows::Outdated => self.lose(Loss::Moved),
                Follows::Driven => {
                    // Unless it is an append of this node, which is stored but not acknowledged yet, another one has taken over.
                    if !self.is_owned(&stored) {
                        self.check_driver();
                    }
                    return Ok(true);
                }
                Follows::No => {}
            },
            None if self.state().record.version > Version::default() => self.lose(Loss::Deleted),
            _ => {}
        }
        Ok(false)
    }

    /// Makes the session that drives find out now that it was replaced, not after an answer that nobody can use.
    fn check_driver(&self) {
        let _ = self.seat.send(Box::new(Control::from(Input::Checkpoint)), 0, false);
    }

    /// Returns where a subscription begins. A cursor beyond the end counts as the end, unless the journal is shared: then it
    /// may come from a node that has published more.
    pub(crate) fn place_of(&self, from: SubscribeFrom) -> Cursor {
        let live = &self.state().live;
        let end = live.log.end();
        match from {
            SubscribeFrom::RunningTurn => live.running.as_ref().map_or(end, |turn| turn.from),
            SubscribeFrom::After(cursor) if self.home.peers.is_some() => cursor,
            SubscribeFrom::After(cursor) => cursor.min(end),
            SubscribeFrom::End => end,
        }
    }

    async fn reload(&self, stored: Stored, journal: &dyn Journal) -> Result<(), crate::JournalError> {
        let since = self.state().record.head.last_seq;
        let chunks = journal.chunks(&self.id, Window { since_seq: Some(since), ..Window::default() }).await?;
        let Stored { version, head, turn, owner } = stored;
        let mut state = self.state();
        if version <= state.record.version {
            return Ok(());
        }
        // Appends may have been followed, and others made, while these were read.
        let known = state.record.head.last_seq;
        let is_new = |chunk: &Arc<StoredChunk>| (known + 1..=head.last_seq).contains(&chunk.seq);
        let chunks: Vec<_> = chunks.into_iter().filter(is_new).collect();
        // Removed and begun again meanwhile, or read from a server that is behind.
        let is_other =
            state.record.version > Version::default() && head.created_at != state.record.head.created_at;
        if is_other || !continues(known, &chunks, head.last_seq) {
            drop(state);
            self.lose(Loss::Moved);
            return Ok(());
        }
        if !self.seat.follow(owner.filter(|_| turn.is_some())) {
            return Ok(());
        }
        // Subscribers read what is in between from the journal.
        state.live.log = EventLog::new(head.end);
        (state.live.journaled, state.live.measured) = (head.end, None);
        state.live.show(turn);
        let _continues = state.record.grow(version, head, chunks);
        drop(state);
        self.grew.notify_waiters();
        Ok(())
    }

    fn appended(&self, appended: Appended) -> Followed {
        let Appended { previous, version, owner, commit } = appended;
        let mut state = self.state();
        let heard = heard(&previous, &version, &state.record.version);
        if heard == Heard::Known || self.is_own(&owner) {
            return Followed::Done;
        }
        match self.seat.follows() {
            Follows::Yes if heard == Heard::Gap => return Followed::Gap,
            Follows::Yes => {}
            Follows::Outdated => {
                drop(state);
                self.lose(Loss::Moved);
                return Followed::Done;
            }
            Follows::Driven => {
                drop(state);
                self.check_driver();
                return Followed::Done;
            }
            Follows::No => return Followed::Done,
        }
        let Commit { head, turn, chunks, events, next_events, .. } = *commit;
        if !continues(state.record.head.last_seq, &chunks, head.last_seq) {
            drop(state);
            self.lose(Loss::Moved);
            return Followed::Done;
        }
        if !self.seat.follow(Some(owner).filter(|_| turn.is_some())) {
            return Followed::Done;
        }
        let live = &mut state.live;
        for event in events.iter().chain(&next_events) {
            live.append(event);
        }
        live.journaled = live.log.end();
        live.log.trim();
        live.show(turn.map(|turn| *turn));
        let _continues = state.record.grow(version, head, chunks);
        drop(state);
        self.grew.notify_waiters();
        Followed::Done
    }

    fn streamed(&self, streamed: &Streamed) -> Told {
        let mut state = self.state();
        if self.seat.follows() != Follows::Yes || streamed.base < state.record.version {
            return Told::Done;
        }
        if streamed.base > state.record.version {
            return Told::Early;
        }
        let live = &mut state.live;
        let first = streamed.events.first().map_or(Cursor::default(), |event| event.start);
        if first > live.log.end() {
            return Told::Gap;
        }
        for event in &streamed.events {
            live.append(event);
        }
        if let Some(turn) = &mut live.running {
            // Visible output ends the retries.
            (turn.retry, turn.takes_retry_now) = (None, false);
        }
        drop(state);
        self.grew.notify_waiters();
        Told::Done
    }

    /// Returns streamed text after this cursor that no append contains yet.
    pub(crate) fn tail(&self, after: Cursor) -> Streamed {
        let state = self.state();
        let after = after.max(state.live.journaled);
        let frames = state.live.log.merged_after(after);
        Streamed { base: state.record.version, events: frames.iter().map(Frame::to_stored).collect() }
    }

    fn is_owned(&self, stored: &Stored) -> bool {
        stored.owner.as_ref().is_some_and(|owner| self.is_own(owner))
    }

    fn is_own(&self, owner: &NodeId) -> bool {
        self.home.peers.as_ref().is_some_and(|peers| peers.cluster.node == *owner)
    }
}

impl super::Live {
    /// Adds what is new of another node's event.
    fn append(&mut self, event: &StoredEvent) {
        let end = self.log.end();
        if event.end <= end {
            return;
        }
        let frame = Frame::stored(event);
        if event.start > end {
            // Between them is text that was never saved. Subscribers go on behind it.
            self.log = EventLog::new(event.start);
        }
        self.log.push(if event.start < end { frame.rest(end) } else { frame });
    }

    /// Shows the unsealed turn of another node.
    fn show(&mut self, turn: Option<TurnRecord>) {
        self.queue = turn.as_ref().map(|turn| turn.snapshot.queue().to_vec()).unwrap_or_default();
        self.running = turn.map(|turn| from_record(turn).0);
    }
}

struct Following {
    conversation: Weak<Conversation>,
    journal: Arc<dyn Journal>,
    /// Text whose append has not arrived.
    early: VecDeque<Streamed>,
}

impl Following {
    async fn run(mut self, mut live: BoxStream<'static, LiveEvent>, clock: Arc<dyn Clock>) {
        self.fetch_tail().await;
        let mut look_in = LOOK_FIRST;
        loop {
            let event = tokio::select! {
                // Fixed order, so that simulations can be replayed.
                biased;
                event = live.next() => event,
                () = clock.sleep(look_in) => {
                    look_in = LOOK_AGAIN;
                    Some(LiveEvent::Missed)
                }
            };
            let Some(conversation) = self.conversation.upgrade() else { return };
            match event {
                Some(LiveEvent::Appended(appended)) => {
                    if conversation.appended(appended) == Followed::Gap {
                        self.catch_up(&conversation).await;
                    }
                    self.tell_early(&conversation);
                }
                Some(LiveEvent::Streamed(streamed)) => match conversation.streamed(&streamed) {
                    Told::Done => {}
                    Told::Early => {
                        self.early.truncate(MAX_EARLY - 1);
                        self.early.push_back(streamed);
                    }
                    Told::Gap => {
                        drop(conversation);
                        self.fetch_tail().await;
                    }
                },
                Some(LiveEvent::Missed) => self.catch_up(&conversation).await,
                Some(LiveEvent::Removed) => {
                    // The version tells a conversation that was deleted from one that was created again.
                    self.catch_up(&conversation).await;
                }
                None => return,
            }
        }
    }

    async fn catch_up(&mut self, conversation: &Conversation) {
        if let Err(error) = conversation.catch_up(&*self.journal).await {
            tracing::warn!(conversation = %conversation.id, %error, "another node's appends cannot be read");
        }
        self.tell_early(conversation);
    }

    /// Publishes text whose append has arrived.
    fn tell_early(&mut self, conversation: &Conversation) {
        self.early.retain(|streamed| conversation.streamed(streamed) == Told::Early);
    }

    /// Asks the owner of the turn for the text that was streamed before this node followed.
    async fn fetch_tail(&self) {
        let Some(conversation) = self.conversation.upgrade() else { return };
        let (Some(peers), Some((owner, _))) = (conversation.home.peers.clone(), conversation.elsewhere())
        else {
            return;
        };
        let after = conversation.state().live.log.end().value();
        let request = Request::Tail { id: conversation.id.clone(), after };
        if let Ok(Reply::Tail(tail)) = peers.ask(&owner, &request, TAIL_WITHIN).await {
            conversation.streamed(&tail.into());
        }
    }
}
