//! Connections that fail or break, and streams that fail or end too early.

use everturn_kernel::StreamEvent;
use everturn_sim::{ClosedPort, Gate, Loopback, Reply};
use everturn_wire::{Category, Failure};

use crate::dialect::{Dialect, Sample, Setup, call, failed};

/// Returns the events that a call may yield before its answer is complete.
pub(crate) fn told_at_most(sample: &Sample) -> Vec<StreamEvent> {
    let streamed = |fact: &&StreamEvent| {
        matches!(fact, StreamEvent::Text(_) | StreamEvent::Reasoning(_) | StreamEvent::Echo(_))
    };
    sample.facts.iter().filter(streamed).cloned().collect()
}

/// Calls once per offset of the sample, each time with a connection that breaks there. Until the last byte arrived (and
/// the end of the body, if that ends the answer), a call fails with a network failure after a prefix of the allowed
/// events.
async fn broken_at_every_byte<D: Dialect>(breaking: fn(Reply, usize) -> Reply) {
    let sample = D::sample();
    let reply = Reply::sse(&sample.parts);
    let length = sample.bytes().len() + usize::from(!D::HAS_LAST_EVENT);
    let server = Loopback::with(move |request| {
        let whole = !D::HAS_LAST_EVENT && request.index == length;
        if whole { reply.clone() } else { breaking(reply.clone(), request.index) }
    })
    .await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let at_most = told_at_most(&sample);
    let mut most_told = 0;
    for offset in 0..length {
        let (told, failure) = failed(call(&provider).await);
        assert!(at_most.starts_with(&told), "broken at {offset}: {told:?}");
        assert!(told.len() >= most_told, "less was told at {offset} than before");
        most_told = told.len();
        assert_eq!(
            (failure.category, failure.retryable),
            (Category::Network, true),
            "at {offset}: {failure:?}"
        );
    }
    assert_eq!(most_told, at_most.len(), "what arrived was told");
    assert_eq!(call(&provider).await, sample.facts, "whatever comes after the terminal event");
    assert_eq!(server.counts().requests, length + 1, "one request per call");
}

pub(crate) async fn cut_at_every_byte<D: Dialect>() {
    broken_at_every_byte::<D>(Reply::cut_at).await;
}

pub(crate) async fn reset_at_every_byte<D: Dialect>() {
    broken_at_every_byte::<D>(Reply::reset_at).await;
}

pub(crate) async fn a_clean_end_at_every_byte<D: Dialect>() {
    let sample = D::sample();
    let reply = Reply::sse(&sample.parts).close_delimited();
    let server = Loopback::with(move |request| reply.clone().cut_at(request.index)).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let at_most = told_at_most(&sample);
    for offset in 0..=sample.bytes().len() {
        let facts = call(&provider).await;
        if offset < sample.bytes_of(sample.sufficient) {
            let (told, failure) = failed(facts);
            assert!(at_most.starts_with(&told), "ended at {offset}: {told:?}");
            assert_eq!(
                (failure.category, failure.retryable),
                (Category::InvalidResponse, true),
                "{failure:?}"
            );
        } else {
            assert!(facts.starts_with(&at_most), "ended at {offset}: {facts:?}");
            assert!(matches!(facts.last(), Some(StreamEvent::Finished(_))), "ended at {offset}: {facts:?}");
        }
    }
}

pub(crate) async fn an_error_after_every_part<D: Dialect>() {
    let sample = D::sample();
    let at_most = told_at_most(&sample);
    for parts in 0..sample.parts.len() {
        // The connection stays open after the error, which must be handled at once.
        let gate = Gate::new();
        let error = D::error("Everything is on fire");
        let sent = sample.parts[..parts].iter().chain([&error]);
        let server = Loopback::start([Reply::sse(sent).stall_before(parts + 1, &gate)]).await;
        let (told, failure) = failed(call(&D::provider(Setup::at(&server.base_url()))).await);
        assert!(at_most.starts_with(&told), "after {parts} parts: {told:?}");
        assert!(failure.message.contains("Everything is on fire"), "{}", failure.message);
        assert!(failure.retryable, "{failure:?}");
        server.until(|seen| seen.abandoned == 1).await;
        assert_eq!(server.counts().requests, 1);
    }
}

pub(crate) async fn an_answer_that_says_nothing<D: Dialect>() {
    for parts in D::nothing() {
        // With a terminal event, the answer is complete even if the connection stays open.
        let gate = Gate::new();
        let held = D::HAS_LAST_EVENT.then(|| Reply::sse(&parts).stall_at(usize::MAX, &gate));
        for reply in [Reply::sse(&parts)].into_iter().chain(held) {
            let server = Loopback::start([reply]).await;
            let (told, failure) = failed(call(&D::provider(Setup::at(&server.base_url()))).await);
            assert_eq!((told, server.counts().requests), (vec![], 1), "{parts:?}");
            assert_eq!(
                (failure.category, failure.retryable),
                (Category::InvalidResponse, true),
                "{failure:?}"
            );
        }
    }
}

pub(crate) async fn an_error_that_is_no_event<D: Dialect>() {
    let sample = D::sample();
    let at_most = told_at_most(&sample);
    // An error as in the body of a non-stream response: several lines, and not in an event.
    let error = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"Everything is on fire\"\n  }\n}";
    for parts in 0..sample.parts.len() {
        let sent = sample.parts[..parts].iter().map(String::as_str).chain([error]);
        let server = Loopback::start([Reply::sse(sent)]).await;
        let (told, failure) = failed(call(&D::provider(Setup::at(&server.base_url()))).await);
        assert!(at_most.starts_with(&told), "after {parts} parts: {told:?}");
        assert!(failure.message.contains("Everything is on fire"), "{}", failure.message);
        assert!(failure.retryable, "{failure:?}");
    }
}

async fn failure_of<D: Dialect>(reply: Reply) -> Failure {
    let server = Loopback::start([reply]).await;
    let (told, failure) = failed(call(&D::provider(Setup::at(&server.base_url()))).await);
    assert_eq!((told, server.counts().requests), (vec![], 1));
    let host = server.address().to_string();
    assert!(failure.message.starts_with(&host), "it says where: {}", failure.message);
    failure
}

pub(crate) async fn no_head_at_all<D: Dialect>() {
    for reply in [Reply::hang_up(), Reply::reset(), Reply::raw("HTTP/1.1 200 OK\r\ncontent-le")] {
        let failure = failure_of::<D>(reply).await;
        assert_eq!((failure.category, failure.retryable), (Category::Network, true), "{failure:?}");
    }
}

pub(crate) async fn no_http_at_all<D: Dialect>() {
    let failure = failure_of::<D>(Reply::raw("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n")).await;
    assert_eq!(failure.category, Category::InvalidResponse, "{failure:?}");
}

pub(crate) async fn nothing_listens<D: Dialect>() {
    let port = ClosedPort::reserve().unwrap();
    let (told, failure) = failed(call(&D::provider(Setup::at(&port.base_url()))).await);
    assert_eq!((told, failure.category, failure.retryable), (vec![], Category::Network, true));
    assert!(failure.message.contains("refused"), "{}", failure.message);
    assert!(!failure.message.contains("http://"), "{}", failure.message);
}

pub(crate) async fn no_such_host<D: Dialect>() {
    // Labels are limited to 63 bytes, so no resolver queries the network for this name.
    let host = format!("http://{}.invalid", "x".repeat(64));
    let (told, failure) = failed(call(&D::provider(Setup::at(&host))).await);
    assert_eq!((told, failure.category, failure.retryable), (vec![], Category::Network, true));
    assert!(failure.message.contains("dns error"), "{}", failure.message);
}
