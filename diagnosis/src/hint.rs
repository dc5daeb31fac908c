//! The wait that the provider asked for, in milliseconds.

mod header;

use crate::Evidence;

/// The longest wait that is believed: a year. More is a unit mistaken or a number mangled.
const LONGEST_MS: f64 = 366.0 * 24.0 * 3_600_000.0;

pub(crate) fn of(evidence: &Evidence<'_>) -> Option<u64> {
    header::of(evidence)
}

/// A whole number of milliseconds, rounded up. Nothing for zero, negative, not finite, or absurd.
fn wait(millis: f64) -> Option<u64> {
    // A float like 7.66 s must not become 7661 ms by its last bit.
    let rounded = (millis - 1e-6).ceil();
    (rounded > 0.0 && rounded <= LONGEST_MS).then_some(rounded as u64)
}
