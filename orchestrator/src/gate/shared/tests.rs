use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use everturn_wire::{Category, Failure};
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;

use super::*;
use crate::{
    JournalError,
    cluster::{LiveBus, LiveEvent, Streamed},
};

/// Keeps what was told.
#[derive(Default)]
struct Told(Mutex<Vec<Bytes>>);

#[async_trait]
impl LiveBus for Told {
    fn stream(&self, _: &ConversationId, _: Streamed) {}

    async fn follow(&self, _: &ConversationId) -> Result<BoxStream<'static, LiveEvent>, JournalError> {
        Ok(futures_util::stream::pending().boxed())
    }

    fn tell(&self, notice: Bytes) {
        self.0.lock().unwrap().push(notice);
    }
}

/// The gates of a node.
struct Node {
    gates: Gates,
    told: Arc<Told>,
    /// How far its clock is ahead, in milliseconds.
    ahead: u64,
}

impl Node {
    fn new(ahead: u64) -> Self {
        let (gates, told) = (Gates::default(), Arc::<Told>::default());
        gates.teller.set(told.clone());
        Self { gates, told, ahead }
    }

    fn now(&self, at: u64) -> Millis {
        Millis(1_000_000 + at + self.ahead)
    }

    /// Returns how long a turn is put off at this time; `None` = it may ask.
    fn waits(&self, turn: &str, at: u64) -> Option<u64> {
        self.gates.enter("m", &turn.into(), &turn.into(), self.now(at)).map(|hold| hold.wait_ms)
    }

    /// A turn is refused, and asks again after this long. `hinted`: because the provider said so.
    fn refused(&self, turn: &str, at: u64, wait_ms: u64, hinted: bool) {
        let limited = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
        if hinted {
            let failure = Failure { hint_ms: Some(wait_ms), ..limited.clone() };
            self.gates.change(|inner| inner.undecided("m", &turn.into(), &failure, self.now(at)));
        }
        let until = self.now(at + wait_ms);
        self.gates.limited("m", &turn.into(), limited, until, self.now(at));
    }

    fn answered(&self, asked: u64, at: u64) {
        self.gates.answered("m", self.now(asked), None, self.now(at));
    }

    /// Returns what was told since the last time.
    fn told(&self) -> Vec<Notice> {
        let told = std::mem::take(&mut *self.told.0.lock().unwrap());
        told.iter().map(|json| Notice::read(json).unwrap()).collect()
    }

    /// Hears everything that another node has told, and returns which conversations it wakes.
    fn hears(&self, other: &Self, at: u64) -> Vec<ConversationId> {
        let told = self.told.0.lock().unwrap().len();
        let hear = |notice| self.gates.hear(notice, self.now(at));
        let woken = other.told().into_iter().flat_map(hear).map(|(_, id)| id).collect();
        assert_eq!(self.told.0.lock().unwrap().len(), told, "what was heard is not told again");
        woken
    }
}

/// Two nodes whose clocks differ, and a limit of which the first one told the second one.
fn limited(wait_ms: u64, hinted: bool) -> [Node; 2] {
    let [a, b] = [Node::new(0), Node::new(5_000)];
    a.refused("first", 0, wait_ms, hinted);
    b.hears(&a, 0);
    [a, b]
}

#[test]
fn a_limit_holds_at_every_node_and_its_turn_asks_first() {
    let [a, b] = limited(10_000, true);
    assert_eq!(b.waits("x", 1_000), Some(9_500));
    // The first one asks, and says so: nobody else does, however long it takes.
    assert_eq!(a.waits("first", 10_000), None);
    b.hears(&a, 10_010);
    for beat in 1..20 {
        let at = 10_010 + beat * 3_000;
        assert!(b.waits("x", at).is_some(), "after {at}");
        a.gates.tell_again(a.now(at));
        b.hears(&a, at);
    }
    a.answered(10_000, 70_000);
    b.hears(&a, 70_000);
    assert_eq!(b.waits("x", 70_001), None);
    assert_eq!(b.waits("y", 70_002), None);
    assert!(b.waits("z", 70_003).is_some(), "little by little, as at the first node");
}

#[test]
fn those_who_wait_are_let_go_of_when_the_target_answers_elsewhere() {
    let [a, b] = limited(600_000, true);
    assert!(b.waits("x", 1_000).is_some() && b.waits("y", 1_000).is_some());
    a.answered(5_000, 6_000);
    assert_eq!(b.hears(&a, 6_000), [ConversationId::from("x"), "y".into()]);
    assert!(b.gates.lets_go_of(&"x".into()));
}

#[test]
fn an_answer_to_a_call_from_before_a_refusal_opens_nothing() {
    let [a, b] = limited(1_000, true);
    b.refused("second", 5_000, 60_000, true);
    assert_eq!(a.waits("first", 1_000), None);
    a.answered(1_000, 6_000);
    b.hears(&a, 6_000);
    assert!(b.waits("x", 6_000).is_some());
    // And the refusal came after that answer began.
    a.hears(&b, 6_000);
    assert!(a.waits("x", 6_000).is_some());
}

#[test]
fn of_two_nodes_that_are_refused_at_once_one_asks() {
    // The waits of both, and which of them asks: the longest one, or either if they are about as long.
    for (wait_a, wait_b, asks) in [(10_000, 10_005, "a"), (10_000, 9_995, "a"), (10_000, 12_000, "b")] {
        let [a, b] = [Node::new(0), Node::new(5_000)];
        a.refused("a", 0, wait_a, true);
        b.refused("b", 10, wait_b, true);
        let (of_a, of_b) = (a.told(), b.told());
        of_a.into_iter().for_each(|notice| drop(b.gates.hear(notice, b.now(30))));
        of_b.into_iter().for_each(|notice| drop(a.gates.hear(notice, a.now(30))));
        let at = wait_a.max(wait_b) + 50;
        let asking =
            [("a", a.waits("a", at)), ("b", b.waits("b", at))].map(|(turn, wait)| (turn, wait.is_none()));
        assert_eq!(asking, [("a", asks == "a"), ("b", asks == "b")], "{wait_a} {wait_b}");
    }
}

#[test]
fn a_node_that_falls_silent_holds_nobody_up() {
    // It said how long it waits, but not why: its next turn may be gone.
    let [_, b] = limited(1_800_000, false);
    assert_eq!(b.waits("x", 1_000), Some(60_500), "it looks again");
    assert_eq!(b.waits("x", 15_001), None);
    assert!(b.waits("y", 15_002).is_some(), "one of them");

    // The provider said how long: that is believed, and a little more.
    let [_, b] = limited(60_000, true);
    assert!(b.waits("x", 59_999).is_some());
    assert_eq!(b.waits("x", 60_001), None);

    // It was asking.
    let [a, b] = limited(10_000, true);
    assert_eq!(a.waits("first", 10_000), None);
    b.hears(&a, 10_000);
    assert!(b.waits("x", 25_000).is_some());
    assert_eq!(b.waits("x", 25_001), None);
}

#[test]
fn a_limit_that_is_told_again_after_the_target_answered_here_is_not_believed() {
    let [a, b] = limited(600_000, false);
    // A person skipped the wait here; the notice about that was lost.
    b.answered(1_000, 2_000);
    b.told();
    a.gates.tell_again(a.now(3_000));
    b.hears(&a, 3_000);
    assert_eq!(b.waits("x", 3_000), None);
}

#[test]
fn a_turn_that_ends_before_it_asks_leaves_it_to_any_other() {
    let [a, b] = limited(10_000, false);
    a.gates.ended("m", &"first".into(), a.now(2_000));
    b.hears(&a, 2_000);
    assert_eq!(b.waits("x", 2_001), None);

    let [a, b] = limited(10_000, true);
    assert_eq!(a.waits("first", 10_000), None);
    b.hears(&a, 10_000);
    a.gates.left("m", &"first".into(), a.now(11_000));
    b.hears(&a, 11_000);
    assert_eq!(b.waits("x", 11_001), None);
}

#[test]
fn an_offline_node_tells_nobody() {
    let a = Node::new(0);
    a.answered(0, 1);
    a.told();
    let why =
        Why { failure: Failure::new(Category::Network, true, "no route"), hint_ends: None, is_offline: true };
    a.gates.change(|inner| inner.unreached("m", &"t".into(), &why, a.now(10)));
    assert!(a.waits("x", 20).is_some());
    a.gates.tell_again(a.now(20));
    assert_eq!(a.told(), []);
}
