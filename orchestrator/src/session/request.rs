//! What a model is sent: the conversation so far, as messages.

use std::sync::Arc;

use everturn_wire::{Chunk, Message, Role, StoredChunk};

/// The conversation so far: consecutive chunks of a role as one message. Error chunks are for people, not for models.
pub(super) fn messages(system_prompt: Option<&str>, chunks: &[Arc<StoredChunk>]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    if let Some(text) = system_prompt {
        messages.push(Message { role: Role::System, chunks: vec![Chunk::System { text: text.to_owned() }] });
    }
    for stored in chunks.iter().filter(|stored| !matches!(stored.chunk, Chunk::Error { .. })) {
        match messages.last_mut() {
            Some(last) if last.role == stored.role => last.chunks.push(stored.chunk.clone()),
            _ => messages.push(Message { role: stored.role, chunks: vec![stored.chunk.clone()] }),
        }
    }
    messages
}
