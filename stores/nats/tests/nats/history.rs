//! Figures of a long conversation, not checks: `cargo test -p everturn-store-nats --test nats -- --ignored --nocapture history`.

use std::time::Instant;

use everturn_orchestrator::{Commit, Journal, Retention, Version, Window};
use everturn_store_nats::NatsJournal;
use everturn_wire::{ConversationId, TurnMetrics};

use crate::support::{Server, numbered, turn};

/// Returns the commit of an append: a question, or an answer, which seals the turn.
fn exchanged(number: u64) -> Commit {
    match number.is_multiple_of(2) {
        true => numbered(number, &"word ".repeat(200)).seal(TurnMetrics::new("t".into())),
        false => numbered(number, &"word ".repeat(20)).turn(turn()),
    }
}

/// Reading a conversation of 2,000 appends and 1,000 turns, and its size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "checks nothing"]
async fn with_bases() {
    let server = Server::start("").await.unwrap();
    let options = server.hasty();
    let journal = NatsJournal::connect(&options).await.unwrap();
    let (id, mut version) = (ConversationId::from("c"), Version(0));
    let (mut plain, mut first_events) = (0, Vec::new());
    let begun = Instant::now();
    for number in 1..=2_000_u64 {
        let commit = exchanged(number);
        plain += serde_json::to_string(&commit.chunks[0]).unwrap().len();
        let begun = Instant::now();
        version = journal.append(&id, version, commit).await.unwrap();
        first_events.push(begun.elapsed());
    }
    first_events.sort();
    let p99 = first_events[first_events.len() * 99 / 100];
    println!("written in {:?}: append p50 {:?}, p99 {p99:?}", begun.elapsed(), first_events[1_000]);
    journal.save_bases(&id).await.unwrap();
    let context = async_nats::jetstream::new(journal.client().clone());
    let stream = context.get_stream("T1").await.unwrap();
    let bytes = async || stream.get_info().await.unwrap().state.bytes;
    let all = bytes().await;
    println!("chunks: {plain} bytes; appends and bases: {all} bytes");
    let reader = NatsJournal::connect(&options).await.unwrap();
    read("with bases", &reader, &id).await;
    let all_but_last = Retention { newest_turns: Some(1), sealed_before: None };
    let begun = Instant::now();
    journal.drop_events(all_but_last).await.unwrap();
    println!("dropped in {:?}: {} bytes left", begun.elapsed(), bytes().await);
    read("after dropping", &reader, &id).await;
    let begun = Instant::now();
    journal.drop_events(all_but_last).await.unwrap();
    println!("nothing to drop, in {:?}", begun.elapsed());
}

/// The same conversation as without bases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "checks nothing"]
async fn without_bases() {
    let server = Server::start("").await.unwrap();
    let options = server.hasty();
    let journal = NatsJournal::connect(&options).await.unwrap();
    let (id, mut version) = (ConversationId::from("c"), Version(0));
    for number in 1..=2_000_u64 {
        let commit = exchanged(number);
        version = journal.append(&id, version, commit).await.unwrap();
    }
    let context = async_nats::jetstream::new(journal.client().clone());
    let stream = context.get_stream("T1").await.unwrap();
    stream.purge().filter("t1.b.>").await.unwrap();
    println!("appends alone: {} bytes", stream.get_info().await.unwrap().state.bytes);
    read("without bases", &NatsJournal::connect(&options).await.unwrap(), &id).await;
}

async fn read(what: &str, journal: &NatsJournal, id: &ConversationId) {
    let newest = Window { limit: Some(50), ..Default::default() };
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..9 {
        let begun = Instant::now();
        assert_eq!(journal.chunks(id, Default::default()).await.unwrap().len(), 2_000);
        times[0].push(begun.elapsed());
        let begun = Instant::now();
        assert_eq!(journal.chunks(id, newest).await.unwrap().len(), 50);
        times[1].push(begun.elapsed());
        let begun = Instant::now();
        assert_eq!(journal.metrics(id).await.unwrap().len(), 1_000);
        times[2].push(begun.elapsed());
    }
    times.iter_mut().for_each(|times| times.sort());
    let [all, some, figures] = times.map(|times| times[4]);
    println!("{what}: all chunks {all:?}, newest 50 {some:?}, figures {figures:?}");
}
