//! The invariants, checked on the final state of a world.

use std::collections::{HashMap, HashSet};

use everturn_orchestrator::{Cursor, Journal as _, MemoryJournal, Window, kernel::Millis};
use everturn_wire::{
    AgentEvent, Category, CompactionOutcome, ConversationId, ConversationStatus, EventBody, StoredChunk,
    TurnId,
};
use futures_util::FutureExt as _;

use super::{
    book::Book,
    script::BUDGET_MS,
    view::{Item, View, history as kept_items, interrupted},
    watch::Watcher,
    world::{MAX_RETRIES, World},
};
use crate::history::{self, Client, Command, Log, Logged};

/// The final state of a conversation.
pub(super) struct Came {
    pub(super) items: Vec<Item>,
    pub(super) turns: usize,
}

impl World {
    /// Checks the final state, and returns that of each conversation.
    pub(super) fn check(&self) -> Vec<Came> {
        nothing_is_left(&self.kept, &self.book);
        let came: Vec<_> = self.conversations().filter_map(|(id, _)| self.check_one(&id)).collect();
        check_messages(&self.book, self.conversations().flat_map(|(_, prompts)| prompts), &came);
        came
    }

    fn check_one(&self, id: &ConversationId) -> Option<Came> {
        let (came, events) = check_conversation(&self.kept, &self.book, &self.watchers, id)?;
        self.requests_are_reported(id, &events)
            .unwrap_or_else(|what| self.book.wrong(format!("{id}: {what}")));
        Some(came)
    }

    /// Model calls must equal published ones, except for calls of processes that ended before they could publish.
    fn requests_are_reported(&self, id: &ConversationId, events: &[AgentEvent]) -> Result<(), String> {
        if !self.plan.is_comparable() {
            return Ok(());
        }
        let count = |is: fn(&EventBody) -> bool| events.iter().filter(|event| is(&event.body)).count();
        let steps = count(|body| matches!(body, EventBody::StepComplete { .. }));
        // A wait caused by another conversation follows no call.
        let told = steps + count(|body| matches!(body, EventBody::ProviderRetry { shared: None, .. }));
        let told = told + count(|body| matches!(body, EventBody::CompactionStarted { .. }));
        let told = told + count(|body| matches!(body, EventBody::CompactionCompleted { .. }));
        let again = count(|body| matches!(body, EventBody::StepRewound { .. }));
        // Nothing of a summary is shown, so repeating its call causes no rewind.
        let again = again + if self.plan.context.is_some() { self.plan.lives.len() } else { 0 };
        let calls = self.model.calls_of(id);
        if (told..=told + again).contains(&calls) {
            return Ok(());
        }
        Err(format!("{calls} calls were made, {told} were told, {again} were made again"))
    }
}

/// No turn is unsealed.
pub(super) fn nothing_is_left(kept: &MemoryJournal, book: &Book) {
    match kept.unsealed(Millis(u64::MAX)).now_or_never() {
        Some(Ok(unsealed)) if unsealed.is_empty() => {}
        other => book.wrong(format!("turns are left: {other:?}")),
    }
}

/// Checks the final state of a conversation, and that its watchers saw it. Returns it with its events.
pub(super) fn check_conversation(
    kept: &MemoryJournal,
    book: &Book,
    watchers: &[Watcher],
    id: &ConversationId,
) -> Option<(Came, Vec<AgentEvent>)> {
    let stored = kept.load(id).now_or_never()?.ok()??;
    let chunks = kept.chunks(id, Window::default()).now_or_never()?.ok()?;
    let events = kept.events(id, Cursor::default(), usize::MAX).now_or_never()?.ok()?;
    let chunks: Vec<StoredChunk> = chunks.iter().map(|chunk| (**chunk).clone()).collect();
    let logged: Vec<_> = events
        .iter()
        .filter_map(|stored| {
            let event = serde_json::from_slice(&stored.json).ok()?;
            Some(Logged { start: stored.start.value(), end: stored.end.value(), event })
        })
        .collect();
    let events: Vec<AgentEvent> = logged.iter().map(|logged| logged.event.clone()).collect();
    let wrong = |what: String| book.wrong(format!("{id}: {what}"));
    if !matches!(stored.head.status, ConversationStatus::Idle | ConversationStatus::Closed) {
        wrong(format!("it is {:?} in the end", stored.head.status));
    }
    if !chunks.iter().map(|chunk| chunk.seq).eq(1..=chunks.len() as u64) {
        wrong("a seq is missing or there twice".to_owned());
    }
    turns_are_whole(&events).unwrap_or_else(wrong);
    retries_are_bounded(&events).unwrap_or_else(wrong);
    compactions_are_whole(&events).unwrap_or_else(wrong);
    let mut view = View::default();
    events.iter().for_each(|event| view.apply(event.clone()));
    let items = kept_items(&chunks);
    if view.items(&items) != items {
        wrong(format!("events and history differ:\n  {:?}\n  {items:?}", view.items(&items)));
    }
    for watcher in watchers.iter().filter(|watcher| watcher.id == *id) {
        let seen = &watcher.seen().view;
        if *seen != view {
            wrong(format!("a watcher saw:\n  {seen:?}\n  {view:?}"));
        }
    }
    let log = Log { events: logged, chunks };
    history_is_read(book, watchers, id, &log);
    let mut pages = book.pages();
    (0..interrupted(&items)).for_each(|_| pages.tally.count("a call is interrupted"));
    for event in &events {
        if matches!(event.body, EventBody::StepRewound { .. }) {
            pages.tally.count("a step is rewound");
        }
    }
    Some((Came { items, turns: view.sealed }, events))
}

/// What each watcher saw is a reading of the log, and what was acknowledged is in it.
fn history_is_read(book: &Book, watchers: &[Watcher], id: &ConversationId, log: &Log) {
    let of_it = watchers.iter().filter(|watcher| watcher.id == *id);
    let clients: Vec<_> = of_it
        .map(|watcher| Client {
            name: watcher.name.clone(),
            seen: std::mem::take(&mut watcher.seen().all),
            is_at_end: true,
        })
        .collect();
    // Messages are unique, and begin with the conversation's name.
    let mine = |text: &&String| text.starts_with(&format!("{id}."));
    let commands: Vec<_> = {
        let pages = book.pages();
        let (said, back) = (pages.accepted.iter().filter(mine), pages.taken_back.iter().filter(mine));
        let said: HashSet<_> = said.cloned().collect();
        said.into_iter().map(Command::Said).chain(back.cloned().map(Command::TakenBack)).collect()
    };
    for what in history::check(log, &clients, &commands) {
        book.wrong(format!("{id}: {what}"));
    }
}

/// Accepted messages are there exactly once, and no others twice.
pub(super) fn check_messages<'p>(book: &Book, prompts: impl Iterator<Item = &'p String>, came: &[Came]) {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for item in came.iter().flat_map(|came| &came.items) {
        if let Item::User(text) = item {
            *times.entry(text).or_default() += 1;
        }
    }
    let mut pages = book.pages();
    let missing: Vec<_> =
        pages.accepted.iter().filter(|text| !times.contains_key(text.as_str())).cloned().collect();
    let unsaid: Vec<_> = prompts.filter(|text| !times.contains_key(text.as_str())).cloned().collect();
    let back: Vec<_> =
        pages.taken_back.iter().filter(|text| times.contains_key(text.as_str())).cloned().collect();
    let twice: Vec<_> =
        times.iter().filter(|(_, times)| **times > 1).map(|(text, _)| (*text).to_owned()).collect();
    for (what, which) in [
        ("accepted, and lost", missing),
        ("never said", unsaid),
        ("taken back, and said", back),
        ("said twice", twice),
    ] {
        if !which.is_empty() {
            pages.wrong(format!("{what}: {which:?}"));
        }
    }
}

/// Each turn is contiguous and ends once, with nothing after it.
fn turns_are_whole(events: &[AgentEvent]) -> Result<(), String> {
    let mut ends: HashMap<&TurnId, (usize, usize)> = HashMap::new();
    let mut running: Option<&TurnId> = None;
    for event in events {
        let Some(turn) = &event.turn_id else { continue };
        let (done, sealed) = ends.entry(turn).or_default();
        if *sealed > 0 {
            return Err(format!("{:?} comes after the seal", event.body));
        }
        if running.is_some_and(|running| running != turn) {
            return Err(format!("{:?} comes in the middle of another turn", event.body));
        }
        if running.is_none() != matches!(event.body, EventBody::UserMessage { .. }) {
            return Err(format!("{:?} is not where a turn begins", event.body));
        }
        running = Some(turn);
        match event.body {
            EventBody::Done { .. } => *done += 1,
            EventBody::TurnSealed => {
                *sealed += 1;
                running = None;
            }
            _ => {}
        }
    }
    match ends.iter().find(|(_, ends)| **ends != (1, 1)) {
        Some((turn, ends)) => Err(format!("turn {turn} was done and sealed {ends:?} times")),
        None => Ok(()),
    }
}

/// The retries of each step are numbered from 0, and within their limits.
fn retries_are_bounded(events: &[AgentEvent]) -> Result<(), String> {
    // Waits caused by another conversation use up no retry.
    let (mut next, mut shared_ones, mut waited) = (0, 0, 0);
    for event in events {
        match &event.body {
            EventBody::ProviderRetry { attempt, delay_ms, shared, .. } => {
                waited += delay_ms;
                shared_ones += u32::from(*shared == Some(true));
                if *attempt != next || *attempt >= MAX_RETRIES + shared_ones || waited > BUDGET_MS {
                    return Err(format!("retry {attempt} after {next} others, waits of {waited} ms"));
                }
                next += 1;
            }
            EventBody::CompactionStarted { .. } | EventBody::CompactionCompleted { .. } => {
                (next, shared_ones) = (0, 0);
            }
            EventBody::StepComplete { .. } | EventBody::UserMessage { .. } => {
                (next, shared_ones, waited) = (0, 0, 0);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Each compaction ends once, each step has at most one, and a summarized history fits.
fn compactions_are_whole(events: &[AgentEvent]) -> Result<(), String> {
    let (mut started, mut open) = (Vec::new(), None);
    for event in events {
        match &event.body {
            EventBody::CompactionStarted { step_id, .. } => {
                if open.replace(step_id).is_some() || started.contains(&step_id) {
                    return Err(format!("{step_id} is summarized twice"));
                }
                started.push(step_id);
            }
            EventBody::CompactionCompleted { step_id, outcome, message, .. } => {
                if open.take() != Some(step_id) {
                    return Err(format!("the compaction of {step_id} ends, but none began"));
                }
                if *outcome == CompactionOutcome::Failed {
                    return Err(format!("no summary of {step_id}: {message:?}"));
                }
            }
            EventBody::TurnSealed if open.is_some() => {
                return Err(format!("the compaction of {open:?} has no end"));
            }
            EventBody::Error(report) if report.category == Some(Category::ContextOverflow) => {
                return Err(format!("it does not fit: {}", report.message));
            }
            _ => {}
        }
    }
    Ok(())
}
