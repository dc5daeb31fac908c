//! Walking through a conversation's appends, or its bases, in order, checking that none is missing.

use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{
    batch::MESSAGES,
    entry::Entry,
    error::damaged,
    floor::Floor,
    label::{Label, Last, expected},
    leader::Leader,
    marks::{Mark, Reach},
};

/// Number of appends that are read to avoid a request that would find a closer place to begin.
const NEAR: u64 = 32;

/// The messages of a log, which has a conversation's appends or its bases, up to one that is known to be stored.
#[derive(Debug)]
pub(crate) struct Walk<'w> {
    leader: &'w Leader,
    id: &'w ConversationId,
    subject: String,
    last: &'w Last,
    /// The append after which it continues.
    at: Mark,
    /// The appends that were read ahead.
    ahead: std::vec::IntoIter<Entry>,
    /// How many to read at once.
    at_once: usize,
}

impl<'w> Walk<'w> {
    /// Begins after `at`, which is in the log on this subject or was deleted from its beginning.
    pub(crate) fn from(
        leader: &'w Leader,
        id: &'w ConversationId,
        subject: String,
        last: &'w Last,
        at: Mark,
    ) -> Self {
        Self { leader, id, subject, last, at, ahead: Vec::new().into_iter(), at_once: MESSAGES }
    }

    /// Skips what comes before the last one for which `is_before` holds, or a few earlier. Costs a few requests, at most
    /// as many as the length of the log has binary digits.
    pub(crate) async fn skip(mut self, is_before: impl Fn(&Reach) -> bool) -> Result<Self, JournalError> {
        let (mut low, mut high) = self.last.label.marks.around(&is_before);
        while let Some(step) = high
            && step.number > self.at.number.max(low.number) + NEAR
        {
            let Some(entry) = self.leader.at(step.version).await? else { break };
            (low, high) = entry.label(self.id)?.marks.around(&is_before);
        }
        if low.number > self.at.number {
            self.at = low;
        }
        Ok(self)
    }

    /// Reads only so many appends with the first request.
    pub(crate) fn few(mut self, at_once: usize) -> Self {
        self.at_once = at_once.clamp(1, MESSAGES);
        self
    }

    /// Returns the next message; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<(Entry, Label)>, JournalError> {
        while self.at.version < self.last.version {
            let entry = self.read().await?;
            if entry.sequence > self.last.version {
                return Err(self.ended().await?);
            }
            let label = entry.label(self.id)?;
            if self.at.number == 0 && label.born != self.last.label.born {
                // Left over from a removed conversation with the same name.
                self.at.version = entry.sequence;
                continue;
            }
            self.check(&entry, &label)?;
            self.at = Mark { number: label.number, version: entry.sequence, reach: label.reach };
            return Ok(Some((entry, label)));
        }
        Ok(None)
    }

    /// Checks that the append follows the previous one.
    fn check(&self, entry: &Entry, label: &Label) -> Result<(), JournalError> {
        let is_next = label.number == self.at.number + 1;
        if is_next && (label.number == 1 || expected(&entry.headers) == Some(self.at.version)) {
            return Ok(());
        }
        Err(damaged(self.id, &gap(self.what(), entry.sequence, label.number, self.at)))
    }

    async fn read(&mut self) -> Result<Entry, JournalError> {
        if let Some(entry) = self.ahead.next() {
            return Ok(entry);
        }
        let from = self.at.version + 1;
        self.ahead = self.leader.batch(&self.subject, from, self.at_once).await.into_iter();
        self.at_once = MESSAGES;
        if let Some(entry) = self.ahead.next() {
            return Ok(entry);
        }
        // The server that answered is behind, or does not answer.
        match self.leader.next(&self.subject, from).await? {
            Some(entry) => Ok(entry),
            None => Err(self.ended().await?),
        }
    }

    fn what(&self) -> &'static str {
        if self.subject == self.leader.names().bases(self.id) { "base" } else { "append" }
    }

    /// Returns why the log ends before its last message: the conversation was removed meanwhile, or is damaged.
    async fn ended(&self) -> Result<JournalError, JournalError> {
        let last = self.leader.last(&self.subject).await?;
        Ok(match last.map(|last| last.last(self.id)).transpose()? {
            Some(last) if !last.label.removes() && last.label.born == self.last.label.born => {
                let missing = format!(
                    "{} {} (version {}) is missing",
                    self.what(),
                    self.last.label.number,
                    self.last.version
                );
                damaged(self.id, &missing)
            }
            Some(_) | None => {
                JournalError::Storage(format!("conversation {} was removed while it was read", self.id))
            }
        })
    }
}

/// Checks that the append before the last one is there, or was dropped on purpose. Costs a request or two.
pub(crate) async fn check_last(
    leader: &Leader,
    id: &ConversationId,
    entry: &Entry,
    label: &Label,
) -> Result<(), JournalError> {
    let Some(before) = expected(&entry.headers).filter(|_| label.number > 1) else { return Ok(()) };
    let previous = leader.at(before).await?;
    let previous = previous.map(|entry| entry.label(id)).transpose()?;
    match previous {
        Some(previous) if previous.born == label.born && previous.number + 1 == label.number => Ok(()),
        None if Floor::of(leader, id, &label.born).await?.is_some_and(|floor| floor.at.version >= before) => {
            Ok(())
        }
        _ => {
            // A removal also deletes it.
            let now = leader.last(&leader.names().appends(id)).await?;
            let is_current = now.is_some_and(|now| now.sequence == entry.sequence);
            let at = Mark { number: label.number - 1, version: before, ..Mark::default() };
            if is_current {
                Err(damaged(id, &gap("append", entry.sequence, label.number, at)))
            } else {
                Ok(())
            }
        }
    }
}

fn gap(what: &str, version: u64, number: u64, before: Mark) -> String {
    let Mark { number: last, version: at, .. } = before;
    format!(
        "{what} {number} (version {version}) does not follow {what} {last} (version {at}), or that one is missing"
    )
}
