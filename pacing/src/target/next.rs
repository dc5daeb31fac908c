//! Which turn goes next, and when.

use everturn_kernel::Millis;
use everturn_wire::{CallerName, TurnId};

use super::Target;
use crate::{
    Because, Priority, Wait,
    caller::{Callers, Kind},
    queue::Waiter,
};

/// How many waiting turns are considered at once, if the first ones need more room than there is.
const CONSIDERED: usize = 32;

/// A turn that may go next.
pub(crate) struct Next {
    pub(crate) turn: TurnId,
    pub(crate) caller: Option<CallerName>,
    /// Its place among its caller's calls to all targets; `None` = it has no caller.
    order: Option<(bool, Millis)>,
}

impl Next {
    pub(crate) fn new(
        turn: TurnId,
        caller: Option<CallerName>,
        priority: Priority,
        since: Millis,
        callers: &Callers,
    ) -> Self {
        let order = caller.as_ref().map(|name| callers.order(name, priority, since));
        Self { turn, caller, order }
    }

    /// Whether a call of the same caller goes before another one.
    pub(crate) fn goes_before(&self, other: &Self) -> bool {
        self.caller == other.caller && self.order < other.order
    }
}

impl Target {
    /// Returns the turn that may go next.
    pub(crate) fn next(&mut self, callers: &mut Callers, now: Millis) -> Option<Next> {
        self.roll(callers, now);
        let Waiter { turn, caller, priority, .. } = self.pick(callers, now).ok()?;
        let since = self.queue.since(&turn)?;
        Some(Next::new(turn, caller, priority, since, callers))
    }

    /// Returns when somebody may be let go next, if time alone decides.
    pub(crate) fn next_at(&mut self, callers: &Callers, now: Millis) -> Option<Millis> {
        let opens_at = self.pick(callers, now).map_or_else(|at| at, |_| Some(now));
        let probed_until = self.room.closed.probed_until(now).filter(|_| self.queue.len() > 0);
        let lapses_at = self.grants.front().map(|grant| grant.lapses_at);
        // Who is held only until a call of its caller ends, does not wait for time to pass.
        let held = self.queue.heads().filter_map(|head| callers.held(head.caller.as_ref(), head.size, now));
        let held_until = held.filter(|held| held.kind != Kind::Parallel).map(|held| held.until).min();
        let next = [opens_at, probed_until, lapses_at, held_until].into_iter().flatten().min();
        next.map(|at| at.max(now.plus(1)))
    }

    /// Returns the turn that goes next if there is room for it, or when there may be, if time alone decides.
    pub(super) fn pick(&mut self, callers: &Callers, now: Millis) -> Result<Waiter, Option<Millis>> {
        let has_others = self.queue.len() > 1;
        let (mut order, mut considered, mut next) = (self.queue.in_order(), 0, None);
        while considered < CONSIDERED
            && let Some(waiter) = order.next()
        {
            if callers.held(waiter.caller.as_ref(), waiter.size, now).is_some() {
                order.skip_caller();
                continue;
            }
            let (at, may_overtake) = if let Some(until) = self.room.kept_until(waiter, &self.queue, now) {
                order.skip_caller();
                (until, true)
            } else {
                considered += 1;
                match self.room.check(waiter, 0, has_others, now) {
                    Ok(()) => return Ok(waiter.clone()),
                    Err(Wait { because: Because::Concurrency | Because::Probe, .. }) => break,
                    Err(Wait { because: Because::Requests | Because::Tokens, until }) => {
                        (until, self.room.may_overtake())
                    }
                    Err(wait) => (wait.until, false),
                }
            };
            next = next.into_iter().chain([at]).min();
            if !may_overtake {
                break;
            }
        }
        Err(next)
    }
}
