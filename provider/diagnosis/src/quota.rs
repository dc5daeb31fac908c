//! Request quotas reported in a provider's headers.

use crate::hint;

/// Maximum length of a plausible window, in milliseconds: a day.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1_000;

/// Headers of the limit, the remaining requests, and the reset.
const NAMES: [[&str; 3]; 3] = [
    ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
    [
        "anthropic-ratelimit-requests-limit",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
    ],
    ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"],
];

/// The rest of a request quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestQuota {
    /// Number of requests in a whole window.
    pub limit: Option<u32>,
    /// Number of requests left in this window.
    pub remaining: u32,
    /// When the next window begins, in milliseconds from now.
    pub reset_ms: u64,
}

impl RequestQuota {
    /// Reads the quota from the headers of a response, with `now` as the client's clock, in epoch milliseconds. Names
    /// are compared without case. Returns `None` if the remaining number or the reset is missing, or if a value is
    /// implausible: a window of more than a day, a limit of 0, or a limit below the remaining number.
    pub fn read(headers: &[(&str, &str)], now: u64) -> Option<Self> {
        let now = hint::clock(headers).unwrap_or(now);
        let get = |name| hint::header(headers, name);
        let separate = NAMES
            .iter()
            .find_map(|[limit, remaining, reset]| Self::of(get(limit), get(remaining)?, get(reset)?, now));
        separate.or_else(|| Self::combined(get("ratelimit")?, get("ratelimit-policy"), now))
    }

    /// Parses `"default";r=50;t=30` with `"default";q=100;w=60` as its policy, or `limit=100, remaining=50, reset=30`.
    /// Of several quotas, returns the one with the least left.
    fn combined(text: &str, policy: Option<&str>, now: u64) -> Option<Self> {
        let parameter = hint::parameter;
        if !text.contains(';') {
            let [limit, remaining, reset] =
                ["limit", "remaining", "reset"].map(|name| parameter(text, &[name]));
            return Self::of(limit, remaining?, reset?, now);
        }
        let buckets = text.split(',').filter_map(|bucket| {
            let name = bucket.split(';').next()?.trim();
            let policy = policy.into_iter().flat_map(|policy| policy.split(','));
            let limit = policy.filter(|policy| policy.split(';').next().map(str::trim) == Some(name));
            let limit = limit.filter_map(|policy| parameter(policy, &["q"])).next();
            Self::of(limit, parameter(bucket, &["r"])?, parameter(bucket, &["t"])?, now)
        });
        buckets.min_by_key(|quota| quota.remaining)
    }

    fn of(limit: Option<&str>, remaining: &str, reset: &str, now: u64) -> Option<Self> {
        // Older drafts use `100, 100;w=60`.
        let limit = limit.and_then(|limit| count(limit.split([',', ';']).next()?));
        let remaining = count(remaining)?;
        let reset_ms = hint::value(reset, now).filter(|ms| *ms <= LONGEST_MS)?;
        limit.is_none_or(|limit| limit > 0 && limit >= remaining).then_some(Self {
            limit,
            remaining,
            reset_ms,
        })
    }
}

fn count(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_788_220_800_000;

    fn read(headers: &[(&str, &str)]) -> Option<(Option<u32>, u32, u64)> {
        RequestQuota::read(headers, NOW).map(|quota| (quota.limit, quota.remaining, quota.reset_ms))
    }

    #[test]
    fn each_family_is_read() {
        let openai = [
            ("x-ratelimit-limit-tokens", "1"),
            ("X-RateLimit-Limit-Requests", "60"),
            ("X-RateLimit-Remaining-Requests", "59"),
            ("X-RateLimit-Reset-Requests", "1m0.5s"),
        ];
        assert_eq!(read(&openai), Some((Some(60), 59, 60_500)));
        let anthropic = [
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2026-09-01T00:00:30Z"),
        ];
        assert_eq!(read(&anthropic), Some((Some(50), 0, 30_000)));
        let draft =
            [("ratelimit-limit", "100, 100;w=60"), ("ratelimit-remaining", "7"), ("ratelimit-reset", "30")];
        assert_eq!(read(&draft), Some((Some(100), 7, 30_000)));
        assert_eq!(read(&[("ratelimit", "limit=10, remaining=3, reset=7")]), Some((Some(10), 3, 7_000)));
        let newer = [
            ("RateLimit-Policy", "\"burst\";q=100;w=60, \"day\";q=1000;w=86400"),
            ("RateLimit", "\"burst\";r=50;t=30, \"day\";r=20;t=3000"),
        ];
        assert_eq!(read(&newer), Some((Some(1_000), 20, 3_000_000)));
    }

    #[test]
    fn the_servers_own_clock_counts() {
        let headers = [
            ("date", "Tue, 01 Sep 2026 00:10:00 GMT"),
            ("anthropic-ratelimit-requests-remaining", "1"),
            ("anthropic-ratelimit-requests-reset", "2026-09-01T00:10:30Z"),
        ];
        assert_eq!(read(&headers), Some((None, 1, 30_000)));
    }

    #[test]
    fn unreadable_and_absurd_hints_are_ignored() {
        let of = |limit, remaining, reset| {
            read(&[
                ("x-ratelimit-limit-requests", limit),
                ("x-ratelimit-remaining-requests", remaining),
                ("x-ratelimit-reset-requests", reset),
            ])
        };
        assert_eq!(of("many", "5", "1s"), Some((None, 5, 1_000)), "the limit is not needed");
        for (limit, remaining, reset) in [
            ("10", "", "1s"),
            ("10", "-1", "1s"),
            ("10", "1.5", "1s"),
            ("10", "99999999999", "1s"),
            ("10", "11", "1s"),
            ("0", "0", "1s"),
            ("10", "5", ""),
            ("10", "5", "soon"),
            ("10", "5", "0"),
            ("10", "5", "25h"),
            ("10", "5", "99999999999999999999"),
        ] {
            assert_eq!(of(limit, remaining, reset), None, "{limit} {remaining} {reset}");
        }
        assert_eq!(read(&[("x-ratelimit-remaining-requests", "5")]), None);
        assert_eq!(read(&[("ratelimit", "\"a\";r=x;t=1, ;;=,")]), None);
    }
}
