//! Checks whether concurrent operations on one conversation of a journal are linearizable: whether one after another, each at
//! some moment between its beginning and its end, they could have been told the same.
//!
//! That needs no search. The answers name the state of the conversation that they belong to: an acknowledged append and a
//! load by the version, of which none is used twice, a list and a reading of events or history by the last append in it.
//! An append follows the version that it expected, so at most one append follows each state, and the order of the states is
//! forced. So is the place of each operation among them: an append comes just before its state, a reading within it. What
//! remains free is the order of readings of one state, which does not matter. So there is a linearization exactly if no
//! operation began after another ended that has a later place.
//!
//! Three things may have several places:
//!
//! - An append whose outcome is unknown takes effect at any moment after it began, or never. If anybody saw it, its place is
//!   the one after the version that it expected, and it may have ended at any time. If nobody did, it changes nothing.
//! - *Not there* is said before the first append or after the removal. It counts as the earlier, if nothing that ended before
//!   is later: whatever is possible with the later one is possible with the earlier one.
//! - A refusal may name a version that nobody loaded and nobody was told: the last one before the removal, of an append
//!   whose outcome is unknown. It counts as seeing what is known to be before that. There, and only there, more is accepted
//!   than is linearizable.
//!
//! Some readings promise less: see [`Operation::may_lag`].

mod order;
mod rival;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use everturn_orchestrator::Version;

use order::Order;
pub use rival::{Did, Plan, Record, Rival};

/// An operation that has ended.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Which journal was asked. Processes have one each.
    pub journal: usize,
    /// When it began. Each beginning and each end of an operation has a time of its own, in the order in which they happened.
    pub began: u64,
    /// When it was told its answer.
    pub ended: u64,
    /// What was asked, and what was told.
    pub told: Told,
    /// Whether a reading may be outdated, because it may be answered by a server that does not know that it was replaced.
    ///
    /// Then it is only compared with what the same journal did before, which it must contain, and with appends that began after
    /// it ended, which it cannot contain: readings are sequentially consistent with the appends, which are linearizable. A
    /// refusal counts as a reading.
    pub may_lag: bool,
}

/// What was asked, and what was told.
#[derive(Clone, Debug)]
pub enum Told {
    /// An append.
    Appended(Append),
    /// A load: the version, and the mark of the append that it belongs to.
    Loaded(Option<(Version, String)>),
    /// A reading of events or history: the marks of all appends, or of those from a certain one on, to the last.
    Read {
        /// The first one that was asked for. It was stored before.
        from: Option<String>,
        /// What was read.
        marks: Vec<String>,
    },
    /// A listing: the mark of the last append, if the conversation was listed.
    Listed(Option<String>),
    /// A removal: whether it was there. `None`: the outcome is unknown.
    Removed(Option<bool>),
}

/// An append.
#[derive(Clone, Debug)]
pub struct Append {
    /// A text that no other append has.
    pub mark: String,
    /// The version that it expected: 0, or one that an append or a load was told before.
    pub expected: Version,
    /// What it was told.
    pub outcome: Outcome,
}

/// What an append was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored, and this is its version.
    Stored(Version),
    /// It is not stored, because this is the version.
    Stale(Version),
    /// It is not stored, and was not refused.
    NotStored,
    /// It may or may not be stored.
    Unknown,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Stored(_) => "stored",
            Self::Stale(_) => "stale",
            Self::NotStored => "not stored",
            Self::Unknown => "unknown",
        }
    }
}

impl Operation {
    fn is_reading(&self) -> bool {
        match &self.told {
            Told::Appended(append) => matches!(append.outcome, Outcome::Stale(_)),
            Told::Removed(removed) => *removed == Some(false),
            Told::Loaded(_) | Told::Read { .. } | Told::Listed(_) => true,
        }
    }

    /// Whether it may take effect after it ended.
    fn is_open(&self) -> bool {
        match &self.told {
            Told::Appended(append) => append.outcome == Outcome::Unknown,
            Told::Removed(removed) => removed.is_none(),
            _ => false,
        }
    }

    fn describe(&self) -> String {
        let Self { journal, began, ended, told, .. } = self;
        format!("journal {journal} from {began} to {ended}: {told:?}")
    }
}

/// Returns what is wrong with the answers; nothing if there is a linearization.
///
/// # Panics
/// If the conversation is removed more than once, or before its first append was acknowledged: then places are not forced.
pub fn check(history: &[Operation]) -> Vec<String> {
    assert_removal(history);
    let order = match Order::of(history) {
        Ok(order) => order,
        Err(wrong) => return wrong,
    };
    let (mut wrong, mut places) = (Vec::new(), vec![Vec::new(); history.len()]);
    for (operation, places) in history.iter().zip(&mut places) {
        match order.places(operation) {
            Ok(found) => *places = found,
            Err(what) => wrong.push(format!("{}: {what}", operation.describe())),
        }
    }
    wrong.extend(in_time(history, &places));
    wrong
}

fn assert_removal(history: &[Operation]) {
    let mut removals = history.iter().filter(|one| matches!(one.told, Told::Removed(_)));
    let Some(removal) = removals.next() else { return };
    assert!(removals.next().is_none(), "it is removed more than once");
    let begins = |one: &Operation| {
        let Told::Appended(append) = &one.told else { return false };
        matches!(append.outcome, Outcome::Stored(_)) && append.expected == Version(0)
    };
    let is_there = history.iter().any(|one| begins(one) && one.ended < removal.began);
    assert!(is_there, "it is removed before its first append was acknowledged");
}

/// The latest place of what has ended, and which operation has it.
type Latest = (u64, Option<usize>);

/// Finds operations that began after one ended that has a later place.
fn in_time(history: &[Operation], places: &[Vec<u64>]) -> Vec<String> {
    let begin = |(at, one): (usize, &Operation)| (one.began, at, true);
    let end = |(at, one): (usize, &Operation)| (one.ended, at, false);
    let all = || history.iter().enumerate().filter(|(at, _)| !places[*at].is_empty());
    let mut moments: Vec<_> = all().map(begin).collect();
    moments.extend(all().filter(|(_, one)| !one.is_open()).map(end));
    moments.sort_unstable();
    let (mut chosen, mut wrong) = (vec![0; history.len()], Vec::new());
    let (mut latest, mut latest_of): (Latest, HashMap<usize, Latest>) = ((0, None), HashMap::new());
    for (_, at, begins) in moments {
        let one = &history[at];
        let own = latest_of.entry(one.journal).or_insert((0, None));
        if !begins {
            let place = (chosen[at], Some(at));
            *own = place.max(*own);
            latest = place.max(latest);
            continue;
        }
        let (floor, by) = if one.may_lag && one.is_reading() { *own } else { latest };
        let possible = places[at].iter().copied().find(|place| *place >= floor);
        chosen[at] = possible.or(places[at].last().copied()).unwrap_or_default();
        if let (None, Some(by)) = (possible, by) {
            wrong.push(format!("{} is older than {}", one.describe(), history[by].describe()));
        }
    }
    wrong
}
