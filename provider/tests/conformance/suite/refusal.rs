//! Responses that are not streams.

use everturn_kernel::{
    Limits, StreamEvent, Told,
    What::{InputTokens, OutputTokens, Requests, Tokens},
};
use everturn_sim::{Gate, Loopback, Reply, fault};
use everturn_wire::{Category, Failure};
use serde_json::json;

use crate::dialect::{Dialect, Setup, call, failed};

async fn refused<D: Dialect>(reply: Reply) -> Failure {
    let server = Loopback::start([reply]).await;
    let (told, failure) = failed(call(&D::provider(Setup::at(&server.base_url()))).await);
    assert_eq!((told, server.counts().requests), (vec![], 1));
    failure
}

pub(crate) async fn every_status<D: Dialect>() {
    let table = [
        (fault::of_status(400, None), "400", Category::InvalidRequest, false),
        (fault::context_overflow(), "400", Category::ContextOverflow, false),
        (fault::unauthorized(), "401", Category::Auth, false),
        (fault::of_status(403, None), "403", Category::Permission, false),
        (fault::of_status(404, None), "404", Category::NotFound, false),
        (fault::rate_limited(Some(7)), "429", Category::RateLimited, true),
        (fault::insufficient_quota(), "429", Category::QuotaExhausted, false),
        (fault::of_status(500, None), "500", Category::ServerError, true),
        (fault::bad_gateway(), "502", Category::ServerError, true),
        (fault::of_status(503, None), "503", Category::Overloaded, true),
        (fault::of_status(504, None), "504", Category::Timeout, true),
        (fault::overloaded(), "529", Category::Overloaded, true),
    ];
    for (reply, code, category, retryable) in table {
        let body = String::from_utf8(reply.body_bytes().to_vec()).unwrap();
        let failure = refused::<D>(reply).await;
        assert_eq!(failure.message, format!("HTTP {code}: {}", body.trim()), "verbatim");
        assert_eq!(failure.code.as_deref(), Some(code));
        assert_eq!((failure.category, failure.retryable), (category, retryable), "{failure:?}");
        assert_eq!(failure.hint_ms, (category == Category::RateLimited).then_some(7000), "headers count");
    }
}

pub(crate) async fn what_is_left_of_a_limit_is_told_first<D: Dialect>() {
    let told = |what, limit, remaining, reset_ms| Told { what, limit: Some(limit), remaining, reset_ms };
    let openai: &[_] = &[
        ("x-ratelimit-limit-requests", "60"),
        ("x-ratelimit-remaining-requests", "7"),
        ("x-ratelimit-reset-requests", "1m0s"),
        ("x-ratelimit-limit-tokens", "150000"),
        ("x-ratelimit-remaining-tokens", "149984"),
        ("x-ratelimit-reset-tokens", "6ms"),
    ];
    let anthropic: &[_] = &[
        ("date", "Tue, 01 Sep 2026 00:00:00 GMT"),
        ("anthropic-ratelimit-input-tokens-limit", "80000"),
        ("anthropic-ratelimit-input-tokens-remaining", "1000"),
        ("anthropic-ratelimit-input-tokens-reset", "2026-09-01T00:00:59Z"),
        ("anthropic-ratelimit-output-tokens-limit", "16000"),
        ("anthropic-ratelimit-output-tokens-remaining", "16000"),
        ("anthropic-ratelimit-output-tokens-reset", "2026-08-31T23:59:59Z"),
    ];
    let groq: &[_] = &[
        ("x-ratelimit-limit-requests", "14400"),
        ("x-ratelimit-remaining-requests", "14370"),
        ("x-ratelimit-reset-requests", "2m59.56s"),
        ("x-ratelimit-limit-tokens", "18000"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "7.66s"),
    ];
    for (headers, limits) in [
        (openai, vec![told(Requests, 60, 7, 60_000), told(Tokens, 150_000, 149_984, 6)]),
        (anthropic, vec![told(InputTokens, 80_000, 1_000, 59_000), told(OutputTokens, 16_000, 16_000, 0)]),
        (groq, vec![told(Requests, 14_400, 14_370, 179_560), told(Tokens, 18_000, 0, 7_660)]),
    ] {
        let limited =
            |reply| headers.iter().fold(reply, |reply: Reply, (name, value)| reply.header(name, value));
        let sample = D::sample();
        let replies = [limited(Reply::sse(&sample.parts)), limited(fault::overloaded())];
        let server = Loopback::start(replies).await;
        let provider = D::provider(Setup::at(&server.base_url()));
        let limits = StreamEvent::Limits(Limits(limits));
        let answer = [vec![limits.clone()], sample.facts].concat();
        assert_eq!(call(&provider).await, answer);
        let (told, failure) = failed(call(&provider).await);
        assert_eq!((told, failure.category), (vec![limits], Category::Overloaded));
    }
}

pub(crate) async fn a_body_is_read_within_bounds<D: Dialect>() {
    let flood = Reply::status(502).chunked().body("x".repeat(1 << 20)).split_every(1 << 14);
    let failure = refused::<D>(flood).await;
    assert!(failure.message.starts_with("HTTP 502: xxx") && failure.message.len() <= 4096);
    let cut = Reply::status(502).chunked().body("half a page, and half").cut_at(11);
    assert_eq!(refused::<D>(cut).await.message, "HTTP 502: half a page");
    assert_eq!(refused::<D>(Reply::status(502)).await.message, "HTTP 502: (empty body)");
}

pub(crate) async fn a_success_without_a_stream<D: Dialect>() {
    let error = json!({"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}});
    let failure = refused::<D>(Reply::json(200, &error)).await;
    assert_eq!((failure.category, failure.retryable), (Category::RateLimited, true));
    assert!(failure.message.contains("Rate limit reached"), "{}", failure.message);
    let page = Reply::status(200).header("content-type", "text/html").body("<html>Please log in</html>");
    for reply in [page, Reply::status(200), Reply::sse([""; 0]), Reply::sse([": keep-alive\n\n"])] {
        let failure = refused::<D>(reply).await;
        assert_eq!(failure.category, Category::InvalidResponse, "{failure:?}");
    }
    // Such a body may also never end.
    let gate = Gate::new();
    let body = error.to_string();
    let endless = Reply::status(200).chunked().body(body.clone()).stall_at(body.len(), &gate);
    let server = Loopback::start([endless]).await;
    let mut setup = Setup::at(&server.base_url());
    setup.timeouts.idle = std::time::Duration::from_millis(50);
    let (_, failure) = failed(call(&D::provider(setup)).await);
    assert!(failure.retryable, "{failure:?}");
}

pub(crate) async fn a_redirect_is_not_followed<D: Dialect>() {
    let other = Loopback::start([Reply::status(200)]).await;
    let location = format!("{}/v1", other.base_url());
    for status in [301, 302, 303, 307, 308] {
        let failure = refused::<D>(Reply::status(status).header("location", &location)).await;
        assert_eq!(failure.message, format!("HTTP {status}: (empty body)"));
        assert!(!failure.retryable, "{failure:?}");
    }
    assert_eq!(other.counts().connections, 0);
}

/// The wait is found in any error: beside a status, or in a stream whose headers already had it.
pub(crate) async fn a_wait_that_is_asked_for<D: Dialect>() {
    let refused = |status| Reply::json(status, &json!({"error": {"message": "Come back later"}}));
    let replies = [
        refused(429).header("retry-after", "7"),
        refused(503).header("Retry-After", "7"),
        refused(529).header("retry-after-ms", "7000"),
        Reply::sse([D::error("Come back later")]).header("retry-after", "7"),
    ];
    let count = replies.len();
    let server = Loopback::start(replies).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    for reply in 0..count {
        let (told, failure) = failed(call(&provider).await);
        assert_eq!(
            (told, failure.retryable, failure.hint_ms),
            (vec![], true, Some(7000)),
            "{reply}: {failure:?}"
        );
    }
    assert_eq!(server.counts().requests, count, "nobody asked again by himself");
}
