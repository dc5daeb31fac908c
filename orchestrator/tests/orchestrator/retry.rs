//! Waiting for a provider, and what a person can do about it.

use std::time::Duration;

use everturn_orchestrator::kernel::{Budget, Retry, Schedule, Settings, StreamEvent};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{ConversationStatus, Failure, RetryState};
use tokio::time::{Instant, advance};

use crate::support::{World, answer, builder, failure, ms_since, refused, refused_with_hint, text};

#[tokio::test(start_paused = true)]
async fn two_refusals_then_an_answer() {
    let world = World::new(Scripted::new([refused(), refused(), answer("hello")]));
    let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
    let told = [
        "user-message hi",
        "turn-start",
        "provider-retry 0 5000 HTTP 429: busy",
        "status active asking",
        "provider-retry 1 10000 HTTP 429: busy",
        "status active asking",
        "text-delta hello",
        "step-complete",
        "done stop",
        "turn-sealed",
    ];
    assert_eq!(watcher.turn().await, told);
    assert_eq!(ms_since(begun), 15_000);
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_comes_back_is_waited_for_a_working_day() {
    let provider = Scripted::new([refused()]);
    let world = World::new(provider.clone());
    let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
    let lines = watcher.turn().await;
    let count = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    assert_eq!((count("provider-retry"), count("error"), count("done error")), (21, 1, 1));
    assert_eq!((ms_since(begun), provider.calls()), (27_105_000, 22));
    assert_eq!(world.history().await, ["text hi", "error HTTP 429: busy"]);
    assert_eq!(world.status().await, ConversationStatus::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_skipped() {
    let world = World::new(Scripted::new([refused(), answer("hello")]));
    let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
    watcher.until("provider-retry").await;
    advance(Duration::from_secs(1)).await;
    let status = world.orchestrator.status(&world.id).await.unwrap();
    assert!(matches!(status.retry, Some(RetryState { attempt: 0, .. })), "{status:?}");
    assert!(world.orchestrator.retry_now(&world.id).await.unwrap());
    assert!(watcher.turn().await.contains(&"done stop".to_owned()));
    assert_eq!(ms_since(begun), 1_000);
}

#[tokio::test(start_paused = true)]
async fn a_page_instead_of_a_message_is_cut() {
    let page = Failure { message: format!("x{}", "é".repeat(1 << 20)), ..failure() };
    let world = World::new(Scripted::new([vec![StreamEvent::Failed(page).into()], answer("hello")]));
    let mut watcher = world.say("hi").await;
    let told = watcher.until("provider-retry").await;
    let message = told.last().unwrap().rsplit(' ').next().unwrap();
    assert_eq!(message.len(), 4095, "at a character");
    assert!(watcher.turn().await.contains(&"done stop".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_wait_can_be_given_up() {
    let world = World::new(Scripted::new([refused(), answer("next")]));
    let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
    watcher.until("provider-retry").await;
    assert!(world.orchestrator.abort_retry(&world.id).await.unwrap());
    let lines = watcher.until("turn-sealed").await;
    assert_eq!(lines[..2], ["retry-ended 0 cancelled", "done aborted"]);
    assert!(!lines.iter().any(|line| line.starts_with("error")));
    let metrics = world.orchestrator.metrics(&world.id).await.unwrap();
    assert_eq!((metrics[0].retries, metrics[0].waited_ms), (None, None), "nothing was retried or waited for");
    assert_eq!(ms_since(begun), 0);
    assert!(world.say("again").await.turn().await.contains(&"text-delta next".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn where_nothing_waits_there_is_nothing_to_skip_or_give_up() {
    let world = World::new(Scripted::new([vec![text("hel"), Cue::Hang]]));
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    assert!(!world.orchestrator.retry_now(&world.id).await.unwrap());
    assert!(!world.orchestrator.abort_retry(&world.id).await.unwrap());
    assert!(world.stop().await);
    assert!(watcher.turn().await.contains(&"done aborted".to_owned()));
    assert!(!world.orchestrator.retry_now(&world.id).await.unwrap());
    assert!(!world.orchestrator.abort_retry(&world.id).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn retrying_can_be_turned_off_for_one_conversation_or_for_all() {
    for all in [false, true] {
        let world = World::new(Scripted::new([answer("hello"), refused()]));
        world.say("hi").await.turn().await;
        let whose = (!all).then_some(&world.id);
        world.orchestrator.set_auto_retry(whose, false).await.unwrap();
        let status = world.orchestrator.status(&world.id).await.unwrap();
        assert_eq!(status.auto_retry, Some(false));
        let lines = world.say("again").await.turn().await;
        assert!(lines.contains(&"done error".to_owned()), "{lines:?}");
        assert!(!lines.iter().any(|line| line.starts_with("provider-retry")));
        let mut other = World::of(builder(Scripted::new([refused()])));
        other.orchestrator = world.orchestrator.clone();
        other.id = "other".into();
        let lines = other.say("hi").await.turn().await;
        assert_eq!(lines.iter().any(|line| line.starts_with("provider-retry")), !all);
        world.orchestrator.set_auto_retry(whose, true).await.unwrap();
        let lines = world.say("once more").await.turn().await;
        assert!(lines.iter().any(|line| line.starts_with("provider-retry")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_under_way_outlives_the_switch() {
    let world = World::new(Scripted::new([refused(), answer("hello")]));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    world.orchestrator.set_auto_retry(None, false).await.unwrap();
    assert!(watcher.turn().await.contains(&"done stop".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_hint_only_lengthens_a_wait() {
    for (hint, wait) in [(60_000, 60_000), (5_001, 5_001), (1, 5_000)] {
        let world = World::new(Scripted::new([refused_with_hint(hint), answer("hello")]));
        let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
        watcher.turn().await;
        assert_eq!(ms_since(begun), wait);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_budget_is_not_begun() {
    let budget = Budget { max_wait_ms: Some(14_999), deadline: None };
    let settings = Settings { budget, ..Settings::default() };
    let world = World::of(builder(Scripted::new([refused()])).settings(settings));
    let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
    let lines = watcher.until("turn-sealed").await;
    assert!(lines.contains(&"error HTTP 429: busy".to_owned()), "{lines:?}");
    assert!(lines.contains(&"retry-ended 1 too-long".to_owned()), "{lines:?}");
    assert_eq!(ms_since(begun), 5_000);
}

/// An hour before each retry, for ever.
struct Hourly;

impl Schedule for Hourly {
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
        Some(Duration::from_secs(3600))
    }
}

#[tokio::test(start_paused = true)]
async fn settings_without_a_bound_of_their_own_keep_the_usual_one() {
    for (is_unbounded, waits) in [(false, 8), (true, 30)] {
        let builder = builder(Scripted::new([refused()]))
            .schedule(everturn_orchestrator::RetryPolicy::own(Hourly))
            .settings(Settings::default());
        let world = World::of(if is_unbounded { builder.unbounded_waits() } else { builder });
        let mut watcher = world.say("hi").await;
        let mut retries = 0;
        while retries < waits {
            let lines = watcher.until("provider-retry").await;
            assert!(!lines.iter().any(|line| line.starts_with("error")), "{lines:?}");
            retries += 1;
        }
        if !is_unbounded {
            let end = watcher.until("turn-sealed").await;
            assert!(end.iter().any(|line| line.starts_with("retry-ended 8 too-long")), "{end:?}");
        }
    }
}
