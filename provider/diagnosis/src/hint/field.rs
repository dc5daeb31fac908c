//! Hints from fields of a body.

use super::{Hint, number, value, wait};
use crate::because::Because;
use crate::field::Field;
use crate::named::Named;

/// Returns the longest wait. Prefers waits that need no clock.
pub(super) fn longest(waits: &[(Field, Named)], now: u64) -> Option<Hint<'_>> {
    let longest = |moments: bool| {
        let ours = waits.iter().filter(|(field, _)| (*field == Field::Moment) == moments);
        let read =
            ours.filter_map(|(field, named)| Some((read(*field, &named.name, now)?, Because::Wait(named))));
        read.max_by_key(|(wait, _)| *wait)
    };
    longest(false).or_else(|| longest(true))
}

fn read(field: Field, text: &str, now: u64) -> Option<u64> {
    match field {
        Field::Millis => wait(number(text)?),
        Field::Span | Field::Moment => value(text, now),
    }
}
