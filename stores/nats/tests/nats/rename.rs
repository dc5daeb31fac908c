//! Titles.

use everturn_orchestrator::{Journal, Page, Version};
use everturn_store_nats::NatsJournal;

use crate::{
    relay::{Direction, Gate},
    retention::behind,
    support::{Server, numbered},
};

#[tokio::test]
async fn renaming_does_not_disturb_a_writer() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let [writer, other] =
        [NatsJournal::connect(&options).await.unwrap(), NatsJournal::connect(&options).await.unwrap()];
    let mut version = Version(0);
    for number in 1..5 {
        version = writer.append(&"c".into(), version, numbered(number, "text")).await.unwrap();
        assert!(other.rename(&"c".into(), format!("title\n{number}")).await.unwrap());
        let stored = writer.load(&"c".into()).await.unwrap().unwrap();
        assert_eq!((stored.version, stored.head.title), (version, format!("title\n{number}")));
    }
    let listed = writer.conversations(Page::default()).await.unwrap();
    assert_eq!(listed[0].1.title, "title\n4");
    assert_eq!(server.subjects(&writer, "t.>").await.values().sum::<usize>(), 1, "earlier titles are gone");
}

#[tokio::test]
async fn the_first_title_stays_whoever_writes() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let [first, second] =
        [NatsJournal::connect(&options).await.unwrap(), NatsJournal::connect(&options).await.unwrap()];
    let version = first.append(&"c".into(), Version(0), numbered(1, "text")).await.unwrap();
    let mut commit = numbered(2, "text");
    commit.head.title = "another".to_owned();
    second.append(&"c".into(), version, commit).await.unwrap();
    assert_eq!(second.load(&"c".into()).await.unwrap().unwrap().head.title, "numbers");
}

#[tokio::test]
async fn a_long_list_has_the_titles_of_the_renamed() {
    let Some(server) = Server::start("").await else { return };
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    for number in 1..=300_u64 {
        let id = number.to_string().as_str().into();
        journal.append(&id, Version(0), numbered(number, "text")).await.unwrap();
        if number.is_multiple_of(100) {
            assert!(journal.rename(&id, format!("title {number}")).await.unwrap());
        }
    }
    let listed = journal.conversations(Page::default()).await.unwrap();
    assert_eq!(listed.len(), 300);
    let renamed = listed.iter().map(|(_, head)| head.title.as_str()).filter(|title| *title != "numbers");
    assert_eq!(renamed.collect::<Vec<_>>(), ["title 300", "title 200", "title 100"]);
}

#[tokio::test]
async fn a_title_of_a_conversation_that_is_removed_meanwhile_is_deleted() {
    let Some(server) = Server::start("").await else { return };
    for sent in (50_usize..).step_by(100) {
        let options = server.options();
        let journal = NatsJournal::connect(&options).await.unwrap();
        journal.append(&"c".into(), Version(0), numbered(1, "text")).await.unwrap();
        let gate = Gate::to(server.server.url(), Direction::Requests).await;
        let late = NatsJournal::connect(&behind(&gate, &options)).await.unwrap();
        gate.close_after(sent);
        let mut renaming = tokio::spawn(async move { late.rename(&"c".into(), "title".to_owned()).await });
        tokio::select! {
            biased;
            renamed = &mut renaming => {
                assert_eq!(renamed.unwrap(), Ok(true));
                assert!(sent > 400, "{sent}");
                break;
            }
            () = gate.closed() => {}
        }
        assert!(journal.remove(&"c".into()).await.unwrap());
        gate.open();
        renaming.await.unwrap().unwrap();
        let left = server.subjects(&journal, "t.>").await;
        assert!(left.is_empty(), "after {sent} bytes, {left:?}");
    }
}
