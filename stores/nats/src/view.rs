//! What a reading begins with. If it turns out to be outdated, the reading begins again.

use everturn_ports::JournalError;
use everturn_wire::ConversationId;

use crate::{
    base::Base,
    floor::Floor,
    journal::NatsJournal,
    label::Last,
    leader::{Leader, Patience},
    marks::Mark,
    walk::Walk,
};

/// How often a reading begins again.
const TRIES: u32 = 8;

/// What the reading of a conversation begins with.
#[derive(Debug)]
pub(crate) struct View<G> {
    /// The last append.
    pub(crate) last: Last,
    /// What stands for earlier appends.
    pub(crate) ground: Option<G>,
    tries: u32,
    /// How long to wait for something else than what a replaced leader knows.
    patience: Option<Patience>,
}

/// What stands for the first appends of a conversation, which may be deleted.
pub(crate) trait Ground: Send + Sized {
    /// Finds the current one of the conversation that began with the append `born`.
    async fn find(leader: &Leader, id: &ConversationId, born: &str) -> Result<Option<Self>, JournalError>;

    /// Returns where it is stored.
    fn sequence(&self) -> u64;

    /// Returns the last append that may be deleted.
    fn at(&self) -> Mark;
}

impl Ground for Base {
    async fn find(leader: &Leader, id: &ConversationId, born: &str) -> Result<Option<Self>, JournalError> {
        Self::of(leader, id, born).await
    }

    fn sequence(&self) -> u64 {
        self.last.version
    }

    fn at(&self) -> Mark {
        self.covers
    }
}

impl Ground for Floor {
    async fn find(leader: &Leader, id: &ConversationId, born: &str) -> Result<Option<Self>, JournalError> {
        Self::of(leader, id, born).await
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn at(&self) -> Mark {
        self.at
    }
}

impl<G: Ground> View<G> {
    /// Returns the current one; `None` if there is no such conversation. It has at least what this process knows to be
    /// stored. Costs two requests.
    pub(crate) async fn of(journal: &NatsJournal, id: &ConversationId) -> Result<Option<Self>, JournalError> {
        let Some(last) = journal.last(id).await? else { return Ok(None) };
        let ground = G::find(&journal.leader, id, &last.label.born).await?;
        Ok(Some(Self { last, ground, tries: 0, patience: None }))
    }

    /// Returns the view to begin again with after this error, `None` if the conversation was removed, or the error if
    /// nothing was deleted meanwhile. A leader that was replaced and has not noticed may not know of it, so it is asked
    /// again for a while.
    pub(crate) async fn renewed(
        mut self,
        journal: &NatsJournal,
        id: &ConversationId,
        error: JournalError,
    ) -> Result<Option<Self>, JournalError> {
        let mut patience = self.patience.take().unwrap_or_else(|| journal.leader.short_patience());
        let Some(mut now) = Self::of(journal, id).await? else { return Ok(None) };
        let sequence = |view: &Self| view.ground.as_ref().map_or(0, Ground::sequence);
        let is_same = now.last.label.born == self.last.label.born && sequence(&now) == sequence(&self);
        if now.last.label.born == self.last.label.born && now.last.version < self.last.version {
            // This answer is older than the first one.
            now.last = self.last;
        }
        let tries = self.tries + u32::from(!is_same);
        if tries > TRIES || (is_same && !patience.pause().await) {
            return Err(error);
        }
        Ok(Some(Self { tries, patience: Some(patience), ..now }))
    }

    /// Returns the last append that the ground stands for.
    pub(crate) fn at(&self) -> Mark {
        self.ground.as_ref().map_or_else(Mark::default, Ground::at)
    }

    /// Walks through the appends that the ground does not stand for.
    pub(crate) fn walk<'w>(&'w self, leader: &'w Leader, id: &'w ConversationId) -> Walk<'w> {
        Walk::from(leader, id, leader.names().appends(id), &self.last, self.at())
    }
}
