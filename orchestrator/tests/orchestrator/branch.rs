//! Answering any user message again, as it was or with another text.

use std::sync::Arc;

use everturn_orchestrator::{Error, Fault, MAX_MESSAGE, MemoryJournal, Orchestrator, RetryTurn, StartTurn};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{DoneReason, Image, TurnMetrics};

use crate::{
    again::Noting,
    support::{World, answer, ask, event, text},
};

/// What a turn tells that begins so.
async fn again(world: &World, what: RetryTurn) -> Vec<String> {
    let started = world.orchestrator.retry_with(&world.id, what).await.unwrap();
    world.watch(Some(started.from)).await.turn().await
}

async fn marks(world: &World) -> Vec<(u64, u64)> {
    let marks = world.chunks().await;
    marks.iter().filter_map(|stored| Some((stored.seq, stored.supersedes?))).collect()
}

async fn turns(world: &World) -> Vec<TurnMetrics> {
    world.orchestrator.metrics(&world.id).await.unwrap()
}

/// Two questions and their answers: chunks 1 to 4.
async fn two_answers(more: impl IntoIterator<Item = Vec<Cue>>) -> (World, Noting) {
    let said = [answer("A1"), answer("A2")].into_iter().chain(more);
    let provider = Noting::new(said);
    let world = World::new(provider.clone());
    for question in ["Q1", "Q2"] {
        world.say(question).await.turn().await;
    }
    (world, provider)
}

#[tokio::test(start_paused = true)]
async fn a_message_in_the_middle_is_answered_again_twice_and_the_conversation_goes_on_from_there() {
    let (world, provider) = two_answers(["B1", "C1", "C3"].map(answer)).await;
    for said in ["B1", "C1"] {
        let lines = again(&world, RetryTurn::message(1)).await;
        let delta = format!("text-delta {said}");
        assert_eq!(lines, ["turn-start", &delta, "step-complete", "done stop", "turn-sealed"]);
        assert_eq!(provider.last(), ["User Q1"], "nothing that follows is sent");
    }
    world.say("Q3").await.turn().await;
    assert_eq!(provider.last(), ["User Q1", "Assistant C1", "User Q3"]);
    assert_eq!(marks(&world).await, [(5, 2), (6, 5)], "a mark names what stands");
    let texts = ["text Q1", "text A1", "text Q2", "text A2", "text B1", "text C1", "text Q3", "text C3"];
    assert_eq!(world.history().await, texts, "people can read every branch");
    assert_eq!(turns(&world).await[2].retry_of, Some(turns(&world).await[0].turn_id.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_edited_and_so_is_the_edited_one() {
    let (world, provider) = two_answers(["B2", "C2", "D1", "D2"].map(answer)).await;
    let lines = again(&world, RetryTurn::message(3).text("Q2b")).await;
    assert_eq!(lines[..2], ["user-message Q2b", "turn-start"], "an ordinary turn for who watches");
    assert_eq!(provider.last(), ["User Q1", "Assistant A1", "User Q2b"]);
    again(&world, RetryTurn::message(5).text("Q2c")).await;
    assert_eq!(provider.last(), ["User Q1", "Assistant A1", "User Q2c"]);
    again(&world, RetryTurn::message(1).text("Q1d")).await;
    assert_eq!(provider.last(), ["User Q1d"]);
    world.say("Q2d").await.turn().await;
    assert_eq!(provider.last(), ["User Q1d", "Assistant D1", "User Q2d"]);
    assert_eq!(marks(&world).await, [(5, 3), (7, 5), (9, 1)]);
}

#[tokio::test(start_paused = true)]
async fn the_start_of_a_turn_says_where_it_begins_and_what_it_supersedes() {
    let (world, _) = two_answers(["B1", "B2"].map(answer)).await;
    for (what, message, mark) in
        [(RetryTurn::message(3), None, Some(4)), (RetryTurn::message(1).text("Q"), Some(6), Some(1))]
    {
        let started = world.orchestrator.retry_with(&world.id, what).await.unwrap();
        let frames = world.watch(Some(started.from)).await.frames().await;
        let start = frames.iter().map(|frame| serde_json::to_value(event(frame)).unwrap());
        let start = start.into_iter().find(|event| event["type"] == "turn-start").unwrap();
        assert_eq!((start["messageSeq"].as_u64(), start["supersedes"].as_u64()), (message, mark));
    }
}

#[tokio::test(start_paused = true)]
async fn calls_keep_their_results_wherever_a_branch_is_cut() {
    let calls = |ids: &[&str]| ask("gone", ids);
    let said = [calls(&["a", "b"]), answer("A1"), calls(&["c"]), answer("A2"), calls(&["d"]), answer("B1")];
    let provider = Noting::new(said.into_iter().chain([answer("B3")]));
    let world = World::new(provider.clone());
    for question in ["Q1", "Q2"] {
        world.say(question).await.turn().await;
    }
    again(&world, RetryTurn::message(1)).await;
    let sent = provider.last();
    assert_eq!(sent[..2], ["User Q1", "Assistant calls d"], "{sent:?}");
    assert!(sent.len() == 3 && sent[2].starts_with("Tool (tool failed"), "{sent:?}");
    world.say("Q3").await.turn().await;
    let sent = provider.last();
    assert_eq!((sent[3].as_str(), sent[4].as_str(), sent.len()), ("Assistant B1", "User Q3", 5), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn an_edited_message_keeps_its_images() {
    let provider = Noting::new([answer("A"), answer("B"), answer("C")]);
    let world = World::new(provider.clone());
    let images = ["https://x/1", "https://x/2"].map(|url| Image { url: url.into(), mime_type: None });
    let start = world.message("Q").images(images.to_vec());
    let started = world.orchestrator.start(start).await.unwrap();
    world.watch(Some(started.from)).await.turn().await;
    // Any of its chunks names the message.
    for seq in [2, 5] {
        again(&world, RetryTurn::message(seq).text("Q2")).await;
        assert_eq!(provider.last(), ["User https://x/1", "User https://x/2", "User Q2"]);
    }
    assert_eq!(marks(&world).await, [(5, 1), (9, 5)]);
}

#[tokio::test(start_paused = true)]
async fn what_said_nothing_before_it_was_stopped_replaces_nothing() {
    let (world, provider) = two_answers([vec![Cue::Hang], answer("A3")]).await;
    let started = world.orchestrator.retry_with(&world.id, RetryTurn::message(1)).await.unwrap();
    assert!(world.stop().await);
    let lines = world.watch(Some(started.from)).await.turn().await;
    assert!(lines.contains(&"done aborted".to_owned()), "{lines:?}");
    world.say("Q3").await.turn().await;
    assert_eq!(provider.last(), ["User Q1", "Assistant A1", "User Q2", "Assistant A2", "User Q3"]);
}

#[tokio::test(start_paused = true)]
async fn a_branch_is_still_cut_after_a_restart_in_the_middle_of_its_turn() {
    let journal = Arc::new(MemoryJournal::new());
    let process = |provider: &Noting| {
        let builder = Orchestrator::builder().model("key", "model", Arc::new(provider.clone()));
        World::of(builder.journal(journal.clone()))
    };
    let first = Noting::new([answer("A1"), answer("A2"), vec![Cue::Hang]]);
    let world = process(&first);
    for question in ["Q1", "Q2"] {
        world.say(question).await.turn().await;
    }
    world.orchestrator.retry_with(&world.id, RetryTurn::message(1)).await.unwrap();
    drop(world);
    let second = Noting::new([answer("B1"), answer("B3")]);
    let world = process(&second);
    assert_eq!(world.orchestrator.resume().await.unwrap(), 1);
    world.watch(None).await.turn().await;
    assert_eq!(second.last(), ["User Q1"]);
    world.say("Q3").await.turn().await;
    assert_eq!(second.last(), ["User Q1", "Assistant B1", "User Q3"]);
    assert_eq!(marks(&world).await, [(5, 2)]);
}

#[tokio::test(start_paused = true)]
async fn another_model_may_answer() {
    let (first, second) = (Scripted::new([answer("A")]), Scripted::new([answer("B"), answer("C")]));
    let builder = Orchestrator::builder().model("a", "m", Arc::new(first.clone()));
    let world = World::of(builder.model("b", "m", Arc::new(second.clone())));
    world.say("Q").await.turn().await;
    let unknown = world.orchestrator.retry_with(&world.id, RetryTurn::message(1).model("c/m")).await;
    assert!(matches!(unknown, Err(Error::UnknownModel { .. })), "{unknown:?}");
    again(&world, RetryTurn::message(1).model("b/m")).await;
    world.say("Q2").await.turn().await;
    assert_eq!((first.calls(), second.calls()), (1, 2), "the conversation stays with it");
}

#[tokio::test(start_paused = true)]
async fn while_a_turn_runs_nothing_is_answered_again() {
    let (world, _) = two_answers([vec![text("A3"), Cue::Hang]]).await;
    let mut watcher = world.say("Q3").await;
    watcher.until("text-delta").await;
    for what in [RetryTurn::message(1), RetryTurn::message(3).text("Q"), RetryTurn::message(99)] {
        let refused = world.orchestrator.retry_with(&world.id, what).await.unwrap_err();
        assert_eq!(refused, Error::Busy { id: world.id.clone() });
    }
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    assert_eq!(turns(&world).await[2].reason, Some(DoneReason::Aborted));
    assert_eq!(world.history().await.len(), 6, "nothing was added");
}

#[tokio::test(start_paused = true)]
async fn pressed_three_times_it_makes_one_turn() {
    let (world, _) = two_answers([vec![Cue::Hang]]).await;
    let press = || world.orchestrator.retry_with(&world.id, RetryTurn::message(1));
    let (a, b, c) = tokio::join!(press(), press(), press());
    let begun = [a, b, c].into_iter().filter_map(Result::ok).count();
    assert_eq!(begun, 1);
    assert!(world.stop().await);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_answered_again_is_refused_with_a_reason() {
    let (world, provider) = two_answers([answer("B1")]).await;
    let message = RetryTurn::message;
    again(&world, message(1)).await;
    let calls = provider.last();
    let last = turns(&world).await.pop().unwrap().turn_id;
    let first = turns(&world).await[0].turn_id.clone();
    let long = "x".repeat(MAX_MESSAGE + 1);
    for (what, why, fault) in [
        (message(6), "there is no chunk 6, the last one is 5", Fault::Caller),
        (message(0), "there is no chunk 0", Fault::Caller),
        (message(2), "chunk 2 is no user message, its role is Assistant", Fault::Caller),
        (message(3), "user message 3 cannot be answered again: a later version replaced it", Fault::Conflict),
        (message(1).text(long), "it has 1048577 bytes, the most is 1048576", Fault::Caller),
        (message(1).text(" "), "it is empty", Fault::Caller),
        (message(1).after(first), "it is not the last turn", Fault::Conflict),
        (RetryTurn::last(last).text("Q"), "name the user message that the new text is for", Fault::Caller),
        (RetryTurn::default(), "name the turn, or a user message by its seq", Fault::Caller),
    ] {
        let refused = world.orchestrator.retry_with(&world.id, what.clone()).await.unwrap_err();
        assert!(refused.to_string().contains(why), "{what:?}: {refused}");
        assert_eq!(refused.fault(), fault, "{refused}");
    }
    assert_eq!(provider.last(), calls, "no model was asked");
    assert_eq!(world.history().await.len(), 5);
    // And nothing is in the way of what comes next.
    world.orchestrator.start(StartTurn::new("Q3").conversation(world.id.clone())).await.unwrap();
}
