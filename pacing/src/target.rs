//! One target: what is known of it, what runs, and who waits.

mod elsewhere;
mod outcome;
mod room;

use alloc::{
    collections::{BTreeMap, VecDeque},
    vec::Vec,
};

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use crate::{
    Admission, Because, Call, Priority, Size, Ticket, Wait,
    closed::State,
    queue::{Queue, Waiter},
};
use room::Room;

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
    /// Whether it is kept for a turn that has not made it yet.
    is_reserved: bool,
}

/// A call that a turn was let go to make.
#[derive(Clone, Debug)]
struct Grant {
    turn: TurnId,
    ticket: Ticket,
    /// Until when the turn has to make it.
    lapses_at: Millis,
}

/// What is known of a target.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(super) room: Room,
    queue: Queue,
    granted: BTreeMap<TurnId, Ticket>,
    /// The same, oldest first, with those that were used since.
    grants: VecDeque<Grant>,
    last: Ticket,
    /// When it last answered.
    pub(super) answered_at: Option<Millis>,
    /// This node's part of what is left of reported limits, and all nodes' parts.
    share: (u64, u64),
}

impl Target {
    pub(crate) fn new() -> Self {
        Self {
            room: Room::new(),
            queue: Queue::default(),
            granted: BTreeMap::new(),
            grants: VecDeque::new(),
            last: Ticket(0),
            answered_at: None,
            share: (1, 1),
        }
    }

    pub(crate) fn set_share(&mut self, mine: u64, all: u64, now: Millis) {
        self.share = (mine.max(1), all.max(mine).max(1));
        self.room.windows.iter_mut().for_each(|window| window.share(self.share, now));
    }

    pub(crate) fn admit(&mut self, call: &Call<'_>, now: Millis) -> Admission {
        self.roll(now);
        if let Some(ticket) = self.granted.remove(call.turn) {
            return Admission::Go(self.redeem(ticket));
        }
        let waiter = self.line_up(call);
        if self.pick(now).as_ref() == Some(call.turn) {
            return Admission::Go(self.take(waiter, false, now));
        }
        let others = u32::try_from(self.queue.len() - 1).unwrap_or(u32::MAX);
        Admission::Wait(match self.room.check(&waiter, others, others > 0, now) {
            Err(wait) => wait,
            Ok(()) => Wait { until: now.plus(UNKNOWN_MS), because: Because::Line },
        })
    }

    /// Lets a call go whatever is known.
    pub(crate) fn insist(&mut self, call: &Call<'_>, now: Millis) -> Ticket {
        self.roll(now);
        match self.granted.remove(call.turn) {
            Some(ticket) => self.redeem(ticket),
            None => {
                let Call { turn, priority, size, .. } = *call;
                self.take(Waiter { turn: turn.clone(), priority, size }, false, now)
            }
        }
    }

    fn line_up(&mut self, call: &Call<'_>) -> Waiter {
        let Call { turn, since, priority, size } = *call;
        let waiter = Waiter { turn: turn.clone(), priority, size };
        self.queue.wait(waiter.clone(), since);
        waiter
    }

    /// Names at most so many turns whose wait is over.
    pub(crate) fn let_go(&mut self, most: usize, now: Millis) -> Vec<TurnId> {
        self.roll(now);
        let mut released = Vec::new();
        while released.len() < most
            && let Some(turn) = self.pick(now)
            && let Some(waiter) = self.queue.remove(&turn)
        {
            let ticket = self.take(waiter, true, now);
            self.granted.insert(turn.clone(), ticket);
            self.grants.push_back(Grant { turn: turn.clone(), ticket, lapses_at: now.plus(GRACE_MS) });
            released.push(turn);
        }
        released
    }

    /// The call is over. `used`: its real size, if reported.
    pub(crate) fn ended(&mut self, ticket: Ticket, used: Option<Size>) {
        self.room.remove(ticket);
        self.room.closed.left(ticket);
        if let Some(used) = used {
            self.room.windows.iter_mut().for_each(|window| window.correct(ticket, used.of(window.what)));
        }
    }

    /// The turn no longer wants to call.
    pub(crate) fn forget(&mut self, turn: &TurnId, now: Millis) {
        self.room.closed.forget(turn, now);
        self.queue.remove(turn);
        if let Some(ticket) = self.granted.remove(turn) {
            self.room.give_back(ticket);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.room.closed.probe_at.is_some()
    }

    pub(crate) fn is_probed(&self) -> bool {
        self.room.closed.is_probed()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns how many calls it has to make.
    pub(crate) fn demand(&self) -> u64 {
        (self.queue.len() + self.room.running.len()) as u64
    }

    /// Returns when somebody may be let go next, if time alone decides.
    pub(crate) fn next_at(&mut self, now: Millis) -> Option<Millis> {
        let lapses_at = self.grants.front().map(|grant| grant.lapses_at);
        let next = lapses_at.into_iter().chain(self.opens_at(now)).min();
        next.map(|at| at.max(now.plus(1)))
    }

    /// Takes note of the time: of windows that began anew, and of turns that did not come.
    fn roll(&mut self, now: Millis) {
        self.room.windows.iter_mut().for_each(|window| window.roll(now));
        while let Some(grant) = self.grants.front() {
            let is_used = self.granted.get(&grant.turn) != Some(&grant.ticket);
            if !is_used && now < grant.lapses_at {
                return;
            }
            if !is_used {
                self.granted.remove(&grant.turn);
                self.room.give_back(grant.ticket);
            }
            self.grants.pop_front();
        }
    }

    /// Returns the turn that goes next, if there is room for it.
    fn pick(&mut self, now: Millis) -> Option<TurnId> {
        let has_others = self.queue.len() > 1;
        for waiter in self.queue.in_order().take(CONSIDERED) {
            match self.room.check(waiter, 0, has_others, now) {
                Ok(()) => return Some(waiter.turn.clone()),
                Err(Wait { because: Because::Requests | Because::Tokens, .. })
                    if self.room.may_overtake() => {}
                Err(_) => return None,
            }
        }
        None
    }

    fn opens_at(&mut self, now: Millis) -> Option<Millis> {
        let mut next: Option<Millis> = None;
        let has_others = self.queue.len() > 1;
        for waiter in self.queue.in_order().take(CONSIDERED) {
            let (at, may_overtake) = match self.room.check(waiter, 0, has_others, now) {
                Ok(()) => (now, false),
                Err(Wait { because: Because::Concurrency | Because::Probe, .. }) => break,
                Err(Wait { because: Because::Requests | Because::Tokens, until }) => {
                    (until, self.room.may_overtake())
                }
                Err(wait) => (wait.until, false),
            };
            next = Some(next.map_or(at, |known| known.min(at)));
            if !may_overtake {
                break;
            }
        }
        next
    }

    /// The call of a turn that was let go is made. Its new ticket says when, because reports count calls in that order.
    fn redeem(&mut self, granted: Ticket) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        self.room.redeem(granted, self.last);
        self.last
    }

    /// Lets the call go. `is_reserved`: its turn makes it later.
    fn take(&mut self, waiter: Waiter, is_reserved: bool, now: Millis) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        let ticket = self.last;
        let Waiter { turn, priority, size } = waiter;
        self.queue.remove(&turn);
        self.queue.went(priority);
        let room = &mut self.room;
        if room.closed.state(&turn, now) == State::MayProbe {
            room.closed.probes(ticket);
        }
        for window in &mut room.windows {
            let amount = size.of(window.what);
            if is_reserved { window.reserve(amount) } else { window.take(ticket, amount) }
        }
        room.learnt.add(now);
        room.ramp.take(now);
        if priority == Priority::Interactive {
            room.reserve.add(now);
        }
        let beside = room.count();
        room.running.insert(ticket, Running { turn, size, at: now, beside, is_accepted: false, is_reserved });
        ticket
    }
}
