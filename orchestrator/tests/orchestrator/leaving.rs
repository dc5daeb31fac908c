//! Answers whose listeners leave, and requests that come again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use everturn_orchestrator::{
    Dialect, Listener, MemoryState, Orchestrator, Outgoing, Passed, RelayCall, RelayProvider, Said, Upstream,
    kernel::{FinishReason, StreamEvent},
};
use everturn_wire::{CallPhase, Category, Failure, Priority};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::{HeaderMap, Method, StatusCode};
use tokio::{task::yield_now, time::sleep};

/// Answers each request by its number.
struct Answers<F>(F, Arc<AtomicUsize>);

impl<F: Fn(usize) -> Vec<Passed> + Send + Sync + 'static> Upstream for Answers<F> {
    fn send(&self, _: Outgoing) -> BoxStream<'static, Passed> {
        let events = (self.0)(self.1.fetch_add(1, Ordering::Relaxed));
        stream::iter(events).chain(stream::pending()).boxed()
    }
}

/// An orchestrator with a provider, and how often that was asked.
fn asking(
    answers: impl Fn(usize) -> Vec<Passed> + Send + Sync + 'static,
) -> (Orchestrator, Arc<AtomicUsize>) {
    let asked = Arc::<AtomicUsize>::default();
    let provider = RelayProvider::new("p", Dialect::Messages, Arc::new(Answers(answers, asked.clone())));
    let builder = Orchestrator::builder().state(Arc::new(MemoryState::new())).relay(provider);
    (builder.build(), asked)
}

fn call(body: usize, budget: Option<Duration>) -> RelayCall {
    let request = Outgoing {
        method: Method::POST,
        path: "messages".to_owned(),
        query: None,
        headers: HeaderMap::new(),
        body: Bytes::from(body.to_string()),
        dialect: Some(Dialect::Messages),
        streams: true,
        whole: false,
    };
    RelayCall {
        caller: None,
        dialects: vec![Dialect::Messages],
        provider: None,
        model: None,
        session: None,
        program: None,
        request,
        max_output: None,
        budget,
        quota: None,
        priority: Priority::Interactive,
    }
}

fn answer(pieces: usize, size: usize) -> Vec<Passed> {
    let piece = Bytes::from(vec![b'a'; size]);
    let head = [Passed::Head(StatusCode::OK, HeaderMap::new()), Passed::Fact(StreamEvent::Opaque)];
    head.into_iter().chain(vec![piece; pieces].into_iter().map(Passed::Piece)).collect()
}

fn finished() -> Passed {
    Passed::Fact(StreamEvent::Finished(FinishReason::Stop))
}

async fn hear(listener: &mut Listener, count: usize) {
    for _ in 0..count {
        assert!(matches!(listener.next().await, Some(Said::Head(..) | Said::Piece(_))));
    }
}

async fn settle() {
    for _ in 0..100 {
        yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_without_listeners_goes_on_for_ten_minutes_after_the_last_one_left() {
    let (orchestrator, asked) = asking(|_| Vec::new());
    for minutes in [0, 9, 1, 9, 9] {
        sleep(Duration::from_secs(60 * minutes)).await;
        let listener = orchestrator.pass_through(call(0, None)).unwrap();
        settle().await;
        drop(listener);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 1, "each repetition found it");
    for (minutes, left) in [(9, 1), (2, 0)] {
        sleep(Duration::from_secs(60 * minutes)).await;
        assert_eq!(orchestrator.calls().len(), left, "{minutes}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_taken_is_given_to_nobody_else() {
    let (orchestrator, asked) = asking(|_| {
        let mut events = answer(1, 5);
        events.insert(2, Passed::LastIsNext);
        events
    });
    for calls in 1..=3 {
        let mut listener = orchestrator.pass_through(call(0, None)).unwrap();
        hear(&mut listener, 2).await;
        drop(listener);
        assert_eq!(asked.load(Ordering::Relaxed), calls, "the provider has not ended its answer yet");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_whose_listeners_leave_before_the_end_are_kept_within_bounds() {
    const PIECES: usize = 8;
    let (orchestrator, _) = asking(|_| answer(PIECES, 900 << 10).into_iter().chain([finished()]).collect());
    let mut listeners = Vec::new();
    for body in 0..12 {
        let mut listener = orchestrator.pass_through(call(body, None)).unwrap();
        hear(&mut listener, PIECES).await;
        listeners.push(listener);
    }
    settle().await;
    let calls = orchestrator.calls();
    assert!(calls.len() == 12 && calls.iter().all(|call| call.phase == CallPhase::Kept), "{calls:?}");
    drop(listeners);
    assert_eq!(orchestrator.calls().len(), 9, "64 MiB");
}

#[tokio::test(start_paused = true)]
async fn a_wait_whose_budget_is_over_is_not_continued() {
    let refused = || {
        let hint_ms = Some(600_000);
        Passed::Fact(StreamEvent::Failed(Failure {
            hint_ms,
            ..Failure::new(Category::Overloaded, true, "HTTP 529")
        }))
    };
    let (orchestrator, asked) = asking(move |number| match number {
        0 => vec![refused()],
        // It takes a moment.
        _ => Vec::new(),
    });
    let budget = Some(Duration::from_secs(30 * 60));
    let listener = orchestrator.pass_through(call(0, budget)).unwrap();
    settle().await;
    drop(listener);
    sleep(Duration::from_secs(3_600)).await;
    assert!(orchestrator.calls().is_empty());
    let before = asked.load(Ordering::Relaxed);
    let mut listener = orchestrator.pass_through(call(0, budget)).unwrap();
    let said = tokio::time::timeout(Duration::from_secs(60), listener.next()).await;
    assert!(said.is_err(), "it has its whole budget: {said:?}");
    assert_eq!(asked.load(Ordering::Relaxed), before + 1);
}
