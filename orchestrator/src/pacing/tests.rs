use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use everturn_kernel::StreamEvent;
use everturn_pacing::{Lately, Priority, Told, What};
use everturn_wire::{CallerName, ConversationId};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};

use super::*;
use crate::{
    cluster::{LiveBus, LiveEvent, Streamed},
    journal::NodeId,
};

const NOW: Millis = Millis(1_000_000);

/// Keeps what was told.
#[derive(Default)]
struct Bus(Mutex<Vec<Bytes>>);

#[async_trait]
impl LiveBus for Bus {
    fn stream(&self, _: &ConversationId, _: Streamed) {}

    async fn follow(&self, _: &ConversationId) -> Result<BoxStream<'static, LiveEvent>, JournalError> {
        Ok(futures_util::stream::pending().boxed())
    }

    fn tell(&self, notice: Bytes) {
        self.0.lock().unwrap().push(notice);
    }
}

struct Node {
    pacing: Arc<Pacing>,
    bus: Arc<Bus>,
}

fn node() -> Node {
    let (pacing, bus) = (Arc::<Pacing>::default(), Arc::<Bus>::default());
    pacing.notices.set(bus.clone());
    Node { pacing, bus }
}

fn asker(turn: &str) -> Asker {
    Asker {
        turn: turn.into(),
        caller: None,
        conversation: Some(turn.into()),
        since: NOW,
        priority: Priority::Interactive,
        size: Size::default(),
        price: None,
    }
}

impl Node {
    fn asks(&self, turn: &str, now: Millis) -> Entry {
        self.pacing.enter("m", &Asker { since: now, ..asker(turn) }, now)
    }

    #[track_caller]
    fn goes(&self, turn: &str, now: Millis) -> Admitted {
        let Entry::Go(admitted) = self.asks(turn, now) else { panic!("{turn} waits") };
        admitted
    }

    /// Why the turn waits; `None` = it may call.
    fn waits(&self, turn: &str, now: Millis) -> Option<Because> {
        match self.asks(turn, now) {
            Entry::Go(_) => None,
            Entry::Wait(wait) => Some(wait.because),
        }
    }

    fn hears(&self, other: &Self, now: Millis) {
        for notice in std::mem::take(&mut *other.bus.0.lock().unwrap()) {
            self.pacing.hear(Notice::read(&notice).unwrap(), now);
        }
    }
}

fn limited(hint_ms: Option<u64>) -> Failure {
    Failure { hint_ms, ..Failure::new(Category::RateLimited, true, "HTTP 429: slow down") }
}

fn requests(limit: u64, remaining: u64) -> Limits {
    Limits(vec![Told { what: What::Requests, limit: Some(limit), remaining, reset_ms: 60_000 }])
}

#[test]
fn a_turn_that_waits_is_told_of_the_refusal_or_why() {
    let node = node();
    node.goes("first", NOW).refused(&limited(Some(10_000)), &Limits::default(), NOW);
    let Entry::Wait(wait) = node.asks("a", NOW) else { panic!("it goes") };
    let hold = node.pacing.hold("m", &asker("a"), wait, NOW);
    assert_eq!((hold.wait_ms, hold.because, hold.shared), (10_000, Because::Hint, true));
    assert_eq!(hold.failure.message, "HTTP 429: slow down");
    let other = node.goes("a", NOW.plus(20_000));
    other.heard(&requests(1, 0), NOW.plus(20_000));
    drop(other);
    let Entry::Wait(wait) = node.asks("c", NOW.plus(20_000)) else { panic!("it goes") };
    let hold = node.pacing.hold("m", &asker("a"), wait, NOW.plus(20_000));
    assert_eq!(hold.failure.message, "the provider's limit on requests is used up");
}

#[test]
fn what_is_saved_is_read_by_the_next_process_and_older_documents_do_no_harm() {
    let node = node();
    node.goes("first", NOW).heard(&requests(10, 9), NOW);
    node.goes("first", NOW).refused(&limited(Some(10_000)), &Limits::default(), NOW);
    let json = saved::json(&node.pacing.lock(), NOW).unwrap();
    assert!(
        json.contains(r#""limits":[{"what":"requests","limit":10,"remaining":9,"resetMs":60000}]"#),
        "{json}"
    );
    let later = super::tests::node();
    saved::restore(&json, &mut later.pacing.lock(), false, NOW.plus(4_000));
    let Entry::Wait(wait) = later.asks("a", NOW.plus(4_000)) else { panic!("it goes") };
    let hold = later.pacing.hold("m", &asker("a"), wait, NOW.plus(4_000));
    assert_eq!((hold.wait_ms, hold.failure.message.as_str()), (6_000, "HTTP 429: slow down"));
    // The clock was set back meanwhile.
    let early = super::tests::node();
    saved::restore(&json, &mut early.pacing.lock(), false, Millis(500_000));
    let Entry::Wait(wait) = early.asks("a", Millis(500_000)) else { panic!("it goes") };
    assert_eq!(wait.until, Millis(510_000));
    // Earlier versions had no limit in money.
    let ann = CallerName::parse("ann").unwrap();
    saved::restore(r#"{"callers":{"ann":[[0,1],[0,2],[0,3],[0,4]]}}"#, &mut early.pacing.lock(), false, NOW);
    let counts = early.pacing.lock().pacer.counts_of_callers(Millis(1));
    assert_eq!(counts, [(ann, [(0, 1), (0, 2), (0, 3), (0, 0), (0, 0)])]);
    for other in ["{}", "[]", "no", r#"{"targets":{"m":{"limits":[{"what":"new"}]}}}"#] {
        saved::restore(other, &mut super::tests::node().pacing.lock(), false, NOW);
    }
}

#[test]
fn a_limit_holds_at_every_node_until_one_of_them_is_answered() {
    let [a, b] = [node(), node()];
    a.goes("first", NOW).refused(&limited(Some(10_000)), &Limits::default(), NOW);
    b.hears(&a, NOW);
    assert_eq!(b.waits("x", NOW), Some(Because::Hint));
    let probe = a.goes("first", NOW.plus(10_000));
    b.hears(&a, NOW.plus(10_010));
    assert_eq!(b.waits("x", NOW.plus(13_000)), Some(Because::Probe));
    probe.heard(&Limits::default(), NOW.plus(13_500));
    b.hears(&a, NOW.plus(13_510));
    assert_eq!(b.waits("x", NOW.plus(13_510)), None);
    assert!(b.bus.0.lock().unwrap().is_empty(), "what was heard is not told again");
}

#[test]
fn each_node_has_its_part_of_what_is_left_and_keeps_it_if_the_others_fall_silent() {
    let [a, b] = [node(), node()];
    let ids = ["a", "b"].map(|id| NodeId(id.to_owned()));
    for (node, turn) in [(&a, "first"), (&b, "second")] {
        let call = node.goes(turn, NOW);
        call.heard(&requests(10, 8), NOW);
        // It runs on, so both have as much to do.
        std::mem::forget(call);
    }
    a.pacing.tell_again(&ids[0], NOW);
    b.pacing.tell_again(&ids[1], NOW);
    let of_a = std::mem::take(&mut *a.bus.0.lock().unwrap());
    a.hears(&b, NOW);
    of_a.iter().for_each(|notice| b.pacing.hear(Notice::read(notice).unwrap(), NOW));
    let calls = |node: &Node| {
        let went = (0..20).map_while(|n| match node.asks(&format!("t{n}"), NOW) {
            Entry::Go(call) => {
                std::mem::forget(call);
                Some(())
            }
            Entry::Wait(_) => None,
        });
        went.count()
    };
    assert_eq!((calls(&a), calls(&b)), (3, 3), "half of ten each, less the two that were used");
    // Once the other one is gone, its part is given to this one.
    let c = node();
    c.goes("first", NOW).heard(&requests(10, 8), NOW);
    let (target, node, lately) = ("m".to_owned(), ids[1].clone(), Lately::default());
    c.pacing.hear(Notice::Demand { target, node, calls: 7, lately }, NOW);
    c.pacing.keep_parts_of(&[], NOW);
    assert_eq!(calls(&c), 8);
}

#[test]
fn a_review_that_has_to_wait_leaves_no_place_in_line() {
    let node = node();
    node.goes("first", NOW).refused(&limited(Some(10_000)), &Limits::default(), NOW);
    assert!(node.waits("review", NOW).is_some());
    node.pacing.forget("m", &"review".into(), NOW);
    let inner = node.pacing.lock();
    assert_eq!((inner.pacer.waiting("m"), inner.line.waits_for("m")), (0, false));
}

/// The first word of an answer may come long after its head.
#[tokio::test(start_paused = true)]
async fn a_report_is_as_old_as_the_head_of_its_response() {
    let (node, clock) = (node(), Arc::new(crate::SystemClock::new()));
    let asked_at = clock.now();
    let admitted = node.goes("a", asked_at);
    let call = AdmittedCall {
        admitted,
        asker: asker("a"),
        clock: clock.clone(),
        health: None,
        waits_for_network: false,
    };
    let late = async {
        tokio::time::sleep(Duration::from_secs(50)).await;
        StreamEvent::Text("hi".into())
    };
    let head = StreamEvent::Limits(requests(10, 0));
    let mut events = call.watch(stream::iter([head]).chain(stream::once(late)).boxed());
    assert!(matches!(events.next().await, Some(StreamEvent::Text(_))));
    let Entry::Wait(wait) = node.asks("b", clock.now()) else { panic!("it goes") };
    assert_eq!((wait.until, wait.because), (asked_at.plus(60_000), Because::Requests));
}
