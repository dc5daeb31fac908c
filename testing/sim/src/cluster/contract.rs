//! Conformance tests of the ports between nodes: any implementation passes them.

mod list;

pub use list::list;

use std::time::Duration;

use bytes::Bytes;
use everturn_orchestrator::{
    Appended, Cluster, Commit, Cursor, Head, Incoming, Journal, JournalError, LiveEvent, Member, NodeId,
    SendError, StoredEvent, Streamed, Version, kernel::Millis,
};
use everturn_wire::{ConversationId, ConversationStatus};
use futures_util::{StreamExt as _, stream::BoxStream};
use tokio::time::timeout;

/// How long anything may take that happens by itself.
const SOON: Duration = Duration::from_secs(10);

/// A node of the implementation under test.
pub struct Node {
    /// Its journal.
    pub journal: std::sync::Arc<dyn Journal>,
    /// Its ports.
    pub cluster: Cluster,
}

fn commit(text: &str, end: u64) -> Commit {
    let head = Head {
        created_at: Millis(1),
        last_activity_at: Millis(end),
        title: text.to_owned(),
        status: ConversationStatus::Idle,
        end_reason: None,
        model: None,
        end: Cursor::from_value(end),
        last_seq: 0,
    };
    Commit::new(head).event(event(end - 1, end))
}

fn event(start: u64, end: u64) -> StoredEvent {
    let json = format!(r#"{{"type":"text-delta","delta":"{start}","conversationId":"c","turnId":"t"}}"#);
    StoredEvent { start: Cursor::from_value(start), end: Cursor::from_value(end), json: Bytes::from(json) }
}

async fn next(live: &mut BoxStream<'static, LiveEvent>) -> LiveEvent {
    timeout(SOON, live.next()).await.expect("an event arrives soon").expect("the stream does not end")
}

/// Appends at `from` behind `previous` until `live` is told of an append, and returns the announcement of the last one. What
/// announces appends may be another server than the one that passes text on, and may not know the follower yet.
async fn announced(
    from: &Node,
    id: &ConversationId,
    mut previous: Version,
    ends: std::ops::RangeFrom<u64>,
    live: &mut BoxStream<'static, LiveEvent>,
) -> Appended {
    let append_until_told = async {
        for end in ends {
            let appended = from.journal.append(id, previous, commit("title", end)).await;
            let version = appended.expect("an append succeeds");
            while let Ok(event) = timeout(Duration::from_millis(100), next_after_hello(live)).await {
                match event {
                    LiveEvent::Appended(appended) if appended.version == version => {
                        assert_eq!((appended.previous, &*appended.commit), (previous, &commit("title", end)));
                        return appended;
                    }
                    LiveEvent::Appended(appended) => assert!(appended.version < version, "{appended:?}"),
                    other => panic!("an append was expected: {other:?}"),
                }
            }
            previous = version;
        }
        unreachable!("there are more numbers than time")
    };
    timeout(SOON, append_until_told).await.expect("an append is announced soon")
}

async fn next_after_hello(live: &mut BoxStream<'static, LiveEvent>) -> LiveEvent {
    loop {
        match next(live).await {
            LiveEvent::Streamed(streamed) if streamed == hello() => {}
            event => return event,
        }
    }
}

fn hello() -> Streamed {
    Streamed { base: Version(0), events: vec![event(0, 1)] }
}

/// Follows at `to`, and waits until that is known at `from`: what is published before may be lost.
async fn follow(from: &Node, to: &Node, id: &ConversationId) -> BoxStream<'static, LiveEvent> {
    let mut live = to.cluster.live.follow(id).await.expect("following succeeds");
    let is_known = async {
        loop {
            from.cluster.live.stream(id, hello());
            if timeout(Duration::from_millis(20), live.next()).await.is_ok() {
                return;
            }
        }
    };
    timeout(SOON, is_known).await.expect("a follower is known soon");
    live
}

/// Tests the bus of live events, and that the journal announces its appends and names their owner.
///
/// # Panics
/// When the implementation does not conform.
pub async fn live_events(a: &Node, b: &Node) {
    // An id may have any of these characters.
    let id = ConversationId::from("live.c:1-_x");
    let mut at_b = follow(a, b, &id).await;
    let mut other = follow(a, b, &"live.c:1-_".into()).await;

    let appended = announced(a, &id, Version(0), 1.., &mut at_b).await;
    assert_eq!(appended.owner, a.cluster.node);
    let (first, end) = (appended.version, appended.commit.head.end.value());
    let stored = b.journal.load(&id).await.expect("loading succeeds").expect("it exists");
    assert_eq!((stored.version, stored.owner.as_ref()), (first, Some(&a.cluster.node)));

    let streamed = Streamed { base: first, events: vec![event(end, end + 4), event(end + 4, end + 8)] };
    a.cluster.live.stream(&id, streamed.clone());
    match next_after_hello(&mut at_b).await {
        LiveEvent::Streamed(arrived) => assert_eq!(arrived, streamed),
        event => panic!("streamed text was expected: {event:?}"),
    }

    // The other node appends: it becomes the owner, and the first one is stale.
    let mut at_a = follow(b, a, &id).await;
    let appended = announced(b, &id, first, end + 8.., &mut at_a).await;
    let second = appended.version;
    assert_eq!(appended.owner, b.cluster.node);
    let stale = a.journal.append(&id, first, commit("lost", 11)).await;
    assert!(
        matches!(stale, Err(JournalError::Stale { expected, found, .. }) if expected == first && found == second),
        "{stale:?}"
    );
    let stored = a.journal.load(&id).await.expect("loading succeeds").expect("it exists");
    assert_eq!((stored.version, stored.owner.as_ref()), (second, Some(&b.cluster.node)));

    assert!(b.journal.remove(&id).await.expect("removing succeeds"));
    assert!(matches!(next_after_hello(&mut at_a).await, LiveEvent::Removed));
    let late = a.journal.append(&id, second, commit("late", 12)).await;
    assert!(matches!(late, Err(JournalError::Stale { .. })), "{late:?}");

    // A follower of another conversation has received nothing so far: this is its first event.
    let id = ConversationId::from("live.c:1-_");
    announced(a, &id, Version(0), 1.., &mut other).await;
}

/// Tests that commands reach a node, also many at once, and that a missing node is noticed.
///
/// # Panics
/// When the implementation does not conform.
pub async fn commands(a: &Node, b: &Node) {
    let mut requests = b.cluster.commands.receive().await.expect("receiving succeeds");
    let serving = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Some(Incoming { request, reply }) = requests.next().await {
            if request.as_ref() == b"silence" {
                held.push(reply);
            } else {
                reply(Bytes::from([b"re: ", request.as_ref()].concat()));
            }
        }
    });
    let send = async |text: &str, within| {
        a.cluster.commands.send(&b.cluster.node, Bytes::from(text.to_owned()), within).await
    };
    let is_known = async { while send("hello", SOON).await.is_err() {} };
    timeout(SOON, is_known).await.expect("a node is known soon");
    let all = futures_util::future::join_all((0..100).map(|n| {
        let send = &send;
        async move { (n, send(&n.to_string(), SOON).await) }
    }));
    for (n, reply) in all.await {
        assert_eq!(reply.as_deref(), Ok(format!("re: {n}").as_bytes()));
    }
    let large = "x".repeat(1_500_000);
    let reply = send(&large, SOON).await.expect("a large request is answered");
    assert_eq!(reply.len(), large.len() + 4);
    assert_eq!(send("silence", Duration::from_millis(200)).await, Err(SendError::Unanswered));
    let nobody = NodeId::from("nobody");
    let sent = a.cluster.commands.send(&nobody, Bytes::from_static(b"hello"), SOON).await;
    assert_eq!(sent, Err(SendError::NoNode));
    serving.abort();
}

/// Tests that members are seen by all nodes, and that one that leaves is gone at once.
///
/// # Panics
/// When the implementation does not conform.
pub async fn membership(a: &Node, b: &Node) {
    let member = |node: &Node, turns| Member {
        node: node.cluster.node.clone(),
        name: node.cluster.name.clone(),
        version: "1".to_owned(),
        started_at: 7,
        turns,
        models: vec!["key/model".to_owned()],
        tool_sources: vec!["tools".to_owned()],
    };
    let (mut first, second) = (member(a, 1), member(b, 2));
    a.cluster.members.renew(&first).await.expect("renewing succeeds");
    b.cluster.members.renew(&second).await.expect("renewing succeeds");
    let mut both = vec![first.clone(), second.clone()];
    both.sort_by(|a, b| a.node.cmp(&b.node));
    for node in [a, b] {
        lists(node, &both).await;
    }
    first.turns = 9;
    a.cluster.members.renew(&first).await.expect("renewing succeeds");
    b.cluster.members.leave().await.expect("leaving succeeds");
    for node in [a, b] {
        lists(node, &[first.clone()]).await;
    }
    b.cluster.members.renew(&second).await.expect("a node may return");
    let mut both = vec![first, second];
    both.sort_by(|a, b| a.node.cmp(&b.node));
    lists(a, &both).await;
}

/// Waits until a node lists these members: what another one told may arrive later.
async fn lists(node: &Node, expected: &[Member]) {
    let listed = async || node.cluster.members.members().await.expect("listing succeeds") == expected;
    let listing = async { while !listed().await {} };
    timeout(SOON, listing).await.unwrap_or_else(|_| panic!("{expected:?} are never listed"));
}

/// Tests that the notices of a node reach the other ones, in order and whole.
///
/// # Panics
/// When the implementation does not conform.
pub async fn notices(a: &Node, b: &Node) {
    let mut at_a = a.cluster.live.notices().await.expect("listening succeeds");
    let mut at_b = b.cluster.live.notices().await.expect("listening succeeds");
    let is_known = async {
        loop {
            a.cluster.live.tell(Bytes::from_static(b"hello"));
            if timeout(Duration::from_millis(20), at_b.next()).await.is_ok() {
                return;
            }
        }
    };
    timeout(SOON, is_known).await.expect("a listener is known soon");
    let text = |n: usize| format!("{n}{}", "x".repeat(n * 160));
    for n in 0..100 {
        a.cluster.live.tell(text(n).into());
    }
    for n in 0..100 {
        let mut heard = timeout(SOON, at_b.next()).await.expect("a notice arrives soon");
        while heard.as_deref() == Some(b"hello") {
            heard = timeout(SOON, at_b.next()).await.expect("a notice arrives soon");
        }
        assert_eq!(heard.as_deref(), Some(text(n).as_bytes()));
    }
    // The first one that hears it is not the one that said it.
    let heard = async {
        loop {
            b.cluster.live.tell(Bytes::from_static(b"to a"));
            if let Ok(heard) = timeout(Duration::from_millis(20), at_a.next()).await {
                return heard;
            }
        }
    };
    let heard = timeout(SOON, heard).await.expect("a notice arrives soon");
    assert_eq!(heard.as_deref(), Some(&b"to a"[..]));
}
