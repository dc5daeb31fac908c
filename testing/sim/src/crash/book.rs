//! The record of a world: its true time, what was observed, what was wrong.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_orchestrator::{Commit, Error, Moment};
use everturn_wire::{AgentEvent, ConversationId, EventBody};
use tokio::time::Instant;

use super::{tally::Tally, time::Time, wait::Waits};

/// The record of a world. It outlives every process. Clones share it.
#[derive(Clone)]
pub(super) struct Book {
    pages: Arc<Mutex<Pages>>,
}

/// The contents.
pub(super) struct Pages {
    /// The random choices made while the world runs. They are requested in a deterministic order.
    pub(super) rng: fastrand::Rng,
    pub(super) time: Time,
    pub(super) waits: Waits,
    pub(super) tally: Tally,
    /// The end of each conversation's durable events.
    pub(super) durable: HashMap<ConversationId, u64>,
    /// Messages that the orchestrator acknowledged.
    pub(super) accepted: Vec<String>,
    /// Messages that it returned.
    pub(super) taken_back: Vec<String>,
    /// Calls that a person allowed, or was about to allow, by turn, step and id.
    pub(super) allowed: HashSet<(String, u32, String)>,
    pub(super) wrong: Vec<String>,
    trace: Option<Vec<String>>,
    /// Turn ids are random, so a trace numbers turns in the order they appear.
    names: HashMap<String, usize>,
}

impl Book {
    pub(super) fn new(seed: u64, traced: bool) -> Self {
        let pages = Pages {
            rng: fastrand::Rng::with_seed(seed ^ 0x5EED),
            time: Time::default(),
            waits: Waits::default(),
            tally: Tally::default(),
            durable: HashMap::new(),
            accepted: Vec::new(),
            taken_back: Vec::new(),
            allowed: HashSet::new(),
            wrong: Vec::new(),
            trace: traced.then(Vec::new),
            names: HashMap::new(),
        };
        Self { pages: Arc::new(Mutex::new(pages)) }
    }

    pub(super) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a process. Call it in its runtime.
    pub(super) fn begin_life(&self) {
        let mut pages = self.pages();
        pages.time.life += 1;
        pages.time.began = Some(Instant::now());
        pages.note(|| "a process begins".to_owned());
    }

    /// Records the end of a process, after which `down` milliseconds pass and the wall clock is set back. Call it in
    /// its runtime.
    pub(super) fn end_life(&self, how: &str, down: u64, set_back: u64) {
        let mut pages = self.pages();
        pages.note(|| {
            format!("the process ends: {how}; {down} ms pass, the clock is set back by {set_back} ms")
        });
        pages.time.life_began = pages.time.now() + down;
        (pages.time.began, pages.time.suspended) = (None, 0);
        (pages.time.woke_up, pages.time.unsaved) = (None, None);
        pages.time.set_back += set_back;
    }

    /// Returns a random number below `limit`.
    pub(super) fn below(&self, limit: u64) -> u64 {
        self.pages().rng.u64(0..limit.max(1))
    }

    pub(super) fn note(&self, line: impl FnOnce() -> String) {
        self.pages().note(line);
    }

    pub(super) fn wrong(&self, what: String) {
        self.pages().wrong(what);
    }

    /// Records an append that took effect.
    pub(super) fn saved(&self, id: &ConversationId, commit: &Commit) {
        let mut pages = self.pages();
        let now = pages.time.now();
        if let Some(last) = commit.all_events().last() {
            pages.durable.insert(id.clone(), last.end.value());
        }
        if commit.sealed.is_some() {
            pages.waits.sealed(id);
        }
        let is_shared = commit.all_events().any(|event| is_shared(&event.json));
        if let Some(record) = &commit.turn {
            let Pages { waits, time, .. } = &mut *pages;
            let found = match record.wait.until() {
                Some(Moment { decided_ms, .. }) if is_shared => {
                    waits.shared(id, time, decided_ms);
                    Ok(())
                }
                Some(Moment { decided_ms, .. }) => waits.decided(id, now, decided_ms),
                None => Ok(()),
            };
            found.unwrap_or_else(|what| pages.wrong(what));
        }
        let (chunks, events) = (commit.chunks.len(), commit.all_events().count());
        pages.note(|| format!("{id}: {chunks} chunks and {events} events are saved"));
    }

    /// Whether this error is legitimate for a request: the process is shutting down, or the journal failed.
    pub(super) fn excuses(&self, error: &Error) -> bool {
        match error {
            Error::ShuttingDown => true,
            Error::Journal(_) | Error::NotSaved { .. } => self.pages().time.unsaved.is_some(),
            _ => false,
        }
    }

    /// Records a failure of the journal.
    pub(super) fn failed(&self, id: &ConversationId) {
        let mut pages = self.pages();
        pages.time.unsaved = Some(pages.time.now());
        pages.tally.count("the journal fails");
        pages.note(|| format!("{id}: the journal fails"));
    }

    /// Records an event received by a watcher, with its end. Only streamed text may not be durable yet.
    pub(super) fn told(&self, watcher: &str, event: &AgentEvent, end: u64) {
        let mut pages = self.pages();
        let durable = pages.durable.get(&event.conversation_id).copied().unwrap_or(0);
        if end > durable && !event.body.is_delta() {
            pages.wrong(format!("{watcher}: told what is not durable: {:?}", event.body));
        }
        if pages.trace.is_some() {
            let mut line = serde_json::to_string(&event.body).unwrap_or_default();
            if let Some(turn) = &event.turn_id {
                line = line.replace(turn.as_str(), &pages.name(turn.as_str()));
            }
            pages.note(|| format!("{watcher}: {end} {line}"));
        }
    }

    /// Returns the trace, and everything that was wrong.
    pub(super) fn close(&self) -> (Vec<String>, Vec<String>, Tally) {
        let mut pages = self.pages();
        let trace = pages.trace.take().unwrap_or_default();
        (trace, std::mem::take(&mut pages.wrong), std::mem::take(&mut pages.tally))
    }
}

impl Pages {
    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        let at = self.time.now();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{at:>10} {}", line()));
        }
    }

    pub(super) fn wrong(&mut self, what: String) {
        self.note(|| format!("WRONG: {what}"));
        self.wrong.push(what);
    }

    /// Returns a turn's name in the trace.
    pub(super) fn name(&mut self, turn: &str) -> String {
        let next = self.names.len();
        format!("turn{}", self.names.entry(turn.to_owned()).or_insert(next))
    }
}

/// Whether an event announces a wait caused by another conversation.
pub(super) fn is_shared(event: &[u8]) -> bool {
    let event: Option<AgentEvent> = serde_json::from_slice(event).ok();
    matches!(event, Some(AgentEvent { body: EventBody::ProviderRetry { shared: Some(true), .. }, .. }))
}
