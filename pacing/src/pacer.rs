//! All targets, by name.

mod line;

use alloc::{borrow::ToOwned, collections::BTreeMap, string::String, vec::Vec};

use everturn_kernel::Millis;
use everturn_wire::{CallerName, Failure, TurnId, Unreached};

use crate::{
    Admission, Call, Counts, Held, Kind, Lately, Limits, Size, Terms, Ticket, Use, Wait, What,
    caller::Callers, saved::Known, target::Target,
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
    targets: Vec<Target>,
    /// The index of each.
    names: BTreeMap<String, usize>,
    /// Of those at which turns wait or were let go, and maybe of others. The rest need not be looked at.
    busy: BTreeMap<String, usize>,
    /// When a reported window of any target begins anew, at the earliest; `None` = there is none.
    renews_at: Option<Millis>,
    callers: Callers,
}

impl Pacer {
    /// Creates a pacer that knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the turn may call the target now. If not, the turn waits in line, and keeps its place if it asks again.
    pub fn admit(&mut self, target: &str, call: &Call<'_>, now: Millis) -> Admission {
        let call = &self.callers.lowered(call);
        self.leave_others(target, call.turn);
        let is_behind = self.callers.is_limited(call.caller) && self.is_behind(target, call, now);
        let (known, callers) = self.parts(target);
        let admission = known.admit(call, is_behind, callers, now);
        if matches!(admission, Admission::Wait(_)) {
            self.becomes_busy(target);
        }
        admission
    }

    /// Counts a call that is made regardless of the target's state, because a person asked for it or its turn cannot wait.
    ///
    /// # Errors
    /// When a limit of its caller holds it back.
    pub fn insist(&mut self, target: &str, call: &Call<'_>, now: Millis) -> Result<Ticket, Wait> {
        self.leave_others(target, call.turn);
        let (target, callers) = self.parts(target);
        target.insist(&callers.lowered(call), callers, now)
    }

    /// The provider accepted the call: the head of its response arrived, without a refusal. Later reports of the same
    /// response may follow.
    pub fn heard(&mut self, target: &str, ticket: Ticket, limits: &Limits, now: Millis) {
        self.with(target, |target, _| target.heard(ticket, limits, now));
    }

    /// The call failed. Its turn follows its own schedule, and asks again by [`admit`](Self::admit).
    pub fn refused(&mut self, target: &str, ticket: Ticket, failure: &Failure, limits: &Limits, now: Millis) {
        self.with(target, |target, callers| target.refused(ticket, failure, limits, callers, now));
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
        let known = self.find(target)?;
        let asked_at = known.asked_at(ticket)?;
        let is_recent = known.answered_at.is_some_and(|at| now.since(at) <= KNOWN_MS);
        let answered_since = || self.targets.iter().any(|other| other.answered_at > Some(asked_at));
        let is_offline = match failure.unreached? {
            Unreached::NoRoute => true,
            _ => is_recent && !answered_since(),
        };
        if !is_offline {
            return None;
        }
        self.becomes_busy(target);
        let (target, callers) = self.parts(target);
        Some(target.unreached(ticket, &callers.lowered(call), callers, now))
    }

    /// The call is over, or its outcome stays unknown. `used`: its real size, if the provider reported it.
    pub fn ended(&mut self, target: &str, ticket: Ticket, used: Option<Size>) {
        self.with(target, |target, callers| target.ended(ticket, used, callers));
    }

    /// The turn no longer wants to call the target.
    pub fn forget(&mut self, target: &str, turn: &TurnId, now: Millis) {
        self.with(target, |target, callers| target.forget(turn, callers, now));
    }

    /// Sets the part of what is left of the target's reported limits that this process may use: `mine` of `all`.
    pub fn share(&mut self, target: &str, mine: u64, all: u64, now: Millis) {
        self.with(target, |target, _| target.set_share(mine, all, now));
    }

    /// Whether the target refused a call and has not answered since.
    pub fn is_closed(&self, target: &str) -> bool {
        self.find(target).is_some_and(Target::is_closed)
    }

    /// Whether others wait for a call that is finding out whether the target answers again.
    pub fn is_probed(&self, target: &str, now: Millis) -> bool {
        self.find(target).is_some_and(|target| target.is_probed(now))
    }

    /// Returns how many turns wait for the target.
    pub fn waiting(&self, target: &str) -> usize {
        self.find(target).map_or(0, Target::waiting)
    }

    /// Returns how many calls this process has to make to the target: those that wait, and those that run.
    pub fn demand(&self, target: &str) -> u64 {
        self.find(target).map_or(0, Target::demand)
    }

    /// Records that another process's turn was refused `ago_ms` ago, with a hint that ends in `hint_ms`. That process asks first,
    /// in `probe_ms`.
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
        self.parts(target).0.refused_elsewhere(turn, at, hint_ms, probe_ms, now);
    }

    /// Another process is finding out whether the target answers again.
    pub fn probed_elsewhere(&mut self, target: &str, now: Millis) {
        self.with(target, |target, _| target.probed_elsewhere(now));
    }

    /// The target accepted a call that another process made `ago_ms` ago.
    pub fn accepted_elsewhere(&mut self, target: &str, ago_ms: u64, now: Millis) {
        self.with(target, |target, _| target.accepted_elsewhere(Millis(now.0.saturating_sub(ago_ms))));
    }

    /// Returns what to tell other processes about a target, since the last call of this method.
    pub fn lately(&mut self, target: &str, now: Millis) -> Lately {
        self.with(target, |target, _| target.lately(now)).unwrap_or_default()
    }

    /// Records what another process reported about a target.
    pub fn lately_elsewhere(&mut self, target: &str, lately: Lately, now: Millis) {
        self.with(target, |target, _| target.lately_elsewhere(lately, now));
    }

    /// Returns what is worth keeping of a target for the next process.
    pub fn known(&self, target: &str, now: Millis) -> Option<Known> {
        self.find(target).map(|target| target.known(now))
    }

    /// Restores what an earlier process knew. What is too old is left out.
    pub fn restore(&mut self, target: &str, known: &Known, now: Millis) {
        let is_recent = |at: Millis| now.since(at) <= KNOWN_MS;
        self.parts(target);
        self.with(target, |target, _| target.restore(known, is_recent, now));
    }

    /// Replaces the limits of callers. What they have used still counts.
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
            let busy = self.busy.values().map(|at| &self.targets[*at]);
            busy.fold((0, None), |(count, next): (u64, Option<Size>), target| {
                let larger = target
                    .next_of(&name)
                    .into_iter()
                    .chain(next)
                    .max_by_key(|size| (size.money, size.of(What::Tokens)));
                (count + target.waiting_of(&name) as u64, larger)
            })
        };
        self.callers.names().map(|name| (name.clone(), self.callers.used(name, waiting(name), now))).collect()
    }

    /// Another process told what a caller used there.
    pub fn used_elsewhere(&mut self, caller: &CallerName, node: &str, used: Use) {
        self.callers.used_elsewhere(caller, node, used);
    }

    /// Records what this process reported about a caller's use, and which processes are alive, this one included.
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

    fn find(&self, target: &str) -> Option<&Target> {
        self.names.get(target).map(|at| &self.targets[*at])
    }

    fn parts(&mut self, target: &str) -> (&mut Target, &mut Callers) {
        let at = self.names.get(target).copied().unwrap_or_else(|| {
            self.targets.push(Target::new());
            self.names.insert(target.to_owned(), self.targets.len() - 1);
            self.targets.len() - 1
        });
        (&mut self.targets[at], &mut self.callers)
    }

    fn with<T>(&mut self, target: &str, change: impl FnOnce(&mut Target, &mut Callers) -> T) -> Option<T> {
        let target = &mut self.targets[*self.names.get(target)?];
        let result = change(target, &mut self.callers);
        self.renews_at = self.renews_at.into_iter().chain(target.renews_at()).min();
        Some(result)
    }
}
