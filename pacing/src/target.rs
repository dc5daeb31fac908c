//! One target: what is known of it, what runs, and who waits.

mod elsewhere;
mod next;
mod outcome;
mod room;

use alloc::collections::{BTreeMap, VecDeque};

use everturn_kernel::Millis;
use everturn_wire::{CallerName, TurnId};

use crate::{
    Admission, Because, Call, Size, Ticket, Wait,
    caller::Callers,
    closed::State,
    queue::{Queue, Waiter},
    window::Window,
};
pub(crate) use next::Next;
use room::Room;

/// How long a turn that was let go has to make its call, in milliseconds: the timer that wakes it also wakes others.
const GRACE_MS: u64 = 5_000;

/// When a turn asks again that waits for a call to end, in milliseconds: it is let go when one does.
const UNKNOWN_MS: u64 = 30_000;

/// A call that was let go.
#[derive(Clone, Debug)]
struct Running {
    turn: TurnId,
    caller: Option<CallerName>,
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
        self.room.learnt.set_share(self.share);
    }

    /// `is_behind`: whether another call of its caller, to another target, goes first.
    pub(crate) fn admit(
        &mut self,
        call: &Call<'_>,
        is_behind: bool,
        callers: &mut Callers,
        now: Millis,
    ) -> Admission {
        self.roll(callers, now);
        if let Some(ticket) = self.granted.remove(call.turn) {
            return Admission::Go(self.redeem(ticket));
        }
        let waiter = self.line_up(call);
        if !is_behind && self.pick(callers, now).is_ok_and(|next| next.turn == *call.turn) {
            return Admission::Go(self.take(waiter, Taken::Now, callers, now));
        }
        let is_held = |first: &Waiter| callers.held(first.caller.as_ref(), first.size, now).is_some();
        let others = u32::try_from(self.queue.before(&waiter, is_held)).unwrap_or(u32::MAX);
        let has_others = self.queue.len() > 1;
        let held = callers.held(waiter.caller.as_ref(), waiter.size, now).map(Wait::from);
        let kept = self.room.kept_until(&waiter, &self.queue, now);
        let kept = kept.map(|until| Wait { until, because: Because::Line });
        let wait = self.room.check(&waiter, others, has_others, now).err();
        let line = || Wait { until: now.plus(UNKNOWN_MS), because: Because::Line };
        let longest = [kept.or(wait), held].into_iter().flatten().max_by_key(|wait| wait.until);
        Admission::Wait(longest.unwrap_or_else(line))
    }

    /// Lets a call go whatever is known of the target. Only the limits of its caller hold it.
    pub(crate) fn insist(
        &mut self,
        call: &Call<'_>,
        callers: &mut Callers,
        now: Millis,
    ) -> Result<Ticket, Wait> {
        self.roll(callers, now);
        match self.granted.remove(call.turn) {
            Some(ticket) => Ok(self.redeem(ticket)),
            None => match callers.held(call.caller, call.size, now) {
                Some(held) => Err(held.into()),
                None => Ok(self.take(waiter(call), Taken::OutOfTurn, callers, now)),
            },
        }
    }

    fn line_up(&mut self, call: &Call<'_>) -> Waiter {
        let waiter = waiter(call);
        self.queue.wait(waiter.clone(), call.since);
        waiter
    }

    /// Lets the turn go that may go next: a call is reserved for it.
    pub(crate) fn let_go(&mut self, turn: &TurnId, callers: &mut Callers, now: Millis) {
        let Some(waiter) = self.queue.remove(turn) else { return };
        let ticket = self.take(waiter, Taken::Reserved, callers, now);
        self.granted.insert(turn.clone(), ticket);
        self.grants.push_back(Grant { turn: turn.clone(), ticket, lapses_at: now.plus(GRACE_MS) });
    }

    /// The call is over. `used`: its real size, if reported.
    pub(crate) fn ended(&mut self, ticket: Ticket, used: Option<Size>, callers: &mut Callers) {
        if let Some(Running { caller, size, at, .. }) = self.room.remove(ticket) {
            callers.ended(caller.as_ref(), size, used, at);
        }
        self.room.closed.left(ticket);
        if let Some(used) = used {
            self.room.windows.iter_mut().for_each(|window| window.correct(ticket, used.of(window.what)));
        }
    }

    /// The turn no longer wants to call.
    pub(crate) fn forget(&mut self, turn: &TurnId, callers: &mut Callers, now: Millis) {
        self.room.closed.forget(turn, now);
        self.leave(turn, callers);
    }

    /// The turn waits for another target.
    pub(crate) fn leave(&mut self, turn: &TurnId, callers: &mut Callers) {
        self.queue.remove(turn);
        if let Some(ticket) = self.granted.remove(turn) {
            self.give_back(ticket, callers);
        }
    }

    /// Takes back what was kept for a call that is not made.
    fn give_back(&mut self, ticket: Ticket, callers: &mut Callers) {
        if let Some(call) = self.room.give_back(ticket) {
            callers.give_back(call.caller.as_ref(), call.size, call.at);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.room.closed.probe_at.is_some()
    }

    pub(crate) fn is_probed(&self, now: Millis) -> bool {
        self.room.closed.is_probed(now)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns how many calls of a caller wait.
    pub(crate) fn waiting_of(&self, caller: &Option<CallerName>) -> usize {
        self.queue.waiting_of(caller)
    }

    /// Returns the size of a caller's next call that waits.
    pub(crate) fn next_of(&self, caller: &Option<CallerName>) -> Option<Size> {
        self.queue.next_of(caller)
    }

    /// Returns how many calls it has to make.
    pub(crate) fn demand(&self) -> u64 {
        (self.queue.len() + self.room.running.len()) as u64
    }

    /// Whether nobody waits, and no call is kept for anybody.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.len() == 0 && self.grants.is_empty()
    }

    /// Returns when a reported window begins anew.
    pub(crate) fn renews_at(&self) -> Option<Millis> {
        self.room.windows.iter().map(Window::resets_at).min()
    }

    /// Takes note of windows that began anew.
    pub(crate) fn renew(&mut self, now: Millis) {
        self.room.windows.iter_mut().for_each(|window| window.roll(now));
    }

    /// Takes note of the time: of windows that began anew, and of turns that did not come.
    fn roll(&mut self, callers: &mut Callers, now: Millis) {
        self.renew(now);
        self.room.reserve.roll(now);
        while let Some(grant) = self.grants.front() {
            let is_used = self.granted.get(&grant.turn) != Some(&grant.ticket);
            if !is_used && now < grant.lapses_at {
                return;
            }
            let Some(Grant { turn, ticket, .. }) = self.grants.pop_front() else { return };
            if !is_used {
                self.granted.remove(&turn);
                self.give_back(ticket, callers);
            }
        }
    }

    /// The call of a turn that was let go is made. Its new ticket says when, because reports count calls in that order.
    fn redeem(&mut self, granted: Ticket) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        self.room.redeem(granted, self.last);
        self.last
    }

    /// Lets the call go.
    fn take(&mut self, waiter: Waiter, taken: Taken, callers: &mut Callers, now: Millis) -> Ticket {
        self.last = Ticket(self.last.0 + 1);
        let (ticket, is_reserved) = (self.last, taken == Taken::Reserved);
        self.queue.remove(&waiter.turn);
        self.queue.went(&waiter, self.room.cost(waiter.size), taken != Taken::OutOfTurn);
        let room = &mut self.room;
        if room.closed.state(&waiter.turn, now) == State::MayProbe {
            room.closed.probes(ticket, now);
        }
        for window in &mut room.windows {
            let amount = waiter.size.of(window.what);
            if is_reserved { window.reserve(amount) } else { window.take(ticket, amount) }
        }
        room.learnt.add(now);
        room.ramp.take(now);
        room.reserve.add(&waiter, now);
        callers.take(&waiter, now);
        let (beside, is_accepted) = (room.count(), false);
        let Waiter { turn, caller, size, .. } = waiter;
        room.running
            .insert(ticket, Running { turn, caller, size, at: now, beside, is_accepted, is_reserved });
        ticket
    }
}

/// How a call is let go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// Its turn makes it now.
    Now,
    /// Its turn makes it later.
    Reserved,
    /// Its turn makes it now, whoever came first.
    OutOfTurn,
}

fn waiter(call: &Call<'_>) -> Waiter {
    let Call { turn, caller, priority, size, .. } = *call;
    Waiter { turn: turn.clone(), caller: caller.cloned(), priority, size }
}
