//! An append, divided into rows.

use everturn_ports::{Commit, Definition, JournalError, TurnRecord, Version, Wait};
use everturn_store_rows::{CHUNK, Entry, RUN, SEAL, Unfit, entries, integer, status_code, to_json};
use everturn_wire::{ConversationId, DoneReason};
use tokio::sync::oneshot;

use crate::text::escape;

/// Approximate size of an append without its texts.
const FIXED: usize = 512;

type Answer = Result<Version, JournalError>;

/// An append waiting to be written.
pub(crate) struct Append {
    pub(crate) id: ConversationId,
    pub(super) expected: Version,
    /// Tells it from other appends to the same conversation.
    pub(super) number: i64,
    pub(super) head: HeadColumns,
    pub(super) turn: Option<TurnColumns>,
    pub(super) added: Vec<Added>,
    pub(crate) bytes: usize,
    /// Whether it may have been written.
    pub(super) was_lost: bool,
    answer: oneshot::Sender<Answer>,
}

pub(super) struct HeadColumns {
    pub(super) created_at: i64,
    pub(super) last_activity_at: i64,
    pub(super) title: String,
    pub(super) status: i16,
    pub(super) end_reason: Option<String>,
    pub(super) model: Option<String>,
    pub(super) ends: i64,
    pub(super) last_seq: i64,
}

pub(super) struct TurnColumns {
    pub(super) json: String,
    pub(super) begins: i64,
    pub(super) first_seq: i64,
    pub(super) definition: Definition,
    pub(super) wake_at: Option<i64>,
    pub(super) wait_ms: Option<i64>,
    pub(super) for_person: bool,
}

/// A row of the table `entry`.
#[derive(Default)]
pub(super) struct Added {
    pub(super) kind: i16,
    /// `None`: the version of the append.
    pub(super) place: Option<i64>,
    pub(super) begins: Option<i64>,
    pub(super) events: Option<i64>,
    pub(super) role: Option<i16>,
    pub(super) supersedes: Option<i64>,
    pub(super) sealed_at: Option<i64>,
    /// Of a sealed turn; `None`: where the last run ends that was stored earlier.
    pub(super) ends: Option<i64>,
    pub(super) text: String,
}

impl Append {
    /// Creates an append, and the receiver of its answer.
    pub(crate) fn new(
        id: ConversationId,
        expected: Version,
        number: i64,
        commit: &Commit,
    ) -> Result<(Self, oneshot::Receiver<Answer>), Unfit> {
        let time = integer(commit.head.last_activity_at.0);
        let (mut added, mut last_run) = (Vec::new(), None);
        let add = |entry: Entry<'_>| {
            let row = row(entry, time, last_run)?;
            if row.kind == RUN {
                last_run = row.place;
            }
            added.push(row);
            Ok(())
        };
        entries(&id, commit, add, |unfit| unfit)?;
        let head = HeadColumns::new(&commit.head)?;
        let turn = commit.turn.as_deref().map(TurnColumns::new).transpose()?;
        let texts = added.iter().map(|row| row.text.len() + FIXED).sum::<usize>();
        let bytes = FIXED + head.title.len() + texts + turn.as_ref().map_or(0, |turn| turn.json.len());
        let (answer, answered) = oneshot::channel();
        Ok((Self { id, expected, number, head, turn, added, bytes, was_lost: false, answer }, answered))
    }

    /// Sends the result to the caller, if it is still waiting.
    pub(super) fn answer(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }
}

impl HeadColumns {
    fn new(head: &everturn_ports::Head) -> Result<Self, Unfit> {
        Ok(Self {
            created_at: integer(head.created_at.0),
            last_activity_at: integer(head.last_activity_at.0),
            title: escape(&head.title).into_owned(),
            status: status_code(head.status)?,
            end_reason: head
                .end_reason
                .as_ref()
                .map(DoneReason::as_str)
                .map(|text| escape(text).into_owned()),
            model: head.model.as_deref().map(|text| escape(text).into_owned()),
            ends: integer(head.end.value()),
            last_seq: integer(head.last_seq),
        })
    }
}

impl TurnColumns {
    fn new(turn: &TurnRecord) -> Result<Self, Unfit> {
        let until = turn.wait.until();
        Ok(Self {
            json: storable(to_json(&turn.snapshot)?)?,
            begins: integer(turn.from.value()),
            first_seq: integer(turn.first_seq),
            definition: turn.definition.clone(),
            wake_at: until.map(|until| integer(until.at.0)),
            wait_ms: until.map(|until| integer(until.decided_ms)),
            for_person: matches!(turn.wait, Wait::Person { .. }),
        })
    }
}

/// `last_run`: where the last run of the same append ends.
fn row(entry: Entry<'_>, time: i64, last_run: Option<i64>) -> Result<Added, Unfit> {
    Ok(match entry {
        Entry::Chunk { seq, role, supersedes, json } => Added {
            kind: CHUNK,
            place: Some(integer(seq)),
            role: Some(role),
            supersedes: supersedes.map(integer),
            text: storable(json.to_owned())?,
            ..Added::default()
        },
        Entry::Run { begins, ends, events, text } => Added {
            kind: RUN,
            place: Some(integer(ends.value())),
            begins: Some(integer(begins.value())),
            events: Some(integer(events as u64)),
            text: storable(String::from_utf8(text.to_owned()).map_err(|error| Unfit(error.to_string()))?)?,
            ..Added::default()
        },
        Entry::Seal { json } => Added {
            kind: SEAL,
            sealed_at: Some(time),
            ends: last_run,
            text: storable(json.to_owned())?,
            ..Added::default()
        },
    })
}

/// Refuses what Postgres cannot store in text: JSON never contains it.
fn storable(text: String) -> Result<String, Unfit> {
    match text.contains('\0') {
        true => Err(Unfit("Postgres cannot store the character NUL outside of JSON".to_owned())),
        false => Ok(text),
    }
}
