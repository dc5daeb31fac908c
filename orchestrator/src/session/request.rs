//! Builds the messages that are sent to a model.

use std::sync::Arc;

use everturn_wire::{Chunk, Message, Role, StoredChunk};

use super::{
    branch::standing,
    image,
    summary::{cut, kept_from, shorten},
};

/// Returns the chunks that are sent to a model, oldest first. Omitted are errors, superseded chunks, images that this
/// `model` rejected and what the newest summary replaces; that summary comes first. Results of tools may be shortened. `supersedes`: the mark of a turn
/// that has no chunks yet.
pub(super) fn sent(
    chunks: &[Arc<StoredChunk>],
    supersedes: Option<u64>,
    model: Option<&str>,
) -> Vec<Arc<StoredChunk>> {
    let mut sent: Vec<_> = standing(chunks, supersedes).into_iter().cloned().collect();
    sent.retain(|stored| !matches!(*stored.chunk, Chunk::Error { .. }));
    let rejected = model.map(|model| image::rejected(chunks, model)).unwrap_or_default();
    for stored in sent.iter_mut().filter(|stored| rejected.contains(&stored.seq)) {
        *stored = changed(stored, image::noted(&stored.chunk));
    }
    let mut view = Vec::with_capacity(sent.len());
    for stored in sent {
        match kept_from(&stored) {
            Some(keeps_from) => summarized(&mut view, stored, keeps_from),
            None => view.push(stored),
        }
    }
    view
}

/// Whether a history has an older part that can be summarized.
pub(crate) fn may_summarize(chunks: &[Arc<StoredChunk>]) -> bool {
    cut(&sent(chunks, None, None), None).is_some()
}

/// Puts a summary in the place of what precedes `keeps_from`. Long results and images that stay are shortened.
fn summarized(view: &mut Vec<Arc<StoredChunk>>, summary: Arc<StoredChunk>, keeps_from: u64) {
    shorten(view, keeps_from);
    // Images are large and were already seen: keep only those of the message being answered.
    let said = |stored: &Arc<StoredChunk>| stored.role == Role::User;
    let newest = view.iter().rposition(said);
    let newest =
        newest.map(|last| view[..last].iter().rposition(|stored| !said(stored)).map_or(0, |at| at + 1));
    let end = newest.unwrap_or(view.len());
    for stored in &mut view[..end] {
        if let Some(chunk) = image::replaced(&stored.chunk, "[an image, no longer shown]", "") {
            *stored = changed(stored, chunk);
        }
    }
    view.retain(|stored| stored.seq >= keeps_from && kept_from(stored).is_none());
    view.insert(0, summary);
}

fn changed(stored: &StoredChunk, chunk: Chunk) -> Arc<StoredChunk> {
    Arc::new(StoredChunk { chunk: Arc::new(chunk), ..stored.clone() })
}

/// Converts chunks to messages after the system prompt. Consecutive chunks of one role form one message.
pub(super) fn messages(system_prompt: Option<&str>, sent: &[Arc<StoredChunk>]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    if let Some(text) = system_prompt {
        let chunk = Chunk::System { text: text.to_owned(), keeps_from: None };
        messages.push(Message::new(Role::System, [chunk]));
    }
    for stored in sent {
        let (role, chunk) = as_said(stored);
        match messages.last_mut() {
            Some(last) if last.role == role => last.chunks.push(chunk),
            _ => messages.push(Message { role, chunks: vec![chunk] }),
        }
    }
    messages
}

/// Converts a chunk to the form sent to a model. Guidance and summaries are sent as user messages, as not every API
/// accepts system messages in between.
fn as_said(stored: &StoredChunk) -> (Role, Arc<Chunk>) {
    match &*stored.chunk {
        Chunk::System { text, keeps_from } if stored.role == Role::System => {
            let text = match keeps_from {
                Some(_) => {
                    format!("[Summary of the conversation so far, in place of its older messages]\n{text}")
                }
                None => text.clone(),
            };
            (Role::User, Arc::new(Chunk::Text { text }))
        }
        _ => (stored.role, stored.chunk.clone()),
    }
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
        messages(None, &sent(chunks, supersedes, None))
            .iter()
            .map(|message| message.chunks.iter().map(text).collect::<Vec<_>>().join("+"))
            .collect()
    }

    #[test]
    fn a_request_shares_its_chunks_with_the_history() {
        let chunks = vec![chunk(1, Role::User, "a large image", None)];
        let request = messages(Some("Be brief."), &sent(&chunks, None, None));
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

    fn summary(seq: u64, text: &str, keeps_from: u64) -> Arc<StoredChunk> {
        let chunk = Chunk::System { text: text.into(), keeps_from: Some(keeps_from) };
        Arc::new(StoredChunk { seq, role: Role::System, chunk: Arc::new(chunk), supersedes: None })
    }

    #[test]
    fn a_summary_takes_the_place_of_what_is_older_than_it_says() {
        let head = "[Summary of the conversation so far, in place of its older messages]\n";
        let mut chunks = vec![
            chunk(1, Role::User, "a", None),
            chunk(2, Role::Assistant, "b", None),
            chunk(3, Role::User, "c", None),
            summary(4, "A and b.", 3),
            chunk(5, Role::Assistant, "d", None),
        ];
        assert_eq!(said(&chunks, None), [&format!("{head}A and b.+c"), "d"]);
        chunks.push(chunk(6, Role::User, "e", None));
        chunks.push(summary(7, "A to d.", 6));
        assert_eq!(said(&chunks, None), [format!("{head}A to d.+e")], "the newest one alone");
        chunks.push(chunk(8, Role::User, "another e", Some(6)));
        assert_eq!(
            said(&chunks, None)[0],
            format!("{head}A and b.+c"),
            "an older one stands again with its branch"
        );
        chunks.push(chunk(9, Role::User, "another c", Some(3)));
        assert_eq!(said(&chunks, None), ["a", "b", "another c"], "and none before any was made");
    }

    #[test]
    fn after_a_summary_only_the_images_of_the_message_that_is_answered_stay() {
        let image = |seq| {
            let chunk = Chunk::Image { url: "data:image/png;base64,AA".into(), mime_type: None };
            Arc::new(StoredChunk { seq, role: Role::User, chunk: Arc::new(chunk), supersedes: None })
        };
        let chunks = vec![
            image(1),
            chunk(2, Role::Assistant, "b", None),
            image(3),
            chunk(4, Role::User, "c", None),
            summary(5, "All.", 1),
            image(6),
        ];
        let sent = sent(&chunks, None, None);
        let images = sent.iter().filter(|stored| matches!(*stored.chunk, Chunk::Image { .. }));
        assert_eq!(images.map(|stored| stored.seq).collect::<Vec<_>>(), [3, 6]);
    }
}
