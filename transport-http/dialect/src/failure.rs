//! Failure messages.

use everturn_wire::{ErrorReport, RetryOutcome};

/// Maximum length of an explanation, in bytes. It may contain a client's or provider's text of megabytes.
const MAX_EXPLANATION: usize = 1024;

/// Returns why a turn failed, and how long it was retried.
pub(crate) fn explanation(report: &ErrorReport) -> String {
    let ErrorReport { message, .. } = report;
    let Some(RetryOutcome::Exhausted | RetryOutcome::TooLong) = report.outcome else {
        return brief(message.clone());
    };
    let waited = report.waited_ms.unwrap_or(0) / 1000;
    let retries = report.retries.unwrap_or(0);
    brief(format!("gave up after {retries} retries over {waited} s: {message}"))
}

/// Truncates a text.
pub(crate) fn brief(mut text: String) -> String {
    if text.len() > MAX_EXPLANATION {
        text.truncate(text.floor_char_boundary(MAX_EXPLANATION));
        text.push('…');
    }
    text
}
