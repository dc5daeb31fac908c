//! Reads the rate limits that the headers of a response report.

use std::cmp::Reverse;

use everturn_diagnosis::from_now;
use everturn_kernel::{Limits, Told, What};
use hyper::{HeaderMap, header::DATE};

/// The longest plausible window, in milliseconds: a day.
const LONGEST_MS: f64 = 24.0 * 3_600_000.0;

/// The greatest plausible limit. A greater one means that there is none.
const MOST: u64 = 10_000_000_000;

/// How long ago a window may have been whole, in milliseconds: some vendors round the time down to seconds, and so is
/// `date`.
const LATE_MS: f64 = -2_000.0;

/// The headers about one limit.
struct Names {
    what: What,
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
    /// The length of the window by its name, in milliseconds, for vendors that do not report the reset.
    period_ms: Option<f64>,
}

macro_rules! names {
    ($what:ident, $prefix:literal ? $suffix:literal) => {
        names!($what, $prefix ? $suffix, None)
    };
    ($what:ident, $prefix:literal ? $suffix:literal, $period_ms:expr) => {
        Names {
            what: What::$what,
            limit: concat!($prefix, "limit", $suffix),
            remaining: concat!($prefix, "remaining", $suffix),
            reset: concat!($prefix, "reset", $suffix),
            period_ms: $period_ms,
        }
    };
}

const MINUTE: Option<f64> = Some(60_000.0);
const HOUR: Option<f64> = Some(3_600_000.0);
const DAY: Option<f64> = Some(LONGEST_MS);

const NAMES: &[Names] = &[
    // OpenAI, Azure (resets in seconds), Groq (requests per day, tokens per minute), Together and others.
    names!(Requests, "x-ratelimit-" ? "-requests"),
    names!(Tokens, "x-ratelimit-" ? "-tokens"),
    names!(InputTokens, "x-ratelimit-" ? "-input-tokens"),
    names!(OutputTokens, "x-ratelimit-" ? "-output-tokens"),
    // Cerebras; Mistral, without resets.
    names!(Requests, "x-ratelimit-" ? "-requests-minute", MINUTE),
    names!(Requests, "x-ratelimit-" ? "-requests-hour", HOUR),
    names!(Requests, "x-ratelimit-" ? "-requests-day", DAY),
    names!(Requests, "x-ratelimit-" ? "-req-minute", MINUTE),
    names!(Tokens, "x-ratelimit-" ? "-tokens-minute", MINUTE),
    names!(Tokens, "x-ratelimit-" ? "-tokens-hour", HOUR),
    names!(Tokens, "x-ratelimit-" ? "-tokens-day", DAY),
    // Anthropic. Its `unified` windows of a plan are not counts; a refusal by one has a hint.
    names!(Requests, "anthropic-ratelimit-requests-" ? ""),
    names!(Tokens, "anthropic-ratelimit-tokens-" ? ""),
    names!(InputTokens, "anthropic-ratelimit-input-tokens-" ? ""),
    names!(OutputTokens, "anthropic-ratelimit-output-tokens-" ? ""),
    // OpenRouter (resets in epoch milliseconds) and many gateways; older IETF drafts.
    names!(Requests, "x-ratelimit-" ? ""),
    names!(Requests, "ratelimit-" ? ""),
];

/// Reads the limits from the headers of a response; `now`: the local clock, in epoch milliseconds, if they do not give
/// the server's. Of several limits of a kind, the one with the least left counts. Ignores what is implausible: a reset
/// that has passed, or is more than a day away; more left than the limit; a limit of 0 or more than 10 billion.
pub(crate) fn read(headers: &HeaderMap, now: u64) -> Limits {
    let mut limits = Limits::default();
    if !headers.keys().any(|name| name.as_str().contains("ratelimit")) {
        return limits;
    }
    let get = |name: &str| headers.get(name)?.to_str().ok();
    let now =
        get(DATE.as_str()).and_then(|date| from_now(date, now)).map_or(now, |ms| (now as f64 + ms) as u64);
    for Names { what, limit, remaining, reset, period_ms } in NAMES {
        let Some(remaining) = get(remaining) else { continue };
        let reset_ms = get(reset).map_or(*period_ms, |reset| from_now(reset, now));
        add(&mut limits, told(*what, get(limit), remaining, reset_ms));
    }
    let policies = get("ratelimit-policy").unwrap_or_default();
    for limit in get("ratelimit").into_iter().flat_map(|text| combined(text, policies, now)) {
        add(&mut limits, Some(limit));
    }
    limits
}

/// Adds a limit, unless one of its kind has less left.
fn add(limits: &mut Limits, told: Option<Told>) {
    let Some(told) = told else { return };
    let by_rest = |told: &Told| (told.remaining, Reverse(told.reset_ms));
    match limits.0.iter_mut().find(|known| known.what == told.what) {
        Some(known) if by_rest(known) <= by_rest(&told) => {}
        Some(known) => *known = told,
        None => limits.0.push(told),
    }
}

fn told(what: What, limit: Option<&str>, remaining: &str, reset_ms: Option<f64>) -> Option<Told> {
    // Older drafts use `100, 100;w=60`.
    let limit = limit.and_then(|limit| count(limit.split([',', ';']).next()?));
    let (remaining, reset_ms) = (count(remaining)?, reset_ms?);
    let is_possible =
        limit.is_none_or(|limit| limit > 0 && limit.max(remaining) <= MOST && remaining <= limit);
    // What is whole now, or was a moment ago, has hardly been used.
    let is_whole = || limit.is_some_and(|limit| remaining >= limit - limit / 10);
    let reset_ms = match reset_ms {
        ms if ms > 0.0 && ms <= LONGEST_MS => (ms - 1e-6).ceil() as u64,
        ms if (LATE_MS..=0.0).contains(&ms) && is_whole() => 0,
        _ => return None,
    };
    (is_possible && remaining <= MOST).then_some(Told { what, limit, remaining, reset_ms })
}

fn count(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Parses the newer drafts: `"default";r=50;t=30` with the policy `"default";q=100;w=60;qu="requests"`, or
/// `limit=100, remaining=50, reset=30`.
fn combined(text: &str, policies: &str, now: u64) -> Vec<Told> {
    let get = |text, name| parameter(text, name);
    if !text.contains(';') {
        let reset_ms = get(text, "reset").and_then(|reset| from_now(reset, now));
        let remaining = get(text, "remaining").unwrap_or_default();
        return told(What::Requests, get(text, "limit"), remaining, reset_ms).into_iter().collect();
    }
    let name = |item: &str| item.split(';').next().map(|name| name.trim().to_owned());
    let items = text.split(',').filter_map(|item| {
        let policy = policies.split(',').find(|policy| name(policy) == name(item)).unwrap_or_default();
        let what = match get(policy, "qu").map(|unit| unit.trim_matches('"')) {
            None | Some("requests") => What::Requests,
            Some("tokens") => What::Tokens,
            Some(_) => return None,
        };
        let reset = get(item, "t").or_else(|| get(policy, "w"));
        told(what, get(policy, "q"), get(item, "r")?, reset.and_then(|reset| from_now(reset, now)))
    });
    items.collect()
}

/// Returns the first parameter with this name in `a=1; b=2, c=3`.
fn parameter<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.split([';', ',']).filter_map(|part| part.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
