//! Appending.

use std::{pin::pin, sync::Arc};

use bytes::Bytes;
use everturn_orchestrator::{Journal, JournalError, Page, StoredEvent, Version, Wait, kernel::Millis};
use everturn_wire::{Chunk, Role};
use futures_util::{FutureExt as _, future::join_all};
use tokio::task::yield_now;

use super::sample::{
    add, chunk, chunks, commit, event, events, figures, head, id, load, metrics, turn, until,
};
use crate::linear::{Did, Plan, Record};

pub(super) async fn begins_with_nothing(journal: &dyn Journal) {
    let nobody = id("nobody");
    assert!(journal.load(&nobody).await.expect("loading succeeds").is_none());
    assert!(chunks(journal, &nobody).await.is_empty());
    assert!(events(journal, &nobody, 0, 10).await.is_empty());
    assert!(metrics(journal, &nobody).await.is_empty());
    assert!(journal.conversations(Page::default()).await.expect("listing succeeds").is_empty());
    assert!(journal.unsealed(Millis(u64::MAX)).await.expect("listing succeeds").is_empty());
}

pub(super) async fn gives_each_append_a_higher_version(journal: &dyn Journal) {
    let id = id("c");
    let mut version = Version::default();
    for count in 1..=3 {
        let next = add(journal, &id, version, commit(count)).await;
        assert!(next > version, "{next:?} follows {version:?}");
        version = next;
        assert_eq!(load(journal, &id).await.version, version);
    }
}

pub(super) async fn refuses_the_stale_and_writes_nothing(journal: &dyn Journal) {
    let id = id("c");
    let before = add(journal, &id, Version(0), commit(0)).await;
    let first = commit(1)
        .chunk(chunk(1, Role::User, Chunk::Text { text: "kept".to_owned() }))
        .event(event(0, 1))
        .turn(turn(until(9)));
    let current = add(journal, &id, before, first).await;
    for expected in [Version(0), before, Version(current.0 + 1), Version(u64::from(u32::MAX))] {
        let late = commit(99)
            .chunk(chunk(2, Role::User, Chunk::Text { text: "lost".to_owned() }))
            .event(event(1, 1))
            .seal(figures("t"));
        let refused = journal.append(&id, expected, late).await;
        assert_eq!(refused, Err(JournalError::Stale { id: id.clone(), expected, found: current }));
    }
    let stored = load(journal, &id).await;
    assert_eq!((stored.version, stored.head, stored.turn), (current, head(1), Some(turn(until(9)))));
    assert_eq!(chunks(journal, &id).await.len(), 1, "a stale append adds no chunk");
    assert_eq!(events(journal, &id, 0, 10).await.len(), 1, "a stale append adds no event");
    assert!(metrics(journal, &id).await.is_empty(), "a stale append seals nothing");
    let other = super::sample::id("other");
    let refused = journal.append(&other, current, commit(1)).await;
    assert_eq!(refused, Err(JournalError::Stale { id: other.clone(), expected: current, found: Version(0) }));
    assert!(journal.load(&other).await.expect("loading succeeds").is_none());
}

/// A writer that knows a deleted conversation is stale for the one that was begun again, however many appends both have.
pub(super) async fn refuses_what_was_meant_for_a_deleted_conversation(journal: &dyn Journal) {
    let id = id("c");
    let mut known: Vec<Version> = Vec::new();
    for _life in 0..3 {
        let (of_former, mut version) = (known.clone(), Version(0));
        for count in 0..3 {
            version = add(journal, &id, version, commit(count)).await;
            known.push(version);
            for &expected in &of_former {
                assert!(version > expected, "{version:?} follows {expected:?} of the conversation before");
                let late = journal.append(&id, expected, commit(9).event(event(0, 1))).await;
                assert_eq!(late, Err(JournalError::Stale { id: id.clone(), expected, found: version }));
            }
        }
        assert!(events(journal, &id, 0, 10).await.is_empty());
        assert!(journal.remove(&id).await.expect("it is removed"));
    }
}

pub(super) async fn lets_one_of_many_rivals_win(journal: &dyn Journal) {
    const RIVALS: u64 = 20;
    let id = &id("c");
    let mut version = Version::default();
    for round in 0..10 {
        let rival = |n| journal.append(id, version, commit(round * RIVALS + n).event(event(round, 1)));
        let answers = join_all((0..RIVALS).map(rival)).await;
        let won = (0..).zip(answers).filter_map(|(n, answer)| Some((n, answer.ok()?)));
        let winners: Vec<(u64, Version)> = won.collect();
        assert_eq!(winners.len(), 1, "exactly one of the appends at one version wins");
        let winner;
        (winner, version) = winners[0];
        let stored = load(journal, id).await;
        assert_eq!((stored.version, stored.head), (version, head(round * RIVALS + winner)));
        assert_eq!(events(journal, id, 0, 100).await.len() as u64, round + 1);
    }
}

/// Rivals append, read, list and remove at once, and what they are told could have been told one after another.
pub(super) async fn answers_as_if_one_after_another(journal: &Arc<dyn Journal>) {
    let record = Record::new(2, Plan { removes: true, lists: true, may_lag: false });
    let rivals = (0..4).flat_map(|seed| record.rivals(0, journal, seed));
    let stored = join_all(rivals.map(async |mut rival| {
        let mut stored = 0;
        for _ in 0..50 {
            stored += usize::from(rival.step().await == Did::Stored);
            yield_now().await;
        }
        stored
    }));
    assert!(stored.await.iter().sum::<usize>() > 20, "some succeed");
    record.audit(journal).await;
}

pub(super) async fn keeps_conversations_apart(journal: &dyn Journal) {
    let long = "x".repeat(128);
    let ids = ["a", "A", "a:b", "a.b", ".", "..", "-", "a_", long.as_str()].map(id);
    let write = |n: usize| {
        let text = ids[n].to_string();
        let all = commit(n as u64)
            .chunk(chunk(1, Role::User, Chunk::Text { text }))
            .event(event(n as u64, 1))
            .seal(figures(ids[n].as_str()));
        add(journal, &ids[n], Version(0), all)
    };
    join_all((0..ids.len()).map(write)).await;
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(load(journal, id).await.head, head(n as u64));
        let text = id.to_string();
        assert_eq!(chunks(journal, id).await, [chunk(1, Role::User, Chunk::Text { text })]);
        assert_eq!(events(journal, id, 0, 10).await, [event(n as u64, 1)]);
        assert_eq!(metrics(journal, id).await, [figures(id.as_str())]);
    }
}

pub(super) async fn is_all_or_nothing_when_dropped(journal: &dyn Journal) {
    let id = id("c");
    let mut version = add(journal, &id, Version(0), commit(0)).await;
    for round in 0..20 {
        let half = commit(0).event(event(round * 3, 1)).event(event(round * 3 + 1, 1));
        // Polled once, then dropped: the append may have happened, or not, or may still happen before the next one.
        let _ = pin!(journal.append(&id, version, half)).now_or_never();
        loop {
            let at = load(journal, &id).await.version;
            match journal.append(&id, at, commit(0).event(event(round * 3 + 2, 1))).await {
                Ok(next) => break version = next,
                Err(JournalError::Stale { .. }) => {}
                Err(error) => panic!("an append fails: {error}"),
            }
        }
        let added = events(journal, &id, round * 3, 100).await;
        let starts: Vec<u64> = added.iter().map(|event| event.start.value() - round * 3).collect();
        assert!(starts == [0, 1, 2] || starts == [2], "an append is all or nothing: {starts:?}");
    }
}

pub(super) async fn takes_much_at_once(journal: &dyn Journal) {
    let id = id("c");
    let text = "wörd ".repeat(200_000);
    let large = StoredEvent { json: Bytes::from(text.clone()), ..event(0, text.len() as u64) };
    let small: Vec<StoredEvent> = (0..5_000).map(|n| event(large.end.value() + n, 1)).collect();
    let mut all =
        commit(0).chunk(chunk(1, Role::User, Chunk::Text { text: text.clone() })).event(large.clone());
    all.events.extend(small.iter().cloned());
    add(journal, &id, Version(0), all).await;
    assert_eq!(chunks(journal, &id).await, [chunk(1, Role::User, Chunk::Text { text })]);
    let back = events(journal, &id, 0, usize::MAX).await;
    assert!(back[0] == large && back[1..] == small, "all of a large append comes back, in its order");
}

pub(super) async fn keeps_the_turn_until_it_is_sealed(journal: &dyn Journal) {
    let id = id("c");
    let version = add(journal, &id, Version(0), commit(0).turn(turn(Wait::Now))).await;
    assert_eq!(load(journal, &id).await.turn, Some(turn(Wait::Now)));
    let version = add(journal, &id, version, commit(0).turn(turn(until(77)))).await;
    assert_eq!(load(journal, &id).await.turn, Some(turn(until(77))), "a later record replaces the turn");
    let version = add(journal, &id, version, commit(0).seal(figures("t"))).await;
    assert_eq!(load(journal, &id).await.turn, None, "a sealed turn is gone");
    let both = commit(0).event(event(0, 1)).seal(figures("u")).event(event(1, 1)).turn(turn(until(5)));
    let version = add(journal, &id, version, both).await;
    assert_eq!(load(journal, &id).await.turn, Some(turn(until(5))), "the next turn begins with the seal");
    assert_eq!(events(journal, &id, 0, 9).await, [event(0, 1), event(1, 1)], "in the order of the stream");
    add(journal, &id, version, commit(3)).await;
    assert_eq!(load(journal, &id).await.turn, None, "an append says whether a turn runs");
}
