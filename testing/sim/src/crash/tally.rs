//! Counts what happened in worlds, so that tests can check that their subject occurred.

use std::collections::BTreeMap;

use super::phase::PHASES;

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    counts: BTreeMap<&'static str, u64>,
    /// How often something happened while a turn was in a phase.
    in_phase: BTreeMap<(&'static str, &'static str), u64>,
}

impl Tally {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Counts what happens to turns in these phases.
    pub(super) fn meets(&mut self, what: &'static str, phases: impl IntoIterator<Item = &'static str>) {
        for phase in phases {
            *self.in_phase.entry((what, phase)).or_default() += 1;
        }
    }

    /// Returns how often something happened.
    pub fn of(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Adds other counts.
    pub fn add(&mut self, other: &Self) {
        for (what, times) in &other.counts {
            *self.counts.entry(what).or_default() += times;
        }
        for (pair, times) in &other.in_phase {
            *self.in_phase.entry(*pair).or_default() += times;
        }
    }

    /// Iterates over all counts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(what, times)| (*what, *times))
    }

    /// Returns what happened to turns, and how often in each of [`PHASES`].
    pub fn by_phase(&self) -> BTreeMap<&'static str, [u64; PHASES.len()]> {
        let mut table = BTreeMap::<_, [u64; PHASES.len()]>::new();
        for ((what, phase), times) in &self.in_phase {
            let row = table.entry(*what).or_default();
            PHASES.iter().zip(row).filter(|(of, _)| *of == phase).for_each(|(_, cell)| *cell += times);
        }
        table
    }
}
