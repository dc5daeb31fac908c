//! The seat under real threads.

use std::{
    hint,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::{model::parked, *};
use everturn_kernel::Input;

/// Collisions of a wake-up with three commands. On busy cores, each takes up to a few milliseconds.
const COLLISIONS: usize = 20_000;

/// Where threads wait for each other before each of many acts.
struct Turnstile {
    threads: usize,
    arrived: AtomicUsize,
}

impl Turnstile {
    /// Comes back when all threads have come for that act, as nearly at once as they can.
    fn pass(&self, act: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        for spins in 0_u32.. {
            if self.arrived.load(Ordering::Acquire) >= (act + 1) * self.threads {
                return;
            }
            // There may be fewer cores than threads.
            if spins % 64 == 63 { thread::yield_now() } else { hint::spin_loop() }
        }
    }
}

/// Drives until a stop comes, or there is nothing to do: then parks. Says how many stops sealed the turn.
fn drive(mut parked: Box<Parked>, mut seated: Seated) -> usize {
    loop {
        while let Some(control) = seated.inbox.take() {
            if matches!(control.input, Input::Abort) {
                seated.conversation.seat.committed(true);
                while !matches!(seated.release(), AfterTurn::Nothing) {}
                return 1;
            }
        }
        match seated.park(parked) {
            Parking::Parked | Parking::Lost => return 0,
            Parking::Commanded(back) => parked = back,
        }
    }
}

/// Tells who drives, or drives. Says whether there was a turn, and how many stops sealed it.
fn command(conversation: &Arc<Conversation>, input: Input) -> (bool, usize) {
    match conversation.send(Control::from(input), true).unwrap() {
        Command::Sent => (true, 0),
        Command::WithTurn(parked, seated) => (true, drive(parked, seated)),
        Command::NoTurn => (false, 0),
    }
}

#[test]
fn of_twenty_thousand_stops_that_meet_a_wake_up_none_is_lost() {
    const BATCH: usize = 1_000;
    let (mut stopped, mut seals) = (0, 0);
    for _ in 0..COLLISIONS / BATCH {
        let conversations: Vec<_> = (0..BATCH).map(|_| parked()).collect();
        conversations.iter().for_each(|conversation| conversation.wake_later(Millis(50)));
        let turnstile = Turnstile { threads: 3, arrived: AtomicUsize::new(0) };
        let each = |act: &(dyn Fn(&Arc<Conversation>) -> (bool, usize) + Sync)| {
            let (mut taken, mut seals) = (0, 0);
            for (at, conversation) in conversations.iter().enumerate() {
                turnstile.pass(at);
                let (was_taken, sealed) = act(conversation);
                (taken, seals) = (taken + usize::from(was_taken), seals + sealed);
            }
            (taken, seals)
        };
        let wake = |conversation: &Arc<Conversation>| {
            let due = conversation.claim_due(Millis(100)).unwrap();
            (false, due.map_or(0, |(parked, seated)| drive(parked, seated)))
        };
        let stop = |conversation: &Arc<Conversation>| command(conversation, Input::Abort);
        let retry_now = |conversation: &Arc<Conversation>| command(conversation, Input::RetryNow);
        let told: Vec<_> = thread::scope(|scope| {
            let woken = scope.spawn(|| each(&wake));
            let other = scope.spawn(|| each(&retry_now));
            let stops = scope.spawn(|| each(&stop));
            [stops, woken, other].into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        stopped += told[0].0;
        seals += told.iter().map(|(_, seals)| seals).sum::<usize>();
        assert!(conversations.iter().all(|conversation| conversation.seat.vacancy().is_some()));
        assert!(conversations.iter().all(|conversation| conversation.home.timers.len() == 0));
    }
    assert_eq!((stopped, seals), (COLLISIONS, COLLISIONS));
}
