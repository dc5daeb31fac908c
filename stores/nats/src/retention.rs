//! Dropping the events of old turns. Why no reader notices, except that they are gone: [`crate::base`].

use std::sync::PoisonError;

use everturn_ports::{JournalError, Retention};
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;

use crate::{
    base::{self, Base, Seal, Segment},
    error::damaged,
    floor::Floor,
    journal::NatsJournal,
    label::Last,
    leader::has_passed,
    marks::Mark,
    view::View,
    walk::Walk,
};

/// Number of conversations that are looked at together.
const AT_ONCE: usize = 8;

impl NatsJournal {
    /// Costs a few requests for each conversation that has events to drop or may have, and reading those that have. One that
    /// has nothing left to drop costs none, once this process has found out. Needs memory for the ids of all.
    pub(crate) async fn drop_old_events(&self, retention: Retention) -> Result<usize, JournalError> {
        if retention.is_all() {
            return Ok(0);
        }
        // No turn was sealed before its conversation was created.
        let created_before = retention.sealed_before.filter(|_| retention.newest_turns.is_none());
        let mut all = self.index.read(|index| index.created_before(created_before)).await?;
        {
            let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
            let known = std::mem::take(&mut *dropped);
            dropped.extend(all.iter().map(|(_, version)| *version).filter(|version| known.contains(version)));
            all.retain(|(_, version)| !dropped.contains(version));
        }
        let drop = |id| async move { self.drop_events_of(&id, retention).await };
        let each = all.into_iter().map(|(id, _)| drop(id));
        let mut dropping = futures_util::stream::iter(each).buffer_unordered(AT_ONCE);
        let (mut count, mut failed) = (0, None);
        while let Some(result) = dropping.next().await {
            match result {
                Ok(events) => count += events,
                // The others are done all the same.
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(count), Err)
    }

    /// Drops events of one conversation. Returns their number.
    async fn drop_events_of(&self, id: &ConversationId, retention: Retention) -> Result<usize, JournalError> {
        let mut view = View::of(self, id).await?;
        while let Some(now) = view {
            match self.raise_floor(id, &now, retention).await {
                Ok(count) => return Ok(count),
                Err(error) => view = now.renewed(self, id, error).await?,
            }
        }
        // Removed meanwhile.
        Ok(0)
    }

    async fn raise_floor(
        &self,
        id: &ConversationId,
        view: &View<Base>,
        retention: Retention,
    ) -> Result<usize, JournalError> {
        let last = &view.last;
        let known = Floor::to_raise(&self.leader, id, &last.label.born).await?;
        if last.sealed_at() <= known.sealed_at && (known.is_purged || known.at.number == 0) {
            // Until it is appended to, if not for ever.
            self.dropped.lock().unwrap_or_else(PoisonError::into_inner).insert(last.version);
            return Ok(0);
        }
        let seals = match self.may_drop(id, last, &known, retention).await? {
            true => self.seals(id, view, &known).await?,
            false => Vec::new(),
        };
        let Some(seal) = retention.last_dropped(seals.iter().map(Seal::at)).and_then(|at| seals.get(at))
        else {
            // An earlier call may have been interrupted, or the appends were too young.
            return self.purge_below(id, &last.label.born, known, Mark::default()).await.map(|()| 0);
        };
        self.bases.extend(id, Some((&last.label.born, seal.before.number))).await?;
        let floor = Floor {
            sequence: known.sequence,
            at: seal.before,
            sealed_at: seal.version,
            end: seal.end,
            events: seal.events,
            is_purged: seal.before.number == known.at.number && known.is_purged,
        };
        // If another node has just raised it, that one deletes what is below.
        let Some(floor) = floor.store(&self.leader, id, &last.label.born).await? else { return Ok(0) };
        self.bases.check_not_removed(id, &last.label.born, floor.sequence).await?;
        let dropped = floor.events - known.events;
        let purged = if known.is_purged { known.at } else { Mark::default() };
        self.purge_below(id, &last.label.born, floor, purged).await?;
        Ok(usize::try_from(dropped).unwrap_or(usize::MAX))
    }

    /// Whether events above this floor may have to be dropped. Costs at most a request, and reads no history.
    async fn may_drop(
        &self,
        id: &ConversationId,
        last: &Last,
        floor: &Floor,
        retention: Retention,
    ) -> Result<bool, JournalError> {
        if last.sealed_at() <= floor.sealed_at {
            return Ok(false);
        }
        // Each append seals one turn at most.
        let above = last.label.number - floor.at.number;
        if retention.newest_turns.is_some_and(|turns| above > u64::from(turns)) {
            return Ok(true);
        }
        let Some(before) = retention.sealed_before else { return Ok(false) };
        // No turn above the floor was sealed before its first append.
        let appends = self.leader.names().appends(id);
        let first = self.leader.next(&appends, floor.sealed_at + 1).await?;
        let first = first.map(|first| first.label(id)).transpose()?;
        Ok(first.and_then(|first| first.head).is_some_and(|head| head.last_activity_at < before))
    }

    /// Returns the ends of the turns above this floor.
    async fn seals(
        &self,
        id: &ConversationId,
        view: &View<Base>,
        floor: &Floor,
    ) -> Result<Vec<Seal>, JournalError> {
        let mut seals = Vec::new();
        let mut events = 0;
        if let Some(base) = &view.ground {
            let bases = self.leader.names().bases(id);
            let walk = Walk::from(&self.leader, id, bases, &base.last, Mark::default());
            let mut walk = walk.skip(|reach| reach.end < floor.end).await?;
            while let Some((entry, label)) = walk.next().await? {
                seals.extend(base::content(&self.leader, id, &entry, &label).await?.seals);
            }
            events = base.events;
        }
        let mut walk = view.walk(&self.leader, id);
        while let Some((entry, label)) = walk.next().await? {
            let mut one = Segment::after(view.at(), events);
            one.add(&self.leader, id, &entry, label).await?;
            events = one.events;
            seals.extend(one.content.seals);
        }
        seals.retain(|seal| seal.version > floor.sealed_at);
        Ok(seals)
    }

    /// Reads the bases that stand for the appends after `from` up to `to`, which are about to be deleted, and returns the
    /// ids of those that are stored in parts. Fails if a base is missing or cannot be read.
    async fn read_back(
        &self,
        id: &ConversationId,
        base: Option<&Base>,
        from: Mark,
        to: Mark,
    ) -> Result<Vec<String>, JournalError> {
        let Some(base) = base.filter(|base| base.covers.number >= to.number) else {
            let what = format!("no base has append {}, so no append was deleted", to.number);
            return Err(damaged(id, &what));
        };
        let mut large = Vec::new();
        let bases = self.leader.names().bases(id);
        let walk = Walk::from(&self.leader, id, bases, &base.last, Mark::default());
        let mut walk = walk.skip(|reach| reach.end < from.reach.end).await?;
        while let Some((entry, label)) = walk.next().await? {
            let content = base::content(&self.leader, id, &entry, &label).await?;
            let found = content
                .large
                .into_iter()
                .filter(|(number, _)| (from.number + 1..=to.number).contains(number));
            large.extend(found.map(|(_, append)| append));
        }
        Ok(large)
    }

    /// Deletes the appends below this floor, those after `from`, if they are old enough.
    async fn purge_below(
        &self,
        id: &ConversationId,
        born: &str,
        floor: Floor,
        from: Mark,
    ) -> Result<(), JournalError> {
        if floor.is_purged || floor.at.number == 0 {
            return Ok(());
        }
        let names = self.leader.names();
        if let Some(stored) = self.leader.stored_at(floor.at.version).await?
            && !has_passed(self.settled_after, stored, self.leader.time().await?)
        {
            return Ok(());
        }
        // It is there, unless it was lost since the floor was raised. The appends are.
        let base = self.bases.extend(id, Some((born, floor.at.number))).await?;
        let large = self.read_back(id, base.as_ref(), from, floor.at).await?;
        self.leader.purge(&names.appends(id), Some(floor.at.version + 1)).await?;
        for append in large {
            self.leader.purge(&names.parts(id, &append), None).await?;
        }
        let done = Floor { is_purged: true, ..floor };
        // Otherwise another node continues.
        if let Some(floor) = done.store(&self.leader, id, born).await? {
            self.bases.check_not_removed(id, born, floor.sequence).await?;
            self.leader.purge(&names.floor(id), Some(floor.sequence)).await?;
        }
        Ok(())
    }
}
