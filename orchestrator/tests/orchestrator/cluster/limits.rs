//! What nodes tell each other about limits of targets, and settings that several change at once.

use std::{ops::Range, sync::Mutex};

use everturn_orchestrator::{
    StartTurn, StateStore as _,
    kernel::{FinishReason, Provider, Request, StreamEvent},
};
use everturn_wire::{ConversationId, EventBody, RetryPatch};
use futures_util::{
    StreamExt as _, future,
    stream::{self, BoxStream},
};

use super::*;
use crate::support::{event, failure};

/// A provider that all nodes call. It refuses every call, with a hint that the limit ends, until it does.
#[derive(Clone)]
struct Limited {
    ends: Instant,
    is_hinted: bool,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Limited {
    fn new(for_ms: u64, is_hinted: bool) -> Self {
        Self { ends: Instant::now() + Duration::from_millis(for_ms), is_hinted, asked: Arc::default() }
    }

    /// The number of calls, and the number of those before the limit ended.
    fn asked(&self) -> (usize, usize) {
        let asked = self.asked.lock().unwrap();
        (asked.len(), asked.iter().filter(|at| **at < self.ends).count())
    }
}

impl Provider for Limited {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let now = Instant::now();
        self.asked.lock().unwrap().push(now);
        if now >= self.ends {
            let answer = [StreamEvent::Text("hello".into()), StreamEvent::Finished(FinishReason::Stop)];
            return stream::iter(answer).boxed();
        }
        let left = u64::try_from((self.ends - now).as_millis()).unwrap();
        let failure = everturn_wire::Failure { hint_ms: self.is_hinted.then_some(left), ..failure() };
        stream::once(future::ready(StreamEvent::Failed(failure))).boxed()
    }
}

impl Nodes {
    async fn limited(&self, name: &str, provider: &Limited) -> World {
        let world = World::of(self.builder(name).model("key", "model", Arc::new(provider.clone())));
        world.orchestrator.resume().await.unwrap();
        world
    }
}

/// Starts a turn for each number, in its own conversation, and returns their watchers.
async fn start(world: &World, numbers: Range<usize>) -> Vec<Watcher> {
    let mut watchers = Vec::new();
    for n in numbers {
        let node = world.orchestrator.cluster().await.unwrap().node.unwrap();
        let id = ConversationId::from(format!("{node}{n}"));
        let start = StartTurn::new("hi").conversation(id.clone());
        let started = world.orchestrator.start(start).await.unwrap();
        let subscription = world.orchestrator.subscribe(&id, Some(started.from), true).await.unwrap();
        watchers.push(Watcher { subscription });
    }
    watchers
}

async fn all_answered(watchers: Vec<Watcher>) {
    for mut watcher in watchers {
        let end = told(&mut watcher).await;
        assert!(end.contains(&"text-delta hello".to_owned()), "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_found_at_one_node_is_heeded_at_all_and_one_turn_of_all_asks_again() {
    let nodes = Nodes::new();
    let provider = Limited::new(60_000, true);
    let [a, b, c] = [
        nodes.limited("a", &provider).await,
        nodes.limited("b", &provider).await,
        nodes.limited("c", &provider).await,
    ];
    let mut watchers = start(&a, 0..1).await;
    watchers[0].until("provider-retry").await;
    for world in [&a, &b, &c] {
        watchers.extend(start(world, 1..11).await);
    }
    // They are told why they wait.
    loop {
        if let EventBody::ProviderRetry { message, .. } = event(&watchers[15].frame().await).body {
            assert!(message.contains("HTTP 429: busy"), "{message}");
            break;
        }
    }
    sleep(Duration::from_millis(59_000)).await;
    assert_eq!(provider.asked(), (1, 1));
    all_answered(watchers).await;
    assert_eq!(provider.asked(), (32, 1), "no other refusal");
    assert!(ms_since(provider.ends) < 20_000, "{}", ms_since(provider.ends));
}

#[tokio::test(start_paused = true)]
async fn turns_that_wait_are_counted_once_as_a_limit_ends_early() {
    let nodes = Nodes::new();
    // It ends after ten minutes according to the provider, and sooner in fact.
    let mut provider = Limited::new(600_000, true);
    let (a, b) = (nodes.limited("a", &provider).await, nodes.limited("b", &provider).await);
    let mut watchers = start(&a, 0..1).await;
    watchers[0].until("provider-retry").await;
    watchers.extend(start(&a, 1..9).await);
    sleep(Duration::from_secs(60)).await;
    provider.ends = Instant::now();
    let free = nodes.limited("c", &provider).await;
    let mut early = start(&free, 0..1).await;
    assert!(free.orchestrator.retry_now(&"c0".into()).await.unwrap());
    early[0].until("text-delta").await;
    let turns = async || {
        let members = b.orchestrator.cluster().await.unwrap().nodes;
        members.into_iter().find(|node| node.name == "a").unwrap().turns
    };
    // They are asked one after another.
    let mut counted = vec![turns().await];
    for _ in 0..10 {
        sleep(Duration::from_secs(3)).await;
        counted.push(turns().await);
    }
    assert!(counted.is_sorted_by(|before, after| before >= after), "{counted:?}");
    assert_eq!((counted[0], counted[10]), (9, 9), "{counted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_without_a_hint_is_probed_by_one_node_however_long_it_lasts() {
    let nodes = Nodes::new();
    let provider = Limited::new(20 * 60_000, false);
    let [a, b, c] = [
        nodes.limited("a", &provider).await,
        nodes.limited("b", &provider).await,
        nodes.limited("c", &provider).await,
    ];
    let mut watchers = start(&a, 0..1).await;
    watchers[0].until("provider-retry").await;
    watchers.extend(start(&b, 0..5).await);
    watchers.extend(start(&c, 0..5).await);
    sleep(Duration::from_secs(20 * 60)).await;
    let (all, refused) = provider.asked();
    // One probe each half minute, and the first retries of each turn that was refused.
    assert!(refused <= 40 + 11 * 4 && all <= refused + 11, "{refused} refusals");
    all_answered(watchers).await;
}

#[tokio::test(start_paused = true)]
async fn if_nothing_is_heard_each_node_finds_out_by_itself() {
    let nodes = Nodes::noisy(Noise { lost: 1.0, ..Noise::default() });
    let provider = Limited::new(60_000, true);
    let (a, b) = (nodes.limited("a", &provider).await, nodes.limited("b", &provider).await);
    let mut watchers = start(&a, 0..1).await;
    watchers[0].until("provider-retry").await;
    watchers.extend(start(&b, 0..5).await);
    all_answered(watchers).await;
    let (all, refused) = provider.asked();
    assert!(all == refused + 6 && (2..=6).contains(&refused), "{refused} refusals");
}

#[tokio::test(start_paused = true)]
async fn when_the_node_whose_turn_is_to_ask_dies_another_turn_asks() {
    for is_hinted in [true, false] {
        let nodes = Nodes::new();
        let provider = Limited::new(30_000, is_hinted);
        let (a, b) = (nodes.limited("a", &provider).await, nodes.limited("b", &provider).await);
        start(&a, 0..1).await[0].until("provider-retry").await;
        let watchers = start(&b, 0..5).await;
        sleep(Duration::from_secs(2)).await;
        nodes.kill("a", &a);
        all_answered(watchers).await;
        assert!(ms_since(provider.ends) < 60_000, "{}", ms_since(provider.ends));
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_node_learns_of_a_target_moves_the_turns_of_others_on() {
    let nodes = Nodes::new();
    let overloaded = || Scripted::new([overloaded_with_hint(600_000)]);
    let (first, second, spare) =
        (Arc::new(overloaded()), Arc::new(overloaded()), Arc::new(Scripted::new([answer("spare")])));
    let mut worlds = Vec::new();
    for (name, provider) in [("a", &first), ("b", &second)] {
        let builder = nodes.builder(name).model("key", "model", provider.clone());
        let builder = builder.model("key", "spare", spare.clone());
        let world = World::of(builder.plain_route("best", ["key/model", "key/spare"]));
        world.orchestrator.resume().await.unwrap();
        worlds.push(world);
    }
    for (world, id) in worlds.iter().zip(["x", "y"]) {
        let start = StartTurn::new("hi").conversation(id).model("route/best");
        let started = world.orchestrator.start(start).await.unwrap();
        let id = ConversationId::from(id);
        let subscription = world.orchestrator.subscribe(&id, Some(started.from), true).await.unwrap();
        let end = told(&mut Watcher { subscription }).await;
        assert!(end.contains(&"text-delta spare".to_owned()), "{end:?}");
    }
    assert_eq!((first.calls(), second.calls(), spare.calls()), (1, 0, 2));
}

#[tokio::test(start_paused = true)]
async fn settings_changed_at_two_nodes_at_once_are_both_kept() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [vec![]]).await;
    let (b, _) = nodes.node("b", [answer("hello")]).await;
    let patch = |json: &str| serde_json::from_str::<RetryPatch>(json).unwrap();
    let (retries, delay) =
        (patch(r#"{"preset":"exponential","maxRetries":3}"#), patch(r#"{"maxDelayMs":9000}"#));
    a.orchestrator.change_retry_settings(None, &retries).await.unwrap();
    b.orchestrator.change_retry_settings(None, &delay).await.unwrap();
    // One conversation gets settings of its own at each node: the note that there are some is kept, too.
    b.say("hi").await.turn().await;
    let off = patch(r#"{"enabled":false}"#);
    a.orchestrator.change_retry_settings(Some(&b.id), &off).await.unwrap();
    b.orchestrator.change_retry_settings(Some(&b.id), &patch(r#"{"maxRetries":7}"#)).await.unwrap();
    b.orchestrator.change_retry_settings(None, &patch(r#"{"jitter":0.5}"#)).await.unwrap();
    sleep(Duration::from_secs(4)).await;
    for world in [&a, &b] {
        let global = world.orchestrator.retry_settings(None).await.unwrap().set;
        assert_eq!(
            (global.max_retries, global.max_delay_ms, global.jitter),
            (Some(3), Some(9_000), Some(0.5))
        );
    }
    let own = b.orchestrator.retry_settings(Some(&b.id)).await.unwrap().set;
    assert_eq!((own.enabled, own.max_retries), (Some(false), Some(7)));
    let saved = nodes.state.read("retry-settings").await.unwrap().unwrap();
    assert!(saved.contains(r#""someConversation":true"#), "{saved}");
}
