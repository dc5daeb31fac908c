//! Trying the last turn again: over the same history, once.

use std::sync::{Arc, Mutex};

use everturn_orchestrator::{
    Error, Orchestrator, RetryTurn, Window,
    kernel::{Provider, Request, StreamEvent},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Category, Chunk, ConversationStatus, DoneReason, Failure, Role};
use futures_util::stream::BoxStream;

use crate::support::{World, answer, ask, finish, lines, text};

/// Notes what it is sent.
#[derive(Clone)]
pub(crate) struct Noting {
    then: Scripted,
    sent: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Noting {
    pub(crate) fn new(calls: impl IntoIterator<Item = Vec<Cue>>) -> Self {
        Self { then: Scripted::new(calls), sent: Arc::default() }
    }

    /// What the last request was made of.
    pub(crate) fn last(&self) -> Vec<String> {
        self.sent.lock().unwrap().last().cloned().unwrap_or_default()
    }
}

impl Provider for Noting {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let said = request.messages.iter().flat_map(|message| message.iter().map(|c| (message.role, c)));
        let line = |(role, chunk): (Role, &Chunk)| match chunk {
            Chunk::Text { text } => format!("{role:?} {text}"),
            Chunk::Image { url, .. } => format!("{role:?} {url}"),
            Chunk::ToolCall { tool_call_id, .. } => format!("{role:?} calls {tool_call_id}"),
            Chunk::ToolResult { content, .. } => format!("{role:?} {content}"),
            other => format!("{role:?} {other:?}"),
        };
        self.sent.lock().unwrap().push(said.map(line).collect());
        self.then.stream(request)
    }
}

fn fails() -> Cue {
    StreamEvent::Failed(Failure::new(Category::Network, false, "the connection broke")).into()
}

async fn last_turn(world: &World) -> everturn_wire::TurnMetrics {
    world.orchestrator.metrics(&world.id).await.unwrap().pop().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_failed_is_asked_again_without_what_it_said() {
    let provider =
        Noting::new([vec![text("Half an ans"), fails()], answer("Answer"), answer("You're welcome")]);
    let world = World::new(provider.clone());
    world.say("Question").await.turn().await;
    let failed = last_turn(&world).await;
    assert_eq!((&failed.reason, failed.category), (&Some(DoneReason::Error), Some(Category::Network)));

    let started = world.orchestrator.retry(&world.id, &failed.turn_id).await.unwrap();
    let lines = world.watch(Some(started.from)).await.turn().await;
    assert_eq!(lines, ["turn-start", "text-delta Answer", "step-complete", "done stop", "turn-sealed"]);
    assert_eq!(provider.last(), ["User Question"], "the half answer is not sent");
    assert_eq!(last_turn(&world).await.retry_of, Some(failed.turn_id.clone()));

    let chunks = world.chunks().await;
    let history = ["text Question", "text Half an ans", "error the connection broke", "text Answer"];
    assert_eq!(world.history().await, history, "people can read all of it");
    assert_eq!(chunks.iter().map(|chunk| chunk.supersedes).collect::<Vec<_>>(), [None, None, None, Some(2)]);

    world.say("Thanks").await.turn().await;
    assert_eq!(provider.last(), ["User Question", "Assistant Answer", "User Thanks"]);
}

#[tokio::test(start_paused = true)]
async fn what_its_tools_answered_stays() {
    let provider =
        Noting::new([ask("gone", &["a"]), vec![text("So"), fails()], vec![fails()], answer("Done")]);
    let world = World::new(provider.clone());
    world.say("Look").await.turn().await;
    // Tried twice: the first time in vain.
    for _ in 0..2 {
        let failed = last_turn(&world).await;
        let started = world.orchestrator.retry(&world.id, &failed.turn_id).await.unwrap();
        world.watch(Some(started.from)).await.turn().await;
        let sent = provider.last();
        assert_eq!(sent[..2], ["User Look", "Assistant calls a"]);
        assert!(sent.len() == 3 && sent[2].starts_with("Tool (tool failed"), "{sent:?}");
    }
    assert_eq!(world.history().await.last().unwrap(), "text Done");
}

#[tokio::test(start_paused = true)]
async fn only_the_last_turn_and_only_if_it_did_not_end_well() {
    let world = World::new(Scripted::new([vec![fails()], answer("Hello"), answer("never")]));
    world.say("one").await.turn().await;
    let failed = last_turn(&world).await.turn_id;
    world.say("two").await.turn().await;
    let well = last_turn(&world).await.turn_id;
    for (turn, why) in [(&failed, "not the last turn"), (&well, "neither in an error nor by a stop")] {
        let refused = world.orchestrator.retry(&world.id, turn).await.unwrap_err();
        assert!(matches!(&refused, Error::NotTriedAgain { .. }), "{refused}");
        assert!(refused.to_string().contains(why), "{refused}");
    }
    assert_eq!(world.status().await, ConversationStatus::Idle);
    assert_eq!(world.history().await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn pressed_three_times_it_makes_one_turn() {
    let world = World::new(Scripted::new([vec![fails()], vec![Cue::Hang], vec![Cue::Hang]]));
    world.say("one").await.turn().await;
    let failed = last_turn(&world).await.turn_id;
    let press = || world.orchestrator.retry(&world.id, &failed);
    let (a, b, c) = tokio::join!(press(), press(), press());
    let begun = [a, b, c].into_iter().filter_map(Result::ok).count();
    assert_eq!(begun, 1);
    assert!(world.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_turn_is_tried_again_and_its_first_chunk_says_so() {
    let world = World::new(Scripted::new([vec![text("Half"), Cue::Hang], vec![text("Whole"), finish()]]));
    let mut watcher = world.say("one").await;
    watcher.until("text-delta").await;
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    let stopped = last_turn(&world).await;
    assert_eq!(
        (stopped.reason, stopped.first_seq, stopped.last_seq),
        (Some(DoneReason::Aborted), Some(1), Some(2))
    );
    world.orchestrator.retry(&world.id, &stopped.turn_id).await.unwrap();
    let frames = watcher.frames().await;
    assert!(lines(&frames).contains(&"done stop".to_owned()));
    assert_eq!(world.chunks().await[2].supersedes, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_try_that_said_nothing_leaves_the_mark_to_the_next() {
    let half = vec![text("Half"), fails()];
    let provider = Noting::new([half, vec![Cue::Hang], vec![Cue::Hang], answer("Whole")]);
    let world = World::new(provider.clone());
    world.say("Question").await.turn().await;
    // Stopped twice before a word; the second time with a message that waits.
    let mut watcher = world.watch(None).await;
    for is_last in [false, true] {
        let last = last_turn(&world).await.turn_id;
        world.orchestrator.retry(&world.id, &last).await.unwrap();
        assert_eq!(provider.last(), ["User Question"], "the half answer is not sent");
        if is_last {
            world.enqueue("And now?").await;
        }
        assert!(world.stop().await);
        watcher.until("turn-sealed").await;
    }
    watcher.until("turn-sealed").await;
    // Nobody replaced it: it is part of the conversation, and the message that followed replaces nothing.
    assert_eq!(provider.last(), ["User Question", "Assistant Half", "User And now?"]);
    assert!(world.chunks().await.iter().all(|stored| stored.supersedes.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_which_nothing_is_kept_is_listed_with_the_windows_on_both_sides() {
    let world = World::new(Scripted::new([vec![fails()], vec![Cue::Hang], answer("Hello")]));
    world.say("one").await.turn().await;
    let failed = last_turn(&world).await.turn_id;
    world.orchestrator.retry(&world.id, &failed).await.unwrap();
    assert!(world.stop().await);
    world.watch(None).await.until("turn-sealed").await;
    let stopped = last_turn(&world).await;
    assert_eq!((stopped.first_seq, stopped.last_seq), (Some(3), Some(2)));
    let listed = async |window| world.orchestrator.history(&world.id, window).await.unwrap().turns.unwrap();
    assert_eq!(listed(Window::default()).await.last(), Some(&stopped), "as the last turn");
    world.say("two").await.turn().await;
    let before = Window { before_seq: Some(3), ..Window::default() };
    let after = Window { since_seq: Some(2), ..Window::default() };
    for window in [before, after] {
        assert!(listed(window).await.contains(&stopped), "{window:?}");
    }
    let far = Window { since_seq: Some(3), ..Window::default() };
    assert!(!listed(far).await.contains(&stopped));
}

#[tokio::test(start_paused = true)]
async fn each_try_replaces_what_the_one_before_it_said() {
    let half = |word: &str| vec![text(word), fails()];
    let provider =
        Noting::new([vec![fails()], half("One"), half("Two"), half("Three"), answer("Done"), answer("Bye")]);
    let world = World::new(provider.clone());
    world.say("Question").await.turn().await;
    for _ in 0..4 {
        let failed = last_turn(&world).await;
        let started = world.orchestrator.retry(&world.id, &failed.turn_id).await.unwrap();
        world.watch(Some(started.from)).await.turn().await;
        assert_eq!(provider.last(), ["User Question"], "no half answer is sent");
    }
    world.say("Thanks").await.turn().await;
    assert_eq!(provider.last(), ["User Question", "Assistant Done", "User Thanks"]);
}

#[tokio::test(start_paused = true)]
async fn another_model_may_try() {
    let (first, second) = (Scripted::new([vec![fails()]]), Scripted::new([answer("Hello"), answer("Again")]));
    let builder = Orchestrator::builder().model("a", "m", Arc::new(first.clone()));
    let world = World::of(builder.model("b", "m", Arc::new(second.clone())));
    world.say("one").await.turn().await;
    let failed = last_turn(&world).await.turn_id;
    let unknown = world
        .orchestrator
        .retry_with(&world.id, RetryTurn::last(failed.clone()).model("c/m"))
        .await
        .unwrap_err();
    assert!(matches!(unknown, Error::UnknownModel { .. }), "{unknown}");
    let started =
        world.orchestrator.retry_with(&world.id, RetryTurn::last(failed.clone()).model("b/m")).await.unwrap();
    world.watch(Some(started.from)).await.turn().await;
    assert_eq!((first.calls(), second.calls()), (1, 1));
    world.say("two").await.turn().await;
    assert_eq!((first.calls(), second.calls()), (1, 2), "the conversation stays with it");
}
