//! What a call that passes through shows while it waits and is answered: to subscribers, and to observers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use everturn_orchestrator::{
    Builder, CallEnd, Caller, Dialect, Exponential, JournalError, MemoryState, Observer, Orchestrator,
    Outgoing, Passed, ProviderCall, RelayCall, RelayProvider, StateStore, TurnEnd, Upstream,
    kernel::{FinishReason, StreamEvent},
};
use everturn_wire::{
    AgentEvent, CallPhase, CallerName, Category, EventBody, Failure, Priority, TraceContext,
};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tokio::sync::broadcast::Receiver;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Fails, then answers, over and over.
#[derive(Default)]
struct Answers {
    answers_next: AtomicBool,
}

impl Upstream for Answers {
    fn send(&self, request: Outgoing) -> BoxStream<'static, Passed> {
        assert_eq!(request.headers["traceparent"], PARENT, "it is passed on unchanged");
        if !self.answers_next.fetch_not(Ordering::Relaxed) {
            let failure = Failure::new(Category::Overloaded, true, "overloaded");
            return stream::iter([Passed::Fact(StreamEvent::Failed(failure))]).boxed();
        }
        let answer = [
            Passed::Head(StatusCode::OK, HeaderMap::new()),
            Passed::Piece(Bytes::from_static(b"secret answer")),
            Passed::Fact(StreamEvent::Opaque),
            Passed::Fact(StreamEvent::Finished(FinishReason::Stop)),
        ];
        stream::iter(answer).boxed()
    }
}

fn call() -> RelayCall {
    let headers = [("traceparent", PARENT), ("authorization", "Bearer secret")];
    let headers =
        headers.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    let request = Outgoing {
        method: Method::POST,
        path: "messages".to_owned(),
        query: None,
        headers: HeaderMap::from_iter(headers),
        body: Bytes::from_static(b"secret question"),
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
        program: Some("program".to_owned()),
        request,
        max_output: None,
        budget: None,
        quota: None,
        priority: Priority::Interactive,
    }
}

/// What happened, in order.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn add(&self, fact: String) {
        self.0.lock().unwrap().push(fact);
    }
}

fn of(call: &ProviderCall) -> String {
    let trace = call.trace.as_ref().map_or("none", TraceContext::parent);
    assert_eq!(trace, PARENT);
    format!("attempt {}", call.op.attempt)
}

impl Observer for Log {
    fn event(&self, event: &AgentEvent) {
        match &event.body {
            EventBody::ProviderRetry { delay_ms, .. } => self.add(format!("waits {delay_ms}")),
            EventBody::StepComplete { .. } => self.add("step".to_owned()),
            _ => {}
        }
    }

    fn call_begins(&self, call: &ProviderCall) {
        self.add(format!("{} begins", of(call)));
    }

    fn call_answers(&self, call: &ProviderCall, _: everturn_orchestrator::kernel::Millis) {
        self.add(format!("{} answers", of(call)));
    }

    fn call_ended(&self, call: &ProviderCall, _: everturn_orchestrator::kernel::Millis, end: CallEnd<'_>) {
        let end = match end {
            CallEnd::Answered => "answered",
            CallEnd::Failed(_) => "failed",
            _ => "dropped",
        };
        self.add(format!("{} {end}", of(call)));
    }

    fn turn_ended(&self, end: &TurnEnd<'_>) {
        let trace = end.trace.map_or("none", TraceContext::parent);
        self.add(format!("ended after {} ms in {trace}", end.turn.waited_ms()));
    }
}

fn orchestrator(log: Arc<Log>) -> Orchestrator {
    build(log, Orchestrator::builder())
}

fn build(log: Arc<Log>, builder: Builder) -> Orchestrator {
    let provider = RelayProvider::new("p", Dialect::Messages, Arc::new(Answers::default()));
    let schedule = Exponential { base: Duration::from_secs(4), jitter: 0.0, ..Exponential::default() };
    builder.relay(provider).schedule(schedule).observer(log).build()
}

/// Passes the call through to its end, as a listener.
async fn pass(orchestrator: &Orchestrator) {
    let mut listener = orchestrator.pass_through(call()).unwrap();
    while listener.next().await.is_some() {}
}

#[tokio::test(start_paused = true)]
async fn observers_see_a_call_as_a_turn_of_one_step_within_its_trace() {
    let log = Arc::new(Log::default());
    pass(&orchestrator(log.clone())).await;
    let expected = [
        "attempt 0 begins",
        "attempt 0 failed",
        "waits 4000",
        "attempt 1 begins",
        "attempt 1 answers",
        "attempt 1 answered",
        "step",
        &format!("ended after 4000 ms in {PARENT}"),
    ];
    assert_eq!(*log.0.lock().unwrap(), expected);
}

/// Returns the phases until the end, without the repeated ones.
async fn phases(changes: &mut Receiver<Arc<everturn_wire::CallInfo>>) -> Vec<(CallPhase, u32)> {
    let mut phases = Vec::new();
    loop {
        let change = changes.recv().await.unwrap();
        let told = serde_json::to_string(&*change).unwrap();
        assert!(!told.contains("secret"), "{told}");
        assert_eq!(change.next_at.is_some(), change.phase == CallPhase::Waiting);
        if phases.last() != Some(&(change.phase, change.retries)) {
            phases.push((change.phase, change.retries));
        }
        if change.phase == CallPhase::Ended {
            return phases;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn subscribers_see_a_call_begin_wait_go_on_and_end() {
    let orchestrator = orchestrator(Arc::default());
    let mut changes = orchestrator.call_changes();
    let (phases, ()) = tokio::join!(phases(&mut changes), pass(&orchestrator));
    let told: Vec<_> = phases.into_iter().filter(|(phase, _)| *phase != CallPhase::Kept).collect();
    use CallPhase::{Answering, Asking, Ended, Waiting};
    assert_eq!(told, [(Asking, 0), (Waiting, 1), (Asking, 1), (Answering, 1), (Ended, 1)]);
    assert!(orchestrator.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_call_that_nobody_waits_for_is_reported_too() {
    let log = Arc::new(Log::default());
    let orchestrator = orchestrator(log.clone());
    let mut changes = orchestrator.call_changes();
    let listener = orchestrator.pass_through(call()).unwrap();
    while changes.recv().await.unwrap().phase != CallPhase::Waiting {}
    drop(listener);
    phases(&mut changes).await;
    let log = log.0.lock().unwrap();
    assert_eq!(log.last().unwrap(), &format!("ended after 4000 ms in {PARENT}"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_is_shown_its_own_calls_only() {
    let orchestrator = orchestrator(Arc::default());
    let [ann, ben] = ["ann", "ben"].map(|name| Caller::new(CallerName::parse(name).unwrap(), Vec::new()));
    let [ann, ben] = [ann, ben].map(|caller| orchestrator.seen_by(&caller));
    let mut changes = orchestrator.call_changes();
    let listener = ann.pass_through(call()).unwrap();
    let change = changes.recv().await.unwrap();
    assert_eq!(change.caller.as_deref(), Some("ann"));
    assert_eq!(ben.shown_call((*change).clone()), None);
    let shown = ann.shown_call((*change).clone()).unwrap();
    assert_eq!((shown.id.as_str(), shown.caller), (listener.call(), None));
}

/// A store of documents that panics while it is broken.
#[derive(Default)]
struct Brittle {
    is_broken: AtomicBool,
    inner: MemoryState,
}

impl Brittle {
    fn inner(&self) -> &MemoryState {
        assert!(!self.is_broken.load(Ordering::Relaxed), "no store");
        &self.inner
    }
}

#[async_trait]
impl StateStore for Brittle {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        self.inner().read(name).await
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        self.inner().write(name, json).await
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        self.inner().delete(name).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_of_documents_that_panics_has_failed_and_works_again_later() {
    let store = Arc::new(Brittle::default());
    let orchestrator = build(Arc::default(), Orchestrator::builder().state(store.clone()));
    orchestrator.resume().await.unwrap();
    store.is_broken.store(true, Ordering::Relaxed);
    pass(&orchestrator).await;
    let error = orchestrator.set_auto_retry(None, false).await.unwrap_err().to_string();
    assert!(error.contains("it panicked: no store"), "{error}");
    store.is_broken.store(false, Ordering::Relaxed);
    assert_eq!(store.read("health").await.unwrap(), None);
    orchestrator.set_auto_retry(None, true).await.unwrap();
    pass(&orchestrator).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(store.read("health").await.unwrap().is_some());
}
