//! Removed conversations.

use everturn_orchestrator::{Journal, JournalError, TurnRecord, Version, Window, kernel::Millis};
use everturn_store_nats::NatsJournal;
use everturn_wire::ConversationId;

use crate::support::{Server, numbered};

#[tokio::test]
async fn a_late_writer_is_stale_and_a_new_conversation_may_begin() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.options(), ConversationId::from("c"));
    let [writer, remover] =
        [NatsJournal::connect(&options).await.unwrap(), NatsJournal::connect(&options).await.unwrap()];
    let first = writer.append(&id, Version(0), numbered(1, "old")).await.unwrap();
    let second = writer.append(&id, first, numbered(2, "old")).await.unwrap();
    assert!(remover.rename(&id, "old title".to_owned()).await.unwrap());
    assert!(remover.remove(&id).await.unwrap());
    assert!(!remover.remove(&id).await.unwrap());
    assert!(!remover.rename(&id, "gone".to_owned()).await.unwrap());
    assert!(writer.load(&id).await.unwrap().is_none());
    let late = writer.append(&id, second, numbered(3, "late")).await;
    assert_eq!(late, Err(JournalError::Stale { id: id.clone(), expected: second, found: Version(0) }));
    let new = writer.append(&id, Version(0), numbered(1, "new")).await.unwrap();
    assert!(new > second, "versions are never used again");
    let late = remover.append(&id, second, numbered(3, "late")).await;
    assert_eq!(late, Err(JournalError::Stale { id: id.clone(), expected: second, found: new }));
    let chunks = remover.chunks(&id, Window::default()).await.unwrap();
    assert_eq!(chunks, numbered(1, "new").chunks);
    assert_eq!(remover.load(&id).await.unwrap().unwrap().head.title, "numbers");
    let subjects = server.subjects(&writer, ">").await;
    assert_eq!(
        subjects.into_iter().collect::<Vec<_>>(),
        [("t1.c.c".to_owned(), 2)],
        "the mark and the append"
    );
}

#[tokio::test]
async fn only_idle_ephemeral_conversations_are_dropped() {
    let Some(server) = Server::start("").await else { return };
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    for (name, activity) in [("ephemeral:old", 10), ("ephemeral:new", 30), ("old", 10)] {
        journal.append(&name.into(), Version(0), numbered(activity, "text")).await.unwrap();
    }
    let running: TurnRecord = crate::support::turn();
    let commit = numbered(10, "text").turn(running);
    journal.append(&"ephemeral:running".into(), Version(0), commit).await.unwrap();
    assert_eq!(journal.drop_ephemeral(Millis(20)).await.unwrap(), 1);
    assert_eq!(journal.drop_ephemeral(Millis(20)).await.unwrap(), 0);
    for (name, is_there) in
        [("ephemeral:old", false), ("ephemeral:new", true), ("old", true), ("ephemeral:running", true)]
    {
        assert_eq!(journal.load(&name.into()).await.unwrap().is_some(), is_there, "{name}");
    }
}
