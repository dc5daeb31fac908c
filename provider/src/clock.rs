//! The wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the current time, in epoch milliseconds.
pub(crate) fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
