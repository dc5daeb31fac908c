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
    let context = async_nats::jetstream::new(writer.client().clone());
    let stream = context.get_stream("T1").await.unwrap();
    let mark = stream.get_last_raw_message_by_subject("t1.c.c").await.unwrap();
    assert_eq!(mark.headers.get("Nats-TTL").unwrap().as_str(), "3600s", "the server deletes the mark");
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
async fn what_an_interrupted_removal_left_is_of_no_later_conversation() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.options(), ConversationId::from("c"));
    let journal = NatsJournal::connect(&options).await.unwrap();
    let first = journal.append(&id, Version(0), numbered(1, "old")).await.unwrap();
    assert!(journal.rename(&id, "old title".to_owned()).await.unwrap());
    let context = async_nats::jetstream::new(journal.client().clone());
    let stream = context.get_stream("T1").await.unwrap();
    let mut left = Vec::new();
    for subject in ["t1.c.c", "t1.t.c"] {
        left.push((subject, stream.get_last_raw_message_by_subject(subject).await.unwrap()));
    }
    assert!(journal.remove(&id).await.unwrap());
    let mark = stream.get_last_raw_message_by_subject("t1.c.c").await.unwrap();
    // As if only the mark had been written: the append and the title before it are there again.
    stream.purge().await.unwrap();
    left.push(("t1.c.c", mark));
    for (subject, message) in left {
        let mut headers = async_nats::HeaderMap::new();
        for (name, values) in message.headers.iter().filter(|(name, _)| name.to_string().starts_with("Ev-")) {
            headers.insert(name.clone(), values[0].as_str());
        }
        context.publish_with_headers(subject, headers, message.payload).await.unwrap().await.unwrap();
    }
    assert!(journal.load(&id).await.unwrap().is_none());
    let late = journal.append(&id, first, numbered(2, "late")).await;
    assert!(matches!(late, Err(JournalError::Stale { found: Version(0), .. })), "{late:?}");
    journal.append(&id, Version(0), numbered(1, "new")).await.unwrap();
    let stored = journal.load(&id).await.unwrap().unwrap();
    assert_eq!(stored.head.title, "numbers");
    assert_eq!(journal.chunks(&id, Window::default()).await.unwrap(), numbered(1, "new").chunks);
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
