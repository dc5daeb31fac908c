//! What is seen of real nodes.

use std::sync::{Arc, Mutex, MutexGuard};

use everturn_kernel::{Turn, Want};
use everturn_model::{
    turns::{Facts, Needs, View},
    world::Command,
};
use everturn_orchestrator::{Clock, Commit};
use everturn_sim::cluster::Fate;
use everturn_wire::{AgentEvent, EventBody};

/// What can be seen from outside. Numbers are nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Seen {
    /// An append was stored.
    Stored(Stored),
    /// A node was told that the outcome of its append is not known.
    GaveUp(usize),
    /// The tool was started for the turn of this number.
    Started(usize, u8),
    /// A node was cut off.
    CutOff(usize),
    /// Nothing that a node told others arrived any more, replies among it; it reached the log.
    Unheard(usize),
    /// Commands and replies arrive late or twice from now on.
    Late,
    /// A person at the first node began the next turn.
    Begun,
    /// A process was ended.
    Killed(usize),
    /// The person at the last node sent a command.
    Asked(Command),
    /// They were told that it had an effect, or none, or that this is not known.
    Told(Option<bool>),
    /// The turn's wait was over.
    Due,
    /// 1.5 s passed.
    Tick,
}

/// A stored append.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) node: usize,
    /// What it says.
    pub(crate) facts: Facts,
    /// The unsealed turn after it.
    pub(crate) turn: Option<View>,
    /// The number of the last turn.
    pub(crate) number: u8,
}

/// Notes what is seen, and when.
#[derive(Clone)]
pub(crate) struct Record {
    clock: Arc<dyn Clock>,
    pages: Arc<Mutex<Pages>>,
}

#[derive(Default)]
pub(crate) struct Pages {
    /// What was seen, and when, in milliseconds.
    pub(crate) trace: Vec<(u64, Seen)>,
    /// The unsealed turn, as last stored.
    pub(crate) turn: Option<Turn>,
    /// The ids of all turns.
    pub(crate) turns: Vec<String>,
    /// When the waits end, and after how many lines they began.
    pub(crate) waits: Vec<(u64, usize)>,
}

impl Pages {
    /// What was seen, with the ends of waits that lasted so long.
    pub(crate) fn with_waits(&self) -> Vec<(u64, Seen)> {
        let mut trace = self.trace.clone();
        for (number, &(until, line)) in self.waits.iter().enumerate().rev() {
            let next = self.waits.get(number + 1).map_or(trace.len(), |(_, line)| *line);
            let ends = |(at, seen): &(u64, Seen)| {
                let waits = |stored: &Stored| stored.turn.is_some_and(|turn| turn.needs == Needs::Time);
                *at >= until || matches!(seen, Seen::Stored(stored) if !waits(stored))
            };
            let end = (line + 1..next).find(|line| ends(&trace[*line])).unwrap_or(next);
            if trace.get(end).is_none_or(|(at, _)| *at >= until) {
                trace.insert(end, (until, Seen::Due));
            }
        }
        trace
    }
}

impl Record {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, pages: Arc::default() }
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().expect("nobody panicked")
    }

    pub(crate) fn note(&self, seen: Seen) {
        let now = self.clock.now().0;
        self.pages().trace.push((now, seen));
    }

    /// Notes a tool's start.
    pub(crate) fn started(&self, node: usize, turn: &str) {
        let at = self.pages().turns.iter().position(|id| id == turn).expect("it was stored");
        self.note(Seen::Started(node, u8::try_from(at + 1).expect("turns are few")));
    }

    /// Notes what became of an append.
    pub(crate) fn appended(&self, node: usize, commit: &Commit, fate: Fate) {
        if fate != Fate::Failed {
            let stored = self.stored(node, commit);
            self.note(Seen::Stored(stored));
        }
        if matches!(fate, Fate::Failed | Fate::Lost) {
            self.note(Seen::GaveUp(node));
        }
    }

    fn stored(&self, node: usize, commit: &Commit) -> Stored {
        let mut pages = self.pages();
        let before = pages.turn.as_ref().map_or(0, |turn| turn.queue().len());
        let mut facts = Facts::default();
        let body = |json: &[u8]| serde_json::from_slice::<AgentEvent>(json).expect("events are valid").body;
        for event in &commit.events {
            facts.note(&body(&event.json), before);
        }
        for event in commit.events.iter().chain(&commit.next_events) {
            facts.says |= matches!(body(&event.json), EventBody::UserMessage { text } if text == "m");
        }
        let turn = commit.turn.as_ref().map(|record| Turn::restore(record.snapshot.clone()).expect("valid"));
        if let Some(turn) = &turn {
            let id = turn.id().as_str().to_owned();
            if !pages.turns.contains(&id) {
                facts.begins = true;
                // The message that begins a turn was in no queue.
                facts.queues |= facts.says && !facts.seals;
                pages.turns.push(id);
            }
            if let Want::Wake(_, at) = turn.want()
                && pages.turn.as_ref().is_none_or(|before| before.want() != turn.want())
            {
                let line = pages.trace.len();
                pages.waits.push((at.0, line));
            }
        }
        let number = u8::try_from(pages.turns.len()).expect("turns are few");
        let view = turn.as_ref().map(View::of);
        pages.turn = turn;
        Stored { node, facts, turn: view, number }
    }
}
