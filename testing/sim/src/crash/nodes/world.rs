//! A world of several nodes over one log.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_orchestrator::{Commit, Error, Journal as _, JournalError, NodeId, kernel::Turn};
use everturn_wire::{ConversationId, ConversationStatus};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    ledger::Ledger,
    node::Node,
    panics,
    plan::{Fault, Plan},
};
use crate::{
    WallClock,
    cluster::SharedLog,
    crash::{book::Book, phase, watch::Watcher},
};

/// How long everything may take to settle: longer than all waits of a world.
const SETTLES_WITHIN: Duration = Duration::from_secs(24 * 3600);

/// How long after a node is connected again others may still take its turns over, as they have not seen its lease yet.
const NOTICED_WITHIN: Duration = Duration::from_secs(7);

/// Pause before a process that could not begin is followed by another.
const BEGINS_AGAIN: Duration = Duration::from_secs(1);

/// How long a node may take to save a call after which it is to freeze.
const CALLS_WITHIN: Duration = Duration::from_secs(60);

/// Number of watchers of a conversation that go from node to node. At each place, another one stays.
const WANDERERS: usize = 2;

/// A world.
pub(super) struct World {
    seed: u64,
    pub(super) plan: Plan,
    pub(super) ledger: Ledger,
    pub(super) log: SharedLog,
    pub(super) watchers: Vec<Watcher>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The node that is up at each place.
    places: Vec<Option<Node>>,
    /// Number of nodes begun.
    begun: usize,
    /// Messages that someone tried to take back.
    doubtful: BTreeSet<String>,
}

impl World {
    /// Creates a world. Call it in its runtime.
    pub(super) fn new(seed: u64, plan: Plan, traced: bool) -> Arc<Self> {
        let book = Book::new(seed, traced);
        book.begin_life();
        let clock = WallClock::new(book.pages().time.wall());
        let log = SharedLog::noisy(Arc::new(clock.clone()), plan.noise, seed);
        let ledger =
            Ledger::new(book.clone(), clock, plan.noise.commands.lost + plan.noise.commands.late > 0.0);
        let witness = ledger.clone();
        log.witness(move |node, id, commit, fate| witness.appended(node, id, commit, fate));
        let watchers = |c: usize| {
            let (id, book) = (ConversationId::from(format!("c{c}")), book.clone());
            (0..WANDERERS + plan.nodes).map(move |number| Watcher::new(id.clone(), number, book.clone()))
        };
        let watchers = (0..plan.prompts.len()).flat_map(watchers).collect();
        let state = State { places: vec![None; plan.nodes], ..State::default() };
        Arc::new(Self { seed, plan, ledger, log, watchers, state: Mutex::new(state) })
    }

    pub(super) fn conversations(&self) -> impl Iterator<Item = (ConversationId, &[String])> {
        let prompts = self.plan.prompts.iter().enumerate();
        prompts.map(|(c, prompts)| (ConversationId::from(format!("c{c}")), prompts.as_slice()))
    }

    /// Runs it until everything has settled. Returns the number of processes.
    pub(super) async fn run(self: &Arc<Self>) -> usize {
        let panics = panics::count();
        for place in 0..self.plan.nodes {
            self.begin(place).await;
        }
        for (number, watcher) in self.watchers.iter().enumerate() {
            let place = (number % (WANDERERS + self.plan.nodes)).checked_sub(WANDERERS);
            tokio::spawn(self.clone().watch(watcher.clone(), place));
        }
        if self.plan.asks {
            for (id, _) in self.conversations() {
                tokio::spawn(self.clone().answer(id));
            }
        }
        if timeout(SETTLES_WITHIN, self.work()).await.is_err() {
            self.ledger.book.wrong("not all comes to its end".to_owned());
        }
        if panics::count() > panics {
            self.ledger.book.wrong("a task panicked".to_owned());
        }
        self.state().begun
    }

    async fn work(self: &Arc<Self>) {
        let talks = join_all(self.conversations().map(|(id, prompts)| {
            let this = self.clone();
            async move { this.say(&id, prompts).await }
        }));
        futures_util::future::join3(talks, self.act(), self.trouble()).await;
        while !self.has_settled().await {
            sleep(Duration::from_secs(5)).await;
        }
    }

    /// Causes all faults at their times, then ends the noise.
    async fn trouble(self: &Arc<Self>) {
        let began = Instant::now();
        let mut faults = Vec::new();
        for trouble in &self.plan.troubles {
            sleep_until(began + Duration::from_millis(trouble.at_ms)).await;
            faults.push(tokio::spawn(self.clone().strike(trouble.place, trouble.what)));
        }
        sleep_until(began + Duration::from_millis(self.plan.calm_ms)).await;
        for fault in faults {
            let _ = fault.await;
        }
        self.log.calm();
        self.ledger.calm();
        self.ledger.book.note(|| "the noise has ended".to_owned());
    }

    async fn strike(self: Arc<Self>, place: usize, what: Fault) {
        let Some(node) = self.at(place) else { return };
        let (name, id, book) = (&node.name, node.id(), &self.ledger.book);
        book.note(|| format!("{name}: {what:?}"));
        let is_for_all = matches!(what, Fault::Election { .. });
        let struck = self.conversations().filter(|(of, _)| is_for_all || self.ledger.drives(&id, of));
        let phases: Vec<_> = struck.filter_map(|(of, _)| phase::of(self.log.journal(), &of)).collect();
        let what_happens = match what {
            Fault::Kill { .. } => "a node is killed",
            Fault::CutOff { .. } => "a node is cut off",
            Fault::Freeze { .. } => "a node is to freeze",
            Fault::Shutdown { .. } => "a node shuts down",
            Fault::Part { .. } => "a node is cut off in part",
            Fault::Election { .. } => "the log has no leader",
        };
        book.pages().tally.count(what_happens);
        book.pages().tally.meets(what_happens, phases);
        match what {
            Fault::Kill { down_ms } => {
                self.end(&node, place);
                sleep(Duration::from_millis(down_ms)).await;
                self.begin(place).await;
            }
            Fault::CutOff { ms } => {
                self.log.cut_off(name);
                self.stay_away(&node, ms).await;
            }
            Fault::Freeze { ms } => {
                let frozen = self.log.freeze_after(name, starts_calls);
                if timeout(CALLS_WITHIN, frozen).await.is_ok_and(|frozen| frozen.is_ok()) {
                    book.note(|| format!("{name} is frozen"));
                    book.pages().tally.count("a node freezes before a call");
                    self.stay_away(&node, ms).await;
                }
            }
            Fault::Part { cut, ms } => {
                self.ledger.cut_off(&id);
                self.log.part(name, cut);
                sleep(Duration::from_millis(ms)).await;
                if !node.life.is_over() {
                    book.note(|| format!("{name} is healed"));
                    self.log.heal(name);
                    self.returns(&id).await;
                }
            }
            Fault::Election { election, ms } => {
                self.ledger.outage();
                self.log.elect(election);
                sleep(Duration::from_millis(ms)).await;
                book.note(|| "there is a leader".to_owned());
                self.log.elected();
                sleep(NOTICED_WITHIN).await;
                self.ledger.outage_is_over();
            }
            Fault::Shutdown { grace_ms, down_ms } => {
                self.ledger.shuts_down(&id);
                let ended = node.orchestrator.shutdown(Duration::from_millis(grace_ms));
                // It may be killed meanwhile.
                if node.life.while_it_lasts(ended).await.is_some() {
                    book.note(|| format!("{name} has shut down"));
                    self.end(&node, place);
                    sleep(Duration::from_millis(down_ms)).await;
                    self.begin(place).await;
                }
            }
        }
    }

    /// Records that a node is connected again, and waits until the others have noticed.
    async fn returns(&self, node: &NodeId) {
        self.ledger.connected(node);
        sleep(NOTICED_WITHIN).await;
        self.ledger.noticed(node);
    }

    /// Connects a node again that was cut off, after this many milliseconds.
    async fn stay_away(&self, node: &Node, ms: u64) {
        let id = node.id();
        self.ledger.cut_off(&id);
        sleep(Duration::from_millis(ms)).await;
        if !node.life.is_over() {
            self.ledger.book.note(|| format!("{} is connected", node.name));
            self.log.connect(&node.name);
            self.returns(&id).await;
        }
    }

    /// Begins a process at this place. As long as it cannot, another one tries.
    async fn begin(&self, place: usize) {
        loop {
            let number = {
                let mut state = self.state();
                state.begun += 1;
                state.begun
            };
            let name = format!("n{number}");
            self.ledger.book.note(|| format!("{name} begins at {place}"));
            let node = Node::new(&name, self.seed, &self.plan, &self.log, &self.ledger);
            match node.orchestrator.resume().await {
                Ok(_) => {
                    self.state().places[place] = Some(node);
                    return;
                }
                Err(error) if is_excused(&error) => self.end(&node, place),
                Err(error) => return self.ledger.book.wrong(format!("{name} cannot resume: {error}")),
            }
            self.ledger.book.note(|| format!("{name} cannot begin"));
            sleep(BEGINS_AGAIN).await;
        }
    }

    /// Ends a process.
    fn end(&self, node: &Node, place: usize) {
        node.life.end();
        node.orchestrator.abandon();
        self.log.kill(&node.name);
        self.ledger.cut_off(&node.id());
        self.state().places[place] = None;
    }

    /// Whether every turn is over and every watcher is at the end.
    async fn has_settled(&self) -> bool {
        for watcher in &self.watchers {
            let Some(stored) = self.log.journal().load(&watcher.id).await.ok().flatten() else {
                return false;
            };
            let rests = matches!(stored.head.status, ConversationStatus::Idle | ConversationStatus::Closed);
            if !rests || watcher.seen().cursor < stored.head.end {
                return false;
            }
        }
        true
    }

    /// Returns the node that is up at this place.
    pub(super) fn at(&self, place: usize) -> Option<Node> {
        self.state().places.get(place).cloned().flatten()
    }

    /// Returns any node that is up.
    pub(super) fn any(&self) -> Option<Node> {
        self.at(self.ledger.book.below(self.plan.nodes as u64) as usize)
    }

    /// Records that someone tries to take a message back.
    pub(super) fn doubt(&self, text: &str) {
        self.state().doubtful.insert(text.to_owned());
    }

    /// Whether someone tried to take a message back.
    pub(super) fn is_doubtful(&self, text: &str) -> bool {
        self.state().doubtful.contains(text)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether calls of tools start after this append.
fn starts_calls(commit: &Commit) -> bool {
    let turn = commit.turn.as_ref().and_then(|record| Turn::restore(record.snapshot.clone()).ok());
    turn.is_some_and(|turn| turn.running_calls().next().is_some())
}

/// Whether an error may be a consequence of a fault.
pub(super) fn is_excused(error: &Error) -> bool {
    matches!(
        error,
        Error::ShuttingDown
            | Error::Elsewhere { .. }
            | Error::NoReply { .. }
            | Error::NotSaved { .. }
            | Error::Remote { .. }
            | Error::Journal(
                JournalError::Unknown(_) | JournalError::Stale { .. } | JournalError::Storage(_)
            )
    )
}
