//! Figures, and the rows that they are kept in.

use std::{borrow::Cow, collections::BTreeMap};

use everturn_kernel::{Target, Turn};
use everturn_wire::{DoneReason, Usage};
use serde::{Deserialize, Serialize};

/// Number of rows of a caller's day from which on its further models share one, so that no caller takes the rows of others.
const MOST_OF_CALLER: usize = 100;

/// Number of rows of a day from which on further models of every caller share one, and from which on all further callers do.
const MOST_ROWS: usize = 1_000;
const MOST_WITH_CALLERS: usize = 2_000;

/// Maximum length of a name, in bytes.
const LONGEST: usize = 256;

/// Stands for everything that is not kept apart. No caller can have this name.
const OTHER: &str = "(other)";

/// What a row is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    /// `None` = the administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) caller: Option<String>,
    pub(super) model: String,
    pub(super) target: String,
}

impl Key {
    pub(super) fn new(caller: Option<&str>, target: &Target) -> Self {
        let short = |name: &str| name[..name.floor_char_boundary(LONGEST)].to_owned();
        Self { caller: caller.map(short), model: short(&target.model), target: short(&target.name) }
    }

    fn other(caller: Option<String>) -> Self {
        Self { caller, model: OTHER.to_owned(), target: OTHER.to_owned() }
    }
}

/// What was used, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Figures {
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) turns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) survived: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) failed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) waited_ms: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) requests: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) refusals: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) input: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) output: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) cache_read: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) cache_write: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) reasoning: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<&Usage> for Figures {
    fn from(usage: &Usage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cache_read: usage.cache_read_tokens.unwrap_or(0),
            cache_write: usage.cache_write_tokens.unwrap_or(0),
            reasoning: usage.reasoning_tokens.unwrap_or(0),
            ..Self::default()
        }
    }
}

impl Figures {
    /// Returns what a turn that ended adds.
    pub(crate) fn of_ended(turn: &Turn) -> Self {
        let Some(outcome) = turn.outcome() else { return Self::default() };
        let failed = outcome.failure.is_some() || outcome.reason == DoneReason::Error;
        let is_answered = !failed && outcome.reason != DoneReason::Aborted;
        Self {
            turns: 1,
            failed: failed.into(),
            survived: (is_answered && turn.retries() > 0).into(),
            waited_ms: turn.waited_ms(),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether there are tokens, which have a price.
    pub(super) fn has_tokens(&self) -> bool {
        self.input > 0 || self.output > 0
    }

    pub(crate) fn add(&mut self, more: &Self) {
        let Self {
            turns,
            survived,
            failed,
            waited_ms,
            requests,
            refusals,
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        } = more;
        for (sum, more) in [
            (&mut self.turns, turns),
            (&mut self.survived, survived),
            (&mut self.failed, failed),
            (&mut self.waited_ms, waited_ms),
            (&mut self.requests, requests),
            (&mut self.refusals, refusals),
            (&mut self.input, input),
            (&mut self.output, output),
            (&mut self.cache_read, cache_read),
            (&mut self.cache_write, cache_write),
            (&mut self.reasoning, reasoning),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }
}

/// The figures of a day. Their number is bounded: what is beyond shares a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows(BTreeMap<Key, Figures>);

/// A row as it is stored.
#[derive(Serialize, Deserialize)]
pub(super) struct Row<'a> {
    #[serde(flatten)]
    key: Cow<'a, Key>,
    #[serde(flatten)]
    figures: Figures,
}

impl Rows {
    pub(super) fn add(&mut self, key: Key, more: &Figures) {
        if let Some(figures) = self.0.get_mut(&key) {
            return figures.add(more);
        }
        let is_alone = self.0.len() < MOST_ROWS && self.of_caller(&key.caller) < MOST_OF_CALLER;
        let key = if is_alone {
            key
        } else if self.0.len() < MOST_WITH_CALLERS {
            Key::other(key.caller)
        } else {
            Some(Key::other(key.caller))
                .filter(|of_caller| self.0.contains_key(of_caller))
                .unwrap_or_else(|| Key::other(Some(OTHER.to_owned())))
        };
        self.0.entry(key).or_default().add(more);
    }

    /// Returns the number of a caller's rows, at most `MOST_OF_CALLER`.
    fn of_caller(&self, caller: &Option<String>) -> usize {
        let first = Key { caller: caller.clone(), model: String::new(), target: String::new() };
        self.0.range(first..).take_while(|(key, _)| key.caller == *caller).take(MOST_OF_CALLER).count()
    }

    pub(super) fn add_all(&mut self, more: &Self) {
        for (key, figures) in more.iter() {
            self.add(key.clone(), figures);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Figures)> {
        self.0.iter()
    }

    pub(super) fn stored(&self) -> Vec<Row<'_>> {
        self.iter().map(|(key, figures)| Row { key: Cow::Borrowed(key), figures: *figures }).collect()
    }

    pub(super) fn restored(rows: Vec<Row<'_>>) -> Self {
        Self(rows.into_iter().map(|row| (row.key.into_owned(), row.figures)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_bounded_and_nothing_is_lost() {
        let mut rows = Rows::default();
        let one = Figures { requests: 1, ..Figures::default() };
        let mut add = |caller: &str, model: usize| {
            rows.add(Key::new(Some(caller), &Target::new("p", model.to_string())), &one);
        };
        (0..1_500).for_each(|model| add("ann", model));
        (0..20).for_each(|model| add("ben", model));
        (0..2_500).for_each(|caller| add(&format!("c{caller}"), 0));
        add("ann", 3);
        add("ann", 1_400);
        let of = |caller: &str| {
            let sum = rows.iter().filter(|(key, _)| key.caller.as_deref() == Some(caller));
            sum.map(|(_, figures)| figures.requests).sum::<u64>()
        };
        let kept =
            |caller: &str| rows.iter().filter(|(key, _)| key.caller.as_deref() == Some(caller)).count();
        assert_eq!((of("ann"), of("ben"), kept("ann"), kept("ben")), (1_502, 20, MOST_OF_CALLER + 1, 20));
        // Beside the rows of these two.
        let alone = MOST_WITH_CALLERS - (MOST_OF_CALLER + 1) - 20;
        assert_eq!((of("c0"), of(&format!("c{}", alone - 1)), of(&format!("c{alone}"))), (1, 1, 0));
        assert_eq!(of(OTHER), 2_500 - alone as u64);
        assert_eq!(rows.iter().count(), MOST_WITH_CALLERS + 1);
    }
}
