//! Hints in headers.

use std::time::UNIX_EPOCH;

use super::wait;
use crate::Evidence;

pub(super) fn of(evidence: &Evidence<'_>) -> Option<u64> {
    let millis = || evidence.header("retry-after-ms")?.parse().ok().and_then(wait);
    let after = || retry_after(evidence.header("retry-after")?, evidence.now);
    millis().or_else(after)
}

/// Seconds, or an HTTP date.
pub(super) fn retry_after(value: &str, now: u64) -> Option<u64> {
    if let Ok(seconds) = value.parse::<f64>() {
        return wait(seconds * 1000.0);
    }
    let at = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    wait(at.as_millis() as f64 - now as f64)
}
