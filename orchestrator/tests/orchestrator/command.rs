//! One writer for each conversation, refusals that say what to do, and stopping at any point.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Error, Fault, Page, StartTurn};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{ConversationStatus, Image};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

use crate::{
    support::{World, answer, ask, builder, ms_since, refused, text},
    tool::Stuck,
};

#[tokio::test(start_paused = true)]
async fn a_busy_conversation_takes_no_second_turn() {
    let world = World::new(Scripted::new([refused(), answer("hello")]));
    let mut watcher = world.say("hi").await;
    let error = world.start("me too").await.unwrap_err();
    assert_eq!((&error, error.fault()), (&Error::Busy { id: world.id.clone() }, Fault::Conflict));
    watcher.turn().await;
    assert_eq!(world.history().await, ["text hi", "text hello"]);
    world.start("now").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_many_starts_at_once_one_wins() {
    for round in 0..20 {
        let world = Arc::new(World::new(Scripted::new([answer("hello")])));
        if round % 2 == 1 {
            world.say("first").await.turn().await;
        }
        let mut changes = world.orchestrator.status_changes();
        let starts = (0..50).map(|n| {
            let world = world.clone();
            tokio::spawn(async move { world.start(&n.to_string()).await })
        });
        let answers = join_all(starts).await;
        let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().map(Result::unwrap).partition(Result::is_ok);
        assert_eq!(won.len(), 1);
        assert!(lost.iter().all(|lost| matches!(lost, Err(Error::Busy { .. }))));
        let from = won[0].as_ref().unwrap().from;
        world.watch(Some(from)).await.turn().await;
        assert_eq!(world.chunks().await.len(), if round % 2 == 1 { 4 } else { 2 });
        assert_eq!(changes.try_recv().unwrap().status, ConversationStatus::Active);
        assert_eq!(changes.try_recv().unwrap().status, ConversationStatus::Idle);
        assert!(changes.try_recv().is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_started_makes_no_conversation() {
    let world = World::new(Scripted::new([answer("hello")]));
    let image = |url: &str| Image { url: url.to_owned(), mime_type: None };
    let good = || world.message("hi");
    let in_conversation = |id: &str| good().conversation(id);
    let bad = [
        (good().model("key/other"), "known models: key/model"),
        (world.message(" \n"), "empty"),
        (world.message(&"x".repeat((1 << 20) + 1)), "1048577 bytes, the most is 1048576"),
        (in_conversation(""), "1 to 128"),
        (in_conversation(&"x".repeat(129)), "1 to 128"),
        (in_conversation("../x"), "\"../x\""),
        (good().images(vec![image("https://a/b"); 17]), "17 images, the most is 16"),
        (good().images(vec![image("https://a/b"), image("file:///x")]), "image 1"),
        (
            good().images(vec![image("data:image/svg+xml,%3Csvg/%3E")]),
            "image 0 must be an https: URL, or a data:image/ or data:application/pdf URL in base64",
        ),
    ];
    for (start, why) in bad {
        let error = world.orchestrator.start(start).await.unwrap_err();
        assert_eq!(error.fault(), Fault::Caller);
        assert!(error.to_string().contains(why) && error.to_string().len() < 512, "{error}");
    }
    assert!(world.orchestrator.conversations(Page::default()).await.unwrap().0.is_empty());
    let unknown = world.orchestrator.status(&world.id).await.unwrap_err();
    assert_eq!(unknown, Error::UnknownConversation { id: world.id.clone() });
    assert_eq!(world.orchestrator.stop(&world.id).await.unwrap_err().fault(), Fault::Missing);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_without_a_name_is_given_one() {
    let world = World::new(Scripted::new([answer("hello")]));
    let start = || StartTurn::new("hi");
    let (one, two) = (world.orchestrator.start(start()).await, world.orchestrator.start(start()).await);
    assert_ne!(one.unwrap().conversation_id, two.unwrap().conversation_id);
}

#[tokio::test(start_paused = true)]
async fn a_turn_stops_at_once_wherever_it_is() {
    let scripts: [(Vec<Cue>, &str, &[&str]); 4] = [
        (vec![Cue::Hang], "turn-start", &[]),
        (
            vec![text("half an "), text("answer"), Cue::Hang],
            "text-delta half an answer",
            &["text half an answer"],
        ),
        (refused(), "provider-retry", &[]),
        (
            ask("stuck", &["a"]),
            "step-complete",
            &["tool-call a", "tool-result a (tool failed: interrupted, the turn ended before it was done)"],
        ),
    ];
    for (script, point, kept) in scripts {
        let provider = Scripted::new([script, answer("next")]);
        let world = World::of(builder(provider.clone()).tool(Stuck::new()));
        let mut watcher = world.say("hi").await;
        watcher.until(point).await;
        let asked = Instant::now();
        assert!(world.stop().await);
        let lines = timeout(Duration::from_millis(100), watcher.turn()).await.unwrap();
        assert_eq!(lines[lines.len() - 2..], ["done aborted", "turn-sealed"], "{point}");
        assert!(!lines.iter().any(|line| line.starts_with("error")), "{point}");
        assert!(ms_since(asked) <= 100);
        assert!(!world.stop().await, "nothing is left to stop");
        assert_eq!(world.history().await[1..], *kept, "{point}");
        assert_eq!(world.status().await, ConversationStatus::Idle);
        assert_eq!(
            world.say("again").await.turn().await[2..],
            ["text-delta next", "step-complete", "done stop", "turn-sealed"]
        );
        assert_eq!(provider.calls(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_not_delayed_by_a_flood_of_text() {
    let flood = (0..5_000).map(|_| text("word ")).chain([Cue::Hang]).collect();
    let world = World::new(Scripted::new([flood]));
    let mut watcher = world.say("hi").await;
    assert!(world.stop().await);
    assert!(watcher.turn().await.contains(&"done aborted".to_owned()));
    let said: usize = world.history().await.iter().map(String::len).sum();
    assert!(said < 5 * 2_500, "stopped well before the end: {said}");
}
