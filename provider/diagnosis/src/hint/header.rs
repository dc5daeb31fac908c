//! Hints from headers.

use super::{Hint, capped, date, from_now, number, value, wait};
use crate::because::Because;

/// Headers with a wait in milliseconds.
const MILLIS: &[&str] = &["retry-after-ms", "x-ms-retry-after-ms"];

/// Returns the server's clock, in case the client's is wrong.
pub(super) fn clock(headers: &[(&str, &str)]) -> Option<u64> {
    get(headers, "date").and_then(date::http).map(|at| at as u64)
}

/// Returns the wait that is requested explicitly.
pub(super) fn asked<'a>(headers: &[(&str, &'a str)], now: u64) -> Option<Hint<'a>> {
    let read = |name: &'static str, wait: fn(&str, u64) -> Option<u64>| {
        let value = get(headers, name)?;
        Some((wait(value, now)?, Because::Header { name, value, is_quoted: false }))
    };
    let millis = MILLIS.iter().find_map(|name| read(name, |value, _| capped(number(value)?)));
    millis.or_else(|| read("retry-after", |value, now| capped(from_now(value, now)?)))
}

/// Returns the longest reset of the exhausted buckets, or of the buckets that do not report their state. `is_of_plan`: whether the
/// windows of a plan may be the cause.
pub(super) fn exhausted<'a>(headers: &[(&'a str, &'a str)], now: u64, is_of_plan: bool) -> Option<Hint<'a>> {
    let parts = headers.iter().filter_map(|(name, value)| Part::of(name, value.trim()));
    let counts_plans = is_of_plan && !is_beyond_plan(headers);
    let parts: Vec<_> = parts.filter(|part| counts_plans || !part.is_of_plan()).collect();
    let stateless = parts.iter().all(|part| part.is_empty().is_none());
    let is_empty = |reset: &&Part<'_>| {
        let mut states = parts.iter().filter(|part| part.is_of(reset)).filter_map(Part::is_empty);
        states.next().map_or(stateless, |first| first || states.any(|empty| empty))
    };
    let resets = parts.iter().filter(is_empty).filter_map(|part| Some((part.reset(now)?, part.because())));
    resets.max_by_key(|(wait, _)| *wait).or_else(|| combined(headers, now))
}

/// Headers about the usage windows of a plan, and not about requests or tokens per minute.
const PLANS: &[&str] = &["ratelimit-unified", "x-codex-"];

/// Anthropic's verdict over all windows of a plan.
const OVERALL: &str = "anthropic-ratelimit-unified-status";

/// Whether calls are made, and paid for, beyond the plan.
fn is_beyond_plan(headers: &[(&str, &str)]) -> bool {
    headers.iter().any(|(name, value)| {
        let is = |end: &str| {
            let name = name.to_ascii_lowercase();
            name.contains("ratelimit-unified") && name.ends_with(end)
        };
        let value = value.trim().to_ascii_lowercase();
        is("-overage-status") && matches!(&*value, "allowed" | "allowed_warning")
            || is("-overage-in-use") && value == "true"
    })
}

/// Returns the header by which a plan's usage window is used up, if one is.
pub(super) fn spent_plan<'a>(headers: &[(&'a str, &'a str)]) -> Option<Because<'a>> {
    if is_beyond_plan(headers) {
        return None;
    }
    let parts = headers.iter().filter_map(|(name, value)| Part::of(name, value.trim()));
    let parts: Vec<_> = parts.filter(Part::is_of_plan).collect();
    let decides = parts.iter().find(|part| part.name.eq_ignore_ascii_case(OVERALL));
    let spent = match decides {
        Some(overall) => Some(overall).filter(|overall| overall.is_empty() == Some(true)),
        None => parts.iter().find(|part| part.is_empty() == Some(true)),
    };
    // With these headers a refusal is the plan's, unless they say that there is room left.
    let is_silent = parts.iter().all(|part| part.is_empty().is_none());
    spent.or_else(|| parts.first().filter(|_| is_silent)).map(Part::because)
}

/// The meaning of one header of a bucket.
#[derive(Clone, Copy)]
enum What {
    Remaining,
    /// The used amount, relative to this total.
    Used(f64),
    Status,
    Reset,
    ResetMillis,
}

/// One header of a bucket. The bucket is the rest of the name: `x-ratelimit-{what}-tokens`,
/// `anthropic-ratelimit-tokens-{what}`, `x-codex-primary-{what}`.
struct Part<'a> {
    name: &'a str,
    what: What,
    value: &'a str,
}

/// Words of a header name that are not part of the bucket's name.
const NOT_BUCKET: &[&str] = &[
    "remaining",
    "reset",
    "resets",
    "ms",
    "after",
    "in",
    "at",
    "seconds",
    "used",
    "percent",
    "utilization",
    "status",
];

impl<'a> Part<'a> {
    fn of(name: &'a str, value: &'a str) -> Option<Self> {
        let is_limit = ["ratelimit", "rate-limit", "x-codex-"].iter().any(|part| contains(name, part));
        let has = |word: &str| name.split('-').any(|part| part.eq_ignore_ascii_case(word));
        let what = match () {
            () if !is_limit => return None,
            // Whether more could be bought is not the limit that was hit.
            () if has("overage") => return None,
            () if has("remaining") => What::Remaining,
            () if has("used") && has("percent") => What::Used(100.0),
            () if has("utilization") => What::Used(1.0),
            () if has("status") => What::Status,
            () if has("reset") && has("ms") => What::ResetMillis,
            () if has("reset") || has("resets") => What::Reset,
            () => return None,
        };
        Some(Self { name, what, value })
    }

    fn is_of_plan(&self) -> bool {
        PLANS.iter().any(|plan| contains(self.name, plan))
    }

    /// Whether the bucket is exhausted, if this header says.
    fn is_empty(&self) -> Option<bool> {
        match self.what {
            What::Remaining => Some(number(self.value) == Some(0.0)),
            What::Used(all) => Some(number(self.value)? >= all),
            What::Status => Some(self.value.eq_ignore_ascii_case("rejected")),
            What::Reset | What::ResetMillis => None,
        }
    }

    fn reset(&self, now: u64) -> Option<u64> {
        match self.what {
            What::Reset => value(self.value, now),
            What::ResetMillis => wait(number(self.value)?),
            What::Remaining | What::Used(_) | What::Status => None,
        }
    }

    fn because(&self) -> Because<'a> {
        Because::Header { name: self.name, value: self.value, is_quoted: false }
    }

    fn is_of(&self, other: &Self) -> bool {
        self.bucket().eq(other.bucket())
    }

    fn bucket(&self) -> impl Iterator<Item = String> {
        let words = self.name.split('-').map(str::to_ascii_lowercase);
        words.filter(|word| !NOT_BUCKET.contains(&word.as_str()))
    }
}

fn contains(name: &str, part: &str) -> bool {
    name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

/// Parses `ratelimit: "default";r=0;t=30` or `limit=10, remaining=0, reset=30`.
fn combined<'a>(headers: &[(&str, &'a str)], now: u64) -> Option<Hint<'a>> {
    let buckets = get(headers, "ratelimit")?;
    let empty = |bucket: &&str| parameter(bucket, &["r", "remaining"]) == Some("0");
    let reset = |bucket: &str| value(parameter(bucket, &["t", "reset"])?, now);
    let wait = if buckets.contains(';') {
        buckets.split(',').filter(empty).filter_map(reset).max()
    } else {
        Some(buckets).filter(empty).and_then(reset)
    };
    Some((wait?, Because::Header { name: "ratelimit", value: buckets, is_quoted: false }))
}

pub(super) fn parameter<'a>(text: &'a str, names: &[&str]) -> Option<&'a str> {
    let mut pairs = text.split([';', ',']).filter_map(|part| part.trim().split_once('='));
    pairs.find(|(name, _)| names.contains(name)).map(|(_, value)| value)
}

pub(super) fn get<'a>(headers: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let ours = headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    ours.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    fn asked(headers: &[(&str, &str)], now: u64) -> Option<u64> {
        super::asked(headers, now).map(|(wait, _)| wait)
    }

    fn exhausted(headers: &[(&str, &str)], now: u64) -> Option<u64> {
        super::exhausted(headers, now, true).map(|(wait, _)| wait)
    }

    const NOW: u64 = 1_788_220_800_000;

    #[test]
    fn only_exhausted_buckets_count_and_the_longest_of_them() {
        let openai = |requests, tokens| {
            [
                ("x-ratelimit-remaining-requests", requests),
                ("x-ratelimit-reset-requests", "6m0s"),
                ("X-RateLimit-Remaining-Tokens", tokens),
                ("X-RateLimit-Reset-Tokens", "1s"),
            ]
        };
        assert_eq!(exhausted(&openai("3", "0"), NOW), Some(1000));
        assert_eq!(exhausted(&openai("0", "0"), NOW), Some(360_000));
        assert_eq!(exhausted(&openai("3", "9"), NOW), None);
    }

    #[test]
    fn a_plan_that_is_used_up_counts_unless_more_is_paid_for() {
        let spent = [
            ("anthropic-ratelimit-unified-status", "rejected"),
            ("anthropic-ratelimit-unified-reset", "1788220860"),
        ];
        assert_eq!(exhausted(&spent, NOW), Some(60_000));
        assert_eq!(super::exhausted(&spent, NOW, false).map(|(wait, _)| wait), None, "of another cause");
        assert!(super::spent_plan(&spent).is_some());
        for beyond in [
            ("Anthropic-Ratelimit-Unified-Overage-Status", "allowed_warning"),
            ("anthropic-ratelimit-unified-overage-in-use", "true"),
        ] {
            let headers = [spent[0], spent[1], beyond];
            assert_eq!(exhausted(&headers, NOW), None, "{beyond:?}");
            assert!(super::spent_plan(&headers).is_none(), "{beyond:?}");
        }
        let refused = [spent[0], spent[1], ("anthropic-ratelimit-unified-overage-status", "rejected")];
        assert_eq!(exhausted(&refused, NOW), Some(60_000));
    }

    #[test]
    fn a_bucket_may_report_its_state_in_other_forms() {
        for (headers, wait) in [
            (
                [("x-codex-primary-used-percent", "100"), ("x-codex-primary-reset-after-seconds", "60")],
                Some(60_000),
            ),
            ([("x-codex-primary-used-percent", "99"), ("x-codex-primary-reset-after-seconds", "60")], None),
            (
                [
                    ("anthropic-ratelimit-unified-status", "rejected"),
                    ("anthropic-ratelimit-unified-reset", "1788220860"),
                ],
                Some(60_000),
            ),
            (
                [
                    ("anthropic-ratelimit-unified-status", "allowed"),
                    ("anthropic-ratelimit-unified-reset", "1788220860"),
                ],
                None,
            ),
            ([("ratelimit-policy", "10;w=60"), ("ratelimit", "limit=10, remaining=0, reset=7")], Some(7000)),
            ([("x", ""), ("ratelimit", "\"a\";r=5;t=90, \"b\";r=0;t=30")], Some(30_000)),
        ] {
            assert_eq!(exhausted(&headers, NOW), wait, "{headers:?}");
        }
    }

    #[test]
    fn unreadable_text_is_not_a_hint() {
        for value in ["0", "-5", "NaN", "inf", "1e300", "soon", "", "Thu, 01 Jan 1970 00:00:00 GMT"] {
            assert_eq!(asked(&[("retry-after", value)], NOW), None, "{value}");
            assert_eq!(asked(&[("retry-after-ms", value)], NOW), None, "{value}");
        }
        let year = Some(366 * 86_400_000);
        for value in ["99999999999999999999", &"9".repeat(400), "40000000", "Fri, 31 Dec 9999 23:59:59 GMT"] {
            assert_eq!(asked(&[("retry-after", value)], NOW), year, "{value}");
        }
        assert_eq!(asked(&[("retry-after-ms", "99999999999999999999")], NOW), year);
        assert_eq!(exhausted(&[("x-ratelimit-reset", "99999999999999999999")], NOW), None);
        assert_eq!(asked(&[("retry-after-ms", "x"), ("Retry-After", "2")], NOW), Some(2000));
    }
}
