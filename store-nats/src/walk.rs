//! Walking through a conversation's appends in order, checking that none is missing.

use everturn_orchestrator::JournalError;
use everturn_wire::ConversationId;

use crate::{
    batch::MESSAGES,
    entry::Entry,
    error::damaged,
    label::{Label, Last, expected},
    leader::Leader,
    marks::{Mark, Reach},
};

/// Number of appends that are read to avoid a request that would find a closer place to begin.
const NEAR: u64 = 32;

/// The appends of a conversation up to one that is known to be stored.
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
    /// Begins after the last append for which `is_before` holds, or a few appends earlier. Costs a few requests, at most
    /// as many as the number of appends has binary digits.
    pub(crate) async fn after(
        leader: &'w Leader,
        id: &'w ConversationId,
        last: &'w Last,
        is_before: impl Fn(&Reach) -> bool,
    ) -> Result<Self, JournalError> {
        let (mut low, mut high) = last.label.marks.around(&is_before);
        while let Some(step) = high
            && step.number - low.number > NEAR
        {
            let Some(entry) = leader.at(step.version).await? else { break };
            (low, high) = entry.label(id)?.marks.around(&is_before);
        }
        let subject = leader.names().appends(id);
        Ok(Self { leader, id, subject, last, at: low, ahead: Vec::new().into_iter(), at_once: MESSAGES })
    }

    /// Reads only so many appends with the first request.
    pub(crate) fn few(mut self, at_once: usize) -> Self {
        self.at_once = at_once.clamp(1, MESSAGES);
        self
    }

    /// Returns the next append; `None` after the last, or when the conversation was removed meanwhile.
    pub(crate) async fn next(&mut self) -> Result<Option<(Entry, Label)>, JournalError> {
        while self.at.version < self.last.version {
            let Some(entry) = self.read().await? else { return Ok(None) };
            if entry.sequence > self.last.version {
                return self.ended().await;
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
        Err(damaged(self.id, &gap(entry.sequence, label.number, self.at)))
    }

    async fn read(&mut self) -> Result<Option<Entry>, JournalError> {
        if let Some(entry) = self.ahead.next() {
            return Ok(Some(entry));
        }
        let from = self.at.version + 1;
        self.ahead = self.leader.batch(&self.subject, from, self.at_once).await.into_iter();
        self.at_once = MESSAGES;
        if let Some(entry) = self.ahead.next() {
            return Ok(Some(entry));
        }
        // The server that answered is behind, or does not answer.
        match self.leader.next(&self.subject, from).await? {
            Some(entry) => Ok(Some(entry)),
            None => Ok(self.ended().await?.map(|(entry, _)| entry)),
        }
    }

    /// Tells a conversation that was removed meanwhile from one that is damaged.
    async fn ended(&self) -> Result<Option<(Entry, Label)>, JournalError> {
        let last = self.leader.last(&self.subject).await?;
        match last.map(|last| last.last(self.id)).transpose()? {
            Some(last) if !last.label.removes() && last.label.born == self.last.label.born => {
                let missing =
                    format!("append {} (version {}) is missing", last.label.number, self.last.version);
                Err(damaged(self.id, &missing))
            }
            Some(_) | None => Ok(None),
        }
    }
}

/// Checks that the append before the last one is there. Costs a request.
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
        _ => {
            // A removal also deletes it.
            let now = leader.last(&leader.names().appends(id)).await?;
            let is_current = now.is_some_and(|now| now.sequence == entry.sequence);
            let at = Mark { number: label.number - 1, version: before, ..Mark::default() };
            if is_current { Err(damaged(id, &gap(entry.sequence, label.number, at))) } else { Ok(()) }
        }
    }
}

fn gap(version: u64, number: u64, before: Mark) -> String {
    let Mark { number: last, version: at, .. } = before;
    format!(
        "append {number} (version {version}) does not follow append {last} (version {at}), or that one is missing"
    )
}
