//! A complete history that comes with a request, and how much of it a conversation already has.

mod check;
mod overlap;

use std::sync::Arc;

use everturn_kernel::Prompt;
use everturn_wire::{Chunk, Message, Role, StoredChunk};

use crate::Error;
pub(crate) use check::{MAX_IMAGE, MAX_IMAGES, is_image_url};

/// A valid history that came with a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RequestHistory {
    /// The text of the leading system messages.
    pub(crate) system_prompt: Option<String>,
    /// The messages before the turn.
    said: Vec<(Role, Arc<Chunk>)>,
    /// The user message that begins the turn; `None` if it begins with tool results.
    pub(crate) prompt: Option<Prompt>,
}

/// How a turn with such a history begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Opening {
    /// Chunks added to the conversation before the turn's own message.
    pub(crate) added: Vec<(Role, Chunk)>,
    /// The first `seq` of the conversation's history that is superseded.
    pub(crate) supersedes: Option<u64>,
}

impl RequestHistory {
    /// Reads the messages of a request.
    ///
    /// # Errors
    /// When the messages are not valid for a model, or too large.
    pub(crate) fn read(messages: &[Message]) -> Result<Self, Error> {
        check::check(messages).map_err(|why| Error::BadMessage { why })?;
        let begin = messages.iter().take_while(|message| message.role == Role::System).count();
        let (system, rest) = messages.split_at(begin);
        let (before, last) = match rest.split_last() {
            Some((last, before)) if last.role == Role::User => (before, Some(last)),
            _ => (rest, None),
        };
        let (begun, tail) = last.map_or((&[][..], None), |last| {
            let (begun, tail) = last.chunks.split_at(tail(last));
            (begun, Some(tail))
        });
        let chunks = |message: &Message| {
            let role = message.role;
            message.chunks.iter().map(move |chunk| (role, chunk.clone())).collect::<Vec<_>>()
        };
        let begun = begun.iter().map(|chunk| (Role::User, chunk.clone()));
        let system: Vec<&str> = system.iter().flat_map(Message::iter).filter_map(words).collect();
        Ok(Self {
            system_prompt: (!system.is_empty()).then(|| system.join("\n\n")),
            said: before.iter().flat_map(chunks).chain(begun).collect(),
            prompt: tail.map(prompt),
        })
    }

    /// How the turn begins in a conversation with these current chunks.
    pub(crate) fn over(&self, standing: &[&Arc<StoredChunk>]) -> Opening {
        overlap::opening(&self.said, standing)
    }
}

/// Returns where the part of a user message begins that has the form in which kernels begin a turn: images, then text. What
/// precedes it is kept before the turn, so that the model gets all in one message, in its order.
fn tail(message: &Message) -> usize {
    let is_image = |chunk: &Arc<Chunk>| matches!(**chunk, Chunk::Image { .. });
    let last_image = message.chunks.iter().rposition(is_image).unwrap_or(0);
    let text_before = message.chunks[..last_image].iter().rposition(|chunk| !is_image(chunk));
    text_before.map_or(0, |at| at + 1)
}

/// Converts the end of a user message to the form in which kernels begin a turn.
fn prompt(chunks: &[Arc<Chunk>]) -> Prompt {
    let text: Vec<&str> = chunks.iter().filter_map(|chunk| words(chunk)).collect();
    let images = chunks.iter().filter_map(|chunk| match &**chunk {
        Chunk::Image { url, mime_type } => {
            Some(everturn_wire::Image { url: url.clone(), mime_type: mime_type.clone() })
        }
        _ => None,
    });
    Prompt { images: images.collect(), text: text.join("\n\n") }
}

fn words(chunk: &Chunk) -> Option<&str> {
    match chunk {
        Chunk::Text { text } | Chunk::System { text, .. } => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
