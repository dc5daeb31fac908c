use everturn_kernel::What::{InputTokens, OutputTokens, Requests, Tokens};
use hyper::header::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;

/// 2026-09-01T00:00:00Z.
const NOW: u64 = 1_788_220_800_000;

/// What it counts, the limit, what is left, and the reset in milliseconds.
type Row = (What, Option<u64>, u64, u64);

type Headers<'a> = &'a [(&'a str, &'a str)];

fn limits(headers: Headers<'_>) -> Vec<Row> {
    let headers = headers.iter().map(|(name, value)| {
        (HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
    });
    let told = read(&headers.collect(), NOW).0.into_iter();
    told.map(|told| (told.what, told.limit, told.remaining, told.reset_ms)).collect()
}

#[test]
fn each_vendor_is_read() {
    let table: &[(&str, Headers<'_>, &[Row])] = &[
        (
            "OpenAI",
            &[
                ("X-RateLimit-Limit-Requests", "60"),
                ("X-RateLimit-Limit-Tokens", "150000"),
                ("X-RateLimit-Remaining-Requests", "59"),
                ("X-RateLimit-Remaining-Tokens", "149984"),
                ("X-RateLimit-Reset-Requests", "1m0.5s"),
                ("X-RateLimit-Reset-Tokens", "20ms"),
            ],
            &[(Requests, Some(60), 59, 60_500), (Tokens, Some(150_000), 149_984, 20)],
        ),
        (
            "OpenAI, hardly used",
            &[
                ("x-ratelimit-limit-tokens", "150000"),
                ("x-ratelimit-remaining-tokens", "149999"),
                ("x-ratelimit-reset-tokens", "0s"),
            ],
            &[(Tokens, Some(150_000), 149_999, 0)],
        ),
        (
            "Anthropic, by the server's clock; rounded down to seconds",
            &[
                ("date", "Tue, 01 Sep 2026 00:10:00 GMT"),
                ("anthropic-ratelimit-requests-limit", "1000"),
                ("anthropic-ratelimit-requests-remaining", "999"),
                ("anthropic-ratelimit-requests-reset", "2026-09-01T00:09:59Z"),
                ("anthropic-ratelimit-input-tokens-limit", "80000"),
                ("anthropic-ratelimit-input-tokens-remaining", "50000"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-09-01T00:10:23Z"),
                ("anthropic-ratelimit-output-tokens-limit", "16000"),
                ("anthropic-ratelimit-output-tokens-remaining", "0"),
                ("anthropic-ratelimit-output-tokens-reset", "2026-09-01T00:11:00Z"),
                ("anthropic-ratelimit-tokens-limit", "96000"),
                ("anthropic-ratelimit-tokens-remaining", "50000"),
                ("anthropic-ratelimit-tokens-reset", "2026-09-01T00:11:00Z"),
            ],
            &[
                (Requests, Some(1_000), 999, 0),
                (Tokens, Some(96_000), 50_000, 60_000),
                (InputTokens, Some(80_000), 50_000, 23_000),
                (OutputTokens, Some(16_000), 0, 60_000),
            ],
        ),
        (
            "Anthropic, windows of a plan: no counts",
            &[
                ("anthropic-ratelimit-unified-status", "rejected"),
                ("anthropic-ratelimit-unified-reset", "1788228000"),
                ("anthropic-ratelimit-unified-5h-status", "rejected"),
                ("anthropic-ratelimit-unified-5h-reset", "1788228000"),
                ("anthropic-ratelimit-unified-5h-utilization", "1.0"),
                ("anthropic-ratelimit-unified-representative-claim", "five_hour"),
            ],
            &[],
        ),
        (
            "Groq: requests per day, tokens per minute",
            &[
                ("x-ratelimit-limit-requests", "14400"),
                ("x-ratelimit-limit-tokens", "18000"),
                ("x-ratelimit-remaining-requests", "14370"),
                ("x-ratelimit-remaining-tokens", "17997"),
                ("x-ratelimit-reset-requests", "2m59.56s"),
                ("x-ratelimit-reset-tokens", "7.66s"),
            ],
            &[(Requests, Some(14_400), 14_370, 179_560), (Tokens, Some(18_000), 17_997, 7_660)],
        ),
        (
            "Azure: resets in whole seconds",
            &[
                ("x-ratelimit-limit-tokens", "250000"),
                ("x-ratelimit-remaining-tokens", "61353"),
                ("x-ratelimit-reset-tokens", "34"),
            ],
            &[(Tokens, Some(250_000), 61_353, 34_000)],
        ),
        (
            "Azure, at times",
            &[
                ("x-ratelimit-limit-tokens", "-1"),
                ("x-ratelimit-remaining-tokens", "-1"),
                ("x-ratelimit-reset-tokens", "0"),
                ("x-ratelimit-remaining-requests", "79"),
            ],
            &[],
        ),
        (
            "OpenRouter: epoch milliseconds",
            &[
                ("X-RateLimit-Limit", "50"),
                ("X-RateLimit-Remaining", "0"),
                ("X-RateLimit-Reset", "1788264000000"),
            ],
            &[(Requests, Some(50), 0, 43_200_000)],
        ),
        (
            "Mistral: no resets, but a window's name",
            &[
                ("x-ratelimit-limit-tokens-minute", "5000000"),
                ("x-ratelimit-remaining-tokens-minute", "4999911"),
                ("x-ratelimit-limit-req-minute", "720"),
                ("x-ratelimit-remaining-req-minute", "717"),
            ],
            &[(Requests, Some(720), 717, 60_000), (Tokens, Some(5_000_000), 4_999_911, 60_000)],
        ),
        (
            "Cerebras: several windows of a kind",
            &[
                ("x-ratelimit-limit-requests-day", "14400"),
                ("x-ratelimit-remaining-requests-day", "3"),
                ("x-ratelimit-reset-requests-day", "33011.382867"),
                ("x-ratelimit-limit-requests-minute", "30"),
                ("x-ratelimit-remaining-requests-minute", "29"),
                ("x-ratelimit-limit-tokens-minute", "60000"),
                ("x-ratelimit-remaining-tokens-minute", "59000"),
                ("x-ratelimit-reset-tokens-minute", "11.382867"),
            ],
            &[(Requests, Some(14_400), 3, 33_011_383), (Tokens, Some(60_000), 59_000, 11_383)],
        ),
        (
            "older IETF drafts",
            &[("ratelimit-limit", "100, 100;w=60"), ("ratelimit-remaining", "7"), ("ratelimit-reset", "30")],
            &[(Requests, Some(100), 7, 30_000)],
        ),
        (
            "a draft in one header",
            &[("ratelimit", "limit=10, remaining=3, reset=7")],
            &[(Requests, Some(10), 3, 7_000)],
        ),
        (
            "newer IETF drafts: the window that ends first, units, and a window without its end",
            &[
                (
                    "RateLimit-Policy",
                    "\"burst\";q=100;w=60, \"day\";q=1000;w=86400, \"size\";q=9000;qu=\"tokens\";w=60, \
                     \"bytes\";q=9;qu=\"content-bytes\";w=60",
                ),
                ("RateLimit", "\"burst\";r=50;t=30, \"day\";r=20;t=3000, \"size\";r=80, \"bytes\";r=1;t=9"),
            ],
            &[(Requests, Some(1_000), 20, 3_000_000), (Tokens, Some(9_000), 80, 60_000)],
        ),
    ];
    for (vendor, headers, expected) in table {
        assert_eq!(limits(headers), *expected, "{vendor}");
    }
}

#[test]
fn what_is_unreadable_or_implausible_is_ignored() {
    let of = |limit, remaining, reset| {
        limits(&[
            ("x-ratelimit-limit-requests", limit),
            ("x-ratelimit-remaining-requests", remaining),
            ("x-ratelimit-reset-requests", reset),
        ])
    };
    assert_eq!(of("many", "5", "1s"), [(Requests, None, 5, 1_000)], "the limit is not needed");
    for (limit, remaining, reset) in [
        ("10", "", "1s"),
        ("10", "-1", "1s"),
        ("10", "1.5", "1s"),
        ("99999999999", "99999999999", "1s"),
        ("many", "99999999999", "1s"),
        ("10", "99999999999999999999", "1s"),
        ("10", "11", "1s"),
        ("0", "0", "1s"),
        ("10", "5", ""),
        ("10", "5", "soon"),
        ("10", "5", "0"),
        ("10", "5", "25h"),
        ("10", "5", "99999999999999999999"),
        ("10", "10", "2026-08-31T23:59:57Z"),
        ("10", "10", "1970-01-01T00:00:00Z"),
        ("10", "10", "-1"),
    ] {
        assert_eq!(of(limit, remaining, reset), [], "{limit} {remaining} {reset}");
    }
    assert_eq!(limits(&[("x-ratelimit-remaining-requests", "5")]), []);
    assert_eq!(limits(&[("ratelimit", "\"a\";r=x;t=1, ;;=,")]), []);
}

/// The headers of one family or draft, with values of which some make sense.
fn headers() -> impl Strategy<Value = Vec<(HeaderName, HeaderValue)>> {
    let families = NAMES.iter().map(|names| vec![names.limit, names.remaining, names.reset]);
    let families: Vec<_> = families.chain([vec!["ratelimit", "ratelimit-policy", "date"]]).collect();
    let value = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[0-9]{1,4}".prop_map(String::into_bytes),
        "[0-9]{1,22}(ms|s|m0s|h|\\.5s)?".prop_map(String::into_bytes),
        "(\"[a-z,;]{0,3}\"|[a-z]=)?(;[rtqw]=[0-9]{0,12}|;qu=\"tokens\"|,| ){0,6}"
            .prop_map(String::into_bytes),
        Just(b"Tue, 01 Sep 2026 00:10:00 GMT".to_vec()),
        Just(b"2026-09-01T00:09:59Z".to_vec()),
    ];
    let values = proptest::collection::vec(value, 3);
    (prop::sample::select(families), values).prop_map(|(names, values)| {
        let pairs = names.into_iter().zip(values);
        let header = |(name, value): (_, Vec<u8>)| {
            Some((HeaderName::from_static(name), HeaderValue::from_bytes(&value).ok()?))
        };
        pairs.filter_map(header).collect()
    })
}

proptest! {
    #[test]
    fn whatever_a_provider_sends_is_plausible_once_read(
        headers in proptest::collection::vec(headers(), 0..8),
        now in prop_oneof![Just(NOW), any::<u64>()],
    ) {
        let limits = read(&headers.into_iter().flatten().collect(), now).0;
        for told in &limits {
            prop_assert!(told.remaining <= told.limit.unwrap_or(MOST), "{told:?}");
            prop_assert!(told.limit.is_none_or(|limit| limit > 0 && limit <= MOST), "{told:?}");
            prop_assert!(told.reset_ms <= LONGEST_MS as u64, "{told:?}");
            prop_assert_eq!(limits.iter().filter(|other| other.what == told.what).count(), 1);
        }
    }
}
