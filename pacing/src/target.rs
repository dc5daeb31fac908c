//! One target: what is known of it, what runs, and who waits.

mod outcome;
mod room;

use alloc::{collections::BTreeMap, vec::Vec};

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use crate::{
    Admission, Because, Call, Priority, Size, Ticket, Wait,
    ceiling::Ceiling,
    closed::{Closed, State},
    learnt::Learnt,
    queue::{Queue, Waiter},
    ramp::Ramp,
    reserve::Reserve,
    window::Window,
};

/// How long a turn that was let go has to make its call, in milliseconds: the timer that wakes it also wakes others.
const GRACE_MS: u64 = 5_000;

/// When a turn asks again that waits for a call to end, in milliseconds: it is let go when one does.
const UNKNOWN_MS: u64 = 30_000;

/// How many waiting turns are considered at once, if the first ones need more room than there is.
const CONSIDERED: usize = 32;

/// A call that was let go.
#[derive(Clone, Debug)]
struct Running {
    turn: TurnId,
    size: Size,
    at: Millis,
    /// How many others ran when it was made.
    beside: u32,
    is_accepted: bool,
    /// Until when the turn has to make the call; `None` = it has.
    lapses_at: Option<Millis>,
}

/// What is known of a target.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    windows: Vec<Window>,
    learnt: Learnt,
    ceiling: Ceiling,
    closed: Closed,
    ramp: Ramp,
    reserve: Reserve,
    running: BTreeMap<Ticket, Running>,
    /// Calls that turns were let go to make.
    granted: BTreeMap<TurnId, Ticket>,
    queue: Queue,
    last: Ticket,
    /// This node's part of what is left of reported limits, and all nodes' parts.
    share: (u64, u64),
}

impl Target {
    pub(crate) fn new() -> Self {
        Self {
            windows: Vec::new(),
            learnt: Learnt::new(),
            ceiling: Ceiling::default(),
            closed: Closed::default(),
            ramp: Ramp::default(),
            reserve: Reserve::new(),
            running: BTreeMap::new(),
            granted: BTreeMap::new(),
            queue: Queue::default(),
            last: Ticket(0),
            share: (1, 1),
        }
    }

    pub(crate) fn set_share(&mut self, mine: u64, all: u64, now: Millis) {
        self.share = (mine.max(1), all.max(mine).max(1));
        self.windows.iter_mut().for_each(|window| window.share(self.share, now));
    }

    pub(crate) fn admit(&mut self, call: &Call<'_>, now: Millis) -> Admission {
        self.roll(now);
        if let Some(ticket) = self.granted.remove(call.turn) {
            if let Some(running) = self.running.get_mut(&ticket) {
                running.lapses_at = None;
            }
            return Admission::Go(ticket);
        }
        let Call { turn, since, priority, size } = *call;
        self.queue.wait(Waiter { turn: turn.clone(), priority, size, not_before: None }, since);
        let next = self.pick(now);
        if next.as_ref() == Some(turn) {
            let ticket = self.take(turn, now);
            return Admission::Go(ticket);
        }
        let others = u32::try_from(self.queue.len() - 1).unwrap_or(u32::MAX);
        let waiter = Waiter { turn: turn.clone(), priority, size, not_before: None };
        let wait = match self.room(&waiter, others, now) {
            Err(wait) => wait,
            Ok(()) => Wait { until: now.plus(UNKNOWN_MS), because: Because::Turn },
        };
        Admission::Wait(wait)
    }

    /// Names the turns whose wait is over.
    pub(crate) fn let_go(&mut self, now: Millis, released: &mut Vec<TurnId>) {
        self.roll(now);
        while let Some(turn) = self.pick(now) {
            let ticket = self.take(&turn, now);
            if let Some(running) = self.running.get_mut(&ticket) {
                running.lapses_at = Some(now.plus(GRACE_MS));
            }
            self.granted.insert(turn.clone(), ticket);
            released.push(turn);
        }
    }

    /// The call is over. `used`: its real size, if reported.
    pub(crate) fn ended(&mut self, ticket: Ticket, used: Option<Size>) {
        self.running.remove(&ticket);
        self.closed.left(ticket);
        if let Some(used) = used {
            self.windows.iter_mut().for_each(|window| window.correct(ticket, used.of(window.what)));
        }
    }

    /// The turn no longer wants to call.
    pub(crate) fn forget(&mut self, turn: &TurnId) {
        self.queue.remove(turn);
        if let Some(ticket) = self.granted.remove(turn) {
            self.give_back(ticket);
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn give_back(&mut self, ticket: Ticket) {
        let Some(running) = self.running.remove(&ticket) else { return };
        self.windows.iter_mut().for_each(|window| window.take_back(ticket));
        self.learnt.take_back(running.at);
        self.closed.left(ticket);
    }

    pub(super) fn roll(&mut self, now: Millis) {
        self.windows.iter_mut().for_each(|window| window.roll(now));
        let lapsed = |ticket: &Ticket| {
            self.running.get(ticket).and_then(|running| running.lapses_at).is_some_and(|at| at <= now)
        };
        let late: Vec<TurnId> =
            self.granted.iter().filter(|(_, ticket)| lapsed(ticket)).map(|(turn, _)| turn.clone()).collect();
        late.iter().for_each(|turn| self.forget(turn));
    }

    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.running.len()).unwrap_or(u32::MAX)
    }

    /// Lets the turn's call go.
    pub(super) fn take(&mut self, turn: &TurnId, now: Millis) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        let ticket = self.last;
        let Some(Waiter { priority, size, .. }) = self.queue.remove(turn) else { return ticket };
        self.queue.went(priority);
        if self.closed.state(turn, now) == State::MayProbe {
            self.closed.probes(ticket);
        }
        for window in &mut self.windows {
            window.take(ticket, size.of(window.what));
        }
        self.learnt.add(now);
        self.ramp.take(now);
        if priority == Priority::Interactive {
            self.reserve.add(now);
        }
        let (turn, beside) = (turn.clone(), self.count());
        let running = Running { turn, size, at: now, beside, is_accepted: false, lapses_at: None };
        self.running.insert(ticket, running);
        ticket
    }
}
