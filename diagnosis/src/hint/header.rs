//! Hints in headers.

use super::{date, number, value, wait};

/// Headers that ask for a wait of so many milliseconds.
const MILLIS: &[&str] = &["retry-after-ms", "x-ms-retry-after-ms"];

/// The server's own clock, so that ours may be wrong.
pub(super) fn clock(headers: &[(&str, &str)]) -> Option<u64> {
    get(headers, "date").and_then(date::http).map(|at| at as u64)
}

/// The wait that is asked for outright.
pub(super) fn asked(headers: &[(&str, &str)], now: u64) -> Option<u64> {
    let millis = MILLIS.iter().find_map(|name| wait(number(get(headers, name)?)?));
    millis.or_else(|| value(get(headers, "retry-after")?, now))
}

/// The longest reset among the exhausted buckets; of a lone bucket that does not tell what remains, its reset.
pub(super) fn exhausted(headers: &[(&str, &str)], now: u64) -> Option<u64> {
    let parts: Vec<_> = headers.iter().filter_map(|(name, value)| Part::of(name, value.trim())).collect();
    let says = |of: &Part<'_>, what| parts.iter().find(|part| part.what == what && part.is_of(of));
    let any_state = parts.iter().any(|part| matches!(part.what, What::Remaining | What::Status));
    let is_empty = |reset: &&Part<'_>| match (says(reset, What::Remaining), says(reset, What::Status)) {
        (Some(remaining), _) => number(remaining.value) == Some(0.0),
        (None, Some(status)) => status.value.eq_ignore_ascii_case("rejected"),
        (None, None) => !any_state,
    };
    let resets = parts.iter().filter(|part| matches!(part.what, What::Reset | What::ResetMillis));
    resets.filter(is_empty).filter_map(|reset| reset.wait(now)).max().or_else(|| combined(headers, now))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Remaining,
    Reset,
    ResetMillis,
    Status,
}

/// One header of a rate-limit bucket. The bucket is the rest of the name: `x-ratelimit-{what}-tokens`,
/// `anthropic-ratelimit-tokens-{what}`.
struct Part<'a> {
    name: &'a str,
    what: What,
    value: &'a str,
}

impl<'a> Part<'a> {
    fn of(name: &'a str, value: &'a str) -> Option<Self> {
        let has = |word: &str| words(name).any(|part| part.eq_ignore_ascii_case(word));
        if !(name.len() > 9 && contains(name, "ratelimit") || contains(name, "rate-limit")) {
            return None;
        }
        let what = match () {
            () if has("remaining") => What::Remaining,
            () if has("reset") && has("ms") => What::ResetMillis,
            () if has("reset") => What::Reset,
            () if has("status") => What::Status,
            () => return None,
        };
        Some(Self { name, what, value })
    }

    fn is_of(&self, other: &Self) -> bool {
        bucket(self.name).eq(bucket(other.name))
    }

    fn wait(&self, now: u64) -> Option<u64> {
        match self.what {
            What::ResetMillis => wait(number(self.value)?),
            What::Remaining | What::Reset | What::Status => value(self.value, now),
        }
    }
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('-')
}

fn bucket(name: &str) -> impl Iterator<Item = String> + '_ {
    let what = ["remaining", "reset", "ms", "after", "status"];
    words(name).map(str::to_ascii_lowercase).filter(move |word| !what.contains(&word.as_str()))
}

fn contains(name: &str, part: &str) -> bool {
    name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// `ratelimit: "default";r=0;t=30`, or `limit=10, remaining=0, reset=30`.
fn combined(headers: &[(&str, &str)], now: u64) -> Option<u64> {
    let buckets = get(headers, "ratelimit")?;
    let empty = |bucket: &&str| parameter(bucket, &["r", "remaining"]) == Some("0");
    let reset = |bucket: &str| value(parameter(bucket, &["t", "reset"])?, now);
    if buckets.contains(';') {
        buckets.split(',').filter(empty).filter_map(reset).max()
    } else {
        Some(buckets).filter(empty).and_then(reset)
    }
}

fn parameter<'a>(text: &'a str, names: &[&str]) -> Option<&'a str> {
    let mut pairs = text.split([';', ',']).filter_map(|part| part.trim().split_once('='));
    pairs.find(|(name, _)| names.contains(name)).map(|(_, value)| value)
}

fn get<'a>(headers: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let ours = headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    ours.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
}
