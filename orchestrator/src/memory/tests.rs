//! Answers that do not fit, and those that wait for room.

use std::pin::pin;

use everturn_kernel::{FinishReason, StreamEvent};
use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::*;

const LIMITS: MemoryLimits = MemoryLimits { conversation: 100 * UNIT, total: 40 * UNIT };

fn memory() -> Arc<Memory> {
    Arc::new(Memory::new(LIMITS))
}

/// An answer of so many units; text counts twice.
fn answer(account: &Account, units: usize) -> impl futures_core::Stream<Item = StreamEvent> {
    let text = vec![StreamEvent::Text("x".repeat(UNIT)); units];
    let end = StreamEvent::Finished(FinishReason::Stop);
    Metered::new(stream::iter([text, vec![end]].concat()), account.clone())
}

fn failure(event: Option<StreamEvent>) -> Failure {
    match event {
        Some(StreamEvent::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

fn is_text(event: &Option<StreamEvent>) -> bool {
    matches!(event, Some(StreamEvent::Text(_)))
}

#[test]
fn an_answer_that_makes_its_conversation_too_large_fails() {
    let memory = Arc::new(Memory::new(MemoryLimits { conversation: 4 << 20, total: usize::MAX >> 1 }));
    let account = memory.open();
    account.add(3 << 20);
    let mut events = pin!(answer(&account, 100));
    let mut texts = 0;
    let failed = loop {
        let event = events.next().now_or_never().unwrap();
        match is_text(&event) {
            true => texts += 1,
            false => break failure(event),
        }
    };
    assert_eq!(texts, (1 << 20) / UNIT + 1);
    assert!(!failed.retryable && failed.category == Category::InvalidResponse);
    assert!(failed.message.contains("4 MiB") && failed.message.contains("conversation_mib"), "{failed:?}");
    assert_eq!(events.next().now_or_never().unwrap(), None);
    account.add(2 << 20);
    assert_eq!(account.excess(0).unwrap().category, Category::InvalidRequest, "it is not sent again");
}

#[test]
fn what_an_adapter_collects_counts_once() {
    let memory = Arc::new(Memory::new(MemoryLimits { conversation: 10 * UNIT, ..LIMITS }));
    let collected = |times| vec![StreamEvent::Collected(UNIT); times];
    let end = vec![StreamEvent::Finished(FinishReason::ToolCalls)];
    let events = Metered::new(stream::iter([collected(9), end].concat()), memory.open());
    assert!(matches!(events.collect::<Vec<_>>().now_or_never().unwrap()[..], [StreamEvent::Finished(_)]));
    let events = Metered::new(stream::iter(collected(11)), memory.open());
    assert!(matches!(events.collect::<Vec<_>>().now_or_never().unwrap()[..], [StreamEvent::Failed(_)]));
}

#[test]
fn the_largest_answer_gives_way_and_the_other_waits_until_it_has() {
    let memory = memory();
    let (large, small) = (memory.open(), memory.open());
    let (mut larger, mut smaller) = (Box::pin(answer(&large, 100)), Box::pin(answer(&small, 100)));
    for _ in 0..16 {
        assert!(is_text(&larger.next().now_or_never().unwrap()));
    }
    for _ in 0..6 {
        assert!(is_text(&smaller.next().now_or_never().unwrap()));
    }
    assert!(smaller.next().now_or_never().is_none(), "there is no room");
    let failed = failure(larger.next().now_or_never().unwrap());
    assert!(failed.retryable && failed.category == Category::Internal);
    assert!(failed.message.contains("total_mib"), "{failed:?}");
    assert!(smaller.next().now_or_never().is_none(), "it is not given back yet");
    drop(larger);
    for _ in 0..15 {
        assert!(is_text(&smaller.next().now_or_never().unwrap()));
    }
    failure(smaller.next().now_or_never().unwrap());
    drop(smaller);
    assert_eq!(memory.lock().total, 0);
}

#[test]
fn histories_that_are_watched_leave_each_answer_its_share() {
    let memory = memory();
    let (watched, other) = (memory.open(), memory.open());
    watched.add(40 * UNIT);
    assert!(!memory.has_room_for(UNIT) && memory.has_room_for(UNIT - 1));
    let texts =
        answer(&other, 100).take_while(|event| std::future::ready(matches!(event, StreamEvent::Text(_))));
    assert_eq!(texts.count().now_or_never().unwrap(), 11, "half of it, counted twice");
    drop(watched);
    drop(other);
    assert_eq!(memory.lock().total, 0);
}

#[test]
fn an_answer_becomes_history_when_it_is_saved() {
    let memory = memory();
    let account = memory.open();
    let mut events = Box::pin(answer(&account, 9));
    while is_text(&events.next().now_or_never().unwrap()) {}
    assert_eq!(memory.lock().total, 18 * UNIT);
    account.add(9 * UNIT);
    assert_eq!(memory.lock().total, 9 * UNIT);
    drop(events);
    assert_eq!(memory.lock().total, 9 * UNIT);
    drop(account);
    assert!(memory.lock().shares.is_empty() && memory.lock().total == 0);
}
