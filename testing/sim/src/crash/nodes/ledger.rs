//! What all nodes of a world did, and what of it is in the log.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_orchestrator::{Clock as _, Commit, NodeId};
use everturn_wire::ConversationId;

use super::super::{
    book::{Book, is_shared},
    script::Position,
};
use crate::{WallClock, cluster::Fate};

/// How long after its wait a call may come once the noise has ended, in milliseconds: a lease lapses, and a node looks
/// for turns without an owner only from time to time.
const LATE_MS: u64 = 90_000;

/// How long a command may be on its way, in milliseconds.
const ON_ITS_WAY_MS: u64 = 60_000;

/// What all nodes did. Clones share it.
#[derive(Clone)]
pub(super) struct Ledger {
    pub(super) book: Book,
    pub(super) clock: WallClock,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    /// The number of calls at each position of the script.
    places: BTreeMap<Position, usize>,
    calls: Vec<Call>,
    waits: BTreeMap<ConversationId, Wait>,
    /// Conversations with commands under way that end waits and calls.
    hurried: BTreeMap<ConversationId, usize>,
    /// The node that wrote the last append.
    owners: BTreeMap<ConversationId, NodeId>,
    /// Starts of each call of a tool, by turn, step and id.
    started: BTreeMap<(String, u32, String), usize>,
    /// Nodes that are dead or cut off, and by how many faults.
    cut_off: BTreeMap<NodeId, usize>,
    leaving: BTreeSet<NodeId>,
    /// Nodes that others may take for gone.
    absent: BTreeSet<NodeId>,
    /// The number of faults that concern all nodes.
    outages: usize,
    /// Commands are lost or late, so that a node may take over from one that is there.
    delays_commands: bool,
    /// When the noise ended.
    calm_at: Option<u64>,
}

/// A provider call.
struct Call {
    node: NodeId,
    conversation: ConversationId,
    place: Position,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its outcome is not known yet.
    Running,
    /// It is over, but its outcome is in no append.
    Over,
    /// Its outcome is in the log.
    Saved,
    /// A fault or a command cut it off.
    CutOff,
}

/// The wait of an unsealed turn, as in the log.
struct Wait {
    due: u64,
    may_end_early: bool,
}

/// A provider call of a node.
#[derive(Clone, Copy)]
pub(super) struct CallId(usize);

impl Ledger {
    pub(super) fn new(book: Book, clock: WallClock, delays_commands: bool) -> Self {
        let entries = Entries { delays_commands, ..Entries::default() };
        Self { book, clock, entries: Arc::new(Mutex::new(entries)) }
    }

    /// Records an append.
    pub(super) fn appended(&self, node: &NodeId, id: &ConversationId, commit: &Commit, fate: Fate) {
        if fate == Fate::Failed {
            self.book.pages().tally.count("an append fails");
            self.book.note(|| format!("{node} {id}: an append fails"));
            self.entries().calls_of(node, id).for_each(Call::cut_off);
            return;
        }
        let mut entries = self.entries();
        let mut pages = self.book.pages();
        entries.owners.insert(id.clone(), node.clone());
        if let Some(last) = commit.all_events().last() {
            pages.durable.insert(id.clone(), last.end.value());
        }
        let until = commit.turn.as_ref().and_then(|record| record.wait.until());
        let now = self.clock.now().0;
        if let Some(wait) = entries.waits.get(id)
            && commit.sealed.is_none()
            && until.is_none_or(|until| until.at.0 != wait.due)
        {
            // The wait is over: this append says that the call is made again.
            if now < wait.due && !wait.may_end_early && !entries.hurried.contains_key(id) {
                pages.wrong(format!("{node} {id}: its wait ended {} ms early", wait.due - now));
            }
            if entries.calm_at.is_some_and(|calm| now > wait.due.max(calm) + LATE_MS) {
                pages.wrong(format!("{node} {id}: its wait ended at {now}, due was {}", wait.due));
            }
            pages.tally.count("a wait ends");
        }
        match until {
            Some(until) => {
                let is_hurried = entries.hurried.contains_key(id);
                let shared = commit.all_events().any(|event| is_shared(&event.json));
                let before = entries.waits.get(id).filter(|wait| wait.due == until.at.0);
                let may_end_early = shared || is_hurried || before.is_some_and(|wait| wait.may_end_early);
                entries.waits.insert(id.clone(), Wait { due: until.at.0, may_end_early });
            }
            None => drop(entries.waits.remove(id)),
        }
        let is_leaving = entries.leaving.contains(node);
        for call in entries.calls_of(node, id) {
            match call.state {
                State::Over => call.state = State::Saved,
                // It is saved as it leaves.
                State::Running if fate != Fate::Stored || is_leaving => call.state = State::CutOff,
                _ => {}
            }
        }
        let delays = entries.delays_commands && entries.calm_at.is_none_or(|calm| now < calm + ON_ITS_WAY_MS);
        if fate == Fate::Late || delays || entries.absent.contains(node) {
            // Whoever has continued meanwhile is too late. A node that was cut off could reach nobody, and takes over turns of nodes
            // that are well.
            let others =
                entries.calls.iter_mut().filter(|call| call.conversation == *id && call.node != *node);
            others.for_each(Call::cut_off);
        }
        match fate {
            Fate::Lost => pages.tally.count("the answer to an append is lost"),
            Fate::Late => pages.tally.count("an append is stored late"),
            Fate::Stored | Fate::Failed => {}
        }
        let (chunks, events) = (commit.chunks.len(), commit.all_events().count());
        let (sealed, due) = (commit.sealed.is_some(), until.map(|until| until.at.0));
        pages.note(|| {
            format!(
                "{node} {id}: {chunks} chunks and {events} events are saved, sealed: {sealed}, due: {due:?}, {fate:?}"
            )
        });
    }

    /// Whether this node was the last to write to a conversation.
    pub(super) fn drives(&self, node: &NodeId, id: &ConversationId) -> bool {
        self.entries().owners.get(id) == Some(node)
    }

    /// Records a call. Returns its number at its position of the script.
    pub(super) fn asked(&self, node: &NodeId, id: &ConversationId, place: &Position) -> (CallId, usize) {
        let mut entries = self.entries();
        let is_cut_off = entries.cut_off.contains_key(node);
        let calls = entries.places.entry(place.clone()).or_default();
        let number = *calls;
        *calls += 1;
        self.book.note(|| {
            format!("{node} {id}: call {number} for {}.{}, cut off: {is_cut_off}", place.0, place.1)
        });
        let is_absent = entries.outages > 0 || entries.absent.contains(node);
        let state = if is_absent { State::CutOff } else { State::Running };
        entries.calls.push(Call {
            node: node.clone(),
            conversation: id.clone(),
            place: place.clone(),
            state,
        });
        (CallId(entries.calls.len() - 1), number)
    }

    /// Records that a call is over.
    pub(super) fn answered(&self, CallId(at): CallId) {
        let mut entries = self.entries();
        if let Some(call) = entries.calls.get_mut(at)
            && call.state == State::Running
        {
            call.state = State::Over;
        }
    }

    /// Whether the node wrote the last append of a conversation.
    pub(super) fn owns(&self, node: &NodeId, id: &ConversationId) -> bool {
        self.entries().owners.get(id) == Some(node)
    }

    /// Records the start of a tool's call. Returns how often it was started so far.
    pub(super) fn starts(&self, key: (String, u32, String)) -> usize {
        let mut entries = self.entries();
        let times = entries.started.entry(key).or_default();
        *times += 1;
        *times
    }

    /// Records that a node is killed, shut down or cut off.
    pub(super) fn cut_off(&self, node: &NodeId) {
        let mut entries = self.entries();
        *entries.cut_off.entry(node.clone()).or_default() += 1;
        entries.absent.insert(node.clone());
        let open = entries.calls.iter_mut().filter(|call| call.node == *node);
        open.for_each(Call::cut_off);
    }

    /// Records that no node can save for now.
    pub(super) fn outage(&self) {
        let mut entries = self.entries();
        entries.outages += 1;
        entries.calls.iter_mut().for_each(Call::cut_off);
    }

    /// Records that what was begun in an outage has settled.
    pub(super) fn outage_is_over(&self) {
        self.entries().outages -= 1;
    }

    /// Records that a node shuts down: it leaves the calls that run at the end of its grace period.
    pub(super) fn shuts_down(&self, node: &NodeId) {
        self.entries().leaving.insert(node.clone());
    }

    /// Records that a node is connected again.
    pub(super) fn connected(&self, node: &NodeId) {
        let mut entries = self.entries();
        if let Some(count) = entries.cut_off.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                entries.cut_off.remove(node);
            }
        }
    }

    /// Records that the others have noticed that a node is connected again.
    pub(super) fn noticed(&self, node: &NodeId) {
        let mut entries = self.entries();
        if !entries.cut_off.contains_key(node) {
            entries.absent.remove(node);
        }
    }

    /// Records that a command is sent that ends a wait or a call.
    pub(super) fn hurries(&self, id: &ConversationId) {
        *self.entries().hurried.entry(id.clone()).or_default() += 1;
        self.hurried(id);
    }

    /// Records that such a command was carried out, or never will be.
    pub(super) fn has_hurried(&self, id: &ConversationId) {
        self.hurried(id);
        let mut entries = self.entries();
        if let Some(count) = entries.hurried.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                entries.hurried.remove(id);
            }
        }
    }

    fn hurried(&self, id: &ConversationId) {
        let mut entries = self.entries();
        if let Some(wait) = entries.waits.get_mut(id) {
            wait.may_end_early = true;
        }
        let open = entries.calls.iter_mut().filter(|call| call.conversation == *id);
        open.for_each(Call::cut_off);
    }

    /// Records that the noise has ended.
    pub(super) fn calm(&self) {
        self.entries().calm_at = Some(self.clock.now().0);
    }

    /// Whether the noise ended at least this many milliseconds ago.
    pub(super) fn is_calm_for(&self, ms: u64) -> bool {
        self.entries().calm_at.is_some_and(|calm| self.clock.now().0 >= calm + ms)
    }

    /// Checks that every call is in the log, unless something cut it off.
    pub(super) fn check(&self) {
        let entries = self.entries();
        for call in &entries.calls {
            match call.state {
                State::Saved => self.book.pages().tally.count("a call is saved"),
                State::CutOff => self.book.pages().tally.count("a call is cut off"),
                // The world ended before it was recorded that a command is over.
                _ if entries.hurried.contains_key(&call.conversation) => {
                    self.book.pages().tally.count("a call is cut off");
                }
                State::Running | State::Over => self.book.wrong(format!(
                    "{} {}: the outcome of a call for {:?} is nowhere: {:?}",
                    call.node, call.conversation, call.place, call.state
                )),
            }
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn calls_of<'a>(
        &'a mut self,
        node: &'a NodeId,
        id: &'a ConversationId,
    ) -> impl Iterator<Item = &'a mut Call> {
        self.calls.iter_mut().filter(move |call| call.node == *node && call.conversation == *id)
    }
}

impl Call {
    fn cut_off(&mut self) {
        if matches!(self.state, State::Running | State::Over) {
            self.state = State::CutOff;
        }
    }
}
