//! Behaviour towards the peer: one request per call, nothing unrequested, and no secrets revealed.

use everturn_kernel::{Request, StreamEvent};
use everturn_sim::{ClosedPort, Gate, Loopback, Reply, fault};
use everturn_wire::{Category, TraceContext};
use futures_util::{
    StreamExt as _,
    future::{join, join_all},
};
use serde_json::json;

use crate::dialect::{Dialect, HEADER, KEY, Setup, call, failed, request, target, told};

pub(crate) async fn the_request_is_well_formed<D: Dialect>() {
    let sample = D::sample();
    let server = Loopback::start([Reply::sse(&sample.parts)]).await;
    call(&D::provider(Setup::at(&server.base_url()))).await;
    let requests = server.requests();
    let sent = &requests[0];
    assert_eq!((sent.method.as_str(), sent.path.as_str()), ("POST", &*target::<D>(None)));
    assert_eq!(sent.header(D::AUTHORIZATION.0), Some(D::AUTHORIZATION.1));
    assert_eq!(sent.header(HEADER.0), Some(HEADER.1));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    assert_eq!(sent.header("accept-encoding"), Some("identity"), "compression holds a stream back");
    assert!(sent.json().unwrap().is_object());
    let queried = Setup { base_url: format!("{}/v1/?api-version=3", server.base_url()), ..Setup::at("") };
    call(&D::provider(queried)).await;
    assert_eq!(server.requests()[1].path, target::<D>(Some("api-version=3")), "a query is kept");
}

/// Lets all tasks run, so that the end of the last body arrives and its connection returns to the pool.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn a_connection_is_used_again<D: Dialect>() {
    let sample = D::sample();
    // The end of a body often arrives shortly after the end of the answer.
    let gate = Gate::new();
    if !D::HAS_LAST_EVENT {
        gate.open();
    }
    let late = Reply::sse(&sample.parts).stall_at(usize::MAX, &gate);
    let server = Loopback::start([Reply::sse(&sample.parts), late]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    for calls in 1..=3 {
        assert_eq!(call(&provider).await, sample.facts);
        if calls == 2 {
            gate.reached().await;
            gate.open();
        }
        settle().await;
    }
    assert_eq!((server.counts().requests, server.counts().connections), (3, 1));
}

pub(crate) async fn connections_of_many_calls_are_used_again<D: Dialect>() {
    const CALLS: usize = 100;
    let sample = D::sample();
    let gate = Gate::new();
    let server = Loopback::start([Reply::sse(&sample.parts).hold(&gate)]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    for round in 1..=2 {
        let answers = join_all((0..CALLS).map(|_| call(&provider)));
        // All at the same time, each on a connection of its own.
        let arrival = async {
            server.arrived(round * CALLS).await;
            gate.open();
        };
        assert_eq!(join(answers, arrival).await.0, vec![sample.facts.clone(); CALLS]);
        settle().await;
    }
    assert_eq!(server.counts().connections, CALLS);
}

pub(crate) async fn a_dropped_call_closes_its_connection<D: Dialect>() {
    let sample = D::sample();
    let gate = Gate::new();
    let held = Reply::sse(&sample.parts).hold(&gate);
    let stalled = Reply::sse([D::text("a"), D::text("b")]).stall_before(1, &gate);
    let server = Loopback::start([held, stalled]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let mut waiting = Box::pin(provider.stream(request()));
    tokio::select! {
        fact = waiting.next() => panic!("the server was silent: {fact:?}"),
        () = server.arrived(1) => drop(waiting),
    }
    server.until(|seen| seen.abandoned == 1 && seen.open == 0).await;
    let mut streaming = provider.stream(request());
    assert_eq!(streaming.next().await, Some(StreamEvent::Text("a".into())));
    drop(streaming);
    server.until(|seen| seen.abandoned == 2 && seen.open == 0).await;
}

pub(crate) async fn a_call_that_was_never_polled_sends_nothing<D: Dialect>() {
    let server = Loopback::start([Reply::sse(D::sample().parts)]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    drop(provider.stream(request()));
    call(&provider).await;
    assert_eq!((server.counts().requests, server.counts().connections), (1, 1));
}

pub(crate) async fn a_broken_pooled_connection_is_not_retried<D: Dialect>() {
    let sample = D::sample();
    for broken in [Reply::hang_up(), Reply::reset()] {
        let server = Loopback::start([Reply::sse(&sample.parts), broken]).await;
        let provider = D::provider(Setup::at(&server.base_url()));
        assert_eq!(call(&provider).await, sample.facts);
        settle().await;
        let (told, failure) = failed(call(&provider).await);
        assert_eq!((told, failure.category, failure.retryable), (vec![], Category::Network, true));
        let counts = server.counts();
        assert_eq!(
            (counts.requests, counts.connections),
            (2, 1),
            "the second call met the first's connection"
        );
    }
}

pub(crate) async fn a_server_that_closes_after_each_reply<D: Dialect>() {
    let sample = D::sample();
    let end = sample.bytes().len();
    // It promises to keep the connection open, but closes it.
    let server = Loopback::start([Reply::sse(&sample.parts).content_length().cut_at(end)]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    for calls in 1..=20 {
        let facts = call(&provider).await;
        let requests = server.counts().requests;
        match facts.last() {
            // The request met the closing connection. Nobody knows whether it was received, so it is not repeated.
            Some(StreamEvent::Failed(failure)) => {
                assert_eq!(failure.category, Category::Network, "{failure:?}");
            }
            _ => assert_eq!(facts, sample.facts),
        }
        assert!(requests <= calls, "{requests} requests for {calls} calls");
    }
}

/// An error that quotes everything secret: the key, the header's value, and a key in the URL.
fn echoing() -> Reply {
    let (cut, encoded) = (&KEY[..20], KEY.replace(' ', "%20"));
    let message = format!(
        "Incorrect API key {KEY} ({cut}..., {encoded}) for team {} at /v1?key=in-the-address",
        HEADER.1
    );
    Reply::json(401, &json!({"error": {"message": message}}))
}

pub(crate) async fn no_secret_is_shown<D: Dialect>() {
    let port = ClosedPort::reserve().unwrap();
    let tls = || "https://127.0.0.1:1".to_owned();
    let error = D::error(&format!("no {KEY} {}", HEADER.1));
    let stream = Reply::sse([error]);
    let mut shown = Vec::new();
    for reply in
        [echoing(), stream, fault::overloaded(), Reply::reset(), Reply::status(200), Reply::raw("?\r\n\r\n")]
    {
        let server = Loopback::start([reply]).await;
        let base_url = format!("{}/v1?key=in-the-address", server.base_url());
        let setup = Setup { base_url, ..Setup::at("") };
        shown.push(format!("{setup:?}").replace("in-the-address", "(the test's own)"));
        shown.push(format!("{:?}", call(&D::provider(setup)).await));
    }
    for server in [port.base_url(), tls()] {
        let base_url = format!("{server}/v1?key=in-the-address");
        let (_, failure) = failed(call(&D::provider(Setup { base_url, ..Setup::at("") })).await);
        shown.push(format!("{failure:?}"));
    }
    for text in shown {
        for secret in [KEY, &KEY[..12], "correct%20horse", HEADER.1, "in-the-address"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

/// A provider that says the key of the request, in two pieces of text and in each part of a call.
pub(crate) async fn a_secret_in_an_answer_is_masked<D: Dialect>() {
    let arguments = format!("{{\"key\":\"{KEY}\"}}");
    let calls = D::calls(&[(KEY, KEY, &[&arguments])]).unwrap();
    let (first, second) = KEY.split_at(15);
    let texts = [D::text(&format!("it is {first}")), D::text(&format!("{second}, yes"))];
    let server = Loopback::start([Reply::sse(texts.into_iter().chain(calls))]).await;
    let facts = told(&D::provider(Setup::at(&server.base_url())), request()).await;
    let text = |fact: &StreamEvent| match fact {
        StreamEvent::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let all: String = facts.iter().map(text).collect();
    // Whether the pieces arrive together depends on timing.
    assert!(all.contains("[redacted], yes") && !all.contains(KEY), "{all}");
    assert!(all.matches("[redacted]").count() >= 4, "{all}");
}

/// The trace of a call is sent with it, and no trace otherwise.
pub(crate) async fn the_trace_of_a_call_is_sent<D: Dialect>() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let full = || Reply::sse(D::sample().parts);
    let server = Loopback::start([full(), full(), full()]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let traces = [TraceContext::read(parent, Some("vendor=1")), TraceContext::read(parent, None), None];
    for trace in traces {
        told(&provider, Request { trace, ..request() }).await;
    }
    let sent: Vec<_> = server.requests().into_iter().collect();
    let sent = sent.iter().map(|request| (request.header("traceparent"), request.header("tracestate")));
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [(Some(parent), Some("vendor=1")), (Some(parent), None), (None, None)]
    );
}
