//! The headers of an append: what lists, waits and other writers need without reading its content.

use std::time::Duration;

use async_nats::{HeaderMap, HeaderValue, header::NATS_EXPECTED_LAST_SUBJECT_SEQUENCE};
use everturn_ports::{Commit, Head, Moment, NodeId, Wait, kernel::Millis};

use crate::{
    marks::{Mark, Marks, Reach},
    parts::Parts,
    record::StoredHead,
};

/// The version of the format of headers and content. A newer one is refused.
pub(crate) const FORMAT: u32 = 1;

/// Header: the server deletes the message after this time.
pub(crate) const TTL: &str = "Nats-TTL";

/// How long the mark of a removal is kept once all that it hides is deleted. An append from before the removal that is still in some
/// buffer is refused as long.
pub(crate) const REMOVAL_KEPT: Duration = Duration::from_secs(60 * 60);

/// Maximum length of the headers, in bytes. The server accepts 64 KiB.
pub(crate) const MAX_HEADERS: usize = 48 << 10;

pub(crate) const VERSION: &str = "Ev-V";
pub(crate) const ID: &str = "Ev-Id";
pub(crate) const BORN: &str = "Ev-Born";
const NUMBER: &str = "Ev-Number";
const HEAD: &str = "Ev-Head";
/// When the latest chunk was added. It is in the head, too, but versions without an index read it here: without it, they take
/// the append for damaged.
const AT: &str = "Ev-At";
const TURN: &str = "Ev-Turn";
const WAKE: &str = "Ev-Wake";
const SEQ: &str = "Ev-Seq";
pub(crate) const END: &str = "Ev-End";
const MARKS: &str = "Ev-Marks";
pub(crate) const SEALED: &str = "Ev-Sealed";
const PARTS: &str = "Ev-Parts";

/// What the headers of an append say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    /// The append.
    pub(crate) id: String,
    /// The first append of its conversation, which tells conversations of one name apart.
    pub(crate) born: String,
    /// Its number in the conversation, from 1.
    pub(crate) number: u64,
    /// The head after it; `None` = it removes the conversation.
    pub(crate) head: Option<Head>,
    /// What the turn waits for, if one runs.
    pub(crate) wait: Option<Wait>,
    /// How far the conversation reaches with it.
    pub(crate) reach: Reach,
    /// Pointers to earlier appends.
    pub(crate) marks: Marks,
    /// The version of the last append before it that sealed a turn; 0 = none.
    pub(crate) sealed_at: u64,
    /// Whether it seals a turn.
    pub(crate) seals: bool,
    /// Where its content is, unless in the message itself.
    pub(crate) parts: Option<Parts>,
}

/// The part of a label that the index needs besides the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    /// Whether it removes its conversation.
    pub(crate) removes: bool,
    /// What the turn waits for, if one runs.
    pub(crate) wait: Option<Wait>,
}

/// The last append of a conversation, on which the next one builds.
#[derive(Clone, Debug)]
pub(crate) struct Last {
    pub(crate) version: u64,
    pub(crate) label: Label,
}

/// Headers that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(
        "it was written by a newer version of Everturn (format {0}; this one knows up to {FORMAT}): upgrade Everturn"
    )]
    Newer(u32),
    #[error("its header {0} is missing or damaged: was it written by another program?")]
    Header(&'static str),
}

impl Label {
    /// Returns the label of a commit after `last`.
    pub(crate) fn of(id: String, last: Option<&Last>, commit: &Commit) -> Self {
        let mut head = commit.head.clone();
        let known = last.and_then(|last| last.label.head.as_ref()).filter(|head| !head.title.is_empty());
        if let Some(known) = known {
            head.title.clone_from(&known.title);
        }
        let before = last.map(|last| last.label.reach).unwrap_or_default();
        Self {
            born: last.map_or_else(|| id.clone(), |last| last.label.born.clone()),
            id,
            number: last.map_or(1, |last| last.label.number + 1),
            head: Some(head),
            wait: commit.turn.as_ref().map(|turn| turn.wait),
            reach: Reach {
                seq: commit.chunks.last().map_or(before.seq, |chunk| chunk.seq.max(before.seq)),
                end: commit.all_events().last().map_or(before.end, |event| event.end.value().max(before.end)),
            },
            marks: last.map(Last::marks).unwrap_or_default(),
            sealed_at: last.map(Last::sealed_at).unwrap_or_default(),
            seals: commit.sealed.is_some(),
            parts: None,
        }
    }

    /// Returns the label of the removal of a conversation.
    pub(crate) fn removal(id: String, last: &Last) -> Self {
        Self {
            id,
            number: last.label.number + 1,
            head: None,
            wait: None,
            marks: last.marks(),
            sealed_at: last.sealed_at(),
            seals: false,
            parts: None,
            ..last.label.clone()
        }
    }

    /// Writes the headers of an append after the version `expected`.
    pub(crate) fn write(&self, expected: u64) -> Result<HeaderMap, serde_json::Error> {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE, expected.to_string());
        headers.insert(VERSION, FORMAT.to_string());
        headers.insert(ID, self.id.as_str());
        headers.insert(BORN, self.born.as_str());
        headers.insert(NUMBER, self.number.to_string());
        if let Some(head) = &self.head {
            headers.insert(HEAD, serde_json::to_string(&StoredHead::from(head))?);
            headers.insert(AT, head.last_activity_at.0.to_string());
        }
        let (turn, wake) = match (&self.head, self.wait) {
            (None, _) => ("removed", None),
            (Some(_), None) => ("none", None),
            (_, Some(Wait::Now)) => ("run", None),
            (_, Some(Wait::Until(moment))) => ("wait", Some(moment)),
            (_, Some(Wait::Person { until })) => ("person", until),
        };
        headers.insert(TURN, turn);
        if let Some(Moment { at, decided_ms }) = wake {
            headers.insert(WAKE, format!("{}/{decided_ms}", at.0));
        }
        headers.insert(SEQ, self.reach.seq.to_string());
        headers.insert(END, self.reach.end.to_string());
        headers.insert(MARKS, self.marks.to_text());
        let seals = if self.seals { "+" } else { "" };
        headers.insert(SEALED, format!("{}{seals}", self.sealed_at));
        if let Some(parts) = &self.parts {
            headers.insert(PARTS, parts.to_text());
        }
        Ok(headers)
    }

    /// Reads the headers of an append.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Unreadable> {
        let brief = Brief::read(headers)?;
        let sealed = text(headers, SEALED)?;
        let parts = headers.get(PARTS).map(|parts| Parts::parse(parts.as_str()));
        Ok(Self {
            id: text(headers, ID)?.to_owned(),
            born: text(headers, BORN)?.to_owned(),
            number: number(headers, NUMBER)?,
            head: if brief.removes { None } else { Some(head(headers)?) },
            wait: brief.wait,
            reach: Reach { seq: number(headers, SEQ)?, end: number(headers, END)? },
            marks: Marks::parse(text(headers, MARKS)?).ok_or(Unreadable::Header(MARKS))?,
            sealed_at: sealed.trim_end_matches('+').parse().map_err(|_| Unreadable::Header(SEALED))?,
            seals: sealed.ends_with('+'),
            parts: parts.map(|parts| parts.ok_or(Unreadable::Header(PARTS))).transpose()?,
        })
    }

    /// Whether it removes its conversation.
    pub(crate) fn removes(&self) -> bool {
        self.head.is_none()
    }
}

impl Brief {
    /// Reads a part of the headers of an append.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Unreadable> {
        check_format(headers)?;
        let wake = headers.get(WAKE).map(|wake| moment(wake.as_str()).ok_or(Unreadable::Header(WAKE)));
        let (turn, wake) = (text(headers, TURN)?, wake.transpose()?);
        let wait = match (turn, wake) {
            ("none" | "removed", _) => None,
            ("run", _) => Some(Wait::Now),
            ("wait", Some(moment)) => Some(Wait::Until(moment)),
            ("person", until) => Some(Wait::Person { until }),
            _ => return Err(Unreadable::Header(TURN)),
        };
        Ok(Self { removes: turn == "removed", wait })
    }
}

impl Last {
    /// Returns the pointers of the next append.
    pub(crate) fn marks(&self) -> Marks {
        let Label { number, reach, .. } = self.label;
        self.label.marks.with(Mark { number, version: self.version, reach })
    }

    /// Returns the version of the last append that sealed a turn; 0 = none.
    pub(crate) fn sealed_at(&self) -> u64 {
        if self.label.seals { self.version } else { self.label.sealed_at }
    }
}

/// Names the append that a message is.
pub(crate) fn set_id(headers: &mut HeaderMap, id: &str) {
    headers.insert(ID, id);
}

fn check_format(headers: &HeaderMap) -> Result<(), Unreadable> {
    let format = text(headers, VERSION)?.parse().map_err(|_| Unreadable::Header(VERSION))?;
    if format > FORMAT { Err(Unreadable::Newer(format)) } else { Ok(()) }
}

/// Whether a newer version wrote an append, in a format that this one does not know.
pub(crate) fn is_newer(headers: &HeaderMap) -> bool {
    matches!(check_format(headers), Err(Unreadable::Newer(_)))
}

/// Returns the id of the append in a message, or an empty text.
pub(crate) fn id(headers: &HeaderMap) -> &str {
    headers.get(ID).map(HeaderValue::as_str).unwrap_or_default()
}

/// Returns the node that wrote the append with this id.
pub(crate) fn node(append_id: &str) -> Option<NodeId> {
    append_id.rsplit_once('-').map(|(node, _)| NodeId::from(node))
}

/// Returns the version that the writer of a message expected.
pub(crate) fn expected(headers: &HeaderMap) -> Option<u64> {
    headers.get(NATS_EXPECTED_LAST_SUBJECT_SEQUENCE)?.as_str().parse().ok()
}

/// Reads the head.
pub(crate) fn head(headers: &HeaderMap) -> Result<Head, Unreadable> {
    let head = serde_json::from_str::<StoredHead>(text(headers, HEAD)?);
    Ok(head.map_err(|_| Unreadable::Header(HEAD))?.into())
}

/// Returns the first append of the conversation.
pub(crate) fn born(headers: &HeaderMap) -> Result<&str, Unreadable> {
    text(headers, BORN)
}

pub(crate) fn text<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<&'h str, Unreadable> {
    headers.get(name).map(HeaderValue::as_str).ok_or(Unreadable::Header(name))
}

pub(crate) fn number(headers: &HeaderMap, name: &'static str) -> Result<u64, Unreadable> {
    text(headers, name)?.parse().map_err(|_| Unreadable::Header(name))
}

fn moment(text: &str) -> Option<Moment> {
    let (at, decided_ms) = text.split_once('/')?;
    Some(Moment { at: Millis(at.parse().ok()?), decided_ms: decided_ms.parse().ok()? })
}
