//! Branches: which chunks of a conversation are current, and where a new branch may fork off.
//!
//! The log only grows. A chunk with a mark (`supersedes`) begins a branch: it supersedes all current chunks from that
//! `seq` on. A mark always names a current chunk, so no two marks are equal.

use std::{collections::BTreeSet, ops::RangeInclusive, sync::Arc};

use everturn_wire::{Chunk, Role, StoredChunk, TurnMetrics};

/// Returns the chunks that are not superseded, ascending by `seq`. `pending`: the mark of a turn that has no chunks
/// yet.
pub(crate) fn standing(chunks: &[Arc<StoredChunk>], pending: Option<u64>) -> Vec<&Arc<StoredChunk>> {
    let mut standing: Vec<&Arc<StoredChunk>> = Vec::with_capacity(chunks.len());
    let marked = |from: u64| chunks.iter().any(|stored| stored.supersedes == Some(from));
    for stored in chunks {
        if let Some(from) = stored.supersedes {
            drop_from(&mut standing, from);
        }
        standing.push(stored);
    }
    // Once the turn has chunks, the first of them carries the mark.
    if let Some(from) = pending.filter(|from| !marked(*from)) {
        drop_from(&mut standing, from);
    }
    standing
}

/// Drops the chunks that are superseded from this `seq` on.
pub(super) fn drop_from(standing: &mut Vec<&Arc<StoredChunk>>, from: u64) {
    standing.truncate(standing.partition_point(|stored| stored.seq < from));
}

/// Returns the start of the model's output after the last user message or tool result, which a retry replaces. It may
/// belong to an earlier try, if the last one was stopped before any output.
pub(crate) fn loose_end(chunks: &[Arc<StoredChunk>]) -> Option<u64> {
    let standing = standing(chunks, None);
    standing.iter().rev().take_while(|stored| stored.role == Role::Assistant).last().map(|stored| stored.seq)
}

/// A user message at which a new branch can begin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fork {
    /// The message's chunks: images, then its text if it has one.
    pub(crate) message: Vec<Arc<Chunk>>,
    /// The mark for another answer to the message; `None` if nothing follows it.
    pub(crate) after: Option<u64>,
    /// The mark for another message in its place.
    pub(crate) before: u64,
}

/// Why no branch can begin at a `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFork {
    /// There is no such chunk. Contains the last `seq`.
    Unknown(u64),
    /// The chunk is not part of a user message.
    NotOfUser(Role),
    /// The chunk was superseded.
    Superseded,
}

/// Returns the fork at the user message that contains the chunk with this `seq`. `turns`: the known turns, each of
/// which begins a message.
pub(crate) fn fork(chunks: &[Arc<StoredChunk>], turns: &[TurnMetrics], seq: u64) -> Result<Fork, NoFork> {
    let last = chunks.last().map_or(0, |stored| stored.seq);
    let named = chunks.iter().find(|stored| stored.seq == seq).ok_or(NoFork::Unknown(last))?;
    if named.role != Role::User {
        return Err(NoFork::NotOfUser(named.role));
    }
    let standing = standing(chunks, None);
    let at = standing.iter().position(|stored| stored.seq == seq).ok_or(NoFork::Superseded)?;
    let range = message(&standing, turns, at);
    Ok(Fork {
        before: standing[*range.start()].seq,
        after: standing.get(range.end() + 1).map(|stored| stored.seq),
        message: standing[range].iter().map(|stored| stored.chunk.clone()).collect(),
    })
}

/// Returns the `seq` of the first chunk of each current user message, ascending. `turns`: the known turns.
pub(crate) fn user_messages(chunks: &[Arc<StoredChunk>], turns: &[TurnMetrics]) -> Vec<u64> {
    let standing = standing(chunks, None);
    let (mut messages, mut at) = (Vec::new(), 0);
    while let Some(stored) = standing.get(at) {
        if stored.role == Role::User {
            messages.push(stored.seq);
            at = *message(&standing, turns, at).end();
        }
        at += 1;
    }
    messages
}

/// Returns the indices of the chunks of the message that contains chunk `at`. A message is images, then at most one
/// text; a new turn or branch begins a new message.
fn message(standing: &[&Arc<StoredChunk>], turns: &[TurnMetrics], at: usize) -> RangeInclusive<usize> {
    let begins: BTreeSet<u64> = turns.iter().filter_map(|turn| turn.first_seq).collect();
    // Whether the chunk at `next` belongs to the same message as the one before it.
    let goes_on = |next: usize| {
        let (Some(before), Some(stored)) = (standing.get(next - 1), standing.get(next)) else { return false };
        let is_image = matches!(*before.chunk, Chunk::Image { .. });
        let begins = stored.supersedes.is_some() || begins.contains(&stored.seq);
        is_image && before.role == Role::User && stored.role == Role::User && !begins
    };
    let mut first = at;
    while first > 0 && goes_on(first) {
        first -= 1;
    }
    let mut last = at;
    while goes_on(last + 1) {
        last += 1;
    }
    first..=last
}

#[cfg(test)]
mod tests;
