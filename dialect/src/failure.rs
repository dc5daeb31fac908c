//! Failures in words.

use everturn_wire::{ErrorReport, RetryOutcome};

/// Longest explanation, in bytes: the client's or the provider's own words may be in it, and they may be megabytes.
const MAX_EXPLANATION: usize = 1024;

/// Why a turn failed, and how long it was tried.
pub(crate) fn explanation(report: &ErrorReport) -> String {
    let ErrorReport { message, .. } = report;
    let Some(RetryOutcome::Exhausted | RetryOutcome::TooLong) = report.outcome else {
        return brief(message.clone());
    };
    let waited = report.waited_ms.unwrap_or(0) / 1000;
    let retries = report.retries.unwrap_or(0);
    brief(format!("gave up after {retries} retries over {waited} s: {message}"))
}

/// A text of a bounded length.
pub(crate) fn brief(mut text: String) -> String {
    if text.len() > MAX_EXPLANATION {
        text.truncate(text.floor_char_boundary(MAX_EXPLANATION));
        text.push('…');
    }
    text
}
