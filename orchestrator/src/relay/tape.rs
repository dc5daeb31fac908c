//! A tape: the answer of a call, written by its task and read by any number of listeners.

mod listener;

use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard},
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use everturn_wire::ConversationId;
use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, SET_COOKIE},
};

use super::NoAnswer;
use crate::{health::Refusal, memory::Account, sync::Mutex};
pub use listener::Listener;

/// Maximum size of an answer that is kept from its start, for those who join late, in bytes.
const MOST_KEPT: usize = 8 << 20;

/// Maximum number of bytes that the slowest listener may be behind before reading pauses.
const MOST_BEHIND: usize = 1 << 20;

/// What a listener receives, in this order: at most one head, then pieces, then the end.
#[derive(Clone, Debug)]
pub enum Said {
    /// Status and headers. Content has begun, or it is the provider's final refusal.
    Head(StatusCode, HeaderMap),
    /// The next bytes of the body.
    Piece(Bytes),
    /// The proper end of the body.
    End,
    /// The body broke off.
    Cut,
    /// There is no answer by a provider. Comes first and alone, unless the caller's token ended.
    Nothing(NoAnswer),
}

/// A call's answer so far.
pub(super) struct Tape {
    /// What a complete answer takes. While it arrives, its call counts what is kept ([`Self::piece`]).
    pub(super) account: Account,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The answer that listeners see, once it cannot be withdrawn any more.
    is_shown: bool,
    head: Option<(StatusCode, HeaderMap)>,
    pieces: Vec<Bytes>,
    /// Size of the pieces, in bytes, including those that were dropped.
    size: usize,
    /// The number of pieces that end with the provider's own end of the answer; `None` = it is not known yet. Nothing that a
    /// listener would miss comes after it.
    last: Option<usize>,
    /// Number of pieces dropped from the start. More than 0: nobody can join any more.
    dropped: usize,
    /// Nobody can join any more, because the call is being stopped.
    is_closed: bool,
    is_cut: bool,
    end: Option<Said>,
    listeners: BTreeMap<u64, Place>,
    next_listener: u64,
    /// Whether a listener has received everything.
    is_delivered: bool,
    /// The most pieces that a listener has received that left; `None` = none left after the head.
    taken: Option<usize>,
    /// Whether a listener has received anything.
    was_heard: bool,
    /// The task that writes, if it waits: for somebody to listen, or for somebody to catch up.
    writer: Option<Waker>,
}

#[derive(Default)]
struct Place {
    /// Whether the head was received.
    has_head: bool,
    /// Number of pieces received, including dropped ones.
    pieces: usize,
    bytes: usize,
    has_end: bool,
    waker: Option<Waker>,
}

impl Tape {
    pub(super) fn new(account: Account) -> Self {
        Self { account, inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change is complete when it is made, so a panic leaves the value consistent.
        self.inner.lock()
    }

    /// Withdraws an answer that nobody has seen.
    pub(super) fn withdraw(&self) {
        let mut inner = self.lock();
        if !inner.is_shown {
            (inner.head, inner.pieces, inner.size, inner.is_cut) = (None, Vec::new(), 0, false);
            inner.last = None;
        }
    }

    /// Withdraws an answer that nobody has seen, unless it is small enough to be kept during a wait.
    pub(super) fn withdraw_beyond(&self, most: usize) {
        if self.lock().size > most {
            self.withdraw();
        }
    }

    pub(super) fn head(&self, status: StatusCode, headers: HeaderMap) {
        self.lock().head = Some((status, headers));
    }

    /// Says that the next piece ends with the provider's own end of the answer. The first counts: from there on, a listener
    /// misses nothing.
    pub(super) fn last_is_next(&self) {
        let mut inner = self.lock();
        inner.last = inner.last.or(Some(inner.count() + 1));
    }

    /// Adds a piece. Returns by how many bytes what is kept has grown.
    pub(super) fn piece(&self, piece: Bytes) -> usize {
        let mut inner = self.lock();
        let size = piece.len();
        inner.size += size;
        inner.pieces.push(piece);
        if inner.length() == Some(inner.size) {
            inner.last = Some(inner.count());
        }
        if !inner.is_shown {
            return size;
        }
        inner.drop_read();
        inner.wake_listeners();
        if inner.dropped > 0 { 0 } else { size }
    }

    /// Returns a refusal that nobody has seen yet, without cookies, if it is complete and anybody could read it.
    pub(super) fn refusal(&self, most: usize) -> Option<Refusal> {
        let inner = self.lock();
        let (status, mut headers) = inner.head.clone()?;
        headers.remove(SET_COOKIE);
        let is_complete = !inner.is_cut && inner.length().is_none_or(|length| length == inner.size);
        let is_kept = !inner.is_shown && inner.size <= most && !headers.contains_key(CONTENT_ENCODING);
        (is_complete && is_kept).then(|| (status, headers, inner.pieces.concat().into()))
    }

    pub(super) fn cut(&self) {
        self.lock().is_cut = true;
    }

    /// Shows the answer: it can no longer be withdrawn.
    pub(super) fn show(&self) {
        let mut inner = self.lock();
        inner.is_shown = true;
        inner.wake_listeners();
    }

    /// Ends the tape. An answer that was not shown is shown now, whatever it says; without one, listeners learn why.
    pub(super) fn end(&self, otherwise: NoAnswer) {
        let mut inner = self.lock();
        if inner.end.is_some() {
            return;
        }
        inner.end = Some(match (&inner.head, inner.is_cut) {
            (None, _) => Said::Nothing(otherwise),
            (Some(_), true) => Said::Cut,
            (Some(_), false) => Said::End,
        });
        inner.is_shown = true;
        inner.wake_listeners();
        let kept = inner.pieces.iter().map(Bytes::len).sum();
        drop(inner);
        self.account.add(kept);
    }

    /// Whether listeners have seen anything of the answer.
    pub(super) fn is_shown(&self) -> bool {
        self.lock().is_shown
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Whether a listener has received any of it.
    pub(super) fn was_heard(&self) -> bool {
        self.lock().was_heard
    }

    /// Whether a listener has received all of it. One that left after the last piece did not ask for the end of the body.
    pub(super) fn is_delivered(&self) -> bool {
        let inner = self.lock();
        let last = inner.last.unwrap_or_else(|| inner.count());
        inner.is_delivered || (matches!(inner.end, Some(Said::End)) && inner.taken >= Some(last))
    }

    /// Whether the answer is here as far as its listeners need it. Only what the provider reports at its end may be missing.
    pub(super) fn has_last(&self) -> bool {
        let inner = self.lock();
        inner.last.is_some_and(|last| last <= inner.count())
    }

    /// Size of what is kept, in bytes.
    pub(super) fn size(&self) -> usize {
        self.lock().pieces.iter().map(Bytes::len).sum()
    }

    pub(super) fn is_listened_to(&self) -> bool {
        self.listeners() > 0
    }

    /// Returns the number of listeners.
    pub(super) fn listeners(&self) -> u32 {
        u32::try_from(self.lock().listeners.len()).unwrap_or(u32::MAX)
    }

    /// Whether others could join.
    pub(super) fn is_kept(&self) -> bool {
        self.lock().dropped == 0
    }

    /// Returns how many listeners there have been.
    pub(super) fn joined(&self) -> u64 {
        self.lock().next_listener
    }

    /// Keeps others from joining, unless somebody listens. Returns whether nobody does.
    pub(super) fn close(&self) -> bool {
        let mut inner = self.lock();
        inner.is_closed |= inner.listeners.is_empty();
        inner.is_closed
    }

    /// Polls until somebody listens.
    pub(super) fn poll_listened(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.listeners.is_empty() {
            inner.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// Polls until there is room for more; `false` if nobody listens and there is no room to keep more.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<bool> {
        let mut inner = self.lock();
        if !inner.is_shown {
            return Poll::Ready(true);
        }
        if inner.listeners.is_empty() {
            return Poll::Ready(inner.size < MOST_KEPT);
        }
        if inner.behind() >= MOST_BEHIND {
            inner.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(true)
    }

    /// Adds a listener, which receives everything from the start; `None` if the start is gone, the rest will not come, or another
    /// one has taken the answer.
    pub(super) fn listen<L>(self: &Arc<Self>, call: &ConversationId, leaving: L) -> Option<Listener>
    where
        L: FnOnce() + Send + Sync + 'static,
    {
        let mut inner = self.lock();
        let is_taken = inner.last.is_some_and(|last| inner.taken >= Some(last));
        if inner.dropped > 0 || inner.is_closed || is_taken {
            return None;
        }
        let id = inner.next_listener;
        inner.next_listener += 1;
        inner.listeners.insert(id, Place::default());
        if let Some(writer) = inner.writer.take() {
            writer.wake();
        }
        Some(Listener {
            tape: self.clone(),
            call: call.local().to_string(),
            id,
            ended: None,
            leaving: Some(Box::new(leaving)),
        })
    }
}

impl Inner {
    /// Number of pieces, including those that were dropped.
    fn count(&self) -> usize {
        self.dropped + self.pieces.len()
    }

    /// Returns the length of the body, if the head says it.
    fn length(&self) -> Option<usize> {
        self.head.as_ref()?.1.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    fn wake_listeners(&mut self) {
        for place in self.listeners.values_mut() {
            if let Some(waker) = place.waker.take() {
                waker.wake();
            }
        }
    }

    /// Number of bytes that the slowest listener has not received.
    fn behind(&self) -> usize {
        self.listeners.values().map(|place| self.size - place.bytes).max().unwrap_or(0)
    }

    /// Forgets the start of an answer that is too large to be kept, as far as everybody has received it.
    fn drop_read(&mut self) {
        let Some(read) = self.listeners.values().map(|place| place.pieces).min() else { return };
        if self.size > MOST_KEPT && read > self.dropped {
            self.pieces.drain(..read - self.dropped);
            self.dropped = read;
        }
    }

    fn poll(&mut self, id: u64, cx: &Context<'_>) -> Poll<Option<Said>> {
        let Some(place) = self.listeners.get_mut(&id) else { return Poll::Ready(None) };
        let said = if !self.is_shown {
            None
        } else if let Some((status, headers)) = self.head.as_ref().filter(|_| !place.has_head) {
            place.has_head = true;
            Some(Said::Head(*status, headers.clone()))
        } else if let Some(piece) = self.pieces.get(place.pieces - self.dropped) {
            place.pieces += 1;
            place.bytes += piece.len();
            Some(Said::Piece(piece.clone()))
        } else if place.has_end {
            return Poll::Ready(None);
        } else {
            self.end.clone()
        };
        match said {
            Some(said) => {
                self.was_heard = true;
                if matches!(said, Said::End | Said::Cut | Said::Nothing(_)) {
                    place.has_end = true;
                    self.is_delivered = true;
                }
                if let Some(writer) = self.writer.take() {
                    writer.wake();
                }
                Poll::Ready(Some(said))
            }
            None => {
                place.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}
