//! All targets, by name.

use alloc::{borrow::ToOwned, collections::BTreeMap, string::String, vec::Vec};

use everturn_kernel::Millis;
use everturn_wire::{CallerName, Failure, TurnId, Unreached};

use crate::{
    Admission, Call, Counts, Held, Kind, Lately, Limits, Size, Terms, Ticket, Use, Wait,
    caller::Callers,
    saved::Known,
    target::{Next, Target},
};

/// How long after a target's last answer a failed connection counts as a failure of our own network, in milliseconds:
/// 24 h.
const KNOWN_MS: u64 = 24 * 60 * 60 * 1_000;

/// Decides when calls may be made. A plain value: its owner shares it between turns, passes in the time, and carries its
/// answers out.
///
/// For each call, in this order: [`admit`](Self::admit) until it answers [`Admission::Go`], or [`insist`](Self::insist);
/// then [`heard`](Self::heard) when the provider accepts it, and [`ended`](Self::ended) when it is over; or
/// [`refused`](Self::refused) or [`unreached`](Self::unreached), which end it. After each of these, and at
/// [`next_at`](Self::next_at), [`let_go`](Self::let_go).
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    targets: BTreeMap<String, Target>,
    callers: Callers,
}

impl Pacer {
    /// Creates a pacer that knows nothing.
    pub const fn new() -> Self {
        Self { targets: BTreeMap::new(), callers: Callers::new() }
    }

    /// Whether the turn may call the target now. If not, the turn waits in line, and keeps its place if it asks again.
    pub fn admit(&mut self, target: &str, call: &Call<'_>, now: Millis) -> Admission {
        let call = &self.callers.lowered(call);
        self.leave_others(target, call.turn);
        let is_behind = self.callers.is_limited(call.caller) && self.is_behind(target, call, now);
        let (target, callers) = self.parts(target);
        target.admit(call, is_behind, callers, now)
    }

    /// Counts a call that is made whatever is known, because a person asked for it or its turn cannot wait.
    ///
    /// # Errors
    /// When a limit of its caller holds it.
    pub fn insist(&mut self, target: &str, call: &Call<'_>, now: Millis) -> Result<Ticket, Wait> {
        self.leave_others(target, call.turn);
        let (target, callers) = self.parts(target);
        target.insist(&callers.lowered(call), callers, now)
    }

    /// The provider accepted the call: the head of its response arrived, without a refusal. Later reports of the same
    /// response may follow.
    pub fn heard(&mut self, target: &str, ticket: Ticket, limits: &Limits, now: Millis) {
        self.with(target, |target| target.heard(ticket, limits, now));
    }

    /// The call failed. Its turn follows its own schedule, and asks again by [`admit`](Self::admit).
    pub fn refused(&mut self, target: &str, ticket: Ticket, failure: &Failure, limits: &Limits, now: Millis) {
        if let Some(target) = self.targets.get_mut(target) {
            target.refused(ticket, failure, limits, &mut self.callers, now);
        }
    }

    /// If the call reached nobody because this machine has no network: ends it, puts its turn back in line, and returns when
    /// the next turn may look for the network. Otherwise the call was [`refused`](Self::refused).
    ///
    /// A failed connection means that only if the target answered within the last day, and no target has answered since the
    /// call was made.
    pub fn unreached(
        &mut self,
        target: &str,
        ticket: Ticket,
        call: &Call<'_>,
        failure: &Failure,
        now: Millis,
    ) -> Option<Millis> {
        let known = self.targets.get(target)?;
        let asked_at = known.asked_at(ticket)?;
        let is_recent = known.answered_at.is_some_and(|at| now.since(at) <= KNOWN_MS);
        let answered_since = || self.targets.values().any(|other| other.answered_at > Some(asked_at));
        let is_offline = match failure.unreached? {
            Unreached::NoRoute => true,
            _ => is_recent && !answered_since(),
        };
        if !is_offline {
            return None;
        }
        let (target, callers) = self.parts(target);
        Some(target.unreached(ticket, &callers.lowered(call), callers, now))
    }

    /// The call is over, or its outcome stays unknown. `used`: its real size, if the provider reported it.
    pub fn ended(&mut self, target: &str, ticket: Ticket, used: Option<Size>) {
        if let Some(target) = self.targets.get_mut(target) {
            target.ended(ticket, used, &mut self.callers);
        }
    }

    /// The turn no longer wants to call the target.
    pub fn forget(&mut self, target: &str, turn: &TurnId, now: Millis) {
        if let Some(target) = self.targets.get_mut(target) {
            target.forget(turn, &mut self.callers, now);
        }
    }

    /// Returns turns whose wait is over, in order: as many as may go, or, if these are more than `enough`, at least that many. A
    /// call is reserved for each for 5 s.
    pub fn let_go(&mut self, enough: usize, now: Millis) -> Vec<TurnId> {
        let Self { targets, callers } = self;
        let mut targets: Vec<&mut Target> = targets.values_mut().collect();
        let mut nexts: Vec<_> = targets.iter_mut().map(|target| target.next(callers, now)).collect();
        let mut released = Vec::new();
        // Targets take turns, so that none waits until all turns of another have gone.
        while released.len() < enough && nexts.iter().any(Option::is_some) {
            for at in 0..targets.len() {
                let Some(next) = nexts[at].take() else { continue };
                let is_limited = callers.is_limited(next.caller.as_ref());
                if is_limited && nexts.iter().flatten().any(|other| other.goes_before(&next)) {
                    nexts[at] = Some(next);
                    continue;
                }
                targets[at].let_go(&next.turn, callers, now);
                nexts[at] = targets[at].next(callers, now);
                // Its caller may have less left.
                for (target, known) in targets.iter_mut().zip(&mut nexts) {
                    if is_limited && known.as_ref().is_some_and(|known| known.caller == next.caller) {
                        *known = target.next(callers, now);
                    }
                }
                released.push(next.turn);
            }
        }
        released
    }

    /// Returns when to call [`let_go`](Self::let_go) again if nothing happens before; `None` if nobody waits for time to pass.
    pub fn next_at(&mut self, now: Millis) -> Option<Millis> {
        let Self { targets, callers } = self;
        targets.values_mut().filter_map(|target| target.next_at(callers, now)).min()
    }

    /// Sets the part of what is left of the target's reported limits that this process may use: `mine` of `all`.
    pub fn share(&mut self, target: &str, mine: u64, all: u64, now: Millis) {
        self.with(target, |target| target.set_share(mine, all, now));
    }

    /// Whether the target refused a call and has not answered since.
    pub fn is_closed(&self, target: &str) -> bool {
        self.targets.get(target).is_some_and(Target::is_closed)
    }

    /// Whether a call is finding out whether the target answers again.
    pub fn is_probed(&self, target: &str) -> bool {
        self.targets.get(target).is_some_and(Target::is_probed)
    }

    /// Returns how many turns wait for the target.
    pub fn waiting(&self, target: &str) -> usize {
        self.targets.get(target).map_or(0, Target::waiting)
    }

    /// Returns how many calls this process has to make to the target: those that wait, and those that run.
    pub fn demand(&self, target: &str) -> u64 {
        self.targets.get(target).map_or(0, Target::demand)
    }

    /// This turn of another process was refused `ago_ms` ago, with a hint that ends in `hint_ms`. That process asks first, in
    /// `probe_ms`.
    pub fn refused_elsewhere(
        &mut self,
        target: &str,
        turn: &TurnId,
        ago_ms: u64,
        hint_ms: Option<u64>,
        probe_ms: u64,
        now: Millis,
    ) {
        let at = Millis(now.0.saturating_sub(ago_ms));
        self.of(target).refused_elsewhere(turn, at, hint_ms, probe_ms, now);
    }

    /// Another process is finding out whether the target answers again.
    pub fn probed_elsewhere(&mut self, target: &str, now: Millis) {
        self.with(target, |target| target.probed_elsewhere(now));
    }

    /// The target accepted a call that another process made `ago_ms` ago.
    pub fn accepted_elsewhere(&mut self, target: &str, ago_ms: u64, now: Millis) {
        self.with(target, |target| target.accepted_elsewhere(Millis(now.0.saturating_sub(ago_ms))));
    }

    /// Returns what other processes have to be told of a target, since this was called last.
    pub fn lately(&mut self, target: &str, now: Millis) -> Lately {
        self.targets.get_mut(target).map_or_else(Lately::default, |target| target.lately(now))
    }

    /// Another process told this of a target.
    pub fn lately_elsewhere(&mut self, target: &str, lately: Lately, now: Millis) {
        self.with(target, |target| target.lately_elsewhere(lately, now));
    }

    /// Returns what is worth keeping of a target for the next process.
    pub fn known(&self, target: &str, now: Millis) -> Option<Known> {
        self.targets.get(target).map(|target| target.known(now))
    }

    /// Restores what an earlier process knew. What is too old is left out.
    pub fn restore(&mut self, target: &str, known: &Known, now: Millis) {
        let is_recent = |at: Millis| now.since(at) <= KNOWN_MS;
        self.of(target).restore(known, is_recent, now);
    }

    /// Replaces what callers may use. What they used stays.
    pub fn set_callers(&mut self, all: impl IntoIterator<Item = (CallerName, Terms)>) {
        self.callers.replace(all);
    }

    /// Returns the limit of its caller that holds a call of this size.
    pub fn held(&self, caller: Option<&CallerName>, size: Size, now: Millis) -> Option<Held> {
        self.callers.held(caller, size, now)
    }

    /// Whether a caller has limits.
    pub fn is_limited(&self, caller: Option<&CallerName>) -> bool {
        self.callers.is_limited(caller)
    }

    /// Whether a caller has a limit in money.
    pub fn is_limited_in_money(&self, caller: Option<&CallerName>) -> bool {
        self.callers.has_limit(caller, &[Kind::MoneyPerDay])
    }

    /// Returns what this process has to tell others about its callers.
    pub fn used_by_callers(&self, now: Millis) -> Vec<(CallerName, Use)> {
        let waiting = |name: &CallerName| {
            let name = Some(name.clone());
            self.targets.values().map(|target| target.waiting_of(&name) as u64).sum()
        };
        self.callers.names().map(|name| (name.clone(), self.callers.used(name, waiting(name), now))).collect()
    }

    /// Another process told what a caller used there.
    pub fn used_elsewhere(&mut self, caller: &CallerName, node: &str, used: Use) {
        self.callers.used_elsewhere(caller, node, used);
    }

    /// This process told others what a caller used, and these processes are there, it included.
    pub fn told(&mut self, caller: &CallerName, own: &str, alive: &[String], used: Use) {
        self.callers.tell(caller, own, alive, used);
    }

    /// Returns what callers used, to be kept.
    pub fn counts_of_callers(&self, now: Millis) -> Vec<(CallerName, Counts)> {
        self.callers.counts(now)
    }

    /// Restores what a caller used. Its terms may be set later.
    pub fn restore_caller(&mut self, caller: &CallerName, counts: Counts) {
        self.callers.restore(caller, counts);
    }

    /// Whether a call of the same caller, to another target, may go and goes first.
    fn is_behind(&mut self, target: &str, call: &Call<'_>, now: Millis) -> bool {
        let Self { targets, callers } = self;
        let own = Next::new(call.turn.clone(), call.caller.cloned(), call.priority, call.since, callers);
        let mut others = targets.iter_mut().filter(|(name, _)| *name != target);
        others.any(|(_, other)| other.next(callers, now).is_some_and(|next| next.goes_before(&own)))
    }

    /// A turn waits for one target at a time.
    fn leave_others(&mut self, target: &str, turn: &TurnId) {
        let Self { targets, callers } = self;
        let others = targets.iter_mut().filter(|(name, _)| *name != target);
        others.for_each(|(_, other)| other.leave(turn, callers));
    }

    fn parts(&mut self, target: &str) -> (&mut Target, &mut Callers) {
        let known = self.targets.entry(target.to_owned()).or_insert_with(Target::new);
        (known, &mut self.callers)
    }

    fn of(&mut self, target: &str) -> &mut Target {
        self.targets.entry(target.to_owned()).or_insert_with(Target::new)
    }

    fn with(&mut self, target: &str, change: impl FnOnce(&mut Target)) {
        if let Some(target) = self.targets.get_mut(target) {
            change(target);
        }
    }
}
