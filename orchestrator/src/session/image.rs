//! Images and PDFs that a provider rejected: people still see them, but the model that rejected them gets a note instead.
//!
//! Otherwise every later request of the conversation would be rejected as well. The error in the history is the record,
//! so this holds after a restart and on every node.

use std::{collections::BTreeSet, sync::Arc};

use everturn_wire::{Chunk, Failure, Image, Message, RejectedImage, Role, StoredChunk};

use super::branch::drop_from;

/// The advice of a failure that a PDF may have caused.
const PDF_ADVICE: &str = "The provider rejected the request, probably because its model does not take this PDF: the model gets a \
                          note in place of it from now on, so send its text, or choose a model that reads PDFs.";

/// The advice of a failure that an image may have caused.
const ADVICE: &str = "The provider rejected the request, probably because of an image: the model gets a note in place of \
                      the latest images from now on, so send them smaller, or as PNG or JPEG, or choose a model that \
                      accepts images.";

const PDF_NOTE: &str = "[a PDF was here, but the provider rejected it, so you cannot read it]";
const NOTE: &str = "[an image was here, but the provider rejected it, so you cannot see it]";

/// What a request has besides text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attached {
    Nothing,
    Images,
    /// PDFs, perhaps also images.
    Pdfs,
}

/// Returns what a request has.
pub(super) fn are_in(messages: &[Message]) -> Attached {
    let mut found = Attached::Nothing;
    for chunk in messages.iter().flat_map(Message::iter).filter(|chunk| has_images(chunk)) {
        if is_pdf(chunk) {
            return Attached::Pdfs;
        }
        found = Attached::Images;
    }
    found
}

/// Says what a rejected image means for the conversation. If the request had none, it was not the reason.
pub(super) fn explained(mut failure: Failure, attached: Attached) -> Failure {
    failure.rejects_image &= attached != Attached::Nothing;
    if failure.rejects_image {
        let advice = if attached == Attached::Pdfs { PDF_ADVICE } else { ADVICE };
        failure.advice = Some(advice.to_owned());
    }
    failure
}

/// Returns the `seq` of the chunks whose images this model rejected. To blame are the images added since its last
/// answer, or else all: it may never have seen them.
pub(super) fn rejected(chunks: &[Arc<StoredChunk>], model: &str) -> BTreeSet<u64> {
    let mut rejected = BTreeSet::new();
    if !chunks.iter().any(|stored| is_rejection(stored, model)) {
        return rejected;
    }
    let mut standing: Vec<&Arc<StoredChunk>> = Vec::new();
    for stored in chunks {
        if let Some(from) = stored.supersedes {
            drop_from(&mut standing, from);
        }
        if is_rejection(stored, model) {
            let is_new =
                |stored: &&&Arc<StoredChunk>| has_images(&stored.chunk) && !rejected.contains(&stored.seq);
            let answered = standing.iter().rposition(|stored| is_answer(stored)).map_or(0, |last| last + 1);
            let mut blamed: Vec<u64> =
                standing[answered..].iter().filter(is_new).map(|stored| stored.seq).collect();
            if blamed.is_empty() {
                blamed.extend(standing.iter().filter(is_new).map(|stored| stored.seq));
            }
            rejected.extend(blamed);
        }
        standing.push(stored);
    }
    rejected
}

/// Replaces the images of a chunk that the provider rejected with a note.
pub(super) fn noted(chunk: &Chunk) -> Chunk {
    let note = if is_pdf(chunk) { PDF_NOTE } else { NOTE };
    replaced(chunk, note, &format!("\n{NOTE}")).unwrap_or_else(|| chunk.clone())
}

/// Replaces the images of a chunk with a note, or, for those of a tool result, adds `after` to its text. `None` = it
/// has no images.
pub(super) fn replaced(chunk: &Chunk, note: &str, after: &str) -> Option<Chunk> {
    if !has_images(chunk) {
        return None;
    }
    let mut chunk = chunk.clone();
    match &mut chunk {
        Chunk::ToolResult { images, content, .. } => {
            images.clear();
            content.push_str(after);
        }
        _ => chunk = Chunk::Text { text: note.to_owned() },
    }
    Some(chunk)
}

fn has_images(chunk: &Chunk) -> bool {
    match chunk {
        Chunk::Image { .. } => true,
        Chunk::ToolResult { images, .. } => !images.is_empty(),
        _ => false,
    }
}

fn is_pdf(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Image { url, mime_type } if Image::is_pdf(url, mime_type.as_deref()))
}

fn is_answer(stored: &StoredChunk) -> bool {
    stored.role == Role::Assistant && !matches!(*stored.chunk, Chunk::Error(_))
}

fn is_rejection(stored: &StoredChunk, model: &str) -> bool {
    let Chunk::Error(report) = &*stored.chunk else { return false };
    let by = |rejected: &RejectedImage| rejected.model.as_deref().is_none_or(|by| by == model);
    report.rejected_image.as_ref().is_some_and(by)
}

#[cfg(test)]
mod tests;
