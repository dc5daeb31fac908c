//! Writes groups of appends, until it is known what became of each.

use std::sync::atomic::Ordering;

use everturn_ports::{JournalError, Version};
use everturn_wire::ConversationId;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{Append, Writer, statement};
use crate::{error::Failure, session::Session, target::PAUSE, text::escape};

/// A change of a conversation that is not an append. It is done between the appends of its conversation, so that an
/// append whose answer was lost is never repeated after it.
pub(crate) enum Change {
    Rename { id: ConversationId, title: String, answer: oneshot::Sender<Result<bool, JournalError>> },
    Remove { id: ConversationId, answer: oneshot::Sender<Result<bool, JournalError>> },
}

impl Change {
    pub(super) fn id(&self) -> &ConversationId {
        match self {
            Self::Rename { id, .. } | Self::Remove { id, .. } => id,
        }
    }
}

impl Writer {
    /// Writes the appends and answers each. If they cannot be written together, each is tried alone, so that only those
    /// that cannot be written fail.
    pub(super) async fn settle(&mut self, mut group: Vec<Append>) {
        let until = self.deadline();
        while let Err(failure) = self.attempt(&mut group).await {
            self.forget(&failure);
            let may_pass = matches!(failure, Failure::Lost(_) | Failure::Busy(_));
            if may_pass && Instant::now() < until {
                sleep(PAUSE).await;
            } else if group.len() > 1 && !may_pass {
                for append in group {
                    Box::pin(self.settle(vec![append])).await;
                }
                return;
            } else {
                for append in group {
                    let error = failure.clone().journal("append to", &self.target.place, append.was_lost);
                    append.answer(Err(error));
                }
                return;
            }
        }
    }

    /// Writes the appends once. Those whose outcome is known are answered and removed.
    async fn attempt(&mut self, group: &mut Vec<Append>) -> Result<(), Failure> {
        let (definitions, lost) = (self.definitions.clone(), self.lost.clone());
        let (epoch, first_version) = (self.keeper.epoch, self.keeper.first_version());
        let _held = definitions.hold().await;
        let session = self.session().await?;
        let mut keys = Vec::with_capacity(group.len());
        for append in &*group {
            keys.push(match &append.turn {
                Some(turn) => Some(definitions.key_of(session, &turn.definition).await?),
                None => None,
            });
        }
        let written = match statement::write(session, (epoch, first_version), group, &keys).await {
            Err(Failure::Lost(what)) => {
                // The same appends are sent again: at most one of the attempts is written, as they expect one version.
                group.iter_mut().for_each(|append| append.was_lost = true);
                lost.fetch_add(1, Ordering::Relaxed);
                return Err(Failure::Lost(what));
            }
            other => other?,
        };
        let mut rest = Vec::new();
        for append in group.drain(..) {
            match written.get(append.id.as_str()) {
                Some(version) => append.answer(Ok(*version)),
                None => rest.push(append),
            }
        }
        *group = rest;
        if group.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = group.iter().map(|append| append.id.as_str()).collect();
        let mut found = statement::find(session, epoch, &ids).await?;
        for append in std::mem::take(group) {
            let (version, number) = match found.remove(append.id.as_str()) {
                Some(found) => (found.version, Some(found.number)),
                None => (Version(0), None),
            };
            match outcome(&append, version, number) {
                Some(answer) => append.answer(answer),
                None => group.push(append),
            }
        }
        match group.is_empty() {
            true => Ok(()),
            false => Err(Failure::Busy("another append to the conversation was rolled back".to_owned())),
        }
    }

    /// Gives a connection up that has failed.
    fn forget(&mut self, failure: &Failure) {
        if matches!(failure, Failure::Lost(_)) {
            self.session = None;
        }
    }

    /// Does a change, repeatedly while the connection is lost.
    pub(super) async fn change(&mut self, change: Change) {
        let (until, mut was_lost) = (self.deadline(), false);
        let result = loop {
            let failure = match self.attempt_change(&change).await {
                Ok(is_done) => break Ok(is_done || (was_lost && matches!(change, Change::Remove { .. }))),
                Err(failure) => failure,
            };
            self.forget(&failure);
            was_lost |= matches!(failure, Failure::Lost(_));
            if was_lost && matches!(change, Change::Remove { .. }) {
                self.keeper.removes(None);
            }
            if !matches!(failure, Failure::Lost(_) | Failure::Busy(_)) || Instant::now() >= until {
                break Err(failure.journal("write to", &self.target.place, was_lost));
            }
            sleep(PAUSE).await;
        };
        if let (Change::Remove { .. }, Ok(true)) = (&change, &result) {
            let (definitions, epoch) = (self.definitions.clone(), self.keeper.epoch);
            // Its turns may have had instructions and tools of their own. If this fails, the next removal deletes them.
            if let Ok(session) = self.session().await {
                let _ = definitions.tidy(session, epoch).await;
            }
        }
        let (Change::Rename { answer, .. } | Change::Remove { answer, .. }) = change;
        let _ = answer.send(result);
    }

    async fn attempt_change(&mut self, change: &Change) -> Result<bool, Failure> {
        let epoch = self.keeper.epoch;
        let session = self.session().await?;
        let rows = match change {
            Change::Rename { id, title, .. } => {
                let sql = "WITH done AS (UPDATE conversation SET title = $2
                        WHERE id = $1 AND EXISTS (SELECT FROM format WHERE epoch = $3) RETURNING key)
                    SELECT count(done.key), format.epoch FROM format LEFT JOIN done ON true GROUP BY format.epoch";
                session.query(sql, &[&id.as_str(), &&*escape(title), &epoch]).await?
            }
            Change::Remove { id, .. } => {
                let sql = "WITH done AS (DELETE FROM conversation
                        WHERE id = $1 AND EXISTS (SELECT FROM format WHERE epoch = $4) RETURNING key, version
                    ), entries AS (
                        DELETE FROM entry USING done WHERE entry.conversation = done.key
                    ), documents AS (
                        DELETE FROM state USING done WHERE name >= $2 AND name < $3
                    )
                    SELECT count(done.key), format.epoch, max(done.version)
                    FROM format LEFT JOIN done ON true GROUP BY format.epoch";
                // `0` is the character after `/`; ids contain neither.
                let (from, to) = (format!("conversation/{id}/"), format!("conversation/{id}0"));
                let rows = session.query(sql, &[&id.as_str(), &from, &to, &epoch]).await?;
                if let Some(version) = rows.first().and_then(|row| row.get(2)) {
                    self.keeper.removes(Some(version));
                }
                rows
            }
        };
        match rows.first() {
            Some(row) if row.get::<_, i64>(1) == epoch => Ok(row.get::<_, i64>(0) > 0),
            _ => Err(Failure::Replaced),
        }
    }

    /// Returns the connection, or a new one if it is lost.
    async fn session(&mut self) -> Result<&Session, Failure> {
        let kept = self.session.take().filter(|session| !session.is_closed());
        let session = match kept {
            Some(session) => session,
            None => self.target.connect_once().await?,
        };
        Ok(self.session.insert(session))
    }
}

/// Returns what became of an append that the last attempt did not write, given the conversation's version and last
/// append. `None`: it can be written now.
fn outcome(append: &Append, found: Version, number: Option<i64>) -> Option<Result<Version, JournalError>> {
    let (id, expected) = (append.id.clone(), append.expected);
    if found == expected {
        // What was in its way was rolled back.
        return None;
    }
    if number == Some(append.number) {
        return Some(Ok(found));
    }
    // The version of a first append may be any.
    let follows = expected.0 > 0 && found.0 == expected.0 + 1;
    if append.was_lost && found > expected && !follows {
        // It may have been written, and others after it.
        return Some(Err(JournalError::Unknown(format!(
            "conversation {id} was written to by someone else while the answer to an append was lost"
        ))));
    }
    Some(Err(JournalError::Stale { id, expected, found }))
}
