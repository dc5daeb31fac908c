//! A broken answer is taken back and streamed again; usage limits are sat out.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{
    Builder, Cursor, MemoryJournal, RetryTurn,
    kernel::{AfterContent, Settings, StreamEvent},
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{AgentEvent, Category, EventBody, Failure, RetrySettings};
use tokio::time::Instant;

use crate::{
    support::{World, answer, ask, builder, event, line, ms_since, text, tool_call},
    tool::Gated,
};

/// A call whose answer breaks off after these words.
fn breaks(words: &str) -> Vec<Cue> {
    let failure = Failure::new(Category::Network, true, "connection reset");
    vec![text(words), StreamEvent::Failed(failure).into()]
}

fn rewinding(calls: impl IntoIterator<Item = Vec<Cue>>) -> Builder {
    let settings = Settings { after_content: AfterContent::Rewind, ..Settings::default() };
    builder(Scripted::new(calls)).settings(settings)
}

/// What a client shows that knows base events only: text as it comes. Whatever it does not know breaks it.
fn shown(events: &[AgentEvent]) -> String {
    let mut shown = String::new();
    for AgentEvent { body, .. } in events {
        assert!(!body.is_extension(), "{body:?}");
        if let EventBody::TextDelta { delta } = body {
            shown += delta;
        }
    }
    shown
}

/// The events of the turn, as a client without extensions is sent them from there on.
async fn base(world: &World, from: Cursor) -> Vec<AgentEvent> {
    let mut events = world.orchestrator.subscribe(&world.id, Some(from), false).await.unwrap();
    let mut all = Vec::new();
    loop {
        let frame = events.next().await.unwrap();
        all.push(event(&frame));
        if frame.ends_turn() {
            return all;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_answer_is_streamed_again_and_kept_once() {
    let world = World::of(rewinding([breaks("Hel"), answer("Hello")]));
    let started = world.start("hi").await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    let told = watcher.until("turn-sealed").await;
    let expected = [
        "text-delta Hel",
        "step-rewound connection reset",
        "provider-retry 0 5000 connection reset",
        "status active asking",
        "retry-ended 1 recovered",
        "text-delta Hello",
    ];
    assert_eq!(told[2..8], expected);
    assert_eq!(world.history().await, ["text hi", "text Hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_take_text_back_is_told_in_the_text() {
    let world = World::of(rewinding([breaks("Hel"), answer("Hello")]));
    let started = world.start("hi").await.unwrap();
    let expected = "Hel\n\n[The answer broke off here. It starts again:]\n\nHello";
    let live = base(&world, started.from).await;
    assert_eq!(shown(&live), expected);
    // As well from the journal, and from in between.
    let again = World::of(rewinding([breaks("Hel"), answer("Hello")]));
    let started = again.start("hi").await.unwrap();
    again.watch(Some(started.from)).await.until("turn-sealed").await;
    assert_eq!(shown(&base(&again, started.from).await), expected);
}

#[tokio::test(start_paused = true)]
async fn every_cursor_of_a_rewound_turn_leads_to_the_rest() {
    let world = World::of(rewinding([breaks("Hel"), answer("Hello")]));
    let started = world.start("hi").await.unwrap();
    let mut events = world.orchestrator.subscribe(&world.id, Some(started.from), false).await.unwrap();
    let mut frames = vec![events.next().await.unwrap()];
    while !frames[frames.len() - 1].ends_turn() {
        frames.push(events.next().await.unwrap());
    }
    for (at, frame) in frames.iter().enumerate().take(frames.len() - 1) {
        let rest = base(&world, frame.end()).await;
        let expected: Vec<AgentEvent> = frames[at + 1..].iter().map(event).collect();
        assert_eq!(rest, expected, "after {at}");
    }
}

/// The calls and results among these events.
fn called(events: &[AgentEvent]) -> Vec<String> {
    let lines = events.iter().map(|event| line(&event.body));
    lines.filter(|line| line.starts_with("tool-call ") || line.starts_with("tool-result ")).collect()
}

/// A tool that ends at once.
fn open_gate() -> Gated {
    let gated = Gated::new();
    gated.gate.add_permits(9);
    gated
}

const WITHDRAWN: &str = "tool-result a (tool failed: not run, the answer broke off and starts again)";

#[tokio::test(start_paused = true)]
async fn a_call_that_is_taken_back_has_a_result_for_a_client_that_takes_nothing_back() {
    let failure = Failure::new(Category::Network, true, "connection reset");
    let broken = vec![tool_call("a", "gated"), StreamEvent::Failed(failure).into()];
    let world = World::of(rewinding([broken, ask("gated", &["b"]), answer("ok")]).tool(open_gate()));
    let started = world.start("hi").await.unwrap();
    let told = base(&world, started.from).await;
    assert_eq!(called(&told), ["tool-call a", WITHDRAWN, "tool-call b", "tool-result b done"]);
    assert_eq!(called(&base(&world, started.from).await), called(&told), "also from the journal");
}

#[tokio::test(start_paused = true)]
async fn a_call_has_one_result_after_a_restart_for_a_client_that_takes_nothing_back() {
    for is_eager in [true, false] {
        let journal = Arc::new(MemoryJournal::new());
        let process = |calls: Vec<Vec<Cue>>| {
            let settings = Settings { eager_tools: is_eager, ..Settings::default() };
            let builder = builder(Scripted::new(calls)).settings(settings).tool(open_gate());
            World::of(builder.journal(journal.clone()))
        };
        let world = process(vec![vec![text("See:"), tool_call("a", "gated"), text(" it"), Cue::Hang]]);
        let started = world.start("hi").await.unwrap();
        world.watch(Some(started.from)).await.until("text-delta  it").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        world.orchestrator.shutdown(Duration::ZERO).await;
        let world = process(vec![answer("ok")]);
        world.orchestrator.resume().await.unwrap();
        let told = base(&world, started.from).await;
        let result = if is_eager { "tool-result a done" } else { WITHDRAWN };
        assert_eq!(called(&told), ["tool-call a", result]);
        // A client that comes back gets the rest.
        let mut events = world.orchestrator.subscribe(&world.id, Some(started.from), false).await.unwrap();
        for at in 1..told.len() {
            let cursor = events.next().await.unwrap().end();
            assert_eq!(base(&world, cursor).await, told[at..], "{is_eager}, after {at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unless_asked_for_the_partial_answer_stays() {
    let world = World::of(builder(Scripted::new([breaks("Hel"), answer("Hello")])));
    let mut watcher = world.say("hi").await;
    let told = watcher.until("turn-sealed").await;
    assert!(!told.iter().any(|line| line.starts_with("step-rewound")), "{told:?}");
    assert_eq!(world.history().await, ["text hi", "text Hel", "error connection reset"]);
}

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn used_up(hint_ms: Option<u64>) -> Vec<Cue> {
    let failure = Failure::new(Category::QuotaExhausted, false, "HTTP 429: usage limit reached");
    vec![StreamEvent::Failed(Failure { hint_ms, ..failure }).into()]
}

#[tokio::test(start_paused = true)]
async fn a_usage_limit_is_sat_out_where_that_is_wanted() {
    let script = || [used_up(Some(2 * DAY_MS)), answer("hello")];
    let world = World::of(builder(Scripted::new(script())).sit_out_usage_limits());
    let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
    let told = watcher.turn().await;
    assert!(
        told.contains(&"provider-retry 0 172800000 HTTP 429: usage limit reached".to_owned()),
        "{told:?}"
    );
    assert_eq!(ms_since(begun), 2 * DAY_MS, "longer than the budget of 8 h");
    assert_eq!(world.history().await, ["text hi", "text hello"]);
    let calm = World::of(builder(Scripted::new(script())));
    calm.say("hi").await.until("turn-sealed").await;
    assert_eq!(calm.history().await, ["text hi", "error HTTP 429: usage limit reached"]);
}

#[tokio::test(start_paused = true)]
async fn a_person_need_not_wait_for_the_end_of_a_usage_limit() {
    let calls = [used_up(Some(2 * DAY_MS)), used_up(Some(DAY_MS)), answer("hello")];
    let world = World::of(builder(Scripted::new(calls)).sit_out_usage_limits());
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    assert!(world.orchestrator.retry_now(&world.id).await.unwrap());
    watcher.until("provider-retry 1 86400000").await;
    assert!(world.orchestrator.abort_retry(&world.id).await.unwrap());
    let end = watcher.turn().await;
    assert_eq!(end[end.len() - 2..], ["done aborted", "turn-sealed"]);
}

#[tokio::test(start_paused = true)]
async fn asking_again_takes_retry_settings_of_its_own() {
    let calls = [breaks("Ha"), breaks("Hal"), answer("Hello"), breaks("Hel"), answer("Hello you")];
    let world = World::of(builder(Scripted::new(calls)));
    let failed = world.start("hi").await.unwrap();
    world.watch(Some(failed.from)).await.until("turn-sealed").await;
    let rewind: RetrySettings =
        serde_json::from_str(r#"{"afterContent":"rewind","preset":"interactive"}"#).unwrap();
    let tries = [
        RetryTurn::last(failed.turn_id).retry(rewind.clone()),
        RetryTurn::message(1).text("Hi there").retry(rewind),
    ];
    for what in tries {
        let started = world.orchestrator.retry_with(&world.id, what).await.unwrap();
        let told = world.watch(Some(started.from)).await.until("turn-sealed").await;
        assert!(told.contains(&"step-rewound connection reset".to_owned()), "{told:?}");
        assert!(told.contains(&"provider-retry 0 2000 connection reset".to_owned()), "{told:?}");
        assert_eq!(told[told.len() - 2], "done stop");
    }
    assert_eq!(world.history().await.last().unwrap(), "text Hello you");
    let wrong: RetrySettings = serde_json::from_str(r#"{"jitter":0.5}"#).unwrap();
    let seq = world.chunks().await.last().unwrap().seq - 1;
    let refused = world.orchestrator.retry_with(&world.id, RetryTurn::message(seq).retry(wrong)).await;
    assert!(refused.unwrap_err().to_string().contains("jitter has no effect"));
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_wait_leaves_the_part_that_was_shown() {
    let world = World::of(rewinding([breaks("Hel")]));
    let started = world.start("hi").await.unwrap();
    world.watch(Some(started.from)).await.until("provider-retry").await;
    assert!(world.stop().await);
    let told = world.watch(Some(started.from)).await.until("turn-sealed").await;
    let end = ["retry-ended 0 cancelled", "text-delta Hel", "done aborted", "turn-sealed"];
    assert_eq!(told[told.len() - 4..], end.map(str::to_owned));
    assert_eq!(world.history().await, ["text hi", "text Hel"]);
    let shown = shown(&base(&world, started.from).await);
    assert!(shown.starts_with("Hel\n\n[The answer broke off here.") && shown.ends_with("\n\nHel"), "{shown}");
}
