//! Dropping events.

use everturn_orchestrator::{Commit, Cursor, Head, Journal, Retention, Version, Wait, kernel::Millis};
use everturn_wire::{Chunk, ConversationId, Role};

use super::sample::{add, chunk, chunks, commit, event, events, figures, head, id, load, metrics, turn};

/// Returns a commit at this time, with a chunk and an event of this number.
fn numbered(number: u64) -> Commit {
    let piece = chunk(number, Role::User, Chunk::Text { text: number.to_string() });
    let head = Head { end: Cursor::from_value(number), last_seq: number, ..head(number) };
    Commit::new(head).chunk(piece).event(event(number - 1, 1))
}

/// Writes turns of two appends: the nth is sealed at 2n, with events 2n-1 and 2n.
async fn talk(journal: &dyn Journal, id: &ConversationId, turns: u64) -> Version {
    let mut version = Version(0);
    for number in 1..=turns {
        version = add(journal, id, version, numbered(2 * number - 1).turn(turn(Wait::Now))).await;
        version = add(journal, id, version, numbered(2 * number).seal(figures(&number.to_string()))).await;
    }
    version
}

async fn left(journal: &dyn Journal, id: &ConversationId, after: u64) -> Vec<u64> {
    events(journal, id, after, usize::MAX).await.iter().map(|event| event.end.value()).collect()
}

async fn dropped(journal: &dyn Journal, retention: Retention) -> usize {
    journal.drop_events(retention).await.expect("dropping succeeds")
}

fn before(at: u64) -> Retention {
    Retention { sealed_before: Some(Millis(at)), newest_turns: None }
}

fn newest(turns: u32) -> Retention {
    Retention { sealed_before: None, newest_turns: Some(turns) }
}

pub(super) async fn drops_the_events_of_old_turns_only(journal: &dyn Journal) {
    let id = id("c");
    let version = talk(journal, &id, 3).await;
    let version = add(journal, &id, version, numbered(7).turn(turn(Wait::Now))).await;
    let (history, measured) = (chunks(journal, &id).await, metrics(journal, &id).await);

    assert_eq!(dropped(journal, Retention::default()).await, 0, "the default keeps all");
    assert_eq!(dropped(journal, before(2)).await, 0, "sealed at that moment, not before");
    assert_eq!(left(journal, &id, 0).await, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(dropped(journal, before(3)).await, 2);
    assert_eq!(dropped(journal, before(3)).await, 0, "they are gone already");
    for (after, expected) in [(0, 3..8), (1, 3..8), (2, 3..8), (3, 4..8), (6, 7..8)] {
        assert_eq!(left(journal, &id, after).await, expected.collect::<Vec<_>>(), "after {after}");
    }
    assert_eq!(dropped(journal, Retention { sealed_before: Some(Millis(1)), ..newest(1) }).await, 2);
    assert_eq!(left(journal, &id, 0).await, [5, 6, 7]);
    assert_eq!(dropped(journal, newest(0)).await, 2);
    assert_eq!(left(journal, &id, 0).await, [7], "the turn that runs keeps its events");

    assert_eq!(chunks(journal, &id).await, history);
    assert_eq!(metrics(journal, &id).await, measured);
    let stored = load(journal, &id).await;
    assert_eq!((stored.version, stored.turn), (version, Some(turn(Wait::Now))));
    let version = add(journal, &id, version, numbered(8).seal(figures("4"))).await;
    assert_eq!(left(journal, &id, 0).await, [7, 8]);
    assert_eq!(dropped(journal, newest(0)).await, 2);
    assert_eq!(left(journal, &id, 0).await, [0; 0], "also if nothing follows the seal");
    add(journal, &id, version, numbered(9)).await;
    assert_eq!(left(journal, &id, 0).await, [9]);
    assert_eq!((chunks(journal, &id).await.len(), metrics(journal, &id).await.len()), (9, 4));
}

pub(super) async fn counts_turns_in_each_conversation(journal: &dyn Journal) {
    for (name, turns) in [("long", 4), ("short", 1), ("none", 0)] {
        talk(journal, &id(name), turns).await;
    }
    add(journal, &id("none"), Version(0), numbered(1)).await;
    assert_eq!(dropped(journal, newest(2)).await, 4);
    assert_eq!(left(journal, &id("long"), 0).await, [5, 6, 7, 8]);
    assert_eq!(left(journal, &id("short"), 0).await, [1, 2]);
    assert_eq!(left(journal, &id("none"), 0).await, [1], "no turn of it is sealed");
}

pub(super) async fn keeps_what_follows_a_seal_in_one_append(journal: &dyn Journal) {
    let id = id("c");
    let version = add(journal, &id, Version(0), numbered(1).turn(turn(Wait::Now))).await;
    // Seals a turn and begins its successor.
    let both = numbered(2).seal(figures("1")).event(event(2, 1)).turn(turn(Wait::Now));
    let version = add(journal, &id, version, both).await;
    assert_eq!(dropped(journal, newest(0)).await, 2);
    assert_eq!(left(journal, &id, 0).await, [3]);
    assert!(load(journal, &id).await.turn.is_some());
    assert_eq!((chunks(journal, &id).await.len(), metrics(journal, &id).await.len()), (2, 1));
    add(journal, &id, version, commit(4).event(event(3, 1))).await;
    assert_eq!(left(journal, &id, 0).await, [3, 4]);
}
