//! Reading a conversation's history, events and figures.

use std::{collections::VecDeque, sync::Arc};

use everturn_ports::{Cursor, JournalError, Room, StoredEvent, Take, Window, json};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};

use crate::{
    base::{self, Base},
    error::damaged,
    floor::Floor,
    journal::NatsJournal,
    leader::Leader,
    marks::Mark,
    payload, record,
    view::View,
    walk::Walk,
};

/// Number of chunks that are read first from the end of a window whose length is given in bytes.
const CHUNKS: u64 = 64;

/// Number of bases that are read at first: each has the chunks of many appends.
const BASES: usize = 2;

impl NatsJournal {
    /// Costs a request for the last append, one for the last base, a few to find the first of either, and one for 256
    /// bases or appends. Appends that no base covers are read whole, with their events.
    pub(crate) async fn read_chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let mut view = View::of(self, id).await?;
        while let Some(now) = view {
            match self.window(id, &now, window).await {
                Ok(chunks) => return Ok(chunks),
                Err(error) => view = now.renewed(self, id, error).await?,
            }
        }
        Ok(Vec::new())
    }

    async fn window(
        &self,
        id: &ConversationId,
        view: &View<Base>,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let since = window.since_seq.unwrap_or(0);
        let end = window.before_seq.map_or(u64::MAX, |before| before.saturating_sub(1));
        let end = end.min(view.last.label.reach.seq);
        let limit = window.limit.unwrap_or(usize::MAX);
        if limit == 0 || since >= end {
            return Ok(Vec::new());
        }
        let mut room = Room::new(window.max_bytes);
        let is_bounded = window.max_bytes.is_some();
        let mut fits = |chunk: &StoredChunk| !is_bounded || room.has(json::size(&chunk.chunk));
        match window.take {
            Take::Oldest => {
                let mut chunks = Vec::new();
                let mut history = History::between(&self.leader, id, view, since, end);
                while let Some(found) = history.next().await? {
                    for chunk in found {
                        if chunks.len() == limit || !fits(&chunk) {
                            return Ok(chunks);
                        }
                        chunks.push(chunk);
                    }
                }
                Ok(chunks)
            }
            Take::Newest => {
                let (mut chunks, mut end, mut length) = (VecDeque::new(), end, CHUNKS);
                if !is_bounded {
                    length = u64::try_from(limit).unwrap_or(u64::MAX);
                }
                // Blocks of chunks, from the newest to the oldest.
                while since < end && chunks.len() < limit {
                    let from = since.max(end.saturating_sub(length));
                    let mut block = Vec::new();
                    let mut history = History::between(&self.leader, id, view, from, end);
                    while let Some(found) = history.next().await? {
                        block.extend(found);
                    }
                    for chunk in block.into_iter().rev() {
                        if chunks.len() == limit || !fits(&chunk) {
                            return Ok(chunks.into());
                        }
                        chunks.push_front(chunk);
                    }
                    (end, length) = (from, length.saturating_mul(2));
                }
                Ok(chunks.into())
            }
        }
    }

    /// Costs as much as reading chunks without bases.
    pub(crate) async fn read_events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let mut view = View::of(self, id).await?;
        while let Some(now) = view {
            match self.events_after(id, &now, after, limit).await {
                Ok(events) => return Ok(events),
                Err(error) => view = now.renewed(self, id, error).await?,
            }
        }
        Ok(Vec::new())
    }

    async fn events_after(
        &self,
        id: &ConversationId,
        view: &View<Floor>,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let mut events = Vec::new();
        let after = view.ground.as_ref().map_or(after, |floor| after.max(Cursor::from_value(floor.end)));
        if limit == 0 || view.last.label.reach.end <= after.value() {
            return Ok(events);
        }
        let walk = view.walk(&self.leader, id).skip(|reach| reach.end <= after.value()).await?;
        // Most appends have an event.
        let mut walk = walk.few(limit.saturating_add(8));
        while events.len() < limit
            && let Some((entry, label)) = walk.next().await?
        {
            if label.reach.end <= after.value() {
                continue;
            }
            let content = payload::content(&self.leader, id, &entry, &label).await?;
            let found = record::events(&content).map_err(|error| entry.unreadable(id, &error))?;
            let wanted = found.into_iter().filter(|event| event.end > after);
            events.extend(wanted.take(limit - events.len()));
        }
        Ok(events)
    }

    /// Costs as much as reading all bases, and a request for each turn that was sealed after them.
    pub(crate) async fn read_metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        let mut view = View::of(self, id).await?;
        while let Some(now) = view {
            match self.figures(id, &now).await {
                Ok(figures) => return Ok(figures),
                Err(error) => view = now.renewed(self, id, error).await?,
            }
        }
        Ok(Vec::new())
    }

    async fn figures(
        &self,
        id: &ConversationId,
        view: &View<Base>,
    ) -> Result<Vec<TurnMetrics>, JournalError> {
        let (mut newest, mut version) = (Vec::new(), view.last.sealed_at());
        while version > view.at().version {
            let missing = || damaged(id, &format!("the append with version {version} is missing"));
            let entry = self.leader.at(version).await?.ok_or_else(missing)?;
            let label = entry.label(id)?;
            let content = payload::content(&self.leader, id, &entry, &label).await?;
            newest.push(record::sealed(&content).map_err(|error| entry.unreadable(id, &error))?);
            version = label.sealed_at;
        }
        let mut figures = Vec::new();
        if let Some(base) = &view.ground {
            let bases = self.leader.names().bases(id);
            let mut walk = Walk::from(&self.leader, id, bases, &base.last, Mark::default());
            while let Some((entry, label)) = walk.next().await? {
                let seals = base::content(&self.leader, id, &entry, &label).await?.seals;
                let known = seals.into_iter().filter(|seal| seal.version <= view.last.version);
                figures.extend(known.map(|seal| seal.figures));
            }
        }
        figures.extend(newest.into_iter().rev());
        Ok(figures)
    }
}

/// A part of a conversation's history: read from bases, then from the appends that no base covers.
struct History<'h> {
    leader: &'h Leader,
    id: &'h ConversationId,
    view: &'h View<Base>,
    /// The `seq` of the last chunk that was read or is not wanted.
    since: u64,
    end: u64,
    bases: Option<Walk<'h>>,
    appends: Option<Walk<'h>>,
}

impl<'h> History<'h> {
    /// The chunks with `since < seq <= end`.
    fn between(
        leader: &'h Leader,
        id: &'h ConversationId,
        view: &'h View<Base>,
        since: u64,
        end: u64,
    ) -> Self {
        Self { leader, id, view, since, end, bases: None, appends: None }
    }

    /// Returns the next chunks, if there are more. They may be none.
    async fn next(&mut self) -> Result<Option<Vec<Arc<StoredChunk>>>, JournalError> {
        if self.since >= self.end {
            return Ok(None);
        }
        let since = self.since;
        let base = self.view.ground.as_ref().filter(|base| base.covers.reach.seq > since);
        let (chunks, reach) = if let Some(base) = base {
            if self.bases.is_none() {
                let bases = self.leader.names().bases(self.id);
                let walk = Walk::from(self.leader, self.id, bases, &base.last, Mark::default());
                let walk = walk.skip(|reach| reach.seq <= since).await?;
                self.bases =
                    Some(if self.end == self.view.last.label.reach.seq { walk } else { walk.few(BASES) });
            }
            let Some(walk) = &mut self.bases else { return Ok(None) };
            let Some((entry, label)) = walk.next().await? else { return Ok(None) };
            (base::content(self.leader, self.id, &entry, &label).await?.chunks, label.reach)
        } else {
            if self.appends.is_none() {
                let walk = self.view.walk(self.leader, self.id);
                self.appends = Some(walk.skip(|reach| reach.seq <= since).await?);
            }
            let Some(walk) = &mut self.appends else { return Ok(None) };
            let Some((entry, label)) = walk.next().await? else { return Ok(None) };
            let content = payload::content(self.leader, self.id, &entry, &label).await?;
            let chunks = record::chunks(&content).map_err(|error| entry.unreadable(self.id, &error))?;
            (chunks, label.reach)
        };
        let wanted = |chunk: &Arc<StoredChunk>| self.since < chunk.seq && chunk.seq <= self.end;
        let chunks = chunks.into_iter().filter(wanted).collect();
        self.since = self.since.max(reach.seq);
        Ok(Some(chunks))
    }
}
