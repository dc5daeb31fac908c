//! Conformance tests of the port that announces changes to the list.

use everturn_orchestrator::{Commit, ListEvent, Page, Version, Wait};
use everturn_wire::{ConversationId, ConversationStatus, DoneReason};
use futures_util::{StreamExt as _, stream::BoxStream};
use tokio::time::timeout;

use super::{Node, SOON, commit};
use crate::journal::sample::{turn, until};

type Changes = BoxStream<'static, ListEvent>;

/// Returns the next change: its conversation, and status, title, model and wait.
async fn next(changes: &mut Changes) -> (String, ConversationStatus, String, Option<String>, Option<Wait>) {
    match next_event(changes).await {
        ListEvent::Changed(listed) => {
            let head = listed.head;
            (listed.id.to_string(), head.status, head.title, head.model, listed.wait)
        }
        other => panic!("a change was expected: {other:?}"),
    }
}

async fn next_event(changes: &mut Changes) -> ListEvent {
    timeout(SOON, changes.next()).await.expect("an event arrives soon").expect("the stream does not end")
}

/// Returns a commit of an active conversation whose turn waits like this.
fn active(end: u64, wait: Wait) -> Commit {
    let mut commit = commit("asked", end).turn(turn(wait));
    commit.head.status = ConversationStatus::Active;
    commit.head.model = Some("key/model".to_owned());
    commit
}

/// Returns what the turns of these conversations wait for, according to a node that has just read its list.
async fn waits(node: &Node, ids: &[&ConversationId]) -> Vec<(ConversationId, Wait)> {
    node.journal.conversations(Page::default()).await.expect("listing succeeds");
    node.cluster.list.waits(ids)
}

/// Tests that a node learns what others change in the list, and only that, and knows what their turns wait for.
///
/// # Panics
/// When the implementation does not conform.
pub async fn list(a: &Node, b: &Node) {
    let (id, other) = (ConversationId::from("list.c:1"), ConversationId::from("list.own"));
    let active_now = ConversationStatus::Active;
    let first = a.journal.append(&id, Version(0), commit("before", 1)).await.expect("an append succeeds");
    let mut at_b = b.cluster.list.follow().await.expect("following succeeds");
    let mut at_a = a.cluster.list.follow().await.expect("following succeeds");
    // What only moves the conversation in the list, and what is not in it, is not announced.
    let moved = a.journal.append(&id, first, commit("before", 2)).await.expect("an append succeeds");
    let hidden = ConversationId::from("ephemeral:x");
    a.journal.append(&hidden, Version(0), active(1, Wait::Now)).await.expect("an append succeeds");
    let version = a.journal.append(&id, moved, active(3, until(5_000))).await.expect("an append succeeds");
    let listed = ("list.c:1".to_owned(), active_now, "before".to_owned(), Some("key/model".to_owned()));
    assert_eq!(next(&mut at_b).await, (listed.0, listed.1, listed.2, listed.3, Some(until(5_000))));
    assert_eq!(waits(b, &[&id, &other]).await, [(id.clone(), until(5_000))]);

    // Each sees the other's changes, never its own.
    b.journal.append(&other, Version(0), commit("mine", 1)).await.expect("an append succeeds");
    assert_eq!(next(&mut at_a).await.0, "list.own");

    // The wait is over: only the wait has changed.
    let version = a.journal.append(&id, version, active(4, Wait::Now)).await.expect("an append succeeds");
    assert_eq!(waits(b, &[&id]).await, [(id.clone(), Wait::Now)]);
    assert!(a.journal.rename(&id, "renamed".to_owned()).await.expect("renaming succeeds"));
    let (_, status, title, ..) = next(&mut at_b).await;
    assert_eq!((status, title.as_str()), (active_now, "renamed"));

    let mut ended = commit("before", 5);
    ended.head.end_reason = Some(DoneReason::Error);
    let version = a.journal.append(&id, version, ended).await.expect("an append succeeds");
    match next_event(&mut at_b).await {
        ListEvent::Changed(listed) => {
            assert_eq!((listed.head.status, listed.wait), (ConversationStatus::Idle, None));
            assert_eq!(
                (listed.head.title.as_str(), listed.head.end_reason),
                ("renamed", Some(DoneReason::Error))
            );
        }
        other => panic!("a change was expected: {other:?}"),
    }
    assert_eq!(waits(b, &[&id]).await, []);

    // Taken over by the other node, which deletes it.
    b.journal.append(&id, version, active(6, Wait::Now)).await.expect("an append succeeds");
    assert_eq!(next(&mut at_a).await.1, active_now);
    assert!(b.journal.remove(&id).await.expect("removing succeeds"));
    assert_eq!(next_event(&mut at_a).await, ListEvent::Removed(id.clone()));
    assert_eq!(waits(a, &[&id]).await, []);
    // Another conversation with the same name has its own title.
    a.journal.append(&id, Version(0), commit("again", 1)).await.expect("an append succeeds");
    assert_eq!(next(&mut at_b).await.2, "again");
}
