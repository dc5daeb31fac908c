//! Branches: which chunks of a conversation stand, and where a new branch may leave it.
//!
//! The log only grows. A chunk with a mark (`supersedes`) begins a branch: what stood from that `seq` on stands no longer.
//! A mark names a chunk that stands, or nothing that comes after one, so no two marks are equal.

use std::{collections::BTreeSet, ops::RangeInclusive, sync::Arc};

use everturn_wire::{Chunk, Role, StoredChunk, TurnMetrics};

/// The chunks that no later one supersedes, ascending by `seq`. `pending`: the mark of a turn whose own chunks are still to
/// come.
pub(crate) fn standing(chunks: &[Arc<StoredChunk>], pending: Option<u64>) -> Vec<&Arc<StoredChunk>> {
    let mut standing: Vec<&Arc<StoredChunk>> = Vec::with_capacity(chunks.len());
    let drop_from = |standing: &mut Vec<&Arc<StoredChunk>>, from: u64| {
        standing.truncate(standing.partition_point(|stored| stored.seq < from));
    };
    let marked = |from: u64| chunks.iter().any(|stored| stored.supersedes == Some(from));
    for stored in chunks {
        if let Some(from) = stored.supersedes {
            drop_from(&mut standing, from);
        }
        standing.push(stored);
    }
    // Once it has chunks of its own, the first of them says so.
    if let Some(from) = pending.filter(|from| !marked(*from)) {
        drop_from(&mut standing, from);
    }
    standing
}

/// Where the model's output after the last user message or tool result begins: what trying again replaces. It may be that of
/// an earlier try, where the last one was stopped before it said anything.
pub(crate) fn loose_end(chunks: &[Arc<StoredChunk>]) -> Option<u64> {
    let standing = standing(chunks, None);
    standing.iter().rev().take_while(|stored| stored.role == Role::Assistant).last().map(|stored| stored.seq)
}

/// A user message that a new branch may leave the conversation at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fork {
    /// Its chunks: images, then its text if it has one.
    pub(crate) message: Vec<Arc<Chunk>>,
    /// The mark of another answer to it; `None` where nothing follows.
    pub(crate) after: Option<u64>,
    /// The mark of another message in its place.
    pub(crate) before: u64,
}

/// Why there is no branch at a `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFork {
    /// There is no such chunk; the last one has this `seq`.
    Unknown(u64),
    /// The chunk is no part of a user message.
    NotOfUser(Role),
    /// A later version of the conversation does not have it.
    Superseded,
}

/// The fork at the user message with a chunk of that `seq`. `turns`: those that are known, of which each begins a message.
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

/// The `seq` of the first chunk of each user message that stands, ascending. `turns`: those that are known.
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

/// The places of the chunks of the message that this chunk is of. A message is images, then at most one text; a turn or a
/// branch begins with another one.
fn message(standing: &[&Arc<StoredChunk>], turns: &[TurnMetrics], at: usize) -> RangeInclusive<usize> {
    let begins: BTreeSet<u64> = turns.iter().filter_map(|turn| turn.first_seq).collect();
    // Whether the chunk at `next` goes on with the message of the one before it.
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
