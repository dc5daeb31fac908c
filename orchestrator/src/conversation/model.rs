//! The seat under every order in which threads can come to it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use everturn_kernel::{Effects, Input, Millis, Moment, Prompt, Settings, Turn, Wait};
use everturn_wire::{ConversationStatus, QueuedMessage};
use shuttle::thread;

use super::*;
use crate::{
    Definition, SystemClock, TurnRecord,
    sync::model::{at_once, explore, found},
    timer::{Wakes, Woken},
};

/// When the parked turn's wait ends.
const DUE: Millis = Millis(100);

/// Wakes nobody: the model's threads do.
struct Nobody;

#[async_trait]
impl Wakes for Nobody {
    async fn wake(&self, _: &ConversationId) -> Woken {
        Woken::Done
    }
}

/// A conversation that came from the journal with a turn parked.
pub(super) fn parked() -> Arc<Conversation> {
    let timers = Arc::new(Timers::new(Arc::new(SystemClock::new()), Nobody));
    let home = Home {
        loaded: Arc::default(),
        timers,
        shutdown: Arc::default(),
        observers: Observers::default(),
        peers: None,
        memory: Arc::default(),
    };
    let turn =
        Turn::begin("t".into(), Settings::default(), Prompt::default(), Millis(1), &mut Effects::new());
    let record = TurnRecord {
        snapshot: turn.snapshot(),
        wait: Wait::Until(Moment { at: DUE, decided_ms: 60 }),
        from: Cursor::default(),
        first_seq: 1,
        definition: Definition::new("test/m"),
    };
    let id = ConversationId::from("c");
    let conversation = Conversation::new(id.clone(), Millis(1), home.clone());
    let head = Head { status: ConversationStatus::Idle, ..conversation.state().record.head.clone() };
    let stored = Stored { version: Version(1), head, turn: Some(record), owner: None };
    Conversation::from_journal(id, stored, Vec::new(), home, None)
}

fn stop() -> Control {
    Control::from(Input::Abort)
}

fn steer(id: &str) -> Control {
    let message = QueuedMessage { message_id: id.to_owned(), text: "and then".to_owned() };
    Control::from(Input::Steer(message))
}

/// What became of the turn.
#[derive(Default)]
struct Story {
    /// Who drives it now.
    drivers: AtomicUsize,
    /// How often it was sealed, by a stop.
    seals: AtomicUsize,
    /// Messages that a turn took in.
    messages: AtomicUsize,
    /// Commands that were answered with yes, and what was answered to messages.
    stops: AtomicUsize,
    sent: AtomicUsize,
    /// Sessions that broke.
    broken: AtomicUsize,
}

impl Story {
    fn add(count: &AtomicUsize, more: usize) -> usize {
        count.fetch_add(more, Ordering::Relaxed)
    }

    fn get(count: &AtomicUsize) -> usize {
        count.load(Ordering::Relaxed)
    }
}

/// Drives the turn until a stop seals it. With nothing to do it parks; `patience`: so often it looks again before.
fn drive(story: &Story, mut parked: Box<Parked>, mut seated: Seated, patience: usize) {
    assert_eq!(Story::add(&story.drivers, 1), 0, "two drive one conversation");
    let mut looks = 0;
    loop {
        while let Some(control) = seated.inbox.take() {
            match control.input {
                Input::Abort => {
                    Story::add(&story.drivers, usize::MAX);
                    Story::add(&story.seals, 1);
                    seated.conversation.seat.committed(true);
                    return settle(story, &mut seated);
                }
                Input::Steer(_) => drop(Story::add(&story.messages, 1)),
                Input::Fault(_) => {
                    Story::add(&story.drivers, usize::MAX);
                    Story::add(&story.broken, 1);
                    return drop(seated);
                }
                _ => {}
            }
        }
        if looks < patience {
            looks += 1;
            thread::yield_now();
            continue;
        }
        Story::add(&story.drivers, usize::MAX);
        match seated.park(parked) {
            Parking::Parked | Parking::Lost => return,
            Parking::Commanded(back) => parked = back,
        }
        assert_eq!(Story::add(&story.drivers, 1), 0, "two drive one conversation");
    }
}

/// Leaves the seat; a message that came too late is a turn of its own.
fn settle(story: &Story, seated: &mut Seated) {
    loop {
        match seated.release() {
            AfterTurn::Nothing => return,
            AfterTurn::Turn(left) => drop(Story::add(&story.messages, left.messages.len())),
            AfterTurn::Status(status) => panic!("{status:?} is told already"),
        }
    }
}

fn command(story: &Story, conversation: &Arc<Conversation>, control: Control) -> bool {
    match conversation.send(control, true) {
        Ok(Command::Sent) => true,
        Ok(Command::WithTurn(parked, seated)) => {
            drive(story, parked, seated, 0);
            true
        }
        Ok(Command::NoTurn) => false,
        Err(error) => {
            assert!(matches!(error, Error::Broken { .. }), "{error}");
            false
        }
    }
}

/// The timer comes: the turn goes on, and waits again if nobody stops it.
fn wake(story: &Story, conversation: &Arc<Conversation>, patience: usize) {
    if let Ok(Some((parked, seated))) = conversation.claim_due(DUE) {
        drive(story, parked, seated, patience);
    }
}

fn collision(stops: usize, messages: usize, patience: usize) {
    let (story, conversation) = (Arc::new(Story::default()), parked());
    conversation.wake_later(Millis(50));
    let mut threads: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    {
        let (story, conversation) = (story.clone(), conversation.clone());
        threads.push(Box::new(move || wake(&story, &conversation, patience)));
    }
    for _ in 0..stops {
        let (story, conversation) = (story.clone(), conversation.clone());
        threads.push(Box::new(move || {
            let stopped = command(&story, &conversation, stop());
            Story::add(&story.stops, usize::from(stopped));
        }));
    }
    for n in 0..messages {
        let (story, conversation) = (story.clone(), conversation.clone());
        threads.push(Box::new(move || {
            let sent = command(&story, &conversation, steer(&n.to_string()));
            Story::add(&story.sent, usize::from(sent));
        }));
    }
    at_once(threads);
    assert!(stops == 0 || Story::get(&story.stops) > 0, "the turn was there, and no stop found it");
    assert_eq!(Story::get(&story.seals), stops.min(1), "a stop was lost, or the turn sealed twice");
    assert_eq!(Story::get(&story.messages), Story::get(&story.sent), "a message was lost");
    assert_eq!(Story::get(&story.drivers), 0);
    let left = conversation.seat.parked();
    assert_eq!(conversation.home.timers.len(), usize::from(stops == 0), "the index is not as the seat is");
    assert_eq!(left.is_some(), stops == 0, "a sealed turn is gone, another is parked");
    assert_eq!(conversation.seat.vacancy().is_some(), stops > 0);
}

#[test]
fn in_every_order_a_stop_meets_a_turn_that_is_taken_up() {
    explore(None, || collision(1, 0, 0));
    explore(None, || collision(1, 0, 2));
}

#[test]
fn in_every_order_two_stops_meet_a_turn_that_is_taken_up() {
    explore(None, || collision(2, 0, 0));
}

#[test]
fn in_every_order_a_message_meets_a_turn_that_is_stopped() {
    explore(None, || collision(1, 1, 0));
}

#[test]
fn in_many_orders_no_command_of_many_is_lost() {
    explore(Some(5_000), || collision(3, 3, 2));
}

/// The seat as it was before: it was looked who is there under one lock, and claimed under another.
fn look_then_claim(story: &Story, conversation: &Arc<Conversation>) -> bool {
    match conversation.send(stop(), false) {
        Ok(Command::Sent) => return true,
        Err(Error::NoModel { .. }) => {}
        _ => return false,
    }
    match conversation.claim_due(DUE) {
        Ok(Some((parked, seated))) => {
            assert!(matches!(conversation.send(stop(), false), Ok(Command::Sent)));
            drive(story, parked, seated, 0);
            true
        }
        _ => false,
    }
}

#[test]
fn a_claim_apart_from_the_look_loses_a_stop_and_the_model_finds_it() {
    let found = found(None, || {
        let (story, conversation) = (Arc::new(Story::default()), parked());
        let timer = (story.clone(), conversation.clone());
        let person = (story.clone(), conversation.clone());
        at_once(vec![
            Box::new(move || wake(&timer.0, &timer.1, 1)),
            Box::new(move || {
                let stopped = look_then_claim(&person.0, &person.1);
                assert!(stopped, "the turn was there, and the stop did not find it");
            }),
        ]);
    });
    assert!(found.contains("the stop did not find it"), "{found}");
}

#[test]
fn in_every_order_a_session_that_breaks_leaves_a_lost_seat_and_everyone_is_told() {
    explore(None, || {
        let (story, conversation) = (Arc::new(Story::default()), parked());
        let (timer, first, second) = (
            conversation.clone(),
            (story.clone(), conversation.clone()),
            (story.clone(), conversation.clone()),
        );
        let failure = everturn_wire::Failure::new(everturn_wire::Category::Internal, false, "it broke");
        at_once(vec![
            Box::new(move || drop(timer.claim_due(Millis(50)))),
            Box::new(move || _ = command(&first.0, &first.1, Control::from(Input::Fault(failure)))),
            Box::new(move || _ = command(&second.0, &second.1, stop())),
        ]);
        let (broken, seals) = (Story::get(&story.broken), Story::get(&story.seals));
        assert_eq!(conversation.is_lost(), broken > 0);
        assert!(broken + seals == 1, "{broken} broke, {seals} seals");
        if broken > 0 {
            assert!(matches!(conversation.claim(), Err(Error::Broken { .. })));
        }
    });
}

#[test]
fn in_every_order_a_session_whose_seat_is_lost_ends_and_leaves_no_timer() {
    explore(None, || {
        let (story, conversation) = (Arc::new(Story::default()), parked());
        conversation.wake_later(Millis(50));
        let (timer, loser) = ((story.clone(), conversation.clone()), conversation.clone());
        at_once(vec![
            Box::new(move || wake(&timer.0, &timer.1, 1)),
            Box::new(move || loser.lose(Loss::Moved)),
        ]);
        assert_eq!((Story::get(&story.drivers), conversation.home.timers.len()), (0, 0));
        assert!(conversation.is_lost() && conversation.parked().is_none());
    });
}
