//! A call's answer under many orders in which its task, its listeners and those who repeat its request can come.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, StatusCode};
use shuttle::{future::block_on, thread};

use super::*;
use crate::{
    SystemClock,
    relay::{NoAnswer, Said},
    sync::model::{at_once, explore, found},
};

/// No one takes the answer within [`PATIENCE`]: who would forget it then.
const NOBODY: u64 = u64::MAX;

struct Scene {
    calls: Arc<Calls>,
    call: Arc<Call>,
    /// Orders that the call's task has not read.
    inbox: Mutex<mpsc::Receiver<Order>>,
    /// Pieces of the answer: the last ends it.
    pieces: Vec<Bytes>,
    /// The number of listeners that there had been when somebody last undertook to forget the answer.
    forgets: AtomicU64,
    /// Listeners that received everything.
    served: AtomicUsize,
}

impl Scene {
    /// A call that has begun, and its first listener.
    fn new(pieces: &[&'static [u8]]) -> (Arc<Self>, Listener) {
        let calls = Arc::new(Calls::new(Arc::default(), Observers::default(), None));
        let (orders, inbox) = mpsc::channel(ORDERS);
        let id = ConversationId::from("call");
        let clock = Arc::new(SystemClock::new());
        let state = r#"{"id":"call","model":"m","target":"p/m","phase":"asking","startedAt":1,"retries":0,"waitedMs":0,"listeners":1}"#;
        let (key, account) = (CallKey::of_bytes(b"request"), calls.memory.open());
        let (state, changes) = (serde_json::from_str(state).unwrap(), calls.changes.clone());
        let call = Arc::new(Call::new(id.clone(), key, account, orders, state, clock, changes));
        let listener = {
            let mut book = calls.lock();
            book.by_key.insert(call.key, call.clone());
            book.by_id.insert(id, call.clone());
            calls.listener(&call).unwrap()
        };
        let scene = Self {
            calls,
            call,
            inbox: Mutex::new(inbox),
            pieces: pieces.iter().copied().map(Bytes::from_static).collect(),
            forgets: AtomicU64::new(NOBODY),
            served: AtomicUsize::new(0),
        };
        (Arc::new(scene), listener)
    }

    fn undertakes_to_forget(&self) {
        self.forgets.store(self.call.tape.joined(), Ordering::Relaxed);
    }

    /// What the call's task does: answers piece by piece, and looks for orders in between.
    fn answer(&self) {
        let tape = &self.call.tape;
        tape.head(StatusCode::OK, HeaderMap::new());
        tape.show();
        for (at, piece) in self.pieces.iter().enumerate() {
            while let Ok(order) = self.inbox.lock().try_recv() {
                if matches!(order, Order::Stop) && tape.close() {
                    tape.cut();
                    tape.end(NoAnswer::Left);
                    assert!(!self.calls.ended(&self.call, false));
                    return;
                }
            }
            block_on(std::future::poll_fn(|cx| tape.poll_room(cx)));
            if at + 1 == self.pieces.len() {
                tape.last_is_next();
            }
            tape.piece(piece.clone());
        }
        tape.end(NoAnswer::Left);
        if self.calls.ended(&self.call, true) {
            self.undertakes_to_forget();
        }
    }

    /// Reads so many items, and leaves.
    fn listen(&self, mut listener: Listener, most: usize) {
        let mut text = Vec::new();
        for at in 0..most {
            match block_on(listener.next()) {
                Some(Said::Head(..)) => assert_eq!(at, 0, "one head, first"),
                Some(Said::Piece(piece)) => text.extend_from_slice(&piece),
                Some(Said::End) => {
                    assert_eq!(text, self.pieces.concat(), "the whole answer, once");
                    self.served.fetch_add(1, Ordering::Relaxed);
                }
                None => break,
                Some(other) => panic!("{other:?}: somebody listened all the time"),
            }
        }
        // In place of `leave`, which needs a runtime.
        listener.leaving = None;
        drop(listener);
        match self.calls.left(&self.call) {
            Follows::Order(order) => drop(self.call.order(order)),
            Follows::Forget => self.undertakes_to_forget(),
            Follows::Nothing | Follows::OrderLater(..) => {}
        }
    }

    /// Repeats the request: joins the call if it can be joined.
    fn repeat(&self, has_session: bool) {
        let joined = self.calls.join(&self.calls.lock(), &self.call.key, has_session);
        if let Some(listener) = joined {
            self.listen(listener, usize::MAX);
        }
    }

    /// Whether the call is as it must be once its task has ended and everybody has left.
    fn check(&self) {
        assert!(self.call.tape.is_over());
        let is_listed = !self.calls.lock().by_id.is_empty();
        let forgets = self.forgets.load(Ordering::Relaxed);
        let is_looked_after = forgets == self.call.tape.joined();
        assert!(!is_listed || is_looked_after, "an answer stays for ever");
        assert!(!is_listed || self.served.load(Ordering::Relaxed) == 0, "what was taken is kept");
    }
}

fn meeting(pieces: &[&'static [u8]], first_takes: usize, repetitions: &[bool]) {
    let (scene, listener) = Scene::new(pieces);
    let mut threads: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    let (task, reader) = (scene.clone(), scene.clone());
    threads.push(Box::new(move || task.answer()));
    threads.push(Box::new(move || reader.listen(listener, first_takes)));
    for has_session in repetitions.iter().copied() {
        let scene = scene.clone();
        threads.push(Box::new(move || scene.repeat(has_session)));
    }
    at_once(threads);
    scene.check();
}

/// More than a listener may be behind.
static LARGE: [u8; 1 << 20] = [b'x'; 1 << 20];

#[test]
fn in_many_orders_everyone_who_joins_a_call_gets_the_whole_answer() {
    explore(Some(2_000), || meeting(&[b"one ", b"two"], usize::MAX, &[true, true]));
    explore(Some(2_000), || meeting(&[b"one ", b"two"], usize::MAX, &[false]));
}

#[test]
fn in_many_orders_a_listener_that_leaves_takes_nothing_from_those_who_come() {
    for takes in 0..=4 {
        explore(Some(1_000), move || meeting(&[b"one ", b"two"], takes, &[false, true]));
    }
}

#[test]
fn in_many_orders_a_task_that_waits_for_a_slow_listener_goes_on() {
    explore(Some(1_000), || meeting(&[&LARGE, &LARGE, b"end"], usize::MAX, &[]));
    for takes in 0..=3 {
        explore(Some(500), move || meeting(&[&LARGE, &LARGE, b"end"], takes, &[true]));
    }
}

#[test]
fn an_answer_whose_end_is_not_looked_at_by_both_stays_and_the_model_finds_it() {
    let found = found(Some(5_000), || {
        let (scene, listener) = Scene::new(&[b"one"]);
        let (task, reader) = (scene.clone(), scene.clone());
        at_once(vec![
            Box::new(move || {
                // As if whether anybody listens were looked at before the end is told.
                let is_listened_to = task.call.tape.is_listened_to();
                thread::yield_now();
                task.call.tape.end(NoAnswer::Left);
                let waits = task.calls.ended(&task.call, true);
                if waits && !is_listened_to {
                    task.undertakes_to_forget();
                }
            }),
            Box::new(move || reader.listen(listener, 0)),
        ]);
        scene.check();
    });
    assert!(found.contains("stays for ever"), "{found}");
}

#[tokio::test(start_paused = true)]
async fn outside_a_model_the_same_answer_is_forgotten_in_time() {
    let (scene, listener) = Scene::new(&[b"one"]);
    scene.call.tape.head(StatusCode::OK, HeaderMap::new());
    scene.call.tape.end(NoAnswer::Left);
    assert!(!scene.calls.ended(&scene.call, true), "somebody listens");
    drop(listener);
    assert_eq!(scene.calls.list().len(), 1);
    tokio::time::sleep(PATIENCE + Duration::from_secs(1)).await;
    assert_eq!(scene.calls.list(), []);
}
