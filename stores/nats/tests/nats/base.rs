//! Bases: history is read from them, whoever saves them, and damage is noticed.

use std::time::Duration;

use everturn_orchestrator::{Commit, Journal, Retention, Version, Window};
use everturn_sim::nats::wait_for;
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::{Chunk, ConversationId, Role, StoredChunk, TurnMetrics};
use futures_util::future::join_all;

use crate::support::{Server, head, numbered};

/// Returns the commit of the append with this number: every fifth seals a turn.
pub(crate) fn appended(number: u64) -> Commit {
    let commit = numbered(number, &format!("text {number}"));
    if !number.is_multiple_of(5) {
        return commit.turn(crate::support::turn());
    }
    let figures = TurnMetrics { steps: 1, ..TurnMetrics::new(format!("turn {number}").as_str().into()) };
    commit.seal(figures)
}

/// Appends `from..=to` after this version.
pub(crate) async fn write(
    journal: &NatsJournal,
    id: &ConversationId,
    mut version: Version,
    numbers: std::ops::RangeInclusive<u64>,
) -> Version {
    for number in numbers {
        version = journal.append(id, version, appended(number)).await.unwrap();
    }
    version
}

/// Asserts that the history and the figures of this many appends are whole.
pub(crate) async fn assert_whole(journal: &NatsJournal, id: &ConversationId, appends: u64) {
    let chunks = journal.chunks(id, Window::default()).await.unwrap();
    let expected: Vec<_> = (1..=appends).flat_map(|number| appended(number).chunks).collect();
    assert!(chunks == expected, "{} of {appends} chunks", chunks.len());
    let turns: Vec<_> = journal.metrics(id).await.unwrap().into_iter().map(|turn| turn.turn_id).collect();
    let expected: Vec<_> =
        (1..=appends / 5).map(|turn| format!("turn {}", 5 * turn).as_str().into()).collect();
    assert_eq!(turns, expected);
}

/// Has damage reported soon: until then, the leader may have been replaced.
fn impatient(mut options: Options) -> Options {
    options.answer_within = Duration::from_millis(300);
    options
}

async fn stream(journal: &NatsJournal) -> async_nats::jetstream::stream::Stream {
    let context = async_nats::jetstream::new(journal.client().clone());
    context.get_stream(journal.names().stream()).await.unwrap()
}

async fn bases(server: &Server, journal: &NatsJournal) -> usize {
    server.subjects(journal, "b.*.base.log").await.values().sum()
}

#[tokio::test]
async fn the_writer_saves_bases_now_and_then() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.hasty(), "c.long".into());
    let journal = NatsJournal::connect(&options).await.unwrap();
    let version = write(&journal, &id, Version(0), 1..=200).await;
    wait_for("three bases", async || (bases(&server, &journal).await == 3).then_some(())).await;
    let reader = NatsJournal::connect(&options).await.unwrap();
    assert_whole(&reader, &id, 200).await;
    // It is of no importance to appends.
    assert_eq!(reader.load(&id).await.unwrap().unwrap().version, version);
    write(&reader, &id, version, 201..=203).await;
    assert_whole(&journal, &id, 203).await;
}

#[tokio::test]
async fn bases_take_the_place_of_appends() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (impatient(server.hasty()), "c".into());
    let journal = NatsJournal::connect(&options).await.unwrap();
    write(&journal, &id, Version(0), 1..=150).await;
    journal.save_bases(&id).await.unwrap();
    assert_eq!(bases(&server, &journal).await, 2);
    let stream = stream(&journal).await;
    // The first two bases have the first 128 appends, so that history is whole without these.
    let mut sequences = Vec::new();
    for _ in 0..128 {
        let first = stream.raw_message_builder().next_by_subject("t1.c.c").send().await.unwrap();
        stream.delete_message(first.sequence).await.unwrap();
        sequences.push(first.sequence);
    }
    assert_whole(&journal, &id, 150).await;
    let next = stream.raw_message_builder().next_by_subject("t1.c.c").send().await.unwrap();
    stream.delete_message(next.sequence).await.unwrap();
    let error = journal.chunks(&id, Window::default()).await.unwrap_err().to_string();
    assert!(error.contains("conversation c is damaged: append 130"), "{error}");
    assert!(error.contains("does not follow append 128"), "{error}");
}

#[tokio::test]
async fn several_nodes_may_save_bases_at_once() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.hasty(), "c".into());
    let mut journals = Vec::new();
    for _ in 0..4 {
        journals.push(NatsJournal::connect(&options).await.unwrap());
    }
    // Appends of another kind do not save any: their last number is no multiple.
    let version = write(&journals[0], &id, Version(0), 1..=63).await;
    let mut version = version;
    for round in 1..=5 {
        let numbers = 64 * round..=64 * round + 63;
        version = write(&journals[0], &id, version, numbers).await;
        let saved = join_all(journals.iter().map(|journal| journal.save_bases(&id))).await;
        assert!(saved.iter().all(Result::is_ok), "{saved:?}");
        assert_eq!(bases(&server, &journals[0]).await as u64, round + u64::from(round > 0) - 1);
        assert_whole(&journals[3], &id, 64 * round + 63).await;
    }
}

#[tokio::test]
async fn a_base_that_is_missing_or_damaged_is_an_error_and_nothing_is_deleted() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (impatient(server.hasty()), "c".into());
    let journal = NatsJournal::connect(&options).await.unwrap();
    write(&journal, &id, Version(0), 1..=200).await;
    journal.save_bases(&id).await.unwrap();
    assert_eq!(bases(&server, &journal).await, 3);
    let stream = stream(&journal).await;
    let last = stream.get_last_raw_message_by_subject("t1.b.c.base.log").await.unwrap();
    stream.delete_message(last.sequence).await.unwrap();
    // The same with another content.
    let context = async_nats::jetstream::new(journal.client().clone());
    let mut headers = async_nats::HeaderMap::new();
    for (name, values) in last.headers.iter() {
        headers.insert(name.clone(), values[0].as_str());
    }
    let content = str::from_utf8(&last.payload).unwrap().replace("text 150", "text 151");
    context.publish_with_headers("t1.b.c.base.log", headers, content.into()).await.unwrap().await.unwrap();
    let assert_damaged = async |what: &str| {
        let none = Retention { newest_turns: Some(0), sealed_before: None };
        let error = journal.drop_events(none).await.unwrap_err().to_string();
        assert!(error.contains("conversation c is damaged") && error.contains(what), "{error}");
        let error = journal.chunks(&id, Window::default()).await.unwrap_err().to_string();
        assert!(error.contains("conversation c is damaged") && error.contains(what), "{error}");
        assert!(error.contains("restore the stream from a backup"), "{error}");
        assert_eq!(server.subjects(&journal, "c.*").await.values().sum::<usize>(), 200);
    };
    assert_damaged("its content is not what was written").await;
    let first = stream.raw_message_builder().next_by_subject("t1.b.c.base.log").send().await.unwrap();
    stream.delete_message(first.sequence).await.unwrap();
    assert_damaged("base 2 (version ").await;
    assert_damaged("does not follow base 0").await;
}

#[tokio::test]
async fn appends_are_not_deleted_if_their_base_has_been_lost_since() {
    let Some(server) = Server::start("").await else { return };
    let (mut options, id) = (impatient(server.options()), "c".into());
    let patient = NatsJournal::connect(&options).await.unwrap();
    options.settled_after = Duration::ZERO;
    let journal = NatsJournal::connect(&options).await.unwrap();
    write(&journal, &id, Version(0), 1..=200).await;
    journal.save_bases(&id).await.unwrap();
    let one = Retention { newest_turns: Some(1), sealed_before: None };
    assert_eq!(patient.drop_events(one).await.unwrap(), 195);
    let stream = stream(&journal).await;
    let last = stream.get_last_raw_message_by_subject("t1.b.c.base.log").await.unwrap();
    stream.delete_message(last.sequence).await.unwrap();
    let first = stream.raw_message_builder().next_by_subject("t1.b.c.base.log").send().await.unwrap();
    stream.delete_message(first.sequence).await.unwrap();
    let appends = async || server.subjects(&journal, "c.*").await.values().sum::<usize>();
    let error = journal.drop_events(one).await.unwrap_err().to_string();
    assert!(error.contains("does not follow base 0"), "{error}");
    assert_eq!(appends().await, 200);
    // Without any base, new ones are as good.
    stream.purge().filter("t1.b.c.base.log").await.unwrap();
    assert_eq!(journal.drop_events(one).await, Ok(0));
    assert_eq!(appends().await, 6);
    assert_whole(&journal, &id, 200).await;
}

#[tokio::test]
async fn a_large_base_is_stored_in_parts_which_go_with_the_conversation() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.hasty(), "c".into());
    let journal = NatsJournal::connect(&options).await.unwrap();
    let image = StoredChunk {
        seq: 1,
        role: Role::User,
        chunk: Chunk::Image { url: "x".repeat(2 << 20), mime_type: None }.into(),
        supersedes: None,
    };
    let large = Commit::new(head(1)).chunk(image.clone());
    let mut version = journal.append(&id, Version(0), large).await.unwrap();
    let parts = async || server.subjects(&journal, "b.*.*.*").await.into_keys().collect::<Vec<_>>();
    let of_append = parts().await;
    assert_eq!(of_append.len(), 5);
    for number in 2..=64 {
        version = journal.append(&id, version, appended(number)).await.unwrap();
    }
    journal.save_bases(&id).await.unwrap();
    let none = Retention { newest_turns: Some(0), sealed_before: None };
    journal.drop_events(none).await.unwrap();
    let left = parts().await;
    assert!(of_append.iter().all(|part| !left.contains(part)), "the parts of the append are gone: {left:?}");
    assert_eq!(journal.sweep(Duration::ZERO).await.unwrap(), 0);
    assert_eq!(parts().await, left, "those of the base are no garbage");
    let chunks = journal.chunks(&id, Window::default()).await.unwrap();
    assert!(chunks.len() == 64 && *chunks[0] == image, "the image is whole");
    assert!(journal.remove(&id).await.unwrap());
    assert_eq!(parts().await, [""; 0]);
}
