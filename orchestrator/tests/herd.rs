//! Many turns on one target share what one of them finds out: while it is limited one asks, and then all come back little
//! by little. The same while there is no network.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_orchestrator::{
    Exponential, MemoryJournal, MemoryState, Orchestrator, StartTurn, Window,
    kernel::{FinishReason, Limits, Provider, Request, StreamEvent, Told, What},
};
use everturn_sim::herd;
use everturn_wire::{
    AgentEvent, Because, Category, ConversationId, ConversationStatus, EventBody, Failure, Unreached,
};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

/// Fails in one way for some time, and then answers.
struct Target {
    begun: Instant,
    /// When it fails, in seconds.
    trouble: std::ops::Range<u64>,
    failure: Failure,
    /// When it was asked, in milliseconds.
    asked: Mutex<Vec<u64>>,
}

impl Target {
    fn new(trouble: std::ops::Range<u64>, failure: Failure) -> Arc<Self> {
        Arc::new(Self { begun: Instant::now(), trouble, failure, asked: Mutex::default() })
    }

    /// How often it was asked in that time, in seconds.
    fn asked(&self, when: std::ops::Range<u64>) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|at| (when.start * 1_000..when.end * 1_000).contains(*at)).count()
    }

    fn orchestrator(self: &Arc<Self>) -> Orchestrator {
        Orchestrator::builder().model("key", "model", Arc::new(Asked(self.clone()))).build()
    }
}

struct Asked(Arc<Target>);

impl Provider for Asked {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let at = self.0.begun.elapsed();
        self.0.asked.lock().unwrap().push(at.as_millis() as u64);
        let events = if self.0.trouble.contains(&at.as_secs()) {
            vec![StreamEvent::Failed(self.0.failure.clone())]
        } else {
            vec![StreamEvent::Text("hello".to_owned()), StreamEvent::Finished(FinishReason::Stop)]
        };
        stream::iter(events).boxed()
    }
}

fn limited(hint_s: Option<u64>) -> Failure {
    let failure = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
    Failure { hint_ms: hint_s.map(|s| s * 1_000), code: Some("429".to_owned()), ..failure }
}

fn unreached() -> Failure {
    let failure = Failure::new(Category::Network, true, "connection refused");
    Failure { unreached: Some(Unreached::NoConnection), ..failure }
}

fn id(turn: usize) -> ConversationId {
    format!("c{turn}").as_str().into()
}

async fn start(orchestrator: &Orchestrator, turns: std::ops::Range<usize>) {
    for turn in turns {
        orchestrator.start(StartTurn::new("hi").conversation(id(turn))).await.unwrap();
    }
}

/// How many of the turns have their answer.
async fn answered(orchestrator: &Orchestrator, turns: usize) -> usize {
    let mut answered = 0;
    for turn in 0..turns {
        let chunks = orchestrator.history(&id(turn), Window::default()).await.unwrap().chunks;
        answered += usize::from(chunks.len() == 2);
    }
    answered
}

/// The retries that a conversation was told of.
async fn retries(orchestrator: &Orchestrator, turn: usize) -> Vec<EventBody> {
    let mut events = orchestrator.subscribe(&id(turn), Some("0".parse().unwrap()), true).await.unwrap();
    let mut retries = Vec::new();
    while let Ok(Ok(frame)) = tokio::time::timeout(Duration::from_millis(1), events.next()).await {
        let event: AgentEvent = serde_json::from_slice(&frame.event()).unwrap();
        if matches!(event.body, EventBody::ProviderRetry { .. }) {
            retries.push(event.body);
        }
    }
    retries
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_turns_ask_a_limited_target_once_in_each_of_its_hints() {
    const TURNS: usize = 10_000;
    let target = Target::new(0..600, limited(Some(60)));
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..TURNS).await;
    sleep(Duration::from_secs(599)).await;
    let asked = target.asked(0..600);
    // The first time, and after each minute the next one.
    assert!((9..=12).contains(&asked), "{asked} requests while it was limited");
    sleep(Duration::from_secs(3_000)).await;
    assert_eq!(answered(&orchestrator, TURNS).await, TURNS);
    assert_eq!(target.asked(600..4_000), TURNS, "each asked once more");
    let seconds: Vec<usize> = (600..720).map(|second| target.asked(second..second + 1)).collect();
    herd::comes_back_slowly(&seconds);
}

#[tokio::test(start_paused = true)]
async fn without_a_hint_one_turn_asks_at_most_each_half_minute() {
    const TURNS: usize = 500;
    let target = Target::new(0..600, limited(None));
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..TURNS).await;
    sleep(Duration::from_secs(4_000)).await;
    // After 1, 2, 4, 8, 16, 30, 30 ... s.
    let asked = target.asked(0..600);
    assert!((20..=30).contains(&asked), "{asked} requests while it was limited");
    for second in 60..570 {
        assert!(target.asked(second..second + 31) > 0, "nobody asked for 31 s from {second} s on");
    }
    assert_eq!(answered(&orchestrator, TURNS).await, TURNS);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_because_of_another_one_says_so() {
    let target = Target::new(0..30, limited(Some(30)));
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..1).await;
    sleep(Duration::from_secs(10)).await;
    start(&orchestrator, 1..2).await;
    sleep(Duration::from_secs(1)).await;
    let [EventBody::ProviderRetry { attempt, delay_ms, message, code, shared, category, because, .. }] =
        &retries(&orchestrator, 1).await[..]
    else {
        panic!("it is told of one retry");
    };
    assert_eq!((*attempt, *shared, *category), (0, Some(true), Some(Category::RateLimited)));
    assert_eq!(*because, Some(Because::Hint));
    assert_eq!((message.as_str(), code.as_deref()), ("HTTP 429: slow down", Some("429")));
    assert!((20_000..=21_000).contains(delay_ms), "{delay_ms}");
    let state = orchestrator.status(&id(1)).await.unwrap().retry.unwrap();
    assert_eq!(state.shared, Some(true));
    sleep(Duration::from_secs(60)).await;
    assert_eq!((answered(&orchestrator, 2).await, target.asked(0..100)), (2, 3));
    let metrics = orchestrator.metrics(&id(1)).await.unwrap();
    assert_eq!(metrics[0].retries, None, "it was never refused");
}

#[tokio::test(start_paused = true)]
async fn a_person_goes_through_and_opens_the_way_for_all() {
    let target = Target::new(0..20, limited(Some(3_600)));
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..3).await;
    sleep(Duration::from_secs(5)).await;
    assert!(orchestrator.retry_now(&id(1)).await.unwrap());
    sleep(Duration::from_secs(5)).await;
    assert_eq!(target.asked(5..10), 1, "though it is still limited");
    sleep(Duration::from_secs(20)).await;
    assert!(orchestrator.retry_now(&id(2)).await.unwrap());
    sleep(Duration::from_secs(5)).await;
    assert_eq!(orchestrator.status(&id(2)).await.unwrap().status, ConversationStatus::Idle);
    // Nobody waits for a limit that is known to be over.
    start(&orchestrator, 3..4).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(orchestrator.status(&id(3)).await.unwrap().status, ConversationStatus::Idle);
}

#[tokio::test(start_paused = true)]
async fn when_a_person_finds_a_limit_over_those_who_wait_come_little_by_little() {
    const TURNS: usize = 1_000;
    let target = Target::new(0..20, limited(Some(3_600)));
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..TURNS).await;
    sleep(Duration::from_secs(30)).await;
    assert_eq!(target.asked(0..30), 1);
    assert!(orchestrator.retry_now(&id(7)).await.unwrap());
    sleep(Duration::from_secs(20)).await;
    // The first one waits for what it was told itself.
    assert_eq!(answered(&orchestrator, TURNS).await, TURNS - 1);
    let each: Vec<_> = (30..42).map(|second| target.asked(second..second + 1)).collect();
    assert!(each.iter().zip(0..).all(|(&now, n)| now <= (16 << n) + 1), "{each:?}");
    let metrics = orchestrator.metrics(&id(8)).await.unwrap();
    assert_eq!(metrics[0].retries, None, "it was never refused");
    for turn in [8, 500, 999] {
        assert_eq!(retries(&orchestrator, turn).await.len(), 1, "turn {turn} is not put off again");
    }
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!((answered(&orchestrator, TURNS).await, target.asked(0..4_000)), (TURNS, TURNS + 1));
}

#[tokio::test(start_paused = true)]
async fn a_lone_turn_waits_as_its_schedule_says_and_never_for_itself() {
    let target = Target::new(0..2, limited(None));
    let schedule = Exponential { base: Duration::from_millis(40), max_retries: 20, ..Exponential::default() };
    let orchestrator = Orchestrator::builder()
        .model("key", "model", Arc::new(Asked(target.clone())))
        .schedule(schedule)
        .build();
    start(&orchestrator, 0..1).await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(answered(&orchestrator, 1).await, 1);
    let told = retries(&orchestrator, 0).await;
    let asked = target.asked.lock().unwrap().clone();
    assert_eq!(told.len(), asked.len() - 1, "it is told of as many retries as it makes");
    for (n, told) in told.iter().enumerate() {
        let EventBody::ProviderRetry { delay_ms, shared, .. } = told else { unreachable!() };
        assert_eq!((*shared, asked[n + 1] - asked[n]), (None, *delay_ms), "retry {n}: {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_limit_that_only_the_stopped_turn_believed_in() {
    let target = Target::new(0..1, limited(None));
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..1).await;
    sleep(Duration::from_secs(2)).await;
    assert!(orchestrator.stop(&id(0)).await.unwrap());
    start(&orchestrator, 1..2).await;
    sleep(Duration::from_millis(100)).await;
    assert_eq!(orchestrator.status(&id(1)).await.unwrap().status, ConversationStatus::Idle);
}

#[tokio::test(start_paused = true)]
async fn twenty_minutes_without_a_network_use_nothing_up() {
    const TURNS: usize = 200;
    let target = Target::new(10..1_210, unreached());
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..1).await;
    sleep(Duration::from_secs(20)).await;
    start(&orchestrator, 1..TURNS).await;
    sleep(Duration::from_secs(1_000)).await;
    let told = retries(&orchestrator, 1).await;
    let EventBody::ProviderRetry { message, budget_left_ms, .. } = &told[told.len() - 1] else {
        unreachable!()
    };
    assert_eq!(message, "No connection, waiting for the provider or the network: connection refused");
    assert_eq!(*budget_left_ms, None, "the budget is not charged");
    for told in &told {
        let EventBody::ProviderRetry { max_attempts, because, .. } = told else { unreachable!() };
        assert_eq!((*max_attempts, *because), (None, Some(Because::Offline)), "no retry is used up");
    }
    let probes = target.asked(10..1_020);
    assert!((30..=50).contains(&probes), "{probes} calls to look for the network");
    sleep(Duration::from_secs(260)).await;
    assert_eq!(answered(&orchestrator, TURNS).await, TURNS);
    for turn in 1..TURNS {
        let metrics = orchestrator.metrics(&id(turn)).await.unwrap();
        assert_eq!(metrics[0].retries, None, "of turn {turn}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_never_answered_fails_like_any_other() {
    let target = Target::new(0..1_000_000, unreached());
    let orchestrator = target.orchestrator();
    start(&orchestrator, 0..1).await;
    sleep(Duration::from_secs(8 * 60 * 60)).await;
    let told = retries(&orchestrator, 0).await;
    assert_eq!((told.len(), target.asked(0..30_000)), (21, 22));
    assert_eq!(orchestrator.metrics(&id(0)).await.unwrap()[0].retries, Some(21));
}

/// The same store, each time it is opened.
fn memory() -> impl Fn() -> herd::Store {
    let (journal, state) = (Arc::new(MemoryJournal::new()), Arc::new(MemoryState::new()));
    move || (journal.clone(), state.clone())
}

#[test]
fn after_a_restart_a_limited_target_is_asked_once_and_then_little_by_little() {
    herd::comes_back_slowly(&herd::asks_once_after_a_restart(1_000, memory()));
}

#[test]
fn a_target_that_answered_before_a_restart_is_known_after_it() {
    herd::is_offline_after_a_restart(memory());
}

/// Allows so many requests a minute, and says in each response what is left of them.
struct Quota {
    begun: Instant,
    a_minute: u32,
    /// How many requests each minute had, and how many of them were refused.
    minutes: Mutex<Vec<(u32, u32)>>,
}

impl Provider for Quota {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let at = self.begun.elapsed();
        let (minute, reset_ms) = (at.as_secs() as usize / 60, 60_000 - at.as_millis() as u64 % 60_000);
        let mut minutes = self.minutes.lock().unwrap();
        let count = minutes.len().max(minute + 1);
        minutes.resize(count, (0, 0));
        let (asked, refused) = &mut minutes[minute];
        *asked += 1;
        let remaining = self.a_minute.saturating_sub(*asked);
        let told = Told {
            what: What::Requests,
            limit: Some(self.a_minute.into()),
            remaining: remaining.into(),
            reset_ms,
        };
        let limits = StreamEvent::Limits(Limits(vec![told]));
        let answer = if *asked > self.a_minute {
            *refused += 1;
            let failure = Failure { hint_ms: Some(reset_ms), ..limited(None) };
            vec![limits, StreamEvent::Failed(failure)]
        } else {
            let text = StreamEvent::Text("hello".to_owned());
            vec![limits, text, StreamEvent::Finished(FinishReason::Stop)]
        };
        stream::iter(answer).boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_herd_comes_back_within_what_the_provider_says_is_left() {
    const TURNS: usize = 500;
    let provider = Arc::new(Quota { begun: Instant::now(), a_minute: 60, minutes: Mutex::default() });
    let orchestrator =
        Orchestrator::builder().model("key", "model", Arc::new(Shared(provider.clone()))).build();
    sleep(Duration::from_secs(30)).await;
    start(&orchestrator, 0..TURNS).await;
    sleep(Duration::from_secs(60 * 60)).await;
    assert_eq!(answered(&orchestrator, TURNS).await, TURNS);
    let minutes = provider.minutes.lock().unwrap();
    let refused: u32 = minutes.iter().skip(1).map(|(_, refused)| refused).sum();
    assert_eq!(refused, 0, "requests and refusals of each minute: {minutes:?}");
    let full = minutes.iter().skip(1).filter(|(asked, _)| *asked == 60).count();
    assert!(full >= 6, "and hardly slower than it allows: {minutes:?}");
}

struct Shared(Arc<Quota>);

impl Provider for Shared {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        self.0.stream(request)
    }
}

/// Answers one call at a time, which takes a second, and refuses others.
struct OneAtATime {
    running: Arc<Mutex<usize>>,
    /// Whether calls end.
    ends: bool,
}

struct Running(Arc<Mutex<usize>>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.lock().unwrap() -= 1;
    }
}

impl Provider for OneAtATime {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let mut running = self.running.lock().unwrap();
        if *running == 1 {
            let refused = Failure::new(Category::RateLimited, true, "HTTP 429: one at a time");
            return stream::iter([StreamEvent::Failed(refused)]).boxed();
        }
        *running += 1;
        let (running, ends) = (Running(self.running.clone()), self.ends);
        let events = [StreamEvent::Text("hello".to_owned()), StreamEvent::Finished(FinishReason::Stop)];
        let begins = async move {
            if !ends {
                std::future::pending::<()>().await;
            }
            sleep(Duration::from_secs(1)).await;
            drop(running);
            stream::iter(events)
        };
        stream::once(begins).flatten().boxed()
    }
}

#[test]
fn a_turn_that_waits_for_calls_of_a_process_that_is_gone_waits_no_longer() {
    const TURNS: usize = 5;
    let (journal, state) = memory()();
    let process = |ends, checks: &[(u64, usize)]| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(async {
            let provider = OneAtATime { running: Arc::default(), ends };
            let builder = Orchestrator::builder().model("key", "model", Arc::new(provider));
            let orchestrator = builder.journal(journal.clone()).state(state.clone()).build();
            orchestrator.resume().await.unwrap();
            if !ends {
                start(&orchestrator, 0..TURNS).await;
            }
            for (seconds, expected) in checks {
                sleep(Duration::from_secs(*seconds)).await;
                assert_eq!(answered(&orchestrator, TURNS).await, *expected, "after {seconds} s more");
            }
        });
    };
    process(false, &[(2, 0)]);
    process(true, &[(3, 2), (12, TURNS)]);
}
