//! Removed conversations.

use everturn_orchestrator::{Journal, JournalError, TurnRecord, Version, Window, kernel::Millis};
use everturn_store_nats::NatsJournal;
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;

use crate::{
    base::write,
    large::image,
    relay::{Direction, Gate},
    retention::behind,
    support::{Server, numbered},
};

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

/// Removes conversation c, then stores again what a process leaves that ends after the mark: the last append, title and base, and
/// the mark.
async fn interrupt(journal: &NatsJournal) {
    let (id, name) = (ConversationId::from("c"), journal.names().stream());
    let context = async_nats::jetstream::new(journal.client().clone());
    let stream = context.get_stream(&name).await.unwrap();
    let mut left = Vec::new();
    for subject in ["c.c", "t.c", "b.c.base.log"] {
        let subject = format!("{}.{subject}", name.to_lowercase());
        left.extend(stream.get_last_raw_message_by_subject(&subject).await);
    }
    let mut marks = journal.client().subscribe(journal.names().live(&id)).await.unwrap();
    journal.client().flush().await.unwrap();
    assert!(journal.remove(&id).await.unwrap());
    let mark = stream.get_last_raw_message_by_subject(&journal.names().appends(&id)).await.unwrap();
    for expires in [None, Some("3600s")] {
        let headers = marks.next().await.unwrap().headers.unwrap();
        let found = headers.get("Nats-TTL").map(async_nats::HeaderValue::as_str);
        assert_eq!(found, expires, "it expires once all is deleted");
    }
    stream.purge().await.unwrap();
    for message in left.into_iter().chain([mark]) {
        let mut headers = async_nats::HeaderMap::new();
        for (name, values) in message.headers.iter().filter(|(name, _)| name.to_string().starts_with("Ev-")) {
            headers.insert(name.clone(), values[0].as_str());
        }
        let stored = context.publish_with_headers(message.subject, headers, message.payload).await.unwrap();
        stored.await.unwrap();
    }
}

#[tokio::test]
async fn an_interrupted_removal_is_continued() {
    let Some(server) = Server::start("").await else { return };
    for by_cleaning in [false, true] {
        let (options, id) = (server.options(), ConversationId::from("c"));
        let [journal, other] =
            [NatsJournal::connect(&options).await.unwrap(), NatsJournal::connect(&options).await.unwrap()];
        write(&journal, &id, Version(0), 1..=64).await;
        journal.save_bases(&id).await.unwrap();
        assert!(journal.rename(&id, "title".to_owned()).await.unwrap());
        interrupt(&journal).await;
        assert_eq!(server.subjects(&journal, ">").await.len(), 3, "an append, a title, a base");
        match by_cleaning {
            true => assert_eq!(other.drop_ephemeral(Millis(0)).await, Ok(vec![])),
            false => assert_eq!(other.remove(&id).await, Ok(false)),
        }
        let mark = journal.names().appends(&id);
        assert_eq!(server.subjects(&journal, ">").await, [(mark.clone(), 1)].into());
        // As when it expires.
        let stream = async_nats::jetstream::new(journal.client().clone());
        let stream = stream.get_stream(journal.names().stream()).await.unwrap();
        stream.purge().filter(mark).await.unwrap();
        assert!(other.load(&id).await.unwrap().is_none());
    }
}

/// Another conversation may begin as soon as the old one is marked.
#[tokio::test]
async fn a_removal_deletes_nothing_of_the_next_conversation() {
    let Some(server) = Server::start("").await else { return };
    let mut overlaps = 0;
    for received in (100_usize..).step_by(200) {
        let (options, id) = (server.options(), ConversationId::from("c"));
        let journal = NatsJournal::connect(&options).await.unwrap();
        journal.append(&id, Version(0), numbered(1, "old")).await.unwrap();
        let gate = Gate::to(server.server.url(), Direction::Answers).await;
        let remover = NatsJournal::connect(&behind(&gate, &options)).await.unwrap();
        gate.close_after(received);
        let of_remover = id.clone();
        let mut removing = tokio::spawn(async move { remover.remove(&of_remover).await });
        tokio::select! {
            biased;
            removed = &mut removing => {
                assert_eq!(removed.unwrap(), Ok(true));
                break;
            }
            () = gate.closed() => {}
        }
        let new = image(1 << 20);
        let begins = journal.append(&id, Version(0), new.clone()).await.is_ok();
        if begins {
            assert!(journal.rename(&id, "new".to_owned()).await.unwrap());
            overlaps += 1;
        }
        gate.open();
        assert_eq!(removing.await.unwrap(), Ok(true));
        let stored = journal.load(&id).await.unwrap();
        assert_eq!(stored.map(|stored| stored.head.title), begins.then(|| "new".to_owned()));
        let chunks = journal.chunks(&id, Window::default()).await.unwrap();
        assert!(chunks == if begins { new.chunks } else { Vec::new() }, "after {received} bytes");
    }
    assert!(overlaps > 2, "{overlaps}");
}

#[tokio::test]
async fn what_an_interrupted_removal_left_is_of_no_later_conversation() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.options(), ConversationId::from("c"));
    let journal = NatsJournal::connect(&options).await.unwrap();
    let first = journal.append(&id, Version(0), numbered(1, "old")).await.unwrap();
    assert!(journal.rename(&id, "old title".to_owned()).await.unwrap());
    interrupt(&journal).await;
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
    assert_eq!(journal.drop_ephemeral(Millis(20)).await.unwrap(), ["ephemeral:old".into()]);
    assert_eq!(journal.drop_ephemeral(Millis(20)).await.unwrap(), []);
    for (name, is_there) in
        [("ephemeral:old", false), ("ephemeral:new", true), ("old", true), ("ephemeral:running", true)]
    {
        assert_eq!(journal.load(&name.into()).await.unwrap().is_some(), is_there, "{name}");
    }
}
