//! Queries about conversations, models and tools.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use everturn_kernel::{Target, Wait};
use everturn_wire::{
    CallerName, ConversationId, ConversationState, ConversationStatus, ConversationSummary,
    DEFAULT_WORKSPACE, FailedAttempt, HistoryWindow, TargetState, Tools, TurnId, TurnMetrics, UsageReport,
};

use super::Orchestrator;
use crate::{
    Cursor, Error, Head, ListCursor, Page, SubscribeFrom, Subscription, Take, UsageQuery, Window,
    attempt::Attempts, conversation::Conversation, session, subscription::Source,
};

impl Orchestrator {
    /// Subscribes to a conversation: from the start of its running turn, after a cursor, or from the end. An optional cursor
    /// says one of the first two.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn subscribe(
        &self,
        id: &ConversationId,
        from: impl Into<SubscribeFrom>,
        extensions: bool,
    ) -> Result<Subscription, Error> {
        let (conversation, from) = self.place(id, from.into()).await?;
        let source = Source {
            registry: self.registry.clone(),
            journal: self.ports.journal.clone(),
            clock: self.ports.clock.clone(),
            shutdown: self.ports.shutdown.clone(),
            _alive: self.ports.clone(),
        };
        Ok(Subscription::new(conversation, source, from, extensions))
    }

    /// Returns a conversation, and where a subscription to it begins.
    async fn place(
        &self,
        id: &ConversationId,
        from: SubscribeFrom,
    ) -> Result<(Arc<Conversation>, Cursor), Error> {
        let mut conversation = self.registry.get(id).await?;
        let place = conversation.place_of(from);
        let end = |conversation: &Conversation| conversation.state().live.log.end();
        let is_known = match from {
            SubscribeFrom::RunningTurn => conversation.state().live.running.is_some(),
            SubscribeFrom::After(_) => place <= end(&conversation),
            SubscribeFrom::End => false,
        };
        if is_known || self.ports.peers.is_none() {
            return Ok((conversation, place));
        }
        // Another node may have published what this one has not received.
        let is_behind = conversation.catch_up(&*self.ports.journal).await?;
        if conversation.has_moved() {
            // An outdated instance knows no end.
            conversation = self.registry.get(id).await?;
        }
        let mut place = conversation.place_of(from);
        // If no node drives a turn, there is no more.
        if !is_behind && conversation.elsewhere().is_none() && !conversation.is_lost() {
            place = place.min(end(&conversation));
        }
        Ok((conversation, place))
    }

    /// Returns a window of a conversation's history with the figures of the sealed turns in it, and, for a window of
    /// the oldest chunks, whether more follow.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn history(&self, id: &ConversationId, window: Window) -> Result<HistoryWindow, Error> {
        self.registry.check(id).await?;
        let journal = &self.ports.journal;
        let chunks = journal.chunks(id, window).await?;
        let first_seq = chunks.first().map_or(0, |chunk| chunk.seq);
        let latest_seq = chunks.last().map_or(window.since_seq.unwrap_or(0), |chunk| chunk.seq);
        let is_cut = window.take == Take::Oldest && {
            let rest = Window { since_seq: Some(latest_seq), limit: Some(1), ..window };
            window.limit != Some(0) && !journal.chunks(id, rest).await?.is_empty()
        };
        let mut turns = if chunks.is_empty() { Vec::new() } else { journal.metrics(id).await? };
        turns.retain(|turn| {
            turn.first_seq.zip(turn.last_seq).is_some_and(|(first, last)| {
                // A turn without chunks lies between two: it belongs to the windows on both sides.
                let margin = u64::from(last < first);
                first <= latest_seq + margin && last + margin >= first_seq
            })
        });
        // Available through separate queries.
        for turn in &mut turns {
            (turn.failed_attempts, turn.request) = (None, None);
            turn.final_report.iter_mut().for_each(|report| report.report = None);
        }
        Ok(HistoryWindow {
            chunks: chunks.into_iter().map(Arc::unwrap_or_clone).collect(),
            latest_seq,
            more: is_cut.then_some(true),
            turns: Some(turns).filter(|turns| !turns.is_empty()),
        })
    }

    /// Returns a conversation's title.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn title(&self, id: &ConversationId) -> Result<String, Error> {
        let stored = self.ports.journal.load(id).await?;
        stored.map(|stored| stored.head.title).ok_or_else(|| Error::UnknownConversation { id: id.clone() })
    }

    /// Returns the current state of a conversation.
    ///
    /// # Errors
    /// When the conversation does not exist.
    pub async fn status(&self, id: &ConversationId) -> Result<ConversationState, Error> {
        let conversation = self.registry.get(id).await?;
        let auto_retry = self.ports.retry.switch(None, &conversation.retry).is_on();
        let waits = conversation.state().record.head.status == ConversationStatus::Queued;
        // Only then is another node asked. What runs here may have a question that is not committed yet.
        let questions = match waits || conversation.elsewhere().is_none() {
            true => self.open_questions(&conversation).await,
            false => Vec::new(),
        };
        let state = conversation.state();
        let turn = state.live.running.clone();
        Ok(ConversationState {
            conversation_id: id.clone(),
            is_active: turn.is_some(),
            status: state.record.head.status,
            auto_retry: Some(auto_retry),
            turn_seq: turn.as_ref().map(|turn| turn.first_seq),
            approvals: turn.as_ref().map(|turn| turn.approvals.to_vec()).filter(|asked| !asked.is_empty()),
            questions: Some(questions).filter(|open| !open.is_empty()),
            queue: turn.as_ref().map(|_| state.live.queue.clone()).filter(|queue| !queue.is_empty()),
            retry: turn.and_then(|turn| turn.retry),
        })
    }

    /// Returns the figures of a conversation's sealed turns, oldest first.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, Error> {
        self.registry.check(id).await?;
        let mut turns = self.ports.journal.metrics(id).await?;
        turns.iter_mut().for_each(|turn| turn.request = None);
        Ok(turns)
    }

    /// Returns the `seq` of each user message that no later branch superseded, oldest first: what
    /// [`RetryTurn::message`](crate::RetryTurn::message) takes.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn user_messages(&self, id: &ConversationId) -> Result<Vec<u64>, Error> {
        let conversation = self.registry.get(id).await?;
        let turns = self.ports.journal.metrics(id).await?;
        let chunks = conversation.state().record.chunks.clone();
        Ok(session::user_messages(&chunks, &turns))
    }

    /// Returns one turn: its figures, and its final report if one was required. For the running turn only its id is known.
    ///
    /// # Errors
    /// When the conversation or turn does not exist, or the journal fails.
    pub async fn turn(&self, id: &ConversationId, turn_id: &TurnId) -> Result<TurnMetrics, Error> {
        self.registry.check(id).await?;
        // Read before the sealed turns: it may be sealed in between.
        let running = self.ports.journal.load(id).await?.and_then(|stored| stored.turn);
        let runs = running.is_some_and(|record| record.snapshot.id() == turn_id);
        let sealed = self.ports.journal.metrics(id).await?;
        let sealed = sealed.into_iter().find(|turn| turn.turn_id == *turn_id);
        let sealed = sealed.map(|turn| TurnMetrics { request: None, ..turn });
        let running = runs.then(|| TurnMetrics::new(turn_id.clone()));
        sealed.or(running).ok_or_else(|| Error::UnknownTurn { id: id.clone(), turn_id: turn_id.clone() })
    }

    /// Returns the newest `limit` failed attempts of a conversation, or of one of its turns, oldest first. Those of the
    /// running turn are read from its events; those of sealed turns are stored with their figures.
    ///
    /// # Errors
    /// When the conversation does not exist, or the journal fails.
    pub async fn attempts(
        &self,
        id: &ConversationId,
        turn_id: Option<&TurnId>,
        limit: usize,
    ) -> Result<everturn_wire::Attempts, Error> {
        let conversation = self.registry.get(id).await?;
        let journal = &*self.ports.journal;
        let running = conversation.state().live.running.as_ref().map(|turn| turn.from);
        // Read before the sealed turns: it may be sealed in between.
        let running = match running {
            Some(from) => Attempts::read(journal, id, from).await?.ended_by(None),
            None => Vec::new(),
        };
        let sealed = journal.metrics(id).await?;
        let is_sealed = |turn_id: &TurnId| sealed.iter().any(|turn| turn.turn_id == *turn_id);
        let running: Vec<_> = running.into_iter().filter(|attempt| !is_sealed(&attempt.turn_id)).collect();
        let kept = sealed.into_iter().flat_map(|turn| turn.failed_attempts.unwrap_or_default());
        let is_asked_for =
            |attempt: &FailedAttempt| turn_id.is_none_or(|turn_id| attempt.turn_id == *turn_id);
        let mut attempts: Vec<_> = kept.chain(running).filter(is_asked_for).collect();
        let surplus = attempts.len().saturating_sub(limit);
        attempts.drain(..surplus);
        Ok(everturn_wire::Attempts { attempts, more: (surplus > 0).then_some(true) })
    }

    /// Returns a page of conversations, most recent activity first, and the cursor of the next page if there is one.
    ///
    /// # Errors
    /// When the journal fails.
    pub async fn conversations(
        &self,
        page: Page,
    ) -> Result<(Vec<ConversationSummary>, Option<ListCursor>), Error> {
        let limit = page.limit.unwrap_or(usize::MAX);
        let one_more = Page { limit: page.limit.map(|limit| limit.saturating_add(1)), ..page };
        let mut all = self.ports.journal.conversations(one_more).await?;
        let is_cut = all.len() > limit;
        all.truncate(limit);
        let last = all.last().filter(|_| is_cut);
        let next =
            last.map(|(id, head)| ListCursor { last_activity_at: head.last_activity_at, id: id.clone() });
        Ok((self.summaries(all), next))
    }

    /// Completes entries of the list with what the journal does not have.
    pub(super) fn summaries(&self, all: Vec<(ConversationId, Head)>) -> Vec<ConversationSummary> {
        let active = all.iter().filter(|(_, head)| head.status == ConversationStatus::Active);
        let waits = self.waits(active.map(|(id, _)| id));
        let list = all.into_iter().map(|(id, head)| {
            let waits_until = waits.get(&id).copied();
            summary(id, head, waits_until)
        });
        list.collect()
    }

    /// Returns when the waits of these conversations' running turns end, in epoch milliseconds. Omits those that do not
    /// wait.
    fn waits<'i>(&self, ids: impl Iterator<Item = &'i ConversationId>) -> HashMap<ConversationId, u64> {
        let (mut waits, mut parked) = (HashMap::new(), HashSet::new());
        for id in ids {
            match self.registry.held(id) {
                Some(held) => {
                    let state = held.state();
                    let retry = state.live.running.as_ref().and_then(|turn| turn.retry.as_ref());
                    waits.extend(retry.and_then(|retry| retry.next_at).map(|at| (id.clone(), at)));
                }
                None => {
                    parked.insert(id);
                }
            }
        }
        // The others are not in memory: their turns are parked here, or another node drives them. The journal would need a
        // query for each.
        if let Some(peers) = &self.ports.peers {
            let ids: Vec<_> = parked.into_iter().collect();
            for (id, wait) in peers.cluster.list.waits(&ids) {
                if let Wait::Until(moment) = wait {
                    waits.insert(id, moment.at.0);
                }
            }
        } else {
            waits.extend(self.ports.timers.wakes_of(parked).into_iter().map(|(id, at)| (id, at.0)));
        }
        waits
    }

    /// Returns the ids of all models (`credential/model`, the default first), then of all routes (`route/name`).
    pub fn models(&self) -> Vec<String> {
        self.models_of_any(None)
    }

    /// Returns those that a caller may ask for.
    pub(crate) fn models_of_any(&self, caller: Option<&CallerName>) -> Vec<String> {
        self.ports.models.of(caller).ids()
    }

    /// Returns what was used on some days.
    ///
    /// # Errors
    /// When the question is not valid, its answer is too long, or the store fails.
    pub async fn usage(&self, query: UsageQuery) -> Result<UsageReport, Error> {
        self.usage_of(query, None).await
    }

    /// Like [`usage`](Self::usage), of one caller.
    pub(crate) async fn usage_of(
        &self,
        query: UsageQuery,
        caller: Option<&CallerName>,
    ) -> Result<UsageReport, Error> {
        let now = self.ports.clock.now();
        self.ports.usage.report(query, caller.map(CallerName::as_str), now).await
    }

    /// Returns all targets in the order in which they were added, each with its current problem, if any; of several,
    /// the one that lasts longest.
    pub fn targets(&self) -> Vec<TargetState> {
        self.targets_of_any(None)
    }

    /// Returns those that calls of a caller can go to.
    pub(crate) fn targets_of_any(&self, caller: Option<&CallerName>) -> Vec<TargetState> {
        let (now, health) = (self.ports.clock.now(), self.ports.health.copy());
        let models = self.ports.models.of(caller);
        let seen = models.allowed.is_some().then(|| models.targets_of(&models.ids()));
        let is_seen = |target: &Target| seen.as_ref().is_none_or(|seen| seen.contains(target));
        let targets = models.models.iter().map(|model| model.target.clone()).filter(is_seen);
        let state = |target: Target| {
            let mark = health.mark(now, &target);
            TargetState {
                until: mark.map(|mark| mark.until.0),
                category: mark.map(|mark| mark.category),
                target: target.name,
            }
        };
        targets.map(state).collect()
    }

    /// Returns the tools that a turn would be offered now, and their sources.
    pub fn tools(&self) -> Tools {
        self.ports.tools.told(&|name, tool| self.ports.permissions.policy(name, tool))
    }

    /// Returns the names and patterns of [`Builder::tool_policy`](crate::Builder::tool_policy) that match no tool that a
    /// turn would be offered now.
    pub fn unmatched_policies(&self) -> Vec<String> {
        let tools = self.tools();
        let of_sources = tools.sources.iter().flat_map(|source| &source.tools);
        let names: Vec<&str> = tools.tools.iter().chain(of_sources).map(|tool| &*tool.name).collect();
        self.ports.permissions.rules.unmatched(&names)
    }
}

fn summary(id: ConversationId, head: Head, waits_until: Option<u64>) -> ConversationSummary {
    ConversationSummary {
        id,
        created_at: head.created_at.0,
        last_activity_at: head.last_activity_at.0,
        title: head.title,
        status: head.status,
        workspace_id: DEFAULT_WORKSPACE.to_owned(),
        model: head.model,
        waits_until,
        end_reason: head.end_reason,
        passage: None,
    }
}
