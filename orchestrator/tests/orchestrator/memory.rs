//! Providers that send more than conversations may take.

use everturn_orchestrator::{MemoryLimits, kernel::StreamEvent};
use everturn_provider::{Cue, Scripted};
use everturn_wire::Chunk;
use futures_util::future::join_all;

use crate::support::{World, answer, ask, builder, finish, text};

const MIB: usize = 1 << 20;

fn limited(conversation: usize, total: usize) -> MemoryLimits {
    MemoryLimits { conversation: conversation * MIB, total: total * MIB }
}

/// Pieces of text, one MiB together.
fn mib() -> Vec<Cue> {
    vec![text(&"word ".repeat(MIB / 16 / 5)); 16]
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_grows_with_each_step_ends_and_its_history_stays_valid() {
    let step = |n: usize| [mib(), ask("nothing", &[&format!("c{n}")])].concat();
    let provider = Scripted::new((0..20).map(step));
    let world = World::of(builder(provider.clone()).memory_limits(limited(4, 512)));
    let told = world.say("hi").await.turn().await;
    let error = told.iter().find(|line| line.starts_with("error")).unwrap();
    assert!(error.contains("more than 4 MiB") && error.contains("conversation_mib in [memory]"), "{error}");
    assert_eq!(told[told.len() - 2..], ["done error", "turn-sealed"]);
    let calls = provider.calls();
    assert!((4..=5).contains(&calls), "{calls}");
    let chunks = world.chunks().await;
    let open = chunks.iter().fold(0, |open, stored| match &*stored.chunk {
        Chunk::ToolCall { .. } => open + 1,
        Chunk::ToolResult { .. } => open - 1,
        _ => open,
    });
    assert_eq!(open, 0, "each call has its result");
    // A provider is not asked in vain, and another conversation is not affected.
    while !world.say("go on").await.turn().await.contains(&"done error".to_owned()) {}
    let asked = provider.calls();
    let told = world.say("go on").await.turn().await;
    assert!(told.iter().any(|line| line.contains("conversation_mib")), "{told:?}");
    assert_eq!(provider.calls(), asked);
}

#[tokio::test(start_paused = true)]
async fn answers_share_the_memory_and_give_it_back() {
    let long = || [mib(), mib(), vec![finish()]].concat();
    let provider = Scripted::new((0..6).map(|_| long()).chain([long(), answer("bye")]));
    let worlds = World::of(builder(provider.clone()).memory_limits(limited(10, 10)));
    let turns = (0..6).map(|n| {
        let id = everturn_wire::ConversationId::from(format!("c{n}").as_str());
        let world = World { orchestrator: worlds.orchestrator.clone(), id };
        async move { world.say("hi").await.turn().await }
    });
    let ended = join_all(turns).await;
    let failed: Vec<_> = ended.iter().flatten().filter(|line| line.starts_with("error")).collect();
    assert!((1..6).contains(&failed.len()), "{failed:?}");
    assert!(failed.iter().all(|line| line.contains("total_mib in [memory]")), "{failed:?}");
    assert!(ended.iter().all(|told| told.last().unwrap() == "turn-sealed"));
    // All of it is free again.
    let told = worlds.say("hi").await.turn().await;
    assert_eq!(told[told.len() - 2..], ["done stop", "turn-sealed"]);
}

#[tokio::test(start_paused = true)]
async fn arguments_count_before_the_call_is_told() {
    let collects = vec![StreamEvent::Collected(5 * MIB).into(), Cue::Hang];
    let world = World::of(builder(Scripted::new([collects])).memory_limits(limited(4, 512)));
    let told = world.say("hi").await.turn().await;
    assert!(told.iter().any(|line| line.contains("conversation_mib")), "{told:?}");
}
