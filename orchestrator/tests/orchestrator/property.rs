//! Whatever is done to a conversation, and whenever: its turns, its history and its events stay well-formed.

use std::{collections::HashMap, time::Duration};

use everturn_orchestrator::{Cursor, Frame, kernel::Settings};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{Chunk, ConversationStatus, EventBody, TurnId};
use proptest::prelude::*;
use tokio::{task::yield_now, time::advance};

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, ask, builder, event, finish, refused, text},
    tool::{Broken, Gated, Stuck},
};

#[derive(Clone, Debug)]
enum Move {
    Start,
    Enqueue,
    Cancel(usize),
    Stop,
    Close,
    RetryNow,
    AbortRetry,
    AutoRetry(bool),
    /// Lets the executor run so many times.
    Yield(usize),
    Wait(u64),
    /// Drops the watcher and comes back at its cursor.
    Reconnect,
}

fn a_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        3 => Just(Move::Start),
        4 => Just(Move::Enqueue),
        1 => (0..8_usize).prop_map(Move::Cancel),
        2 => Just(Move::Stop),
        1 => Just(Move::Close),
        2 => Just(Move::RetryNow),
        1 => Just(Move::AbortRetry),
        1 => any::<bool>().prop_map(Move::AutoRetry),
        6 => (1..20_usize).prop_map(Move::Yield),
        2 => (0..40_000_u64).prop_map(Move::Wait),
        1 => Just(Move::Reconnect),
    ]
}

fn a_call() -> impl Strategy<Value = Vec<Cue>> {
    let pause = Cue::Pause(Duration::from_millis(3));
    prop_oneof![
        3 => Just(answer("hello")),
        3 => Just(refused()),
        1 => Just(vec![text("cut")]),
        1 => Just(vec![text("slow"), pause.clone(), text("er"), finish()]),
        1 => Just(vec![text("never ends"), Cue::Hang]),
        1 => Just(vec![text("half"), Cue::Panic("broken".to_owned())]),
        2 => Just(ask("gated", &["a", "b", "a"])),
        1 => Just(ask("stuck", &["a"])),
        1 => Just(ask("broken", &["panic"])),
        1 => Just(ask("nowhere", &["a", ""])),
        1 => Just([vec![pause], ask("broken", &["b"])].concat()),
    ]
}

async fn play(world: &World, moves: Vec<Move>) -> Vec<Frame> {
    let from = world.start("first").await.unwrap().from;
    let (mut told, mut watcher) = (Vec::new(), world.watch(Some(from)).await);
    let orchestrator = &world.orchestrator;
    for (number, next) in moves.into_iter().enumerate() {
        match next {
            Move::Start => drop(world.start(&format!("m{number}")).await),
            Move::Enqueue => {
                let (text, name) = (format!("m{number}"), format!("{}", number % 8));
                drop(orchestrator.enqueue(&world.id, text, Some(name)).await);
            }
            Move::Cancel(name) => drop(orchestrator.cancel_queued(&world.id, &name.to_string()).await),
            Move::Stop => drop(orchestrator.stop(&world.id).await),
            Move::Close => drop(orchestrator.close(&world.id).await),
            Move::RetryNow => drop(orchestrator.retry_now(&world.id).await),
            Move::AbortRetry => drop(orchestrator.abort_retry(&world.id).await),
            Move::AutoRetry(on) => orchestrator.set_auto_retry(Some(&world.id), on).await.unwrap(),
            Move::Wait(ms) => advance(Duration::from_millis(ms)).await,
            Move::Reconnect => watcher = world.watch(Some(watcher.subscription.cursor())).await,
            Move::Yield(times) => {
                for _ in 0..times {
                    yield_now().await;
                }
                // Reads what there is.
                while let Some(frame) = futures_util::FutureExt::now_or_never(watcher.subscription.next()) {
                    told.push(frame.unwrap());
                }
            }
        }
    }
    // To the end, whatever still hangs or waits, and whatever comes after it.
    let mut quiet = 0;
    for stops in 0.. {
        assert!(stops < 2_000, "a stop ends the turn");
        let active = world.stop().await || world.status().await == ConversationStatus::Active;
        quiet = if active { 0 } else { quiet + 1 };
        if quiet == 10 {
            break;
        }
        yield_now().await;
    }
    while let Some(frame) = futures_util::FutureExt::now_or_never(watcher.subscription.next()) {
        told.push(frame.unwrap());
    }
    told
}

/// Each turn in one piece, with one end, and nothing after it.
fn turns_are_whole(told: &[Frame]) {
    let mut turns: HashMap<TurnId, Vec<EventBody>> = HashMap::new();
    let mut running: Option<TurnId> = None;
    for event in told.iter().map(event) {
        let Some(id) = event.turn_id else { continue };
        if let Some(running) = &running {
            assert_eq!(*running, id, "turns do not mix");
        }
        running = (!matches!(event.body, EventBody::TurnSealed)).then(|| id.clone());
        turns.entry(id).or_default().push(event.body);
    }
    assert!(running.is_none(), "the last turn is sealed");
    for bodies in turns.values() {
        let count = |is: fn(&EventBody) -> bool| bodies.iter().filter(|body| is(body)).count();
        assert_eq!(count(|body| matches!(body, EventBody::Done { .. })), 1, "{bodies:?}");
        assert_eq!(count(|body| matches!(body, EventBody::TurnSealed)), 1, "{bodies:?}");
        assert!(count(|body| matches!(body, EventBody::Error { .. })) <= 1, "{bodies:?}");
        assert!(matches!(bodies[0], EventBody::UserMessage { .. }), "{bodies:?}");
        let calls = count(|body| matches!(body, EventBody::ToolCall { .. }));
        assert_eq!(calls, count(|body| matches!(body, EventBody::ToolResult { .. })), "{bodies:?}");
    }
}

async fn history_is_well_formed(world: &World) {
    let chunks = world.chunks().await;
    let seqs: Vec<u64> = chunks.iter().map(|chunk| chunk.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let mut open = HashMap::new();
    for stored in chunks {
        match Chunk::clone(&stored.chunk) {
            Chunk::ToolCall { tool_call_id, step_id, .. } => {
                assert!(
                    open.insert((step_id, tool_call_id), 0).is_none(),
                    "call ids are unique in their step"
                );
            }
            Chunk::ToolResult { tool_call_id, step_id, .. } => {
                *open.get_mut(&(step_id, tool_call_id)).expect("a result follows its call") += 1;
            }
            _ => {}
        }
    }
    assert!(open.values().all(|results| *results == 1), "one result for each call");
}

/// The events as one text, however streamed text was parted.
fn transcript(told: &[Frame]) -> String {
    let bodies = told.iter().map(|frame| event(frame).body);
    bodies
        .map(|body| body.delta().map_or_else(|| format!("<{}>", crate::support::line(&body)), str::to_owned))
        .collect()
}

async fn case(calls: Vec<Vec<Cue>>, moves: Vec<Move>, slow: usize, eager_tools: bool) {
    let gated = Gated::new();
    gated.gate.add_permits(1_000);
    let settings = Settings { max_steps: Some(3), eager_tools, ..Settings::default() };
    let world = World::of(
        builder(Scripted::new(calls))
            .tool(gated)
            .tool(Stuck::new())
            .tool(Broken)
            .settings(settings)
            .journal(Storage::new(move |_| Mishap::Slow(slow))),
    );
    let told = play(&world, moves).await;
    turns_are_whole(&told);
    history_is_well_formed(&world).await;
    let mut again = world.watch(Some(Cursor::default())).await;
    let end = told.last().unwrap().end();
    let mut replayed = Vec::new();
    while replayed.last().is_none_or(|frame: &Frame| frame.end() < end) {
        replayed.push(again.frame().await);
    }
    let status = "<status active>";
    assert_eq!(transcript(&replayed).strip_prefix(status).unwrap(), transcript(&told));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_stays_well_formed(
        calls in prop::collection::vec(a_call(), 1..8),
        moves in prop::collection::vec(a_move(), 0..40),
        slow in 0..3_usize,
        eager in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(case(calls, moves, slow, eager));
    }
}
