//! The wait that the provider asked for, in milliseconds.
//!
//! Zero, negative, past and unreadable values are no hint. Of what is absurdly long, only a header that asks for a wait
//! outright is believed, and taken for the longest wait there is. What is read later never overrules what is
//! read earlier: headers that ask for a wait, the reset of an exhausted bucket, fields of the body, its words.

mod date;
mod duration;
mod field;
mod header;
mod prose;

use crate::Evidence;
use crate::because::Because;
use crate::kind::Kind;
use crate::prose::Prose;
use crate::shape::Findings;

/// The longest wait there is: a year. More is a mistaken unit or a mangled number.
const LONGEST_MS: f64 = 366.0 * 24.0 * 3_600_000.0;

/// Above this, a number of seconds or milliseconds is a point in time.
const EPOCH_SECONDS: f64 = 1e9;
const EPOCH_MILLIS: f64 = 1e11;

/// A wait in milliseconds, and what asks for it.
pub(crate) type Hint<'a> = (u64, Because<'a>);

/// The wait, given what kind of failure it is: a reset time matters only to a limit, and words may be an echo.
pub(crate) fn of<'a>(
    evidence: &Evidence<'a>,
    found: &'a Findings,
    prose: &Prose,
    kind: Kind,
) -> Option<Hint<'a>> {
    let quoted: Vec<_> = found.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let now = header::clock(evidence.headers).unwrap_or(evidence.now);
    let buckets = |headers| kind.waits().then(|| header::exhausted(headers, now)).flatten();
    let spoken = || {
        let wait = (kind.waits() || kind.is_passing()).then(|| prose::read(prose, evidence.now)).flatten();
        wait.map(|wait| (wait, Because::Spoken))
    };
    let of_upstream = |(wait, because)| match because {
        Because::Header { name, value, .. } => (wait, Because::Header { name, value, is_quoted: true }),
        because => (wait, because),
    };
    header::asked(evidence.headers, now)
        .or_else(|| buckets(evidence.headers))
        .or_else(|| header::asked(&quoted, now).map(of_upstream))
        .or_else(|| buckets(&quoted).map(of_upstream))
        .or_else(|| field::longest(&found.waits, now))
        .or_else(spoken)
}

/// A whole number of milliseconds, rounded up.
fn wait(millis: f64) -> Option<u64> {
    // The last bit of a float must not turn 7660 into 7661.
    let rounded = (millis - 1e-6).ceil();
    (rounded > 0.0 && rounded <= LONGEST_MS).then_some(rounded as u64)
}

/// The same, where any amount is meant as one: more than the longest wait is that.
fn capped(millis: f64) -> Option<u64> {
    wait(millis.min(LONGEST_MS))
}

/// The wait until a point in time.
fn until(epoch_ms: f64, now: u64) -> Option<u64> {
    wait(epoch_ms - now as f64)
}

/// The server's own clock, in epoch milliseconds.
pub(crate) fn clock(headers: &[(&str, &str)]) -> Option<u64> {
    header::clock(headers)
}

/// The first value of a header that is not empty.
pub(crate) fn header<'a>(headers: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    header::get(headers, name)
}

/// The first parameter of one of these names in `a=1; b=2, c=3`.
pub(crate) fn parameter<'a>(text: &'a str, names: &[&str]) -> Option<&'a str> {
    header::parameter(text, names)
}

/// A value whose form nobody declared, in milliseconds from now.
pub(crate) fn value(text: &str, now: u64) -> Option<u64> {
    wait(span(text, now)?)
}

/// Milliseconds from now: seconds, a point in time as a number or a date, or `6m0s`.
fn span(text: &str, now: u64) -> Option<f64> {
    let from_now = |epoch_ms: f64| epoch_ms - now as f64;
    if let Some(number) = number(text) {
        return Some(match number {
            _ if number >= EPOCH_MILLIS => from_now(number),
            _ if number >= EPOCH_SECONDS => from_now(number * 1000.0),
            _ => number * 1000.0,
        });
    }
    let lower = text.to_ascii_lowercase();
    let date = || date::http(text).or_else(|| date::rfc3339(&lower).map(|(at, _)| at));
    duration::whole(&lower).or_else(|| Some(from_now(date()?)))
}

/// The number that a text begins with.
pub(crate) fn amount(text: &str) -> Option<f64> {
    duration::amount(text).map(|(amount, _)| amount)
}

/// A plain decimal number. Rust would also read `inf`, `nan` and `1e9`.
fn number(text: &str) -> Option<f64> {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.').then(|| text.parse().ok()).flatten()
}
