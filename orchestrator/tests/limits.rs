//! What a caller may use is kept by waiting, visibly; nothing that the caller does gets around it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_orchestrator::{
    MemoryJournal, MemoryState, Orchestrator, Price, StartTurn, Terms,
    kernel::{FinishReason, Millis, Provider, Request, StreamEvent},
};
use everturn_sim::WallClock;
use everturn_wire::{
    AgentEvent, Because, CallerName, Category, ConversationId, EventBody, RetrySettings, Usage,
};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, sleep};

/// The beginning of a minute.
const BEGIN: Millis = Millis(1_800_000_000_000);

/// Notes when it was asked, in seconds, and answers at once; or, if it reports usage, after two seconds.
#[derive(Clone)]
struct Model {
    begun: Instant,
    asked: Arc<Mutex<Vec<u64>>>,
    used: Option<Usage>,
}

impl Provider for Model {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        self.asked.lock().unwrap().push(self.begun.elapsed().as_secs());
        let (text, end) = (StreamEvent::Text("hello".into()), StreamEvent::Finished(FinishReason::Stop));
        let Some(used) = self.used else { return stream::iter([text, end]).boxed() };
        let later = stream::once(async move {
            sleep(Duration::from_secs(2)).await;
            StreamEvent::Usage(used)
        });
        stream::iter([text]).chain(later).chain(stream::iter([end])).boxed()
    }
}

struct World {
    orchestrator: Orchestrator,
    model: Model,
    journal: Arc<MemoryJournal>,
    state: Arc<MemoryState>,
    clock: WallClock,
}

fn two_a_minute() -> Terms {
    Terms { requests_per_minute: Some(2), ..Terms::default() }
}

impl World {
    fn new(terms: Terms) -> Self {
        Self::reports(terms, None)
    }

    /// The model reports this usage of each call.
    fn reports(terms: Terms, used: Option<Usage>) -> Self {
        let model = Model { begun: Instant::now(), asked: Arc::default(), used };
        let world = Self {
            orchestrator: Orchestrator::builder().model("key", "model", Arc::new(model.clone())).build(),
            model,
            journal: Arc::default(),
            state: Arc::new(MemoryState::new()),
            clock: WallClock::new(BEGIN),
        };
        world.again(terms)
    }

    /// The next process.
    fn again(self, terms: Terms) -> Self {
        let orchestrator = Orchestrator::builder()
            .model("key", "model", Arc::new(self.model.clone()))
            .journal(self.journal.clone())
            .state(self.state.clone())
            .clock(Arc::new(self.clock.clone()))
            .price("key/model", Price { input: 1.0, output: 10.0, ..Price::default() })
            .build();
        let world = Self { orchestrator, ..self };
        world.limit(terms);
        world
    }

    fn limit(&self, terms: Terms) {
        self.orchestrator.limit_callers(vec![(CallerName::parse("ann").unwrap(), terms)]);
    }

    async fn say(&self, id: &str, settings: Option<RetrySettings>) {
        let mut start = StartTurn::new("hi").conversation(id);
        if let Some(settings) = settings {
            start = start.retry(settings);
        }
        self.orchestrator.start(start).await.unwrap();
        sleep(Duration::from_millis(100)).await;
    }

    /// When the model was asked, in seconds.
    fn asked(&self) -> Vec<u64> {
        self.model.asked.lock().unwrap().clone()
    }

    async fn events(&self, id: &str) -> Vec<EventBody> {
        let id = ConversationId::from(id);
        let mut events = self.orchestrator.subscribe(&id, Some("0".parse().unwrap()), true).await.unwrap();
        let mut all = Vec::new();
        while let Ok(Ok(frame)) = tokio::time::timeout(Duration::from_millis(1), events.next()).await {
            all.push(serde_json::from_slice::<AgentEvent>(&frame.event()).unwrap().body);
        }
        all
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_used_its_limit_waits_and_is_told_why() {
    let world = World::new(two_a_minute());
    for id in ["a@ann", "b@ann", "c@ann", "d@ann", "e@ann", "x"] {
        world.say(id, None).await;
    }
    assert_eq!(world.asked(), [0, 0, 0], "two of the caller, and one of somebody else");
    let events = world.events("c@ann").await;
    let retry = events.iter().find_map(|event| match event {
        EventBody::ProviderRetry { because, message, shared, delay_ms, .. } => {
            Some((*because, message.clone(), *shared, *delay_ms))
        }
        _ => None,
    });
    let (because, message, shared, delay_ms) = retry.expect("it is told to wait");
    assert_eq!((because, shared), (Some(Because::CallerLimit), Some(true)));
    assert_eq!(message, "this server allows its caller 2 requests a minute, which were made");
    assert!((59_000..60_000).contains(&delay_ms), "{delay_ms}");
    sleep(Duration::from_secs(130)).await;
    assert_eq!(world.asked(), [0, 0, 0, 60, 60, 120], "in order, at the beginning of each minute");
}

#[tokio::test(start_paused = true)]
async fn neither_a_retry_nor_settings_get_around_a_limit() {
    let world = World::new(two_a_minute());
    for id in ["a@ann", "b@ann", "c@ann"] {
        world.say(id, None).await;
    }
    for _ in 0..5 {
        world.orchestrator.retry_now(&"c@ann".into()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(world.asked().len(), 2);
    // Without retries, it fails before the model is asked, and says until when.
    let off = RetrySettings { enabled: Some(false), ..RetrySettings::default() };
    world.say("d@ann", Some(off)).await;
    let events = world.events("d@ann").await;
    let failure = events.iter().find_map(|event| match event {
        EventBody::Error(report) => Some(report.clone()),
        _ => None,
    });
    let failure = failure.expect("it fails");
    assert_eq!(failure.category, Some(Category::RateLimited));
    assert!(failure.message.contains("2 requests a minute"), "{}", failure.message);
    assert_eq!(world.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn another_limit_holds_at_once_and_a_restart_forgets_nothing() {
    let world = World::new(two_a_minute());
    world.orchestrator.resume().await.unwrap();
    for id in ["a@ann", "b@ann", "c@ann", "d@ann"] {
        world.say(id, None).await;
    }
    assert_eq!(world.asked(), [0, 0]);
    world.limit(Terms { requests_per_minute: Some(3), ..Terms::default() });
    sleep(Duration::from_millis(100)).await;
    assert_eq!(world.asked(), [0, 0, 0]);
    sleep(Duration::from_secs(5)).await;
    world.orchestrator.shutdown(Duration::from_secs(1)).await;
    let world = world.again(Terms { requests_per_minute: Some(3), ..Terms::default() });
    world.orchestrator.resume().await.unwrap();
    world.say("e@ann", None).await;
    assert_eq!(world.asked(), [0, 0, 0], "the next process knows what was used");
    sleep(Duration::from_secs(60)).await;
    let asked = world.asked();
    assert_eq!((asked.len(), &asked[3..]), (5, &[60, 60][..]));
}

#[tokio::test(start_paused = true)]
async fn a_day_is_waited_for_beyond_the_budget() {
    let world = World::new(Terms { tokens_per_day: Some(600), ..Terms::default() });
    for id in ["a@ann", "b@ann"] {
        world.say(id, None).await;
    }
    assert_eq!(world.asked(), [0]);
    sleep(Duration::from_secs(25 * 60 * 60)).await;
    // 1.8e12 ms is 8 in the morning.
    assert_eq!(world.asked(), [0, 16 * 60 * 60]);
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_a_call_are_kept_when_it_ends() {
    let used = Usage { input_tokens: 2_000, output_tokens: 1_000, ..Usage::default() };
    let world = World::reports(Terms { tokens_per_day: Some(2_000), ..Terms::default() }, Some(used));
    world.orchestrator.resume().await.unwrap();
    world.say("a@ann", None).await;
    sleep(Duration::from_secs(5)).await;
    // Its estimate would leave room for another one.
    let world = world.again(Terms { tokens_per_day: Some(2_000), ..Terms::default() });
    world.orchestrator.resume().await.unwrap();
    world.say("b@ann", None).await;
    assert_eq!(world.asked(), [0]);
}

#[tokio::test(start_paused = true)]
async fn money_is_counted_as_it_was_spent_and_the_rest_of_the_day_is_waited_for() {
    // A call costs 0.0036.
    let used =
        Usage { input_tokens: 2_000, output_tokens: 200, cache_read_tokens: Some(1_000), ..Usage::default() };
    let terms = Terms { money_per_day: Some(10_000), ..Terms::default() };
    let world = World::reports(terms, Some(used));
    world.orchestrator.resume().await.unwrap();
    for id in ["a@ann", "b@ann", "c@ann"] {
        world.say(id, None).await;
        sleep(Duration::from_secs(5)).await;
    }
    let hold = world.events("c@ann").await.iter().find_map(|event| match event {
        EventBody::ProviderRetry { because, message, .. } => Some((*because, message.clone())),
        _ => None,
    });
    let message =
        "this server allows its caller to spend 0.01 a day, and this call may cost more than is left"
            .to_owned();
    assert_eq!(hold, Some((Some(Because::CallerLimit), message)));
    // The next process knows what was spent, and so does a limit that is raised.
    let world = world.again(terms);
    world.orchestrator.resume().await.unwrap();
    world.say("d@ann", None).await;
    assert_eq!(world.asked(), [0, 5]);
    world.limit(Terms { money_per_day: Some(13_000), ..Terms::default() });
    sleep(Duration::from_secs(5)).await;
    assert_eq!(world.asked().len(), 3);
    sleep(Duration::from_secs(25 * 60 * 60)).await;
    assert_eq!(world.asked().len(), 4);
    assert_eq!(world.asked()[3], 16 * 60 * 60);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_a_price_is_not_asked_for_a_caller_whose_money_is_limited() {
    let world = World::new(Terms { money_per_day: Some(10_000_000), ..Terms::default() });
    let orchestrator = Orchestrator::builder().model("key", "other", Arc::new(world.model.clone())).build();
    let world = World { orchestrator, ..world };
    world.say("a@ann", None).await;
    assert_eq!(world.asked().len(), 1, "without a limit");
    world.limit(Terms { money_per_day: Some(10_000_000), ..Terms::default() });
    world.say("b@ann", None).await;
    let events = world.events("b@ann").await;
    let failure = events.iter().find_map(|event| match event {
        EventBody::Error(report) => Some(report.clone()),
        _ => None,
    });
    let failure = failure.expect("it fails");
    assert_eq!(failure.category, Some(Category::Permission));
    assert!(failure.message.contains("no price of key/other"), "{}", failure.message);
    assert_eq!(world.asked().len(), 1);
}
