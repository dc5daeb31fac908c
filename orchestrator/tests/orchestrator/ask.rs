//! Questions beside all conversations.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Orchestrator, Page, Patient, StartTurn, UsageQuery, kernel::StreamEvent};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{CallerName, Category, ConversationId, Failure, UsageKey};
use tokio::time::{Instant, sleep};

use crate::support::{Watcher, World, answer, ask, builder};

fn limited(hint_ms: u64) -> Vec<Cue> {
    let failure = Failure::new(Category::RateLimited, true, "HTTP 429");
    vec![StreamEvent::Failed(Failure { hint_ms: Some(hint_ms), ..failure }).into()]
}

#[tokio::test]
async fn a_question_moves_along_its_route_and_counts_for_its_caller() {
    let refusal = StreamEvent::Failed(Failure::new(Category::Overloaded, true, "HTTP 529"));
    let (first, second) = (Scripted::new([vec![Cue::from(refusal)]]), Scripted::new([answer("Two dice")]));
    let builder = builder(Scripted::new(Vec::<Vec<Cue>>::new()))
        .model("one", "m", Arc::new(first.clone()))
        .model("two", "m", Arc::new(second.clone()))
        .route("titles", ["one/m", "two/m"], Patient);
    let world = World::of(builder);
    let ann = CallerName::parse("ann").unwrap();
    let of_ann = ConversationId::from("c").of(&ann);
    let answer = world.orchestrator.ask(&of_ann, "route/titles", "What is it?".to_owned(), 1_000).await;
    assert_eq!(answer.as_deref(), Ok("Two dice"));
    assert_eq!((first.calls(), second.calls()), (1, 1));
    assert!(world.orchestrator.conversations(Page::default()).await.unwrap().0.is_empty());
    let query = UsageQuery { by: vec![UsageKey::Caller], ..UsageQuery::default() };
    let usage = world.orchestrator.usage(query).await.unwrap();
    let [row] = &usage.rows[..] else { panic!("{usage:?}") };
    let counted = (row.caller.as_deref(), row.requests, row.turns);
    assert_eq!(counted, (Some("ann"), 2, 0), "{row:?}");
}

#[tokio::test(start_paused = true)]
async fn a_question_does_not_wait_for_a_limited_target() {
    let provider = Scripted::new([limited(20_000), answer("ok"), answer("Two dice")]);
    let world = World::new(provider.clone());
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    let begun = Instant::now();
    let put_off =
        world.orchestrator.ask(&world.id, "key/model", "What is it?".to_owned(), 1_000).await.unwrap_err();
    assert_eq!((put_off.category, begun.elapsed()), (Category::RateLimited, Duration::ZERO));
    assert!(put_off.hint_ms.is_some_and(|left| (1..=20_000).contains(&left)), "{put_off:?}");
    assert_eq!(provider.calls(), 1, "it was not asked");
    watcher.turn().await;
    assert_eq!(
        world.orchestrator.ask(&world.id, "key/model", "Now?".to_owned(), 1_000).await.as_deref(),
        Ok("Two dice")
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_is_asked_once_and_what_cannot_be_answered_says_why() {
    let provider = Scripted::new([ask("write", &["a"]), vec![Cue::Hang]]);
    let world = World::new(provider.clone());
    let unknown = world.orchestrator.ask(&world.id, "key/none", "?".to_owned(), 1_000).await.unwrap_err();
    assert_eq!(unknown.category, Category::InvalidRequest);
    assert!(unknown.message.contains("key/none"), "{}", unknown.message);
    let empty = Orchestrator::builder().build();
    let unknown = empty.ask(&world.id, "", "?".to_owned(), 1_000).await.unwrap_err();
    assert!(unknown.message.contains("name one as PROVIDER/MODEL"), "{}", unknown.message);
    let calls_tool = world.orchestrator.ask(&world.id, "key/model", "?".to_owned(), 1_000).await.unwrap_err();
    assert_eq!(calls_tool.category, Category::InvalidResponse, "it was offered none");
    assert_eq!(provider.calls(), 1);
    let hangs = world.orchestrator.ask(&world.id, "key/model", "?".to_owned(), 1_000);
    tokio::select! {
        answer = hangs => panic!("{answer:?}"),
        () = sleep(Duration::from_secs(5)) => {}
    }
    assert_eq!(provider.calls(), 2);
    // Cancelled: its place is free, and it counts as no turn.
    let start = world.orchestrator.start(StartTurn::new("hi").conversation(world.id.clone())).await.unwrap();
    let subscription = world.orchestrator.subscribe(&world.id, Some(start.from), true).await.unwrap();
    Watcher { subscription }.until("turn-start").await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_is_not_read_to_its_end() {
    let mut endless = answer(&"x".repeat(900));
    endless.pop();
    endless.extend(answer(&"y".repeat(900)));
    endless.pop();
    endless.push(Cue::Hang);
    let world = World::new(Scripted::new([endless]));
    let text = world.orchestrator.ask(&world.id, "key/model", "?".to_owned(), 1_000).await.unwrap();
    assert_eq!(text, format!("{}…", "x".repeat(900)));
}
