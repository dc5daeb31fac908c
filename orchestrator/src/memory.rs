//! Bounds the memory that conversations take: one, and all together.
//!
//! A conversation's [`Account`] counts its history and what its running answer adds ([`Metered`]). If there is no room for all,
//! the largest answer fails and the others wait until it has given its memory back.

mod account;
mod metered;
mod weight;

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use everturn_wire::{Category, Failure};

pub(crate) use account::Account;
pub(crate) use everturn_ports::weight::of_chunk as weight;
pub(crate) use metered::Metered;

/// Limits on the memory that conversations take, in bytes of content: text, images, tool calls and their results. While text is
/// streamed it counts twice, because it is also held as events. The process takes more than this, since a request to a model is
/// a copy of its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Maximum history of one conversation, including its running answer. Default: 128 MiB, more than providers accept in a
    /// request.
    pub conversation: usize,
    /// Maximum of all conversations in memory. Default: 512 MiB. Conversations that no turn and no subscriber uses are not in
    /// memory.
    pub total: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self { conversation: 128 << 20, total: 512 << 20 }
    }
}

/// Memory is counted in units of this many bytes. What is smaller does not count, so that a small conversation costs nothing.
const UNIT: usize = 64 << 10;

/// The memory of all conversations.
#[derive(Default)]
pub(crate) struct Memory {
    limits: MemoryLimits,
    held: Mutex<Held>,
    last_key: AtomicU64,
}

#[derive(Default)]
struct Held {
    total: usize,
    /// Those that hold at least a [`UNIT`].
    shares: HashMap<u64, Share>,
    /// Answers that wait for room.
    waiting: Vec<Waker>,
}

#[derive(Default)]
struct Share {
    history: usize,
    answer: usize,
    /// The running answer, if it takes room.
    stream: Option<Stream>,
}

struct Stream {
    /// Set once it must end to make room for others.
    gives_way: Arc<AtomicBool>,
    waker: Waker,
}

impl Share {
    fn size(&self) -> usize {
        self.history + self.answer
    }

    fn gives_way(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.gives_way.load(Ordering::Relaxed))
    }
}

impl Memory {
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Opens the account of a conversation that holds nothing yet.
    pub(crate) fn open(self: &Arc<Self>) -> Account {
        Account::new(self.clone(), self.last_key.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a conversation of this size can be loaded.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        let bytes = whole_units(bytes);
        bytes == 0 || self.lock().total + bytes <= self.limits.total
    }

    /// The limit on all conversations, in MiB.
    pub(crate) fn total_mib(&self) -> usize {
        self.limits.total >> 20
    }

    /// Sets the size of a conversation's history, for which there is always room, and of its running answer.
    fn set(&self, key: u64, history: usize, answer: Option<usize>) {
        let mut held = self.lock();
        let mut share = held.shares.remove(&key).unwrap_or_default();
        let before = share.size();
        share.history = whole_units(history);
        share.answer = answer.unwrap_or(share.answer);
        if answer == Some(0) {
            share.stream = None;
        }
        let size = share.size();
        if size > 0 {
            held.shares.insert(key, share);
        }
        held.total = held.total - before + size;
        if size < before {
            held.waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// Asks for room for an answer of this size. Pending while another one gives its room back.
    fn poll_grow(
        &self,
        key: u64,
        answer: usize,
        gives_way: &Arc<AtomicBool>,
        cx: &Context<'_>,
    ) -> Poll<Result<(), Failure>> {
        let mut held = self.lock();
        let (history, before) = held.shares.get(&key).map_or((0, 0), |share| (share.history, share.size()));
        let after = history + whole_units(answer);
        let total = held.total - before + after;
        if total > self.limits.total {
            if held.shares.values().any(Share::gives_way) {
                held.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            let fair = self.limits.total / held.shares.len().max(1);
            let answers =
                held.shares.values().filter_map(|share| Some((share.size(), share.stream.as_ref()?)));
            match answers.max_by_key(|(size, _)| *size).filter(|(size, _)| *size > before.max(fair)) {
                Some((_, largest)) => {
                    largest.gives_way.store(true, Ordering::Relaxed);
                    largest.waker.wake_by_ref();
                    held.waiting.push(cx.waker().clone());
                    return Poll::Pending;
                }
                // Histories that are only watched take all of it. They do not keep others from their share.
                None if after <= fair && total <= 2 * self.limits.total => {}
                None => {
                    gives_way.store(true, Ordering::Relaxed);
                    return Poll::Ready(Err(self.no_room()));
                }
            }
        }
        held.total = total;
        let share = held.shares.entry(key).or_default();
        share.answer = after - history;
        share.stream = Some(Stream { gives_way: gives_way.clone(), waker: cx.waker().clone() });
        Poll::Ready(Ok(()))
    }

    /// The failure of an answer for which there is no room. It can be streamed again later.
    fn no_room(&self) -> Failure {
        let text = format!(
            "no memory left for this answer: all conversations together may take {} MiB (total_mib in [memory]), and this one \
             took the most",
            self.total_mib()
        );
        let advice = "Try again when fewer long answers are running, or raise the limit.".to_owned();
        Failure { advice: Some(advice), ..Failure::new(Category::Internal, true, text) }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn whole_units(bytes: usize) -> usize {
    bytes / UNIT * UNIT
}
