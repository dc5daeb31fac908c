//! Callers: what each may use, whatever targets it calls.

mod quota;
mod share;

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};

use everturn_kernel::Millis;
use everturn_wire::{Because, CallerName, Priority};

use crate::{
    Call, Size, Wait, What,
    queue::{IN_A_ROW, Waiter},
};
use quota::Quota;
pub(crate) use share::Nodes;
pub use share::Use;

/// A minute and a day, in milliseconds. Each period begins with a full minute, or at midnight UTC.
const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// When a turn asks again that waits for a call of its caller to end, in milliseconds: it is let go when one does.
const UNKNOWN_MS: u64 = 30_000;

/// What a caller may use. `None` = no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The highest priority of its calls.
    pub priority: Priority,
    /// Calls that begin in a minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens of calls that begin in a minute, sent and answered.
    pub tokens_per_minute: Option<u64>,
    /// The same in a day.
    pub tokens_per_day: Option<u64>,
    /// Calls at once.
    pub parallel: Option<u64>,
    /// What calls that begin in a day cost, in millionths of the currency that prices are in.
    pub money_per_day: Option<u64>,
}

/// One kind of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// [`Terms::requests_per_minute`].
    RequestsPerMinute,
    /// [`Terms::tokens_per_minute`].
    TokensPerMinute,
    /// [`Terms::tokens_per_day`].
    TokensPerDay,
    /// [`Terms::parallel`].
    Parallel,
    /// [`Terms::money_per_day`].
    MoneyPerDay,
}

/// Of each kind in [`Kind::ALL`]: the number of its period, and what was used in it.
pub type Counts = [(u64, u64); Kind::ALL.len()];

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::RequestsPerMinute,
        Self::TokensPerMinute,
        Self::TokensPerDay,
        Self::Parallel,
        Self::MoneyPerDay,
    ];

    /// Returns the number of the present period, and when it ends; `None` = it limits calls at once.
    fn period(self, now: Millis) -> Option<(u64, Millis)> {
        // Asked several times per call, and the compiler divides fast by a number that it knows.
        let of = |number: u64, ms: u64| Some((number, Millis((number + 1) * ms)));
        match self {
            Self::RequestsPerMinute | Self::TokensPerMinute => of(now.0 / MINUTE_MS, MINUTE_MS),
            Self::TokensPerDay | Self::MoneyPerDay => of(now.0 / DAY_MS, DAY_MS),
            Self::Parallel => None,
        }
    }

    fn of(self, size: Size) -> u64 {
        match self {
            Self::RequestsPerMinute | Self::Parallel => 1,
            Self::TokensPerMinute | Self::TokensPerDay => size.of(What::Tokens),
            Self::MoneyPerDay => size.money,
        }
    }
}

impl Terms {
    /// Returns the limit of a kind.
    pub fn limit(&self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::RequestsPerMinute => self.requests_per_minute,
            Kind::TokensPerMinute => self.tokens_per_minute,
            Kind::TokensPerDay => self.tokens_per_day,
            Kind::Parallel => self.parallel,
            Kind::MoneyPerDay => self.money_per_day,
        }
    }
}

/// A limit that holds a caller back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which.
    pub kind: Kind,
    /// How much it allows.
    pub limit: u64,
    /// When to ask again at the latest.
    pub until: Millis,
}

impl From<Held> for Wait {
    fn from(held: Held) -> Self {
        Self { until: held.until, because: Because::CallerLimit }
    }
}

/// One caller.
#[derive(Clone, Debug, Default)]
struct Caller {
    terms: Terms,
    /// One of each kind. Counted without a limit, too, because there may be one later.
    quotas: [Quota; Kind::ALL.len()],
    /// `None` = nothing is known of others.
    nodes: Option<Box<Nodes>>,
    /// How many interactive calls went since the last one in the background, whatever their targets.
    in_a_row: u32,
}

/// All callers with terms, sorted by name. Each call looks its caller up several times, when little of this is in the processor's
/// cache: so names lie together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers {
    names: Vec<CallerName>,
    /// In the same order.
    all: Vec<Caller>,
}

impl Callers {
    /// Returns the call with the priority that it may have.
    pub(crate) fn lowered<'a>(&self, call: &Call<'a>) -> Call<'a> {
        let lowest = self.of(call.caller).map_or(call.priority, |caller| caller.terms.priority);
        Call { priority: call.priority.max(lowest), ..*call }
    }

    /// Replaces the terms. What was used stays.
    pub(crate) fn replace(&mut self, all: impl IntoIterator<Item = (CallerName, Terms)>) {
        let before = core::mem::take(self);
        let mut known: BTreeMap<CallerName, Caller> = before.names.into_iter().zip(before.all).collect();
        let mut callers = BTreeMap::new();
        for (name, terms) in all {
            let caller =
                callers.entry(name).or_insert_with_key(|name| known.remove(name).unwrap_or_default());
            caller.terms = terms;
        }
        (self.names, self.all) = callers.into_iter().unzip();
    }

    /// Returns the limit that holds a call back longest; `None` = it may go.
    pub(crate) fn held(&self, name: Option<&CallerName>, size: Size, now: Millis) -> Option<Held> {
        let caller = self.of(name)?;
        let held = Kind::ALL.into_iter().zip(&caller.quotas).filter_map(|(kind, quota)| {
            let limit = caller.terms.limit(kind)?;
            let (number, end) = kind.period(now).unzip();
            let allowed =
                caller.nodes.as_ref().map_or(limit, |nodes| nodes.allowed(kind, limit, number, now));
            if quota.fits(kind.of(size), allowed, limit, number) {
                return None;
            }
            Some(Held { kind, limit, until: end.unwrap_or(now.plus(UNKNOWN_MS)) })
        });
        held.max_by_key(|held| held.until)
    }

    /// Counts a call.
    pub(crate) fn take(&mut self, call: &Waiter, now: Millis) {
        let Some(caller) = call.caller.as_ref().and_then(|name| self.get_mut(name)) else { return };
        caller.in_a_row = match call.priority {
            Priority::Interactive => caller.in_a_row.saturating_add(1),
            Priority::Background => 0,
        };
        for (kind, quota) in Kind::ALL.into_iter().zip(&mut caller.quotas) {
            quota.take(kind.of(call.size), number(kind, now));
        }
    }

    /// Returns the order in which one caller's calls to several targets go: as in a line, interactive ones first, one of eight in
    /// the background, and then by age.
    pub(crate) fn order(&self, name: &CallerName, priority: Priority, since: Millis) -> (bool, Millis) {
        let is_due = self.of(Some(name)).is_some_and(|caller| caller.in_a_row >= IN_A_ROW);
        ((priority == Priority::Background) != is_due, since)
    }

    /// Takes back a call that was not made, or refused for a limit. `at`: when it was counted.
    pub(crate) fn give_back(&mut self, name: Option<&CallerName>, size: Size, at: Millis) {
        self.each(name, |kind, quota| quota.correct(kind.of(size), 0, number(kind, at)));
    }

    /// A call is over. `used`: its real size, if known.
    pub(crate) fn ended(&mut self, name: Option<&CallerName>, size: Size, used: Option<Size>, at: Millis) {
        self.each(name, |kind, quota| {
            let is_over = kind == Kind::Parallel;
            let real = if is_over { 0 } else { kind.of(used.unwrap_or(size)) };
            quota.correct(kind.of(size), real, number(kind, at));
        });
    }

    fn each(&mut self, name: Option<&CallerName>, change: impl Fn(Kind, &mut Quota)) {
        let Some(caller) = name.and_then(|name| self.get_mut(name)) else { return };
        Kind::ALL.into_iter().zip(&mut caller.quotas).for_each(|(kind, quota)| change(kind, quota));
    }

    fn of(&self, name: Option<&CallerName>) -> Option<&Caller> {
        self.names.binary_search(name?).ok().map(|at| &self.all[at])
    }

    fn get_mut(&mut self, name: &CallerName) -> Option<&mut Caller> {
        self.names.binary_search(name).ok().map(|at| &mut self.all[at])
    }

    /// Returns a caller, which is added if it is not known.
    fn entry(&mut self, name: &CallerName) -> &mut Caller {
        let at = self.names.binary_search(name).unwrap_or_else(|at| {
            self.names.insert(at, name.clone());
            self.all.insert(at, Caller::default());
            at
        });
        &mut self.all[at]
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &CallerName> {
        self.names.iter()
    }

    /// Whether a caller has a limit of one of these kinds.
    pub(crate) fn has_limit(&self, name: Option<&CallerName>, kinds: &[Kind]) -> bool {
        self.of(name).is_some_and(|caller| kinds.iter().any(|kind| caller.terms.limit(*kind).is_some()))
    }

    /// Whether a caller has a limit.
    pub(crate) fn is_limited(&self, name: Option<&CallerName>) -> bool {
        self.has_limit(name, &Kind::ALL)
    }

    /// Returns what this process used, and what nodes that are gone did. `waiting`: how many calls of it wait, and the size of
    /// the next one.
    pub(crate) fn used(&self, name: &CallerName, waiting: (u64, Option<Size>), now: Millis) -> Use {
        let Some(caller) = self.of(Some(name)) else { return Use::default() };
        let mut used = Use { calls: waiting.0, next: waiting.1, ..Use::default() };
        for (at, (kind, quota)) in Kind::ALL.into_iter().zip(&caller.quotas).enumerate() {
            used.counts[at] = quota.at(number(kind, now));
        }
        used.calls = used.calls.saturating_add(used.counts[Kind::Parallel as usize].1);
        used.gone = caller.nodes.as_ref().map(|nodes| nodes.gone.clone()).unwrap_or_default();
        used
    }

    /// Another node told what it used.
    pub(crate) fn used_elsewhere(&mut self, name: &CallerName, node: &str, used: Use) {
        if let Some(caller) = self.get_mut(name) {
            caller.nodes.get_or_insert_default().hear(node, used);
        }
    }

    /// Sets which nodes there are, this one included, and what this one tells from now on: what `used` returned.
    pub(crate) fn tell(&mut self, name: &CallerName, own: &str, alive: &[String], used: Use) {
        if let Some(caller) = self.get_mut(name) {
            caller.nodes.get_or_insert_default().tell(own, alive, used);
        }
    }

    /// What was used by an earlier process that kept this document.
    pub(crate) fn restore(&mut self, name: &CallerName, counts: Counts) {
        let caller = self.entry(name);
        for ((kind, quota), (number, used)) in Kind::ALL.into_iter().zip(&mut caller.quotas).zip(counts) {
            if kind != Kind::Parallel {
                quota.take(used, Some(number));
            }
        }
    }

    /// Returns all counts, as [`restore`](Self::restore) takes them.
    pub(crate) fn counts(&self, now: Millis) -> Vec<(CallerName, Counts)> {
        let of = |caller: &Caller| {
            Kind::ALL.map(|kind| match number(kind, now) {
                Some(number) => caller.quotas[kind as usize].at(Some(number)),
                None => (0, 0),
            })
        };
        self.names.iter().cloned().zip(self.all.iter().map(of)).collect()
    }
}

/// Returns the number of the period; `None` = the kind has none.
fn number(kind: Kind, now: Millis) -> Option<u64> {
    kind.period(now).map(|(number, _)| number)
}
