//! A subscription: one subscriber's position in a conversation's event stream.

use std::{
    any::Any, collections::VecDeque, future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration,
};

use everturn_kernel::Millis;
use everturn_wire::ConversationId;
use futures_util::FutureExt as _;

use crate::{
    Version,
    caller::{Ended, Over},
    clock::Clock,
    conversation::Conversation,
    cursor::Cursor,
    error::Error,
    frame::{Frame, LocalId},
    journal::{Journal, JournalError},
    registry::Registry,
    shutdown::Shutdown,
    telemetry::GaugeGuard,
};

/// Maximum number of events that a subscriber holds.
const TAKEN_AT_ONCE: usize = 64;

/// Delay before rechecking a conversation after a journal failure, in milliseconds.
const TRY_AGAIN_MS: u64 = 10_000;

/// Pauses after readings of a journal that lacks events which another node has published, in milliseconds. An election takes
/// seconds.
const READ_AGAIN_MS: [u64; 6] = [10, 40, 150, 800, 3_000, 6_000];

/// One subscriber's position in a conversation's event stream. It never slows down a running turn: it reads at its own
/// pace, from the live tail or, when further behind, from the journal.
pub struct Subscription {
    position: Position,
    reader: Option<Box<Reader>>,
    _present: GaugeGuard,
}

/// Where a subscription is.
struct Position {
    conversation: Arc<Conversation>,
    source: Source,
    next: Cursor,
    taken: VecDeque<Frame>,
    extensions: bool,
    /// Whether something of the current step may have been shown; used for subscribers without extensions.
    has_shown: bool,
    /// When the conversation is reloaded, once a journal failure was reported.
    reload_at: Option<Millis>,
    /// The version of the conversation when a cursor beyond its end was last compared with the journal.
    compared: Option<Version>,
}

/// Whose subscription it is.
struct Reader {
    /// Completes when the reader may no longer read. Kept, as waiting anew for each event costs more than most events.
    over: Over,
    /// How the reader knows the conversation, if not by its full id.
    renamed: Option<LocalId>,
}

/// What a subscription reads events from.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) registry: Arc<Registry>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shutdown: Arc<Shutdown>,
    /// Keeps waking turns while there are subscribers.
    pub(crate) _alive: Arc<dyn Any + Send + Sync>,
}

impl Subscription {
    pub(crate) fn new(
        conversation: Arc<Conversation>,
        source: Source,
        next: Cursor,
        extensions: bool,
    ) -> Self {
        let position = Position {
            conversation,
            source,
            next,
            taken: VecDeque::new(),
            extensions,
            has_shown: true,
            reload_at: None,
            compared: None,
        };
        Self { position, reader: None, _present: GaugeGuard::subscriber() }
    }

    /// Ends it when this is cancelled. `renamed`: the conversation, if its caller reads it.
    pub(crate) fn of_caller(self, ended: &Ended, renamed: Option<&ConversationId>) -> Self {
        let reader = Reader { over: ended.over(), renamed: renamed.map(LocalId::of) };
        Self { reader: Some(Box::new(reader)), ..self }
    }

    /// Moves to another cursor. A cursor beyond the end counts as the end.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> Self {
        let next = self.position.conversation.place_of(cursor.into());
        let taken = VecDeque::new();
        let position = Position { next, compared: None, taken, has_shown: true, ..self.position };
        Self { position, ..self }
    }

    /// Returns the cursor after the last delivered event.
    pub fn cursor(&self) -> Cursor {
        self.position.next
    }

    /// Returns the next event. Pending until there is one; a conversation has no end. Cancel-safe.
    ///
    /// # Errors
    /// When the journal fails while catching up. [`Error::NotSaved`], once, if the journal failed during the turn:
    /// delivered events remain valid and the turn is not over; the next call continues when the turn does.
    /// [`Error::ShuttingDown`] after the last event, once the orchestrator has shut down.
    /// [`Error::TokenEnded`] if the reader may no longer read.
    pub async fn next(&mut self) -> Result<Frame, Error> {
        let Some(reader) = &mut self.reader else { return self.position.next_event().await };
        let mut next = pin!(self.position.next_event());
        let next = poll_fn(|cx| match reader.over.poll_unpin(cx) {
            Poll::Ready(()) => Poll::Ready(Err(Error::TokenEnded)),
            Poll::Pending => next.as_mut().poll(cx),
        });
        let next = next.await;
        match &mut reader.renamed {
            Some(id) => next.map(|frame| frame.under(id)).map_err(Error::local),
            None => next,
        }
    }
}

impl Position {
    async fn next_event(&mut self) -> Result<Frame, Error> {
        if let Some(at) = self.reload_at {
            self.reload(at).await?;
        }
        loop {
            while let Some(frame) = self.taken.pop_front() {
                self.next = frame.end();
                if self.extensions {
                    return Ok(frame);
                }
                let had_shown = self.has_shown;
                self.has_shown = frame.shows().unwrap_or(had_shown);
                if !frame.is_extension() {
                    return Ok(frame);
                }
                if let Some(notice) = frame.notice(had_shown) {
                    return Ok(notice);
                }
            }
            // Check both before reading events: none arrive after shutdown, or once the conversation is lost.
            let is_down = self.source.shutdown.is_down();
            let lost = self.conversation.is_lost();
            let (live, start, end, journaled, version) = {
                let state = &mut *self.conversation.state();
                let (live, log) = (state.live.journaled, &mut state.live.log);
                (log.ready(self.next, TAKEN_AT_ONCE), log.start(), log.end(), live, state.record.version)
            };
            let frames = match live {
                Some(frames) => frames,
                None if self.catch_up().await? => continue,
                // Boxed, as it is rare: each subscriber holds this future.
                None if self.next < journaled && Box::pin(self.read_again(version)).await? => continue,
                None if start < end => {
                    // What is before the live tail was never saved, or was dropped.
                    self.next = start;
                    continue;
                }
                // Neither is there a live tail: what was last appended may be stored later, so nothing is skipped.
                None => Vec::new(),
            };
            if !frames.is_empty() {
                self.taken = frames.into();
            } else if self.conversation.has_moved() {
                // Another instance continues the same stream.
                self.conversation = self.source.registry.get(&self.conversation.id).await?;
            } else if lost {
                self.reload_at = Some(self.try_again_at());
                self.conversation.check_kept()?;
            } else if is_down {
                return Err(Error::ShuttingDown);
            } else if end < self.next {
                self.await_others().await?;
            } else {
                self.growth(end).await;
            }
        }
    }

    /// Waits until this node has heard of the events before the cursor, which a subscriber received from another node. If
    /// there are none, the cursor counts as the end.
    async fn await_others(&mut self) -> Result<(), Error> {
        let version = self.conversation.state().record.version;
        if self.compared.replace(version) == Some(version) {
            self.growth(self.next).await;
            return Ok(());
        }
        let is_behind = self.conversation.catch_up(&*self.source.journal).await?;
        if !is_behind && !self.conversation.is_lost() && self.conversation.elsewhere().is_none() {
            self.next = self.conversation.state().live.log.end().min(self.next);
        }
        Ok(())
    }

    /// Waits until there is an event after the cursor and after `seen`.
    async fn growth(&self, seen: Cursor) {
        let mut grew = pin!(self.conversation.grew.notified());
        // Register before checking, so that no notification is missed.
        grew.as_mut().enable();
        let (end, version) = {
            let state = self.conversation.state();
            (state.live.log.end(), state.record.version)
        };
        let is_behind = self.conversation.is_lost()
            || end > self.next.max(seen)
            || (end < self.next && self.compared != Some(version))
            || self.source.shutdown.is_down();
        if !is_behind {
            grew.await;
        }
    }

    /// Reloads the conversation after a journal failure, once the delay has passed.
    async fn reload(&mut self, at: Millis) -> Result<(), Error> {
        let left = Duration::from_millis(at.since(self.source.clock.now()));
        tokio::select! {
            () = self.source.clock.sleep(left) => {}
            () = self.source.shutdown.down() => return Err(Error::ShuttingDown),
        }
        match self.source.registry.get(&self.conversation.id).await {
            Ok(conversation) => (self.conversation, self.reload_at) = (conversation, None),
            Err(error) => {
                self.reload_at = Some(self.try_again_at());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Kept in the position, so that dropping [`Subscription::next`] does not extend the delay.
    fn try_again_at(&self) -> Millis {
        self.source.clock.now().plus(TRY_AGAIN_MS)
    }

    /// Reads events after the cursor, which the journal did not have although they were published: a server of it may be
    /// behind. Returns whether there are any, once it has this version of the conversation.
    ///
    /// # Errors
    /// When it is still behind after a while, so that nothing is skipped.
    async fn read_again(&mut self, version: Version) -> Result<bool, Error> {
        let source = self.source.clone();
        for pause in READ_AGAIN_MS {
            let stored = source.journal.load(&self.conversation.id).await?;
            let is_current = stored.is_none_or(|stored| stored.version >= version);
            if self.catch_up().await? {
                return Ok(true);
            }
            if is_current {
                return Ok(false);
            }
            tokio::select! {
                () = source.clock.sleep(Duration::from_millis(pause)) => {}
                () = source.shutdown.down() => return Err(Error::ShuttingDown),
            }
        }
        let id = &self.conversation.id;
        Err(JournalError::Storage(format!("it lacks events of conversation {id} that were published")).into())
    }

    /// Reads events after the cursor from the journal. Returns whether there are any.
    async fn catch_up(&mut self) -> Result<bool, Error> {
        let stored = self.source.journal.events(&self.conversation.id, self.next, TAKEN_AT_ONCE).await?;
        self.taken = stored.iter().map(Frame::stored).collect();
        if let Some(first) = self.taken.front_mut()
            && first.start() < self.next
        {
            *first = first.rest(self.next);
        }
        Ok(!self.taken.is_empty())
    }
}
