//! What a model is sent: the conversation so far, as messages.

use std::sync::Arc;

use everturn_wire::{Chunk, Message, Role, StoredChunk};

use super::branch::standing;

/// The conversation so far: consecutive chunks of a role as one message. Error chunks are for people, not for models, and
/// so is what was superseded; `supersedes`: by a turn whose own chunks are still to come.
pub(super) fn messages(
    system_prompt: Option<&str>,
    chunks: &[Arc<StoredChunk>],
    supersedes: Option<u64>,
) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    if let Some(text) = system_prompt {
        messages.push(Message {
            role: Role::System,
            chunks: vec![Arc::new(Chunk::System { text: text.to_owned() })],
        });
    }
    let standing = standing(chunks, supersedes);
    for stored in standing.into_iter().filter(|stored| !matches!(*stored.chunk, Chunk::Error { .. })) {
        match messages.last_mut() {
            Some(last) if last.role == stored.role => last.chunks.push(stored.chunk.clone()),
            _ => messages.push(Message { role: stored.role, chunks: vec![stored.chunk.clone()] }),
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(seq: u64, role: Role, text: &str, supersedes: Option<u64>) -> Arc<StoredChunk> {
        Arc::new(StoredChunk { seq, role, chunk: Arc::new(Chunk::Text { text: text.into() }), supersedes })
    }

    fn said(chunks: &[Arc<StoredChunk>], supersedes: Option<u64>) -> Vec<String> {
        let text = |chunk: &Arc<Chunk>| match &**chunk {
            Chunk::Text { text } => text.clone(),
            other => format!("{other:?}"),
        };
        messages(None, chunks, supersedes)
            .iter()
            .map(|message| message.chunks.iter().map(text).collect::<Vec<_>>().join("+"))
            .collect()
    }

    #[test]
    fn a_request_shares_its_chunks_with_the_history() {
        let chunks = vec![chunk(1, Role::User, "a large image", None)];
        let request = messages(Some("Be brief."), &chunks, None);
        assert!(Arc::ptr_eq(&request[1].chunks[0], &chunks[0].chunk));
    }

    #[test]
    fn what_is_superseded_is_not_sent() {
        let mut chunks = vec![
            chunk(1, Role::User, "question", None),
            chunk(2, Role::Assistant, "half an ans", None),
            Arc::new(StoredChunk {
                seq: 3,
                role: Role::Assistant,
                chunk: Arc::new(Chunk::error("HTTP 529")),
                supersedes: None,
            }),
        ];
        assert_eq!(said(&chunks, None), ["question", "half an ans"]);
        assert_eq!(said(&chunks, Some(2)), ["question"], "while the next one streams");
        chunks.push(chunk(4, Role::Assistant, "half", Some(2)));
        assert_eq!(said(&chunks, Some(2)), ["question", "half"], "its own chunks stay");
        chunks.push(chunk(5, Role::Assistant, "answer", Some(2)));
        chunks.push(chunk(6, Role::User, "thanks", None));
        assert_eq!(said(&chunks, None), ["question", "answer", "thanks"], "the third try replaces both");
    }
}
