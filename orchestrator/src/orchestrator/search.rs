//! Searches the titles and messages of conversations, without an index: a request reads a bounded part of the journal.

mod passage;

use std::{fmt, str::FromStr, sync::Arc};

use everturn_wire::{
    CallerName, Chunk, ConversationId, ConversationSummary, FoundPassage, Role, StoredChunk,
};

use super::Orchestrator;
use crate::{Error, Head, Journal, ListCursor, Page, Take, Window, cursor::InvalidCursor};

/// Maximum number of conversations and chunks that one request reads.
const CONVERSATIONS: usize = 500;
const CHUNKS: usize = 10_000;
/// Size of the chunks, in bytes of their JSON, after which a request reads no further. One larger chunk may be the last.
const BYTES: usize = 4 << 20;

/// Maximum number of chunks that are read at a time, and their size.
const CHUNKS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 256 << 10;

/// Where a search stopped, as `<milliseconds>-<id>`, or `<milliseconds>-<id>/<seq>` in the middle of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchCursor {
    /// The last conversation that was read.
    pub at: ListCursor,
    /// Up to which `seq` it was read; `None` = entirely.
    pub seq: Option<u64>,
}

/// What one request may still read.
struct Budget {
    conversations: usize,
    chunks: usize,
    bytes: usize,
}

enum Scanned {
    /// In this message; `None` = in the title.
    Found(Option<FoundPassage>),
    NotFound,
    /// The budget ended after this `seq`.
    Stopped(u64),
}

impl Orchestrator {
    /// Returns conversations in whose title, or in one of whose messages, all words of `text` occur, most recent activity
    /// first: at most `limit`, but at least 1. Upper and lower case are the same; messages that were superseded count.
    /// Those found by a message have its `passage`.
    ///
    /// A request reads a bounded part of the journal, so it may find less, or nothing, though more follows. The cursor says
    /// where it stopped; without one, everything was read.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn search(
        &self,
        text: &str,
        after: Option<SearchCursor>,
        limit: usize,
    ) -> Result<(Vec<ConversationSummary>, Option<SearchCursor>), Error> {
        self.search_of(None, text, after, limit).await
    }

    /// Like [`Self::search`], among the conversations of one caller.
    pub(crate) async fn search_of(
        &self,
        caller: Option<&CallerName>,
        text: &str,
        after: Option<SearchCursor>,
        limit: usize,
    ) -> Result<(Vec<ConversationSummary>, Option<SearchCursor>), Error> {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let mut budget = Budget { conversations: CONVERSATIONS, chunks: CHUNKS, bytes: BYTES };
        let (mut found, journal) = (Vec::new(), &*self.ports.journal);
        if let Some(SearchCursor { at, seq: Some(seq) }) = &after
            && let Some(stored) = journal.load(&at.id).await?
        {
            match scan(journal, &at.id, &words, *seq, &mut budget).await? {
                Scanned::Found(passage) => found.push(((at.id.clone(), stored.head), passage)),
                Scanned::NotFound => {}
                Scanned::Stopped(seq) => {
                    return Ok((Vec::new(), Some(SearchCursor { at: at.clone(), seq: Some(seq) })));
                }
            }
        }
        let mut last = after.map(|after| after.at);
        let next = 'next: loop {
            // One more than can be read, to know whether others follow.
            let (more, caller) = (Some(budget.conversations + 1), caller.cloned());
            let page = Page { after: last.clone(), limit: more, caller };
            let listed = journal.conversations(page).await?;
            if listed.is_empty() {
                break None;
            }
            for (id, head) in listed {
                if let Some(last) = &last
                    && (found.len() >= limit || budget.is_spent())
                {
                    break 'next Some(SearchCursor { at: last.clone(), seq: None });
                }
                budget.conversations -= 1;
                let at = ListCursor { last_activity_at: head.last_activity_at, id: id.clone() };
                match search_in(journal, &id, &head, &words, &mut budget).await? {
                    Scanned::Found(passage) => found.push(((id, head), passage)),
                    Scanned::NotFound => {}
                    Scanned::Stopped(seq) => break 'next Some(SearchCursor { at, seq: Some(seq) }),
                }
                last = Some(at);
            }
        };
        let (found, passages): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let mut list = self.summaries(found);
        for (summary, passage) in list.iter_mut().zip(passages) {
            summary.passage = passage;
        }
        Ok((list, next))
    }
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.conversations == 0 || self.chunks == 0 || self.bytes == 0
    }
}

async fn search_in(
    journal: &dyn Journal,
    id: &ConversationId,
    head: &Head,
    words: &[String],
    budget: &mut Budget,
) -> Result<Scanned, Error> {
    match has(&head.title, words) {
        true => Ok(Scanned::Found(None)),
        false => scan(journal, id, words, 0, budget).await,
    }
}

/// Searches the messages after `seq`.
async fn scan(
    journal: &dyn Journal,
    id: &ConversationId,
    words: &[String],
    mut seq: u64,
    budget: &mut Budget,
) -> Result<Scanned, Error> {
    loop {
        if budget.chunks == 0 || budget.bytes == 0 {
            return Ok(Scanned::Stopped(seq));
        }
        let window = Window {
            since_seq: Some(seq),
            before_seq: None,
            limit: Some(CHUNKS_AT_ONCE.min(budget.chunks)),
            max_bytes: Some(BYTES_AT_ONCE),
            take: Take::Oldest,
        };
        let chunks = journal.chunks(id, window).await?;
        let Some(last) = chunks.last() else { return Ok(Scanned::NotFound) };
        seq = last.seq;
        budget.chunks -= chunks.len().min(budget.chunks);
        let bytes = chunks.iter().map(|chunk| crate::json::size(&chunk.chunk)).sum();
        budget.bytes = budget.bytes.saturating_sub(bytes);
        let found = |stored: &Arc<StoredChunk>| {
            let text = message(stored).filter(|text| has(text, words))?;
            Some(FoundPassage { seq: stored.seq, role: stored.role, text: passage::passage(text, words) })
        };
        if let Some(passage) = chunks.iter().find_map(found) {
            return Ok(Scanned::Found(Some(passage)));
        }
    }
}

/// The text of a message.
fn message(stored: &StoredChunk) -> Option<&str> {
    match (stored.role, &*stored.chunk) {
        (Role::User | Role::Assistant, Chunk::Text { text }) => Some(text),
        _ => None,
    }
}

fn has(text: &str, words: &[String]) -> bool {
    let text = text.to_lowercase();
    words.iter().all(|word| text.contains(word))
}

impl fmt::Display for SearchCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        self.seq.map_or(Ok(()), |seq| write!(f, "/{seq}"))
    }
}

impl FromStr for SearchCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let Some((at, seq)) = text.split_once('/') else {
            return Ok(Self { at: text.parse()?, seq: None });
        };
        let is_plain = !seq.is_empty() && seq.bytes().all(|byte| byte.is_ascii_digit());
        let seq = seq.parse().ok().filter(|_| is_plain);
        let seq = seq.ok_or_else(|| InvalidCursor { shown: text.chars().take(64).collect() })?;
        Ok(Self { at: at.parse()?, seq: Some(seq) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        for text in ["17-a-b:1", "17-a/0", "17-a/9007199254740991"] {
            assert_eq!(text.parse::<SearchCursor>().unwrap().to_string(), text);
        }
        for bad in ["", "/", "17-a/", "17-a/+1", "17-a/x", "17-a/1/2", "/1", "17-a/99999999999999999999"] {
            assert!(bad.parse::<SearchCursor>().is_err(), "{bad:?}");
        }
    }
}
