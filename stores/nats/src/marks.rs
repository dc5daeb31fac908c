//! Pointers from an append to earlier ones, for finding a place in a long conversation without reading all of it.
//!
//! Append number `n` points to `n - 1`, and to the numbers that remain when the lowest set bits of `n - 1` are cleared
//! one by one: 15 points to 14, 12 and 8. That is at most one pointer per bit, and the way to any append takes at most as
//! many steps.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

/// How far a conversation reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reach {
    /// The `seq` of the last chunk.
    pub(crate) seq: u64,
    /// The end of the last event.
    pub(crate) end: u64,
}

/// A pointer to an append. The default points before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// The number of the append in its conversation, from 1.
    pub(crate) number: u64,
    /// Its version.
    pub(crate) version: u64,
    /// How far the conversation reaches with it.
    pub(crate) reach: Reach,
}

/// The pointers of an append, in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(Vec<Mark>);

impl Marks {
    /// Returns the pointers of the append after the one that these belong to and that `last` points to.
    pub(crate) fn with(&self, last: Mark) -> Self {
        let earlier = self.0.iter().filter(|mark| is_kept(mark.number, last.number));
        Self(earlier.copied().chain([last]).collect())
    }

    /// Returns the last pointer for which `is_before` holds, and the first for which it does not. `is_before` must hold
    /// for no append after one for which it does not hold.
    pub(crate) fn around(&self, is_before: impl Fn(&Reach) -> bool) -> (Mark, Option<Mark>) {
        let at = self.0.partition_point(|mark| is_before(&mark.reach));
        let before = at.checked_sub(1).and_then(|at| self.0.get(at));
        (before.copied().unwrap_or_default(), self.0.get(at).copied())
    }

    /// Returns the pointer to the append before; the default if there is none.
    pub(crate) fn before(&self) -> Mark {
        self.0.last().copied().unwrap_or_default()
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for mark in &self.0 {
            let separator = if text.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{mark}");
        }
        text
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().map(Mark::parse).collect::<Option<_>>().map(Self)
    }
}

impl Mark {
    /// Reads what formatting wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u64> = text.split(':').map(|number| number.parse().ok()).collect::<Option<_>>()?;
        let [number, version, seq, end] = numbers[..] else { return None };
        Some(Self { number, version, reach: Reach { seq, end } })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, version, reach } = self;
        write!(f, "{number}:{version}:{}:{}", reach.seq, reach.end)
    }
}

/// Whether `number` is `last` without some of its lowest set bits.
fn is_kept(number: u64, last: u64) -> bool {
    let lowest = number & number.wrapping_neg();
    number & last == number && number < last && last - number < lowest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u64) -> Mark {
        Mark { number, version: number * 10, reach: Reach { seq: number * 2, end: number * 100 } }
    }

    fn all(count: u64) -> Vec<Marks> {
        let mut all = vec![Marks::default()];
        for number in 1..count {
            all.push(all[all.len() - 1].with(mark(number)));
        }
        all
    }

    #[test]
    fn an_append_points_to_few_earlier_ones() {
        let all = all(2_000);
        let numbers = |of: usize| all[of - 1].0.iter().map(|mark| mark.number).collect::<Vec<_>>();
        assert_eq!(numbers(1), [0; 0]);
        assert_eq!(numbers(16), [8, 12, 14, 15]);
        assert_eq!(numbers(17), [16]);
        assert!(all.iter().all(|marks| marks.0.len() <= 11));
    }

    #[test]
    fn any_place_is_found_in_few_steps() {
        let all = all(2_000);
        for wanted in 0..2_000 {
            let is_before = |reach: &Reach| reach.end <= wanted * 100;
            let ((mut low, mut high), mut steps) = (all[1_999].around(is_before), 0);
            while let Some(step) = high {
                let number = usize::try_from(step.number).unwrap();
                (low, high) = all[number - 1].around(is_before);
                steps += 1;
            }
            assert_eq!(low.number, wanted.min(1_999));
            assert!(steps <= 11, "{wanted}: {steps}");
        }
    }

    #[test]
    fn pointers_are_read_as_they_are_written() {
        let marks = &all(16)[15];
        assert_eq!(marks.to_text(), "8:80:16:800 12:120:24:1200 14:140:28:1400 15:150:30:1500");
        assert_eq!(Marks::parse(&marks.to_text()).as_ref(), Some(marks));
        assert_eq!(Marks::parse(""), Some(Marks::default()));
        for bad in ["1", "1:2:3", "1:2:3:4:5", "1:2:3:x", "1:2:3:-4"] {
            assert_eq!(Marks::parse(bad), None, "{bad}");
        }
    }
}
