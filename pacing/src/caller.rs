//! Callers: what each may use, whatever targets it calls.

mod quota;
mod share;

use alloc::{string::String, vec::Vec};

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

    /// Returns how long a period is, in milliseconds; `None` = it limits calls at once.
    fn period_ms(self) -> Option<u64> {
        match self {
            Self::RequestsPerMinute | Self::TokensPerMinute => Some(MINUTE_MS),
            Self::TokensPerDay | Self::MoneyPerDay => Some(DAY_MS),
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
    nodes: Nodes,
    /// How many interactive calls went since the last one in the background, whatever their targets.
    in_a_row: u32,
}

/// All callers with terms, sorted by name. Each call looks its caller up some ten times, which takes fewer comparisons here than in
/// a map.
#[derive(Clone, Debug, Default)]
pub(crate) struct Callers(Vec<(CallerName, Caller)>);

impl Callers {
    /// Returns the call with the priority that it may have.
    pub(crate) fn lowered<'a>(&self, call: &Call<'a>) -> Call<'a> {
        let lowest = self.of(call.caller).map_or(call.priority, |caller| caller.terms.priority);
        Call { priority: call.priority.max(lowest), ..*call }
    }

    /// Replaces the terms. What was used stays.
    pub(crate) fn replace(&mut self, all: impl IntoIterator<Item = (CallerName, Terms)>) {
        let mut before = core::mem::take(self);
        for (name, terms) in all {
            let mut caller = before.get_mut(&name).map(core::mem::take).unwrap_or_default();
            caller.terms = terms;
            self.0.push((name, caller));
        }
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        // Of one that is named twice, the last terms count.
        self.0.dedup_by(|(later, of_later), (name, caller)| {
            let is_same = later == name;
            if is_same {
                caller.terms = of_later.terms;
            }
            is_same
        });
    }

    /// Returns the limit that holds a call back longest; `None` = it may go.
    pub(crate) fn held(&self, name: Option<&CallerName>, size: Size, now: Millis) -> Option<Held> {
        let caller = self.of(name)?;
        let held = Kind::ALL.into_iter().zip(&caller.quotas).filter_map(|(kind, quota)| {
            let limit = caller.terms.limit(kind)?;
            let period = kind.period_ms().map(|ms| (ms, now.0 / ms));
            let allowed = caller.nodes.allowed(kind, limit, period.map(|(_, number)| number));
            if quota.fits(kind.of(size), allowed, period.map(|(_, number)| number)) {
                return None;
            }
            let until = match period {
                Some((ms, number)) => Millis((number + 1) * ms),
                None => now.plus(UNKNOWN_MS),
            };
            Some(Held { kind, limit, until })
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

    fn find(&self, name: &CallerName) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(name))
    }

    fn of(&self, name: Option<&CallerName>) -> Option<&Caller> {
        self.find(name?).ok().map(|at| &self.0[at].1)
    }

    fn get_mut(&mut self, name: &CallerName) -> Option<&mut Caller> {
        self.find(name).ok().map(|at| &mut self.0[at].1)
    }

    /// Returns a caller, which is added if it is not known.
    fn entry(&mut self, name: &CallerName) -> &mut Caller {
        let at = self.find(name).unwrap_or_else(|at| {
            self.0.insert(at, (name.clone(), Caller::default()));
            at
        });
        &mut self.0[at].1
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &CallerName> {
        self.0.iter().map(|(name, _)| name)
    }

    /// Whether a caller has a limit of one of these kinds.
    pub(crate) fn has_limit(&self, name: Option<&CallerName>, kinds: &[Kind]) -> bool {
        self.of(name).is_some_and(|caller| kinds.iter().any(|kind| caller.terms.limit(*kind).is_some()))
    }

    /// Whether a caller has a limit.
    pub(crate) fn is_limited(&self, name: Option<&CallerName>) -> bool {
        self.has_limit(name, &Kind::ALL)
    }

    /// Returns what this process used, and what nodes that are gone did. `waiting`: how many calls of it wait.
    pub(crate) fn used(&self, name: &CallerName, waiting: u64, now: Millis) -> Use {
        let Some(caller) = self.of(Some(name)) else { return Use::default() };
        let mut used = Use { calls: waiting, ..Use::default() };
        for (at, (kind, quota)) in Kind::ALL.into_iter().zip(&caller.quotas).enumerate() {
            used.counts[at] = quota.at(number(kind, now));
        }
        used.calls = used.calls.saturating_add(used.counts[Kind::Parallel as usize].1);
        used.gone = caller.nodes.gone(now);
        used
    }

    /// Another node told what it used.
    pub(crate) fn used_elsewhere(&mut self, name: &CallerName, node: &str, used: Use) {
        if let Some(caller) = self.get_mut(name) {
            caller.nodes.hear(node, used);
        }
    }

    /// Sets which nodes there are, this one included, and what this one tells from now on: what `used` returned.
    pub(crate) fn tell(&mut self, name: &CallerName, own: &str, alive: &[String], used: Use) {
        if let Some(caller) = self.get_mut(name) {
            caller.nodes.tell(own, alive, used);
        }
    }

    /// What was used by an earlier process that kept this document.
    pub(crate) fn restore(&mut self, name: &CallerName, counts: Counts) {
        let caller = self.entry(name);
        for ((kind, quota), (number, used)) in Kind::ALL.into_iter().zip(&mut caller.quotas).zip(counts) {
            if kind.period_ms().is_some() {
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
        self.0.iter().map(|(name, caller)| (name.clone(), of(caller))).collect()
    }
}

/// Returns the number of the period; `None` = the kind has none.
fn number(kind: Kind, now: Millis) -> Option<u64> {
    kind.period_ms().map(|ms| now.0 / ms)
}
