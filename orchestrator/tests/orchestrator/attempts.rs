//! Failed attempts, read later by people.

use std::sync::Arc;

use everturn_orchestrator::{Exponential, Orchestrator, RetryTurn};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Category, FailedAttempt, Failure};

use crate::support::{World, answer, ask, builder, overloaded_with_hint, refused, text};

async fn attempts(world: &World) -> Vec<FailedAttempt> {
    world.orchestrator.attempts(&world.id, None, 500).await.unwrap().attempts
}

/// What they say but for their times: step, attempt, target, code or category, wait.
fn lines(attempts: &[FailedAttempt]) -> Vec<String> {
    let line = |it: &FailedAttempt| {
        let target = it.target.as_deref().unwrap_or("?");
        let wait = it.wait_ms.map_or("the end".to_owned(), |ms| ms.to_string());
        format!("{}.{} {target} {} {wait}", it.step, it.attempt, it.message)
    };
    attempts.iter().map(line).collect()
}

fn unauthorized() -> Vec<Cue> {
    let failure = Failure::new(Category::Auth, false, "HTTP 401: who are you?");
    vec![everturn_orchestrator::kernel::StreamEvent::Failed(failure).into()]
}

#[tokio::test(start_paused = true)]
async fn every_failed_attempt_is_told_while_the_turn_waits_and_after_its_end() {
    let scripts = [refused(), ask("gone", &["a"]), refused(), refused(), unauthorized(), answer("Hello")];
    let provider = Scripted::new(scripts);
    let world = World::new(provider.clone());
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    assert_eq!(lines(&attempts(&world).await), ["0.0 key/model HTTP 429: busy 5000"]);
    watcher.until("turn-sealed").await;
    let told = attempts(&world).await;
    let expected = [
        "0.0 key/model HTTP 429: busy 5000",
        "1.0 key/model HTTP 429: busy 5000",
        "1.1 key/model HTTP 429: busy 10000",
        "1.2 key/model HTTP 401: who are you? the end",
    ];
    assert_eq!(lines(&told), expected);
    assert_eq!((told[0].code.as_deref(), told[3].category), (Some("429"), Some(Category::Auth)));
    let since = |n: usize| told[n].failed_at - told[0].failed_at;
    assert_eq!([since(1), since(2), since(3)], [5_000, 10_000, 20_000]);
    assert!(told.iter().all(|it| it.latency_ms == Some(0)), "it answers at once");

    let newest = world.orchestrator.attempts(&world.id, Some(&told[0].turn_id), 2).await.unwrap();
    assert_eq!(
        (lines(&newest.attempts), newest.more),
        (expected[2..].iter().map(|&s| s.into()).collect(), Some(true))
    );
    let other = world.orchestrator.attempts(&world.id, Some(&"other".into()), 2).await.unwrap();
    assert_eq!((other.attempts.len(), other.more), (0, None));
    let window = world.orchestrator.history(&world.id, Default::default()).await.unwrap();
    assert_eq!(window.turns.unwrap()[0].failed_attempts, None, "a window of history is not made longer");

    // None of it reaches a model, also when it is asked again.
    let again = world.orchestrator.retry_with(&world.id, RetryTurn::message(1)).await.unwrap();
    world.watch(Some(again.from)).await.until("turn-sealed").await;
    for request in provider.requests() {
        let sent = format!("{:?}", request.messages);
        assert!(!sent.contains("HTTP 4"), "{sent}");
    }
    assert_eq!(attempts(&world).await, told, "the turn after it had none");
}

#[tokio::test(start_paused = true)]
async fn of_a_switch_it_is_the_target_that_failed() {
    let builder = Orchestrator::builder()
        .model("a", "m", Arc::new(Scripted::new([overloaded_with_hint(60_000)])))
        .model("b", "m", Arc::new(Scripted::new([vec![text("half"), unauthorized().remove(0)]])));
    let world = World::of(builder.route("r", ["a/m", "b/m"], Exponential::interactive()));
    let started = world.orchestrator.start(world.message("hi").model("route/r")).await.unwrap();
    world.watch(Some(started.from)).await.until("turn-sealed").await;
    let expected = ["0.0 a/m HTTP 529: busy 0", "0.1 b/m HTTP 401: who are you? the end"];
    assert_eq!(lines(&attempts(&world).await), expected);
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_first_wait_keeps_the_attempt_before_it() {
    let world = World::of(builder(Scripted::new([refused()])));
    world.say("hi").await.until("provider-retry").await;
    assert!(world.stop().await);
    world.watch(Some("0".parse().unwrap())).await.until("turn-sealed").await;
    assert_eq!(lines(&attempts(&world).await), ["0.0 key/model HTTP 429: busy 5000"]);
}
