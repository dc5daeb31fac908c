//! Saving bases.

use std::sync::{Arc, atomic::AtomicU64};

use everturn_ports::JournalError;
use everturn_wire::ConversationId;
use tokio::sync::Semaphore;

use super::{AFTER, APPENDS, Base, HASH, Segment};
use crate::{
    attempt::Attempt,
    floor::{COVERS, EVENTS},
    label::{Label, Last},
    leader::Leader,
    walk::Walk,
};

/// Number of conversations whose bases are saved at the same time. For others, a later append does it.
const AT_ONCE: usize = 4;

/// How often others may save a base first before this gives up.
const TRIES: usize = 8;

/// Saves bases.
#[derive(Clone, Debug)]
pub(crate) struct Bases {
    leader: Leader,
    lost: Arc<AtomicU64>,
    busy: Arc<Semaphore>,
}

impl Bases {
    pub(crate) fn new(leader: Leader, lost: Arc<AtomicU64>) -> Self {
        Self { leader, lost, busy: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Saves bases in the background after an append with this number, now and then.
    pub(crate) fn after(&self, id: &ConversationId, number: u64) {
        if !number.is_multiple_of(APPENDS) {
            return;
        }
        let Ok(permit) = self.busy.clone().try_acquire_owned() else { return };
        let (bases, id) = (self.clone(), id.clone());
        tokio::spawn(async move {
            if let Err(error) = bases.extend(&id, None).await {
                tracing::warn!(conversation = %id, %error, "cannot save a base; a later append tries again");
            }
            drop(permit);
        });
    }

    /// Saves bases up to the append with this number, if the conversation still is the one that began with this append.
    /// `None`: bases of full length only, up to the last append. Returns the last base.
    pub(crate) async fn extend(
        &self,
        id: &ConversationId,
        until: Option<(&str, u64)>,
    ) -> Result<Option<Base>, JournalError> {
        let mut tries = 0;
        loop {
            let Some(last) = last_append(&self.leader, id).await? else { return Ok(None) };
            if until.is_some_and(|(born, _)| born != last.label.born) {
                return Ok(None);
            }
            let newest = self.leader.last(&self.leader.names().bases(id)).await?;
            let expected = newest.as_ref().map_or(0, |newest| newest.sequence);
            let base = newest.map(|newest| Base::read(id, &newest)).transpose()?;
            let base = base.filter(|base| base.last.label.born == last.label.born);
            let error =
                match self.extend_from(id, &last, base, expected, until.map(|(_, number)| number)).await {
                    Ok(base) => return Ok(base),
                    Err(error) => error,
                };
            // Another node saved a base, and may then have deleted what this one was reading.
            let now = self.leader.last(&self.leader.names().bases(id)).await?;
            if tries == TRIES || now.map_or(0, |now| now.sequence) == expected {
                return Err(error);
            }
            tries += 1;
        }
    }

    async fn extend_from(
        &self,
        id: &ConversationId,
        last: &Last,
        mut base: Option<Base>,
        mut expected: u64,
        until: Option<u64>,
    ) -> Result<Option<Base>, JournalError> {
        let (covers, events) = base.as_ref().map(|base| (base.covers, base.events)).unwrap_or_default();
        let full = last.label.number.saturating_sub(covers.number) / APPENDS * APPENDS;
        let until = until.unwrap_or(covers.number + full).min(last.label.number);
        let mut segment = Segment::after(covers, events);
        let mut walk = Walk::from(&self.leader, id, self.leader.names().appends(id), last, covers);
        while segment.covers.number < until
            && let Some((entry, label)) = walk.next().await?
        {
            segment.add(&self.leader, id, &entry, label).await?;
            if segment.is_full() || segment.covers.number == until {
                let stored = self.store(id, &last.label.born, base.as_ref(), expected, &segment).await?;
                expected = stored.last.version;
                segment = Segment::after(stored.covers, stored.events);
                base = Some(stored);
            }
        }
        Ok(base)
    }

    /// Stores a base after this one, which is the last on its subject if that has the sequence `expected`.
    async fn store(
        &self,
        id: &ConversationId,
        born: &str,
        before: Option<&Base>,
        expected: u64,
        segment: &Segment,
    ) -> Result<Base, JournalError> {
        let refused = |error| JournalError::Refused(format!("a base of {id} cannot be stored: {error}"));
        let (content, hash) = segment.write().map_err(refused)?;
        let label = Label {
            id: uuid::Uuid::new_v4().simple().to_string(),
            born: born.to_owned(),
            number: before.map_or(1, |before| before.last.label.number + 1),
            head: segment.head.clone(),
            wait: None,
            reach: segment.covers.reach,
            marks: before.map(|before| before.last.marks()).unwrap_or_default(),
            sealed_at: 0,
            seals: false,
            parts: None,
        };
        let subject = self.leader.names().bases(id);
        let mut attempt = Attempt::new(&self.leader, &self.lost, id, subject, expected, label)
            .header(COVERS, segment.covers.to_string())
            .header(EVENTS, segment.events.to_string())
            .header(HASH, hash);
        attempt.set_content(content, AFTER).await?;
        let version = attempt.settle(0).await?.0;
        let base = Base {
            last: Last { version, label: attempt.label },
            covers: segment.covers,
            events: segment.events,
        };
        self.check_not_removed(id, born, version).await?;
        Ok(base)
    }

    /// Deletes what was just stored with this sequence if the conversation was removed meanwhile: that may have been too
    /// early to delete it, too.
    pub(crate) async fn check_not_removed(
        &self,
        id: &ConversationId,
        born: &str,
        sequence: u64,
    ) -> Result<(), JournalError> {
        let last = last_append(&self.leader, id).await?;
        if last.is_some_and(|last| last.label.born == born) {
            return Ok(());
        }
        self.leader.delete(sequence).await;
        Err(JournalError::Storage(format!("conversation {id} was removed meanwhile")))
    }
}

/// Returns the last append of a conversation; `None` if it does not exist. Costs a request.
pub(crate) async fn last_append(leader: &Leader, id: &ConversationId) -> Result<Option<Last>, JournalError> {
    let entry = leader.last(&leader.names().appends(id)).await?;
    let last = entry.map(|entry| entry.last(id)).transpose()?;
    Ok(last.filter(|last| !last.label.removes()))
}
