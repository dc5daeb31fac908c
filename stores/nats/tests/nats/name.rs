//! Names of conversations that are no subjects.

use everturn_orchestrator::{Cursor, Journal, Page, Version};
use everturn_store_nats::NatsJournal;

use crate::support::{Server, numbered};

#[tokio::test]
async fn any_name_is_a_conversation_of_its_own() {
    let Some(server) = Server::start("").await else { return };
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    let long = ".".repeat(128);
    let names = ["a", "a.b", "a=2Eb", "a:b", "a b", "*", ">", "a.>", "ä", "=", "..", "$JS", "\u{1}", &long];
    for (number, name) in (1..).zip(names) {
        let first = journal.append(&name.into(), Version(0), numbered(number, name)).await.unwrap();
        journal.append(&name.into(), first, numbered(number + 1, "second")).await.unwrap();
    }
    for (number, name) in (1..).zip(names) {
        assert_eq!(journal.load(&name.into()).await.unwrap().unwrap().head.last_seq, number + 1);
        let events = journal.events(&name.into(), Cursor::default(), 9).await.unwrap();
        assert_eq!(events.iter().map(|event| &*event.json).collect::<Vec<_>>(), [name.as_bytes(), b"second"]);
    }
    let listed = journal.conversations(Page::default()).await.unwrap();
    let listed: Vec<_> = listed.iter().rev().map(|(id, _)| id.as_str()).collect();
    assert_eq!(listed, names);
}
