//! The conversation as the journal has it.

use std::sync::Arc;

use everturn_wire::StoredChunk;

use crate::{
    Head, Version,
    memory::{Account, weight},
};

/// The conversation as the journal has it.
pub(crate) struct Record {
    pub(crate) version: Version,
    pub(crate) head: Head,
    pub(crate) chunks: Vec<Arc<StoredChunk>>,
    /// What the chunks, and a running answer, take.
    pub(super) account: Account,
}

impl Record {
    /// Adds an append, or several. Returns false, and changes nothing, if the chunks do not continue the history up to the new
    /// head: the record, or what was read, is outdated, and the conversation must be loaded anew.
    #[must_use]
    pub(super) fn grow(&mut self, version: Version, head: Head, chunks: Vec<Arc<StoredChunk>>) -> bool {
        let continues = continues(self.head.last_seq, &chunks, head.last_seq);
        if continues {
            (self.version, self.head) = (version, head);
            self.account.add(chunks.iter().map(|chunk| weight(chunk)).sum());
            self.chunks.extend(chunks);
        }
        continues
    }
}

/// Whether these chunks are the whole history after the chunk `after` up to the chunk `last`, in order.
pub(crate) fn continues(after: u64, chunks: &[Arc<StoredChunk>], last: u64) -> bool {
    let is_next = |(seq, chunk): (u64, &Arc<StoredChunk>)| chunk.seq == seq;
    after + chunks.len() as u64 == last && (after + 1..).zip(chunks).all(is_next)
}

#[cfg(test)]
mod tests {
    use everturn_wire::{Chunk, Role};

    use super::*;

    #[test]
    fn only_what_continues_the_history_up_to_its_head_is_taken() {
        let chunks = |seqs: &[u64]| -> Vec<Arc<StoredChunk>> {
            let chunk = Arc::new(Chunk::Text { text: "hi".into() });
            let stored = |seq: &u64| StoredChunk {
                seq: *seq,
                role: Role::User,
                chunk: chunk.clone(),
                supersedes: None,
            };
            seqs.iter().map(stored).map(Arc::new).collect()
        };
        assert!(continues(2, &chunks(&[3, 4]), 4) && continues(2, &[], 2));
        let refused: [(&str, &[u64], u64); 6] = [
            ("one is known", &[2, 3], 3),
            ("one is missing before", &[4], 4),
            ("one is missing in between", &[3, 5], 5),
            ("one is missing at the end", &[3], 4),
            ("one is beyond the head", &[3, 4], 3),
            ("one comes twice", &[3, 3], 4),
        ];
        for (why, seqs, last) in refused {
            assert!(!continues(2, &chunks(seqs), last), "{why}");
        }
    }
}
