//! Hints: the wait that the provider asked for, in milliseconds.
//!
//! Zero, negative, past and unreadable values are not hints. Absurdly long waits are believed only from a header that
//! requests a wait explicitly, and are clamped to a year. Sources are read in this order, and the first one wins:
//! explicit headers, the reset of an exhausted bucket, fields of the body, text.

mod calendar;
mod date;
mod duration;
mod field;
mod header;
mod prose;
mod zone;

use crate::Evidence;
use crate::because::Because;
use crate::kind::Kind;
use crate::prose::Prose;
use crate::shape::Findings;

/// Maximum wait: a year. A longer one is a wrong unit or a mangled number.
const LONGEST_MS: f64 = 366.0 * 24.0 * 3_600_000.0;

/// A larger number of seconds or milliseconds is a point in time.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLIS: f64 = 1e11;

/// A wait in milliseconds, and its source.
pub(crate) type Hint<'a> = (u64, Because<'a>);

/// Returns the wait for a kind of failure. A reset time matters only for a limit, and text may be an echo.
pub(crate) fn of<'a>(
    evidence: &Evidence<'a>,
    found: &'a Findings,
    prose: &Prose,
    kind: Kind,
) -> Option<Hint<'a>> {
    let quoted: Vec<_> = found.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let now = header::clock(evidence.headers).unwrap_or(evidence.now);
    let buckets =
        |headers| kind.waits().then(|| header::exhausted(headers, now, kind != Kind::Overloaded)).flatten();
    let spoken = || {
        let wait = (kind.waits() || kind.is_passing()).then(|| prose::read(prose, now)).flatten();
        wait.map(|wait| (wait, Because::Spoken))
    };
    let of_upstream = |(wait, because)| (wait, quoted_from(because));
    header::asked(evidence.headers, now)
        .or_else(|| buckets(evidence.headers))
        .or_else(|| header::asked(&quoted, now).map(of_upstream))
        .or_else(|| buckets(&quoted).map(of_upstream))
        .or_else(|| field::longest(&found.waits, now))
        .or_else(spoken)
}

/// Returns the header by which a plan's usage window is used up, if one is, also among quoted headers.
pub(crate) fn spent_plan<'a>(headers: &[(&'a str, &'a str)], found: &'a Findings) -> Option<Because<'a>> {
    let quoted: Vec<_> = found.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    header::spent_plan(headers).or_else(|| header::spent_plan(&quoted).map(quoted_from))
}

/// Marks a header as one of an upstream response.
fn quoted_from(because: Because<'_>) -> Because<'_> {
    match because {
        Because::Header { name, value, .. } => Because::Header { name, value, is_quoted: true },
        because => because,
    }
}

/// Rounds up to whole milliseconds.
fn wait(millis: f64) -> Option<u64> {
    // Avoid floating-point noise that would turn 7660 into 7661.
    let rounded = (millis - 1e-6).ceil();
    (rounded > 0.0 && rounded <= LONGEST_MS).then_some(rounded as u64)
}

/// Like `wait`, but clamps to the maximum instead of rejecting.
fn capped(millis: f64) -> Option<u64> {
    wait(millis.min(LONGEST_MS))
}

/// Returns the wait until a point in time.
fn until(epoch_ms: f64, now: u64) -> Option<u64> {
    wait(epoch_ms - now as f64)
}

/// Parses a value of unknown format into milliseconds from now.
fn value(text: &str, now: u64) -> Option<u64> {
    wait(from_now(text, now)?)
}

/// Parses a time as headers give it into milliseconds from `now` (epoch milliseconds): seconds, epoch seconds or
/// milliseconds, a date of HTTP or RFC 3339, or `6m0s`. Negative if it has passed; `None` if it cannot be read.
pub fn from_now(text: &str, now: u64) -> Option<f64> {
    let since = |epoch_ms: f64| epoch_ms - now as f64;
    if let Some(number) = number(text) {
        return Some(match number {
            _ if number >= EPOCH_MILLIS => since(number),
            _ if number >= EPOCH_SECONDS => since(number * 1000.0),
            _ => number * 1000.0,
        });
    }
    let lower = text.to_ascii_lowercase();
    let date = || date::http(text).or_else(|| date::rfc3339(&lower).map(|(at, _)| at));
    duration::whole(&lower).or_else(|| Some(since(date()?)))
}

/// Parses the number at the start of a text.
pub(crate) fn amount(text: &str) -> Option<f64> {
    duration::amount(text).map(|(amount, _)| amount)
}

/// Parses a plain decimal number. Rust would also accept `inf`, `nan` and `1e9`.
fn number(text: &str) -> Option<f64> {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| text.parse().ok()).flatten()
}
