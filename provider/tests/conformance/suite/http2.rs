//! HTTP/2: streams and connections that end early, windows that stall, and many calls on one connection.

use std::{sync::Arc, time::Duration};

use everturn_kernel::{Provider, StreamEvent};
use everturn_sim::{Authority, Gate, Handshake, Loopback, Reply, Request, Tls};
use everturn_wire::{Category, Chunk, Message, Role};
use futures_util::{FutureExt as _, StreamExt as _, future::join_all};
use tokio::{task::JoinSet, time::timeout};

use super::breakage::told_at_most;
use super::tls::trusting;
use crate::dialect::{Dialect, Sample, call, failed, request, told};

/// The codes with which peers reset streams and leave connections.
const NO_ERROR: u32 = 0;
const CODES: [u32; 8] = [NO_ERROR, 1, 2, 3, 7, 8, 11, 13];

/// Starts a server that speaks HTTP/2, and an adapter for it.
async fn speaking<D: Dialect>(
    settings: impl FnOnce(Tls) -> Tls,
    choose: impl FnMut(&Request) -> Reply + Send + 'static,
) -> (Loopback, Arc<dyn Provider>) {
    let authority = Authority::new();
    let tls = settings(Tls::http2(&authority.issue()));
    let server = Loopback::secured(move |_| Handshake::Complete(tls.clone()), choose).await;
    let provider = D::provider(trusting(&server, &authority));
    (server, provider)
}

/// Makes a call whose answer breaks off. It may be retried, and nothing is told that was not sent.
async fn broken(provider: &Arc<dyn Provider>, sample: &Sample, what: &str) -> usize {
    let (told, failure) = failed(call(provider).await);
    assert!(told_at_most(sample).starts_with(&told), "{what}: {told:?}");
    let temporary =
        [Category::Network, Category::ServerError, Category::RateLimited, Category::InvalidResponse];
    assert!(failure.retryable && temporary.contains(&failure.category), "{what}: {failure:?}");
    told.len()
}

pub(crate) async fn a_stream_reset_at_every_frame<D: Dialect>() {
    let sample = D::sample();
    let reply = Reply::sse(&sample.parts);
    let mut replies = Vec::new();
    for code in CODES {
        replies.push(Reply::hang_up().reset_stream_at(0, code));
        // The last time, everything was sent except the end of the stream.
        for parts in 0..=sample.parts.len() {
            replies.push(reply.clone().reset_stream_at(sample.bytes_of(parts), code));
        }
        replies.push(reply.clone().reset_stream_after(code));
    }
    let script = replies.clone();
    let (server, provider) = speaking::<D>(|tls| tls, move |request| script[request.index].clone()).await;
    for (index, reply) in replies.iter().enumerate() {
        let place = index % (sample.parts.len() + 3);
        let what = format!("{place} {reply:?}");
        // The last event ends the answer, whatever becomes of the stream.
        if place > sample.parts.len() + usize::from(!D::HAS_LAST_EVENT) {
            assert_eq!(call(&provider).await, sample.facts, "{what}");
        } else {
            broken(&provider, &sample, &what).await;
        }
    }
    let counts = server.counts();
    assert_eq!((counts.requests, counts.connections), (replies.len(), 1), "a stream is not its connection");
}

pub(crate) async fn a_connection_that_goes_away<D: Dialect>() {
    let sample = D::sample();
    let reply = Reply::sse(&sample.parts);
    // The last one is before the event that completes the answer.
    let places: Vec<_> = (0..sample.sufficient).map(|parts| sample.bytes_of(parts)).collect();
    for code in [NO_ERROR, 2, 11] {
        // With our stream: the answer is completed, and the next call takes another connection.
        let (script, at) = (reply.clone(), places.clone());
        let choose = move |request: &Request| script.clone().go_away_at(at[request.index], code, true);
        let (server, provider) = speaking::<D>(|tls| tls, choose).await;
        for _ in &places {
            // One that goes away for an error may be given up at once.
            if code == NO_ERROR {
                assert_eq!(call(&provider).await, sample.facts);
            } else if !matches!(call(&provider).await.last(), Some(StreamEvent::Finished(_))) {
                continue;
            }
        }
        assert_eq!((server.counts().requests, server.counts().connections), (places.len(), places.len()));

        // Without it, before the head and at each place: the call fails, and may be repeated.
        let (script, at) = (reply.clone(), places.clone());
        let choose = move |request: &Request| match request.index {
            0 => Reply::hang_up().go_away_at(0, code, false),
            index => script.clone().go_away_at(at[index - 1], code, false),
        };
        let (server, provider) = speaking::<D>(|tls| tls, choose).await;
        for index in 0..=places.len() {
            broken(&provider, &sample, &format!("left at {index} with {code}")).await;
        }
        assert_eq!(server.counts().requests, places.len() + 1, "one request per call");

        // With our stream, and then the connection ends all the same.
        let (script, at) = (reply.clone(), places.clone());
        let choose = move |request: &Request| {
            let place = at[request.index];
            script.clone().go_away_at(0, code, true).cut_at(place)
        };
        let (server, provider) = speaking::<D>(|tls| tls, choose).await;
        for index in 0..places.len() {
            broken(&provider, &sample, &format!("ended at {index} with {code}")).await;
        }
        assert_eq!(server.counts().requests, places.len(), "one request per call");
    }
}

pub(crate) async fn a_connection_cut_at_every_frame<D: Dialect>() {
    let sample = D::sample();
    let reply = Reply::sse(&sample.parts);
    let cuts: [fn(Reply, usize) -> Reply; 3] = [Reply::cut_at, Reply::truncate_at, Reply::reset_at];
    for cut in cuts {
        let (script, parts) = (reply.clone(), sample.clone());
        let choose = move |request: &Request| cut(script.clone(), parts.bytes_of(request.index));
        let (server, provider) = speaking::<D>(|tls| tls, choose).await;
        for index in 0..sample.sufficient {
            broken(&provider, &sample, &format!("cut at {index}")).await;
        }
        assert_eq!(server.counts().requests, sample.sufficient);
    }
}

/// The request does not fit into the window, so it is never complete.
pub(crate) async fn a_window_that_stalls<D: Dialect>() {
    let (server, provider) =
        speaking::<D>(|tls| tls.stalled_window(16), |_| unreachable!("no request is complete")).await;
    let long = Chunk::Text { text: "word ".repeat(20_000) };
    let request =
        everturn_kernel::Request { messages: vec![Message::new(Role::User, vec![long])], ..request() };
    let (mut told, failure) = failed(told(&provider, request).await);
    told.retain(|fact| !matches!(fact, StreamEvent::Silent(_)));
    assert_eq!((told, failure.category, failure.retryable), (vec![], Category::Timeout, true));
    assert_eq!(server.counts().requests, 0);
}

pub(crate) async fn more_calls_than_streams<D: Dialect>() {
    const CALLS: usize = 250;
    let sample = D::sample();
    let (gate, reply) = (Gate::new(), Reply::sse(&sample.parts));
    let held = gate.clone();
    let choose = move |request: &Request| {
        if request.index == 0 { reply.clone() } else { reply.clone().hold(&held) }
    };
    let (server, provider) = speaking::<D>(|tls| tls.max_streams(100), choose).await;
    assert_eq!(call(&provider).await, sample.facts);
    let answers = join_all((0..CALLS).map(|_| call(&provider)));
    let all_arrive = async {
        server.arrived(1 + CALLS).await;
        gate.open();
    };
    let (answers, ()) = tokio::join!(answers, all_arrive);
    assert!(answers.iter().all(|facts| *facts == sample.facts));
}

pub(crate) async fn a_connection_that_dies_with_many_calls<D: Dialect>() {
    const CALLS: usize = 1000;
    const GROUP: usize = 100;
    let sample = D::sample();
    let (gate, reply) = (Gate::new(), Reply::sse(&sample.parts));
    let held = gate.clone();
    let middle = sample.bytes_of(sample.sufficient / 2);
    let choose = move |request: &Request| match request.index {
        1..=CALLS => reply.clone().stall_at(middle, &held).cut_at(middle),
        _ => reply.clone(),
    };
    let (server, provider) = speaking::<D>(|tls| tls, choose).await;
    assert_eq!(call(&provider).await, sample.facts);
    // In groups: each call of a group may begin a connection, and on a busy machine a thousand handshakes take too long.
    let (mut calls, mut begun) = (JoinSet::new(), 0);
    while begun < CALLS {
        for _ in 0..GROUP {
            let provider = provider.clone();
            calls.spawn(async move { call(&provider).await });
        }
        begun += GROUP;
        tokio::select! {
            () = gate.reached_by(begun) => {}
            Some(ended) = calls.join_next() => panic!("a call ended before its connection did: {ended:?}"),
        }
    }
    gate.open();
    let at_most = told_at_most(&sample);
    for facts in calls.join_all().await {
        let (told, failure) = failed(facts);
        assert!(at_most.starts_with(&told) && failure.retryable, "{told:?} {failure:?}");
    }
    for _ in 0..CALLS / GROUP {
        for facts in join_all((0..GROUP).map(|_| call(&provider))).await {
            assert_eq!(facts, sample.facts);
        }
    }
    assert_eq!(server.counts().requests, 1 + 2 * CALLS, "one request per call");
}

/// Answers that nobody reads take no room from the others on their connection.
pub(crate) async fn answers_that_nobody_reads<D: Dialect>() {
    const UNREAD: usize = 8;
    let sample = D::sample();
    let (reply, long) = (Reply::sse(&sample.parts), Reply::sse([D::text(&"word ".repeat(1 << 20))]));
    let choose = move |request: &Request| match request.index {
        1..=UNREAD => long.clone(),
        _ => reply.clone(),
    };
    let (server, provider) = speaking::<D>(|tls| tls, choose).await;
    assert_eq!(call(&provider).await, sample.facts);
    let mut unread: Vec<_> = (0..UNREAD).map(|_| provider.stream(request())).collect();
    for answer in &mut unread {
        // Each is sent, and some of it may arrive.
        assert!(answer.next().now_or_never().is_none());
    }
    server.arrived(1 + UNREAD).await;
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let answered = timeout(Duration::from_secs(20), call(&provider)).await;
    assert_eq!(answered.expect("there is room for another answer"), sample.facts);
    assert_eq!(server.counts().connections, 1);
}
