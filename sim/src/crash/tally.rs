//! What happened in worlds, counted: so that a test can see that what it is about did happen.

use std::collections::BTreeMap;

/// How often what happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    /// How often that happened.
    pub fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Adds what happened elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (what, times) in &other.0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    /// All of it, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, times)| (*what, *times))
    }
}
