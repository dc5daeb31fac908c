//! Several nodes that share a journal.

mod asked;
mod behind;
mod capable;
mod frozen;
mod late;
mod limits;
mod list;
mod newer;
mod replaced;
mod take_over;

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{
    Builder, Clock, Cursor, Error, MemoryState, Orchestrator, SubscribeFrom, SystemClock,
};
use everturn_provider::{Cue, Scripted};
use everturn_sim::cluster::{Carriage, Noise, SharedLog, contract};
use everturn_wire::ConversationStatus;
use futures_util::FutureExt as _;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{
    Watcher, World, answer, finish, lines, ms_since, overloaded_with_hint, refused_with_hint, text,
};

struct Nodes {
    log: SharedLog,
    clock: Arc<dyn Clock>,
    state: Arc<MemoryState>,
}

impl Nodes {
    fn new() -> Self {
        Self::noisy(Noise::default())
    }

    fn noisy(noise: Noise) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        Self { log: SharedLog::noisy(clock.clone(), noise, 1), clock, state: Arc::default() }
    }

    /// Starts a node whose model answers like this.
    async fn node(&self, name: &str, calls: impl IntoIterator<Item = Vec<Cue>>) -> (World, Arc<Scripted>) {
        self.node_with(name, calls, |builder| builder).await
    }

    /// Starts a node with further settings.
    async fn node_with(
        &self,
        name: &str,
        calls: impl IntoIterator<Item = Vec<Cue>>,
        set: impl FnOnce(Builder) -> Builder,
    ) -> (World, Arc<Scripted>) {
        let provider = Arc::new(Scripted::new(calls).once());
        let world = World::of(set(self.builder(name).model("key", "model", provider.clone())));
        world.orchestrator.resume().await.unwrap();
        (world, provider)
    }

    /// Returns the builder of a node without models.
    fn builder(&self, name: &str) -> Builder {
        let (journal, cluster) = self.log.node(name);
        let builder = Orchestrator::builder().journal(journal).state(self.state.clone());
        builder.clock(self.clock.clone()).cluster(cluster)
    }

    /// Ends a node's process.
    fn kill(&self, name: &str, world: &World) {
        world.orchestrator.abandon();
        self.log.kill(name);
    }
}

fn pause(ms: u64) -> Cue {
    Cue::Pause(Duration::from_millis(ms))
}

fn slow(words: &[&str]) -> Vec<Cue> {
    let mut cues: Vec<Cue> = words.iter().flat_map(|word| [text(word), pause(1_000)]).collect();
    cues.push(finish());
    cues
}

fn is_rewound(told: &[String]) -> bool {
    told.iter().any(|line| line.starts_with("step-rewound"))
}

/// What a watcher is told up to the end of the turn; streamed text is joined, however it was split.
async fn told(watcher: &mut Watcher) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    for line in lines(&watcher.frames().await) {
        match (line.strip_prefix("text-delta "), told.last_mut()) {
            (Some(text), Some(last)) if last.starts_with("text-delta ") => *last += text,
            _ => told.push(line),
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_watched_at_every_node() {
    let nodes = Nodes::new();
    let (a, model) = nodes.node("a", [slow(&["one ", "two ", "three ", "four"])]).await;
    let (b, unused) = nodes.node("b", [vec![]]).await;
    let started = a.start("hi").await.unwrap();
    let mut early = b.watch(Some(started.from)).await;
    let mut at_a = a.watch(Some(started.from)).await;
    sleep(Duration::from_millis(2_500)).await;
    // This node has heard nothing of the text so far.
    let (c, _) = nodes.node("c", [vec![]]).await;
    let mut late = c.watch(Some(started.from)).await;
    let heard = timeout(Duration::from_millis(400), late.until("text-delta")).await.unwrap();
    assert_eq!(heard.last().unwrap(), "text-delta one two three ");
    let mut late = c.watch(Some(started.from)).await;
    assert_eq!(c.status().await, ConversationStatus::Active);

    let expected = told(&mut at_a).await;
    assert!(expected.contains(&"text-delta one two three four".to_owned()), "{expected:?}");
    assert_eq!(told(&mut early).await, expected);
    assert_eq!(told(&mut late).await, expected);
    for world in [&a, &b, &c] {
        assert_eq!(world.history().await, ["text hi", "text one two three four"]);
    }
    assert_eq!((model.calls(), unused.calls()), (1, 0));

    // The next turn is another node's.
    let (d, model) = nodes.node("d", [answer("from d")]).await;
    let mut after = a.watch(None).await;
    d.start("again").await.unwrap();
    assert!(told(&mut after).await.contains(&"text-delta from d".to_owned()));
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn commands_reach_the_node_that_drives() {
    let nodes = Nodes::new();
    let (a, model) = nodes
        .node(
            "a",
            [overloaded_with_hint(60_000), slow(&["one ", "two"]), answer("three"), slow(&["four", "five"])],
        )
        .await;
    let (b, unused) = nodes.node("b", [vec![]]).await;
    let mut watcher = a.say("hi").await;
    watcher.until("provider-retry").await;
    let retry = b.orchestrator.status(&b.id).await.unwrap().retry.unwrap();
    assert_eq!((retry.attempt, retry.delay_ms), (0, 60_000));
    assert!(matches!(b.start("me too").await, Err(Error::Busy { .. })));

    let then = Instant::now();
    assert!(b.orchestrator.retry_now(&b.id).await.unwrap());
    watcher.until("text-delta").await;
    assert_eq!(ms_since(then), 0);
    // It streams: neither applies.
    assert!(!b.orchestrator.retry_now(&b.id).await.unwrap());
    assert!(!b.orchestrator.abort_retry(&b.id).await.unwrap());

    let queued = b.orchestrator.enqueue(&b.id, "more".into(), Some("m".into())).await.unwrap();
    assert_eq!((queued.started_turn, queued.queue.len()), (false, 1));
    let other = b.orchestrator.enqueue(&b.id, "not this".into(), Some("n".into())).await.unwrap();
    assert_eq!(other.queue.len(), 2);
    let cancelled = b.orchestrator.cancel_queued(&b.id, "n").await.unwrap();
    assert_eq!((cancelled.cancelled, cancelled.queue.len()), (true, 1));
    watcher.until("turn-sealed").await;
    watcher.until("turn-sealed").await;

    assert!(!b.stop().await, "no turn runs");
    let mut watcher = b.say("once more").await;
    // The turn is driven by the node that began it.
    assert!(told(&mut watcher).await.iter().any(|line| line.starts_with("error")));
    assert!(model.calls() == 3 && unused.calls() > 0);
    let mut watcher = a.say("and again").await;
    watcher.until("text-delta").await;
    assert!(b.stop().await);
    let end = told(&mut watcher).await;
    assert!(end.iter().any(|line| line == "done aborted"), "{end:?}");
    assert!(!b.stop().await);
}

#[tokio::test(start_paused = true)]
async fn of_two_turns_begun_at_once_one_is_refused() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [slow(&["from a"])]).await;
    let (b, at_b) = nodes.node("b", [slow(&["from b"])]).await;
    let (left, right) = tokio::join!(a.start("left"), b.start("right"));
    let started = [left.is_ok(), right.is_ok()];
    assert_eq!(started.iter().filter(|ok| **ok).count(), 1, "{left:?} {right:?}");
    let refused = left.and(right).unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused}");
    assert_eq!(at_a.calls() + at_b.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_deleted_at_every_node() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one ", "two ", "three"]), answer("new")]).await;
    let (b, _) = nodes.node("b", [vec![]]).await;
    a.say("hi").await.until("text-delta").await;
    let mut watcher = b.watch(None).await;
    assert!(b.orchestrator.delete(&b.id).await.unwrap(), "a turn was running");
    watcher.until("status closed").await;
    let gone = watcher.subscription.next().await;
    assert!(matches!(gone, Err(Error::UnknownConversation { .. })), "{gone:?}");
    for world in [&a, &b] {
        assert!(matches!(world.orchestrator.status(&world.id).await, Err(Error::UnknownConversation { .. })));
    }
    a.say("anew").await.until("turn-sealed").await;
    assert_eq!(b.history().await, ["text anew", "text new"]);
}

#[tokio::test(start_paused = true)]
async fn the_shared_log_conforms() {
    let node = |log: &SharedLog, name| {
        let (journal, cluster) = log.node(name);
        contract::Node { journal, cluster }
    };
    let log = SharedLog::new(Arc::new(SystemClock::new()));
    let (a, b) = (node(&log, "a"), node(&log, "b"));
    contract::live_events(&a, &b).await;
    contract::commands(&a, &b).await;
    contract::membership(&a, &b).await;
    contract::list(&a, &b).await;
    contract::notices(&a, &b).await;
    everturn_sim::journal::conformance(async || {
        let log = SharedLog::new(Arc::new(SystemClock::new()));
        log.node("a").0
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_moves_to_another_node_sees_nothing_twice() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one ", "two ", "three ", "four"])]).await;
    let (b, _) = nodes.node("b", [vec![]]).await;
    let mut watcher = a.say("hi").await;
    let mut seen = String::new();
    while !seen.ends_with("two ") {
        seen.push_str(watcher.until("text-delta").await.last().unwrap().strip_prefix("text-delta ").unwrap());
    }
    // The other node has not received this text.
    let mut moved = b.watch(Some(watcher.subscription.cursor())).await;
    assert!(told(&mut moved).await.contains(&"text-delta three four".to_owned()));
    // A cursor that nobody issued is one from the end.
    a.orchestrator.delete(&a.id).await.unwrap();
    let (c, _) = nodes.node("c", [answer("new"), answer("newer")]).await;
    c.say("anew").await.until("turn-sealed").await;
    let mut late = b.watch(Some(moved.subscription.cursor())).await;
    c.start("more").await.unwrap();
    assert!(told(&mut late).await.contains(&"text-delta newer".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn retry_settings_reach_every_node() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [vec![]]).await;
    let refused = || overloaded_with_hint(1_000);
    let (b, at_b) = nodes.node("b", [refused(), answer("hello"), refused(), answer("hello")]).await;
    a.orchestrator.set_auto_retry(None, false).await.unwrap();
    sleep(Duration::from_secs(4)).await;
    assert_eq!(b.orchestrator.retry_settings(None).await.unwrap().set.enabled, Some(false));
    a.orchestrator.set_auto_retry(None, true).await.unwrap();
    // Also those of one conversation, which is in memory at both.
    b.say("hi").await.turn().await;
    let _watcher = b.watch(None).await;
    a.orchestrator.set_auto_retry(Some(&a.id), false).await.unwrap();
    let calls = at_b.calls();
    b.say("again").await.turn().await;
    assert_eq!(at_b.calls(), calls + 1, "it is not retried");
}

#[tokio::test(start_paused = true)]
async fn a_cursor_may_be_ahead_of_what_a_node_has_heard() {
    let lossy = Noise { lost: 1.0, ..Noise::default() };
    let nodes = Nodes::noisy(lossy);
    let (b, _) = nodes.node("b", [vec![]]).await;
    let (a, _) = nodes.node("a", [answer("one"), slow(&["two ", "three ", "four"])]).await;
    a.say("hi").await.until("turn-sealed").await;
    // It has loaded the conversation, and hears nothing after that.
    let _follows = b.watch(None).await;
    let mut at_a = a.say("more").await;
    let mut seen = at_a.until("text-delta").await;
    let cursor = at_a.subscription.cursor();
    let mut at_b = b.watch(Some(cursor)).await;
    seen.extend(told(&mut at_b).await);
    let text: Vec<_> = seen.iter().filter_map(|line| line.strip_prefix("text-delta ")).collect();
    assert_eq!(text.concat(), "two three four", "{seen:?}");
    assert_eq!(seen.iter().filter(|line| line.starts_with("user-message")).count(), 1, "{seen:?}");
    // Beyond everything, when no turn runs: the next event is new.
    let mut beyond = b.watch(Some(Cursor::from_value(cursor.value() + 1_000_000))).await;
    assert!(beyond.subscription.next().now_or_never().is_none());
    let (c, _) = nodes.node("c", [answer("five")]).await;
    c.start("and").await.unwrap();
    assert!(told(&mut beyond).await.contains(&"text-delta five".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_running_turn_and_its_end_are_found_although_nothing_was_heard() {
    let nodes = Nodes::noisy(Noise { lost: 1.0, ..Noise::default() });
    let (a, _) = nodes.node("a", [answer("one"), slow(&["two ", "three"])]).await;
    let (b, _) = nodes.node("b", [vec![]]).await;
    a.say("hi").await.turn().await;
    // It has loaded the conversation, and hears nothing after that.
    let _follows = b.watch(None).await;
    let started = a.start("more").await.unwrap();
    let mut running = b.watch(None).await;
    assert_eq!(running.subscription.cursor(), started.from);
    let subscription = b.orchestrator.subscribe(&b.id, SubscribeFrom::End, true).await.unwrap();
    let mut rest = Watcher { subscription };
    assert!(rest.subscription.cursor() > started.from);
    let (running, rest) = (told(&mut running).await, told(&mut rest).await);
    assert!(running.contains(&"text-delta two three".to_owned()), "{running:?}");
    assert!(running.ends_with(&rest) && rest.len() < running.len(), "{running:?} {rest:?}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_another_node_took_over_is_left_to_it() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one"])]).await;
    let (b, at_b) = nodes.node("b", [slow(&["1 ", "2 ", "3 ", "4"])]).await;
    let (c, at_c) = nodes.node("c", [vec![]]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = c.watch(Some(started.from)).await;
    sleep(Duration::from_millis(100)).await;
    nodes.log.cut_off("a");
    // Both find that its node does not answer, the second one after the first one has taken over.
    let late = async {
        sleep(Duration::from_millis(10)).await;
        c.start("no, me").await
    };
    let (first, second) = tokio::join!(b.start("me"), late);
    for refused in [first, second] {
        assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
    }
    let rest = told(&mut watcher).await;
    assert!(rest.contains(&"text-delta 1 2 3 4".to_owned()), "{rest:?}");
    assert_eq!((at_b.calls(), at_c.calls()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_arrives_late_is_not_said_again() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [overloaded_with_hint(600_000), answer("never")]).await;
    let (b, _) = nodes.node("b", [answer("1"), answer("2")]).await;
    let started = a.start("hi").await.unwrap();
    a.watch(Some(started.from)).await.until("provider-retry").await;
    let mut watcher = b.watch(Some(started.from)).await;
    nodes.log.cut_off("a");
    // This node sends the message to the one that is cut off, and then takes its turn over.
    assert!(!b.enqueue("and").await);
    assert!(b.orchestrator.retry_now(&b.id).await.unwrap());
    watcher.until("turn-sealed").await;
    watcher.until("turn-sealed").await;
    nodes.log.connect("a");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(b.history().await, ["text hi", "text 1", "text and", "text 2"]);
    assert_eq!(at_a.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_arrives_late_is_not_repeated() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [answer("one"), answer("never")]).await;
    let (b, _) = nodes.node("b", [answer("two")]).await;
    let mut holds = a.say("hi").await;
    holds.until("status idle").await;
    nodes.log.cut_off("a");
    let message = a.message("again").idempotency_key("key");
    let late = tokio::spawn({
        let (orchestrator, message) = (a.orchestrator.clone(), message.clone());
        async move { orchestrator.start(message).await }
    });
    sleep(Duration::from_secs(5)).await;
    let started = b.orchestrator.start(message).await.unwrap();
    b.watch(Some(started.from)).await.until("turn-sealed").await;
    nodes.log.connect("a");
    let repeated = late.await.unwrap().unwrap();
    assert_eq!((repeated.turn_id, repeated.is_new), (started.turn_id, false));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(b.history().await, ["text hi", "text one", "text again", "text two"]);
    assert_eq!(at_a.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_began_a_moment_ago_counts_as_alive() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one"])]).await;
    let (b, at_b) = nodes.node("b", [vec![]]).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = b.watch(Some(started.from)).await;
    sleep(Duration::from_millis(100)).await;
    nodes.kill("a", &a);
    let (c, at_c) = nodes.node("c", [slow(&["1 ", "2 ", "3 ", "4"])]).await;
    // The new node takes over. The other one is about to look at the turn, and has not seen the new one yet.
    assert!(matches!(c.start("me").await, Err(Error::Busy { .. })));
    assert!(matches!(b.start("me").await, Err(Error::Busy { .. })));
    let id = b.id.clone();
    b.orchestrator.resume_one(&id).await.unwrap();
    let rest = told(&mut watcher).await;
    assert!(rest.contains(&"text-delta 1 2 3 4".to_owned()), "{rest:?}");
    assert_eq!((at_b.calls(), at_c.calls()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_key_starts_one_turn_although_another_node_is_given_another_conversation() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [slow(&["from a"])]).await;
    let (b, at_b) = nodes.node("b", [slow(&["from b"])]).await;
    let (left, right) = (a.message("hi").idempotency_key("key"), b.message("hi").idempotency_key("key"));
    let right = right.conversation("other");
    let (left, right) = tokio::join!(a.orchestrator.start(left), b.orchestrator.start(right.clone()));
    let refused = [&left, &right].into_iter().filter(|started| matches!(started, Err(Error::KeyUsed { .. })));
    assert_eq!((refused.count(), left.is_ok() || right.is_ok()), (1, true), "{left:?} {right:?}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(at_a.calls() + at_b.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_repeated_at_once_at_another_node_starts_one_turn() {
    let nodes = Nodes::new();
    let (a, at_a) = nodes.node("a", [slow(&["from a"])]).await;
    let (b, at_b) = nodes.node("b", [slow(&["from b"])]).await;
    let message = a.message("hi").idempotency_key("key");
    let (left, right) = tokio::join!(a.orchestrator.start(message.clone()), b.orchestrator.start(message));
    let (left, right) = (left.unwrap(), right.unwrap());
    assert_eq!((&left.turn_id, left.is_new), (&right.turn_id, !right.is_new));
    assert_eq!(at_a.calls() + at_b.calls(), 1);
}
