//! What a herd of turns holds while it waits for one target.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{
    Orchestrator, StartTurn,
    kernel::{Provider, Request, StreamEvent},
};
use everturn_wire::{Category, ConversationId, Failure};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use peak_alloc::PeakAlloc;
use tokio::time::sleep;

// One test in this file: what another one allocates would count too.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What a turn may hold in its first wait, in bytes: its conversation, in the journal and parked.
const PER_TURN: usize = 5_000;
/// What each further wait may add, in bytes: the two events that tell of it, in the journal.
const PER_WAIT: usize = 1_100;

/// Asks for a wait of a minute, whenever it is asked.
struct Limited;

impl Provider for Limited {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let failure = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
        let failure = Failure { hint_ms: Some(60_000), ..failure };
        stream::iter([StreamEvent::Failed(failure)]).boxed()
    }
}

/// What each turn of a herd holds after a minute and a half, and what each further minute adds, in bytes.
async fn held(turns: usize) -> (usize, usize) {
    let before = ALLOCATOR.current_usage();
    let orchestrator = Orchestrator::builder().model("key", "model", Arc::new(Limited)).build();
    for turn in 0..turns {
        let id = ConversationId::from(format!("c{turn}").as_str());
        orchestrator.start(StartTurn::new("hi").conversation(id)).await.unwrap();
    }
    sleep(Duration::from_secs(90)).await;
    let first = ALLOCATOR.current_usage() - before;
    sleep(Duration::from_secs(240)).await;
    let rest = (ALLOCATOR.current_usage() - before).saturating_sub(first);
    (first / turns, rest / turns / 4)
}

#[tokio::test(start_paused = true)]
async fn a_herd_holds_the_same_for_each_turn_however_large_it_is() {
    let (few, more) = held(500).await;
    let (many, still_more) = held(5_000).await;
    let figures = format!("{few} and {many} bytes per turn, {more} and {still_more} per wait");
    assert!(few <= PER_TURN && many <= PER_TURN, "{figures}");
    assert!(more <= PER_WAIT && still_more <= PER_WAIT, "{figures}");
    assert!(many <= few + few / 4, "{figures}");
}
