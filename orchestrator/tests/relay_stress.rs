//! The same request from several threads at once: it begins one call, and whoever stays gets the whole answer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Barrier},
    thread,
};

use bytes::Bytes;
use everturn_kernel::{FinishReason, StreamEvent};
use everturn_orchestrator::{
    Dialect, Orchestrator, Outgoing, Passed, RelayCall, RelayProvider, Said, Upstream, UsageQuery,
};
use everturn_wire::{Priority, Usage};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header::CONTENT_LENGTH};
use tokio::{
    runtime::Runtime,
    sync::watch,
    task::yield_now,
    time::{Duration, Instant, sleep},
};

const THREADS: usize = 4;
const ROUNDS: usize = 500;

/// Never answers.
struct Silent;

impl Upstream for Silent {
    fn send(&self, _: Outgoing) -> BoxStream<'static, Passed> {
        stream::pending().boxed()
    }
}

/// Says half of the answer to each request, and the rest when it is let.
struct Halves(Vec<watch::Receiver<bool>>);

impl Upstream for Halves {
    fn send(&self, request: Outgoing) -> BoxStream<'static, Passed> {
        let round: usize = String::from_utf8_lossy(&request.body).parse().unwrap();
        let mut gate = self.0[round].clone();
        let piece = |text| Passed::Piece(Bytes::from_static(text));
        let head = Passed::Head(StatusCode::OK, HeaderMap::new());
        let second = async move {
            gate.wait_for(|is_open| *is_open).await.unwrap();
            piece(b"b")
        };
        let finished = Passed::Fact(StreamEvent::Finished(FinishReason::Stop));
        stream::iter([head, Passed::Fact(StreamEvent::Opaque), piece(b"a")])
            .chain(stream::once(second))
            .chain(stream::iter([finished]))
            .boxed()
    }
}

/// Says all of an answer, and when it is let, what it has used. The end of the answer is known by its length or as the provider's
/// own, or is not.
struct Whole(watch::Receiver<bool>, End);

#[derive(Clone, Copy, PartialEq)]
enum End {
    ByLength,
    Own,
    Unknown,
}

impl Upstream for Whole {
    fn send(&self, _: Outgoing) -> BoxStream<'static, Passed> {
        let mut gate = self.0.clone();
        let length = (CONTENT_LENGTH, HeaderValue::from_static("1"));
        let headers = (self.1 == End::ByLength).then_some(length).into_iter().collect();
        let mut answer = vec![Passed::Head(StatusCode::OK, headers), Passed::Fact(StreamEvent::Opaque)];
        answer.extend((self.1 == End::Own).then_some(Passed::LastIsNext));
        answer.push(Passed::Piece(Bytes::from_static(b"a")));
        let used = async move {
            gate.wait_for(|is_open| *is_open).await.unwrap();
            Passed::Fact(StreamEvent::Usage(Usage { output_tokens: 7, ..Usage::default() }))
        };
        let finished = Passed::Fact(StreamEvent::Finished(FinishReason::Stop));
        stream::iter(answer).chain(stream::once(used)).chain(stream::iter([finished])).boxed()
    }
}

fn call(round: usize) -> RelayCall {
    let request = Outgoing {
        method: Method::POST,
        path: "messages".to_owned(),
        query: None,
        headers: HeaderMap::new(),
        body: Bytes::from(round.to_string()),
        dialect: Some(Dialect::Messages),
        streams: true,
        whole: false,
    };
    let session = Some("s".to_owned());
    let dialects = vec![Dialect::Messages];
    RelayCall {
        caller: None,
        dialects,
        provider: None,
        model: None,
        session,
        program: None,
        request,
        max_output: None,
        budget: None,
        quota: None,
        priority: Priority::Interactive,
    }
}

#[test]
fn a_request_that_comes_several_times_at_once_begins_one_call() {
    let runtime = Runtime::new().unwrap();
    let entered = runtime.enter();
    let provider = RelayProvider::new("p", Dialect::Messages, Arc::new(Silent));
    let orchestrator = Orchestrator::builder().relay(provider).build();
    drop(entered);
    let barrier = Barrier::new(THREADS);
    let listeners: Vec<_> = thread::scope(|scope| {
        let repeat = || {
            let _entered = runtime.enter();
            let ask = |round| {
                barrier.wait();
                orchestrator.pass_through(call(round)).unwrap()
            };
            (0..ROUNDS).map(ask).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(repeat)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let calls = orchestrator.calls();
    assert_eq!(calls.len(), ROUNDS);
    assert!(calls.iter().all(|call| call.listeners as usize == THREADS));
    drop(listeners);
}

#[test]
fn a_request_that_is_repeated_as_its_listener_leaves_in_mid_answer_is_answered_whole() {
    let runtime = Runtime::new().unwrap();
    let entered = runtime.enter();
    let (gates, halves) = (0..ROUNDS).map(|_| watch::channel(false)).unzip::<_, _, Vec<_>, Vec<_>>();
    let provider = RelayProvider::new("p", Dialect::Messages, Arc::new(Halves(halves)));
    let orchestrator = Orchestrator::builder().relay(provider).build();
    drop(entered);
    let (runtime, barrier) = (&runtime, Barrier::new(2));
    let leave = |round| {
        let mut listener = orchestrator.pass_through(call(round)).unwrap();
        let heard = runtime.block_on(async { [listener.next().await, listener.next().await] });
        assert!(matches!(heard, [Some(Said::Head(..)), Some(Said::Piece(_))]), "{heard:?}");
        barrier.wait();
        drop(listener);
        barrier.wait();
    };
    let repeat = |round: usize| {
        barrier.wait();
        let listener = orchestrator.pass_through(call(round)).unwrap();
        barrier.wait();
        gates[round].send_replace(true);
        let said = runtime.block_on(listener.collect::<Vec<_>>());
        said.iter().map(text).collect::<String>()
    };
    let answers: Vec<_> = thread::scope(|scope| {
        scope.spawn(|| {
            let _entered = runtime.enter();
            (0..ROUNDS).for_each(leave);
        });
        let _entered = runtime.enter();
        (0..ROUNDS).map(repeat).collect()
    });
    assert!(answers.iter().all(|answer| answer == "head ab end"), "{answers:?}");
}

fn text(said: &Said) -> &str {
    match said {
        Said::Head(..) => "head ",
        Said::Piece(piece) => std::str::from_utf8(piece).unwrap(),
        Said::End => " end",
        _ => " no end",
    }
}

#[tokio::test]
async fn what_an_answer_used_is_counted_though_its_listener_left_with_the_last_byte() {
    for (end, is_counted) in [(End::ByLength, true), (End::Own, true), (End::Unknown, false)] {
        let (gate, whole) = watch::channel(false);
        let provider = RelayProvider::new("p", Dialect::Messages, Arc::new(Whole(whole, end)));
        let orchestrator = Orchestrator::builder().relay(provider).build();
        let mut listener = orchestrator.pass_through(call(0)).unwrap();
        let heard = [listener.next().await, listener.next().await];
        assert!(matches!(heard, [Some(Said::Head(..)), Some(Said::Piece(_))]), "{heard:?}");
        drop(listener);
        // Time enough to stop it.
        for _ in 0..100 {
            yield_now().await;
        }
        gate.send_replace(true);
        while !orchestrator.calls().is_empty() {
            yield_now().await;
        }
        let used = orchestrator.usage(UsageQuery::default()).await.unwrap().total;
        assert_eq!((used.requests, used.output_tokens), (1, if is_counted { 7 } else { 0 }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_body_does_not_end_after_its_last_event_is_stopped_soon() {
    let (gate, whole) = watch::channel(false);
    let provider = RelayProvider::new("p", Dialect::Messages, Arc::new(Whole(whole, End::Own)));
    let orchestrator = Orchestrator::builder().relay(provider).build();
    let mut listener = orchestrator.pass_through(call(0)).unwrap();
    let _ = [listener.next().await, listener.next().await];
    let left_at = Instant::now();
    drop(listener);
    while !orchestrator.calls().is_empty() {
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(left_at.elapsed().as_secs(), 5);
    drop(gate);
}
