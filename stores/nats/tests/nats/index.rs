//! The index: what lists cost, what other processes change, and what happens when the server or the stream is gone
//! meanwhile.

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use everturn_orchestrator::{
    Commit, Journal, ListBus, ListEvent, Moment, Page, Version, Wait, kernel::Millis,
};
use everturn_sim::nats::wait_for;
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::support::{Server, numbered, turn};

/// How long anything may take that happens by itself.
const SOON: Duration = Duration::from_secs(10);

async fn journal(options: &Options) -> NatsJournal {
    NatsJournal::connect(options).await.unwrap()
}

fn waiting(number: u64, until: u64) -> Commit {
    let mut turn = turn();
    turn.wait = Wait::Until(Moment { at: Millis(until), decided_ms: until });
    numbered(number, "waiting").turn(turn)
}

fn first(limit: usize) -> Page {
    Page { limit: Some(limit), ..Page::default() }
}

async fn titles(journal: &NatsJournal) -> Vec<(String, String)> {
    let listed = journal.conversations(Page::default()).await.unwrap();
    listed.into_iter().map(|(id, head)| (id.to_string(), head.title)).collect()
}

/// Writes a conversation for each number, several at a time.
async fn fill(journal: &NatsJournal, numbers: std::ops::Range<u64>) {
    let appends = numbers.map(async |number| {
        let id = ConversationId::from(number.to_string());
        let commit =
            if number.is_multiple_of(10) { waiting(number, number) } else { numbered(number, "idle") };
        journal.append(&id, Version(0), commit).await.unwrap();
    });
    futures_util::stream::iter(appends).buffer_unordered(64).count().await;
}

#[tokio::test]
async fn a_list_of_thousands_costs_few_requests() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let (writer, reader) = (journal(&options).await, journal(&options).await);
    fill(&writer, 1..2_501).await;
    assert_eq!(reader.conversations(first(1)).await.unwrap().len(), 1);

    let figures = reader.client().statistics();
    let sent = || figures.out_messages.load(Ordering::Relaxed);
    let received = || figures.in_messages.load(Ordering::Relaxed);
    let (before, had) = (sent(), received());
    let page = reader.conversations(first(50)).await.unwrap();
    assert_eq!(page.len(), 50);
    assert_eq!((page[0].1.last_seq, page[49].1.last_seq), (2_500, 2_451));
    assert_eq!(reader.conversations(Page::default()).await.unwrap().len(), 2_500);
    let unsealed = reader.unsealed(Millis(u64::MAX)).await.unwrap();
    assert_eq!((unsealed.len(), unsealed[0].owner.as_ref()), (250, Some(writer.node())));
    let ids: Vec<ConversationId> = vec!["10".into(), "11".into()];
    let bus = reader.cluster("reader").await.unwrap().list;
    let waits = bus.waits(&ids.iter().collect::<Vec<_>>());
    assert_eq!(waits.len(), 1);
    // A question for each of the three readings, and its answer; some for the members' bucket; and the consumer's own.
    assert!(sent() - before < 20, "{} messages sent", sent() - before);
    assert!(received() - had < 20, "{} messages received", received() - had);
    // Nothing ephemeral, nothing to sweep.
    let before = sent();
    assert_eq!(reader.drop_ephemeral(Millis(u64::MAX)).await.unwrap(), []);
    assert!(sent() - before < 10, "{} messages sent", sent() - before);

    // A change by another process costs the message that tells it.
    let (before, had) = (sent(), received());
    writer.append(&"new".into(), Version(0), numbered(9_999, "new")).await.unwrap();
    assert_eq!(reader.conversations(first(1)).await.unwrap()[0].0.as_str(), "new");
    assert!(sent() - before < 10 && received() - had < 10);
}

#[tokio::test]
async fn what_is_of_no_use_to_the_index_does_not_hold_it_up() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let (writer, reader) = (journal(&options).await, journal(&options).await);
    assert!(titles(&reader).await.is_empty());
    fill(&writer, 1..4).await;
    let context = async_nats::jetstream::new(writer.client().clone());
    // The newest message of the stream is a part, then one that is deleted, then nothing that this version can read.
    context.publish("t1.b.x.y.0", "part".into()).await.unwrap().await.unwrap();
    assert_eq!(titles(&reader).await.len(), 3);
    let last = context.publish("t1.c.gone", "gone".into()).await.unwrap().await.unwrap();
    context.get_stream("T1").await.unwrap().delete_message(last.sequence).await.unwrap();
    assert_eq!(titles(&reader).await.len(), 3);
    for (name, headers) in [("garbage", vec![]), ("newer", vec![("Ev-V", "2"), ("Ev-Turn", "run")])] {
        let mut map = async_nats::HeaderMap::new();
        headers.into_iter().for_each(|(name, value)| map.insert(name, value));
        let subject = format!("t1.c.{name}");
        context.publish_with_headers(subject, map, "?".into()).await.unwrap().await.unwrap();
    }
    context.publish("t1.t.1", bytes::Bytes::from_static(b"\xff")).await.unwrap().await.unwrap();
    context.publish("t1.c.=zz", "no conversation".into()).await.unwrap().await.unwrap();
    fill(&writer, 4..5).await;
    for reader in [&reader, &journal(&options).await] {
        assert_eq!(titles(reader).await.len(), 4);
        assert_eq!(reader.unsealed(Millis(u64::MAX)).await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_title_of_an_earlier_version_is_read_from_its_content() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let writer = journal(&options).await;
    fill(&writer, 1..3).await;
    let context = async_nats::jetstream::new(writer.client().clone());
    let stream = context.get_stream("T1").await.unwrap();
    let append = stream.get_last_raw_message_by_subject("t1.c.1").await.unwrap();
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Ev-Born", append.headers.get("Ev-Born").unwrap().as_str());
    context.publish_with_headers("t1.t.1", headers, "by content".into()).await.unwrap().await.unwrap();
    let long = "x".repeat(20_000);
    assert!(writer.rename(&"2".into(), long.clone()).await.unwrap());
    let expected = [("2".to_owned(), long), ("1".to_owned(), "by content".to_owned())];
    assert_eq!(titles(&journal(&options).await).await, expected);
}

#[tokio::test]
async fn the_index_goes_on_after_the_server_was_killed() {
    let Some(mut server) = Server::start("").await else { return };
    let mut options = server.options();
    options.give_up_after = SOON;
    let (writer, reader) = (journal(&options).await, journal(&options).await);
    fill(&writer, 1..101).await;
    let list = reader.cluster("reader").await.unwrap().list;
    let mut changes = list.follow().await.unwrap();
    assert_eq!(titles(&reader).await.len(), 100);
    server.server.kill();
    server.server.restart();
    server.server.wait_until_healthy().await;
    // Nobody reads: the index finds by itself that its consumer is gone.
    assert!(writer.remove(&"7".into()).await.unwrap());
    let event = timeout(SOON, changes.next()).await.unwrap().unwrap();
    assert_eq!(event, ListEvent::Removed("7".into()));
    assert!(writer.rename(&"8".into(), "renamed".to_owned()).await.unwrap());
    writer.append(&"new".into(), Version(0), numbered(999, "new")).await.unwrap();
    let listed = titles(&reader).await;
    assert_eq!(listed[0].0, "new");
    assert_eq!(listed.len(), 100);
    assert!(listed.contains(&("8".to_owned(), "renamed".to_owned())));
    assert_eq!(titles(&journal(&options).await).await, listed);
}

#[tokio::test]
async fn a_stream_that_was_created_again_is_read_again() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let (writer, reader) = (journal(&options).await, journal(&options).await);
    fill(&writer, 1..31).await;
    assert_eq!(titles(&reader).await.len(), 30);
    let mut changes = reader.cluster("reader").await.unwrap().list.follow().await.unwrap();
    let context = async_nats::jetstream::new(writer.client().clone());
    context.delete_stream("T1").await.unwrap();
    let writer = journal(&options).await;
    // As many messages as before, and more.
    fill(&writer, 101..141).await;
    let listed = titles(&reader).await;
    assert_eq!((listed.len(), listed[0].0.as_str()), (40, "140"));
    assert_eq!(reader.unsealed(Millis(u64::MAX)).await.unwrap().len(), 4);
    let missed = async { while changes.next().await.unwrap() != ListEvent::Missed {} };
    timeout(SOON, missed).await.unwrap();
}

#[tokio::test]
async fn a_receiver_that_is_slow_learns_that_it_missed_something() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let (writer, reader) = (journal(&options).await, journal(&options).await);
    fill(&writer, 1..2).await;
    let list: Arc<dyn ListBus> = reader.cluster("reader").await.unwrap().list;
    let mut changes = list.follow().await.unwrap();
    fill(&writer, 2..2_002).await;
    assert_eq!(titles(&reader).await.len(), 2_001);
    assert_eq!(timeout(SOON, changes.next()).await.unwrap(), Some(ListEvent::Missed));
    // Then it continues with what is still there, and the journal can be dropped.
    assert!(matches!(timeout(SOON, changes.next()).await.unwrap(), Some(ListEvent::Changed(_))));
    drop((reader, list));
    let ends = async { while changes.next().await.is_some() {} };
    timeout(SOON, ends).await.unwrap();
}

#[tokio::test]
async fn a_list_fails_when_the_server_is_gone_and_works_when_it_is_back() {
    let Some(mut server) = Server::start("").await else { return };
    let mut options = server.options();
    (options.answer_within, options.give_up_after) = (Duration::from_millis(200), Duration::from_millis(500));
    let journal = journal(&options).await;
    fill(&journal, 1..4).await;
    assert_eq!(titles(&journal).await.len(), 3);
    server.server.kill();
    let error = journal.conversations(first(1)).await.unwrap_err();
    assert!(error.is_outage(), "{error}");
    server.server.restart();
    let back = async || journal.conversations(first(9)).await.ok().filter(|listed| listed.len() == 3);
    wait_for("the list", back).await;
}

/// Its data is replaced by an older copy, as of a leader that was cut off and has not noticed that there is another one.
#[tokio::test]
async fn a_list_fails_and_does_not_go_back_while_the_server_is_outdated() {
    let Some(mut server) = Server::start("").await else { return };
    let mut options = server.options();
    (options.answer_within, options.give_up_after) = (Duration::from_millis(200), Duration::from_secs(2));
    let journal = journal(&options).await;
    let listed = async |count| {
        let listed =
            async || journal.conversations(first(9)).await.ok().filter(|listed| listed.len() == count);
        wait_for("the list", listed).await
    };
    let data = server.directory.path().join("single/jetstream");
    let place = |name: &str| server.directory.path().join(name);
    let (older, newer) = (place("older"), place("newer"));
    fill(&journal, 1..4).await;
    listed(3).await;
    server.server.kill();
    copy(&data, &older);
    server.server.restart();
    listed(3).await;
    fill(&journal, 4..8).await;
    listed(7).await;
    server.server.kill();
    fs::rename(&data, &newer).unwrap();
    copy(&older, &data);
    server.server.restart();
    server.server.wait_until_healthy().await;
    // Until it is connected again, it says that.
    let refused = async || {
        let error = journal.conversations(first(9)).await.expect_err("it does not go back");
        error.to_string().contains("older than what was stored").then_some(())
    };
    wait_for("a refusal", refused).await;
    server.server.kill();
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&newer, &data).unwrap();
    server.server.restart();
    listed(7).await;
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => _ = fs::copy(entry.path(), to).unwrap(),
        }
    }
}
