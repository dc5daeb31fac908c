//! All targets, by name.

use alloc::{borrow::ToOwned, collections::BTreeMap, string::String, vec::Vec};

use everturn_kernel::Millis;
use everturn_wire::{Failure, TurnId};

use crate::{Admission, Call, Limits, Size, Ticket, target::Target};

/// Decides when calls may be made. A plain value: its owner shares it between turns, passes in the time, and carries its
/// answers out.
///
/// For each call, in this order: [`admit`](Self::admit) until it answers [`Admission::Go`]; then [`heard`](Self::heard)
/// when the provider accepts it, and [`ended`](Self::ended) when it is over; or [`refused`](Self::refused), which ends it.
/// After each of these, and at [`next_at`](Self::next_at), [`let_go`](Self::let_go).
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    targets: BTreeMap<String, Target>,
}

impl Pacer {
    /// Creates a pacer that knows nothing.
    pub const fn new() -> Self {
        Self { targets: BTreeMap::new() }
    }

    /// Whether the turn may call the target now. If not, the turn waits in line, and keeps its place if it asks again.
    pub fn admit(&mut self, target: &str, call: &Call<'_>, now: Millis) -> Admission {
        match self.targets.get_mut(target) {
            Some(known) => known.admit(call, now),
            None => {
                let mut new = Target::new();
                let admission = new.admit(call, now);
                self.targets.insert(target.to_owned(), new);
                admission
            }
        }
    }

    /// The provider accepted the call: the head of its response arrived, without a refusal.
    pub fn heard(&mut self, target: &str, ticket: Ticket, limits: &Limits, now: Millis) {
        self.with(target, |target| target.heard(ticket, limits, now));
    }

    /// The call failed. `retry`: the call that the turn will make instead, and when by its own schedule; `None` if it gives
    /// up or goes elsewhere.
    pub fn refused(
        &mut self,
        target: &str,
        ticket: Ticket,
        failure: &Failure,
        limits: &Limits,
        retry: Option<(&Call<'_>, Millis)>,
        now: Millis,
    ) {
        self.with(target, |target| target.refused(ticket, failure, limits, retry, now));
    }

    /// The call is over, or its outcome stays unknown. `used`: its real size, if the provider reported it.
    pub fn ended(&mut self, target: &str, ticket: Ticket, used: Option<Size>) {
        self.with(target, |target| target.ended(ticket, used));
    }

    /// The turn no longer wants to call the target.
    pub fn forget(&mut self, target: &str, turn: &TurnId) {
        self.with(target, |target| target.forget(turn));
    }

    /// Returns the turns whose wait for the target is over, in order. A call is reserved for each for 5 s.
    pub fn let_go(&mut self, target: &str, now: Millis) -> Vec<TurnId> {
        let mut released = Vec::new();
        self.with(target, |target| target.let_go(now, &mut released));
        released
    }

    /// Returns when to call [`let_go`](Self::let_go) for the target again if nothing happens before; `None` if nobody waits
    /// for time to pass.
    pub fn next_at(&mut self, target: &str, now: Millis) -> Option<Millis> {
        self.targets.get_mut(target)?.next_at(now)
    }

    /// Sets the part of what is left of the target's reported limits that this process may use: `mine` of `all`.
    pub fn share(&mut self, target: &str, mine: u64, all: u64, now: Millis) {
        self.with(target, |target| target.set_share(mine, all, now));
    }

    /// Returns how many turns wait for the target.
    pub fn waiting(&self, target: &str) -> usize {
        self.targets.get(target).map_or(0, Target::waiting)
    }

    fn with(&mut self, target: &str, change: impl FnOnce(&mut Target)) {
        if let Some(target) = self.targets.get_mut(target) {
            change(target);
        }
    }
}
