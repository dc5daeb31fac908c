//! The content of an append: one line of JSON, then the events' bytes, one after another.

use std::sync::Arc;

use bytes::Bytes;
use everturn_ports::{
    Commit, Cursor, Definition, Head, StoredEvent, TurnRecord, Wait,
    kernel::{Millis, Snapshot},
};
use everturn_wire::{Chunk, ConversationStatus, DoneReason, StoredChunk, TurnMetrics};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Deserializer;

/// The stored form of a head.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredHead {
    created_at: u64,
    last_activity_at: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    title: String,
    status: ConversationStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_reason: Option<DoneReason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    end: u64,
    last_seq: u64,
}

/// What an append adds, as its content's first line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'c> {
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<WrittenTurn<'c>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    chunks: &'c [Arc<StoredChunk>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<&'c TurnMetrics>,
    /// How many of the events belong to the sealed turn; the others belong to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed_events: Option<usize>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTurn<'c> {
    snapshot: &'c Snapshot,
    from: u64,
    first_seq: u64,
    definition: &'c Definition,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadTurn {
    snapshot: Snapshot,
    from: u64,
    first_seq: u64,
    definition: Definition,
}

/// An event: where it begins and ends, and the length of its JSON in bytes.
type Place = (u64, u64, usize);

/// Content that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("its content cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("its content is incomplete")]
    Short,
    #[error("it has a chunk of an unknown kind, which a newer version of Everturn wrote: upgrade Everturn")]
    Newer,
}

/// Returns the content of a commit.
pub(crate) fn write(commit: &Commit) -> Result<Vec<u8>, serde_json::Error> {
    let turn = commit.turn.as_deref().map(|turn| WrittenTurn {
        snapshot: &turn.snapshot,
        from: turn.from.value(),
        first_seq: turn.first_seq,
        definition: &turn.definition,
    });
    let written = Written {
        turn,
        chunks: &commit.chunks,
        events: commit.all_events().map(place).collect(),
        sealed: commit.sealed.as_deref(),
        sealed_events: commit.sealed.is_some().then_some(commit.events.len()),
    };
    let events: usize = commit.all_events().map(|event| event.json.len()).sum();
    let mut content = Vec::with_capacity(events + 1024);
    serde_json::to_writer(&mut content, &written)?;
    content.push(b'\n');
    for event in commit.all_events() {
        content.extend_from_slice(&event.json);
    }
    Ok(content)
}

/// Returns the turn in the content of an append. `wait` is in its headers.
pub(crate) fn turn(content: &[u8], wait: Wait) -> Result<TurnRecord, Unreadable> {
    #[derive(Deserialize)]
    struct Only {
        turn: ReadTurn,
    }
    let turn = first_line::<Only>(content)?.0.turn;
    Ok(TurnRecord {
        snapshot: turn.snapshot,
        wait,
        from: Cursor::from_value(turn.from),
        first_seq: turn.first_seq,
        definition: turn.definition,
    })
}

/// Returns the chunks in the content of an append. Fails for a kind that a newer version added: a turn must not continue
/// without it.
pub(crate) fn chunks(content: &[u8]) -> Result<Vec<Arc<StoredChunk>>, Unreadable> {
    #[derive(Deserialize)]
    struct Only {
        #[serde(default)]
        chunks: Vec<Arc<StoredChunk>>,
    }
    let chunks = first_line::<Only>(content)?.0.chunks;
    let is_known = chunks.iter().all(|chunk| !matches!(*chunk.chunk, Chunk::Unknown));
    is_known.then_some(chunks).ok_or(Unreadable::Newer)
}

/// Returns the events in the content of an append.
pub(crate) fn events(content: &Bytes) -> Result<Vec<StoredEvent>, Unreadable> {
    #[derive(Deserialize)]
    struct Only {
        #[serde(default)]
        events: Vec<Place>,
    }
    let (only, mut at) = first_line::<Only>(content)?;
    let event = |(start, end, length): Place| {
        let json = content.get(at..at.checked_add(length)?)?;
        at += length;
        // A copy, so that one event does not keep all of the content.
        let json = Bytes::copy_from_slice(json);
        Some(StoredEvent { start: Cursor::from_value(start), end: Cursor::from_value(end), json })
    };
    only.events.into_iter().map(event).collect::<Option<_>>().ok_or(Unreadable::Short)
}

/// What a base keeps of the content of an append.
#[derive(Debug)]
pub(crate) struct Digest {
    pub(crate) chunks: Vec<Arc<StoredChunk>>,
    pub(crate) sealed: Option<TurnMetrics>,
    /// The number of its events.
    pub(crate) events: u64,
    /// The number of those that belong to the sealed turn.
    pub(crate) sealed_events: u64,
    /// Where the last of those ends.
    pub(crate) sealed_end: Option<u64>,
}

/// Returns what a base keeps of the content of an append.
pub(crate) fn digest(content: &[u8]) -> Result<Digest, Unreadable> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Only {
        #[serde(default)]
        events: Vec<Place>,
        sealed: Option<TurnMetrics>,
        sealed_events: Option<usize>,
    }
    let Only { events, sealed, sealed_events } = first_line::<Only>(content)?.0;
    let of_sealed = events.get(..sealed_events.unwrap_or_default()).ok_or(Unreadable::Short)?;
    Ok(Digest {
        chunks: chunks(content)?,
        sealed,
        events: events.len() as u64,
        sealed_events: of_sealed.len() as u64,
        sealed_end: of_sealed.last().map(|place| place.1),
    })
}

/// Returns the commit with this content. `head` and `wait` are in its headers.
pub(crate) fn commit(content: &Bytes, head: Head, wait: Option<Wait>) -> Result<Commit, Unreadable> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Only {
        sealed: Option<TurnMetrics>,
        sealed_events: Option<usize>,
    }
    let Only { sealed, sealed_events } = first_line::<Only>(content)?.0;
    let mut events = events(content)?;
    let next_events = events.split_off(sealed_events.unwrap_or(events.len()).min(events.len()));
    Ok(Commit {
        head,
        turn: wait.map(|wait| turn(content, wait)).transpose()?.map(Box::new),
        chunks: chunks(content)?,
        events,
        sealed: sealed.map(Box::new),
        next_events,
    })
}

/// Returns streamed text that follows version `base`: one line of JSON, then the events' bytes.
pub(crate) fn write_text(base: u64, events: &[StoredEvent]) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Text {
        base: u64,
        events: Vec<Place>,
    }
    let mut content =
        Vec::with_capacity(64 + events.iter().map(|event| event.json.len() + 16).sum::<usize>());
    serde_json::to_writer(&mut content, &Text { base, events: events.iter().map(place).collect() })?;
    content.push(b'\n');
    events.iter().for_each(|event| content.extend_from_slice(&event.json));
    Ok(content)
}

/// Reads what [`write_text`] wrote.
pub(crate) fn text(content: &Bytes) -> Result<(u64, Vec<StoredEvent>), Unreadable> {
    #[derive(Deserialize)]
    struct Only {
        base: u64,
    }
    Ok((first_line::<Only>(content)?.0.base, events(content)?))
}

fn place(event: &StoredEvent) -> Place {
    (event.start.value(), event.end.value(), event.json.len())
}

/// Returns the figures of the turn that an append seals.
pub(crate) fn sealed(content: &[u8]) -> Result<TurnMetrics, Unreadable> {
    #[derive(Deserialize)]
    struct Only {
        sealed: TurnMetrics,
    }
    Ok(first_line::<Only>(content)?.0.sealed)
}

/// Reads the first line, and returns where the bytes of the events begin.
pub(crate) fn first_line<T: DeserializeOwned>(content: &[u8]) -> Result<(T, usize), Unreadable> {
    // Compact JSON has no line feed.
    let at = content.iter().position(|byte| *byte == b'\n').ok_or(Unreadable::Short)?;
    let mut json = Deserializer::from_slice(&content[..at]);
    // Arguments just within the depth limit on arrival are nested deeper inside their record.
    json.disable_recursion_limit();
    Ok((T::deserialize(&mut json)?, at + 1))
}

impl From<&Head> for StoredHead {
    fn from(head: &Head) -> Self {
        Self {
            created_at: head.created_at.0,
            last_activity_at: head.last_activity_at.0,
            title: head.title.clone(),
            status: head.status,
            end_reason: head.end_reason.clone(),
            model: head.model.clone(),
            end: head.end.value(),
            last_seq: head.last_seq,
        }
    }
}

impl From<StoredHead> for Head {
    fn from(head: StoredHead) -> Self {
        Self {
            created_at: Millis(head.created_at),
            last_activity_at: Millis(head.last_activity_at),
            title: head.title,
            status: head.status,
            end_reason: head.end_reason,
            model: head.model,
            end: Cursor::from_value(head.end),
            last_seq: head.last_seq,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(start: u64, json: &'static str) -> StoredEvent {
        let (start, end) = (Cursor::from_value(start), Cursor::from_value(start + 1));
        StoredEvent { start, end, json: Bytes::from_static(json.as_bytes()) }
    }

    #[test]
    fn events_are_kept_byte_by_byte() {
        let head = Head::from(StoredHead::from(&serde_json::from_str::<StoredHead>(HEAD).unwrap().into()));
        let commit =
            Commit::new(head).event(event(0, "no JSON\n\"")).event(event(1, "")).event(event(7, "é"));
        let content = Bytes::from(write(&commit).unwrap());
        let text = "{\"events\":[[0,1,9],[1,2,0],[7,8,2]]}\nno JSON\n\"é";
        assert_eq!(str::from_utf8(&content).unwrap(), text);
        assert_eq!(events(&content).unwrap(), commit.events);
        assert!(matches!(events(&content.slice(..content.len() - 1)), Err(Unreadable::Short)));
        assert!(matches!(events(&content.slice(..5)), Err(Unreadable::Short)));
    }

    const HEAD: &str =
        r#"{"createdAt":1,"lastActivityAt":2,"status":"idle","end":3,"lastSeq":4,"ofANewerVersion":[5]}"#;

    #[test]
    fn fields_of_newer_versions_are_ignored_but_not_chunks() {
        assert!(serde_json::from_str::<StoredHead>(HEAD).is_ok());
        let content = b"{\"chunks\":[{\"seq\":1,\"role\":\"user\",\"chunk\":{\"type\":\"hologram\"},\"x\":1}],\"y\":2}\n";
        assert!(matches!(chunks(content), Err(Unreadable::Newer)));
        assert_eq!(chunks(b"{\"y\":2}\n").unwrap(), []);
    }
}
