//! Dropping events while others read, write, drop and remove, and in spite of crashes.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Cursor, Journal, Retention, Version};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::ConversationId;
use futures_util::future::join_all;

use crate::{
    base::{appended, assert_whole, write},
    relay::{Direction, Gate},
    support::{Server, numbered},
};

fn newest(turns: u32) -> Retention {
    Retention { newest_turns: Some(turns), sealed_before: None }
}

async fn drop_now(journal: &NatsJournal, turns: u32) -> usize {
    journal.drop_events(newest(turns)).await.unwrap()
}

/// Returns where the events end.
async fn ends(journal: &NatsJournal, id: &ConversationId) -> Vec<u64> {
    let events = journal.events(id, Cursor::default(), usize::MAX).await.unwrap();
    events.iter().map(|event| event.end.value()).collect()
}

/// Returns the number of appends that are stored.
async fn appends(server: &Server, journal: &NatsJournal) -> usize {
    server.subjects(journal, "c.*").await.values().sum()
}

#[tokio::test]
async fn the_appends_of_dropped_events_are_deleted_and_nobody_else_notices() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.hasty(), "c.long".into());
    let [writer, other] =
        [NatsJournal::connect(&options).await.unwrap(), NatsJournal::connect(&options).await.unwrap()];
    let mut version = write(&writer, &id, Version(0), 1..=303).await;
    assert_eq!(drop_now(&other, 50).await, 50, "60 turns are sealed");
    assert_eq!(ends(&writer, &id).await, (51..=303).collect::<Vec<_>>());
    assert_eq!(appends(&server, &writer).await, 254, "the last seal stays");
    assert_eq!(drop_now(&other, 0).await, 250);
    assert_eq!((drop_now(&other, 0).await, appends(&server, &writer).await), (0, 4));
    for journal in [&writer, &other] {
        assert_eq!(ends(journal, &id).await, [301, 302, 303]);
        assert_whole(journal, &id, 303).await;
        let stored = journal.load(&id).await.unwrap().unwrap();
        assert_eq!((stored.version, stored.turn), (version, Some(crate::support::turn())));
    }
    // Whoever has it in memory, and who has not, may go on.
    version = write(&writer, &id, version, 304..=305).await;
    assert_eq!(drop_now(&other, 0).await, 5);
    assert_eq!(appends(&server, &writer).await, 1, "the last append stays");
    let alone = NatsJournal::connect(&options).await.unwrap();
    assert_eq!(alone.load(&id).await.unwrap().unwrap().version, version, "and is enough");
    version = write(&alone, &id, version, 306..=310).await;
    assert_eq!(ends(&writer, &id).await, [306, 307, 308, 309, 310]);
    assert_whole(&writer, &id, 310).await;
    let rest = server.subjects(&writer, "b.>").await;
    assert_eq!(rest.get("t1.b.c=2Elong.base.floor"), Some(&1), "earlier floors are gone: {rest:?}");
    let stale = writer.append(&id, Version(version.0 - 1), appended(311)).await;
    assert!(stale.is_err());
}

#[tokio::test]
async fn young_appends_are_deleted_later() {
    let Some(server) = Server::start("").await else { return };
    let mut options = server.options();
    let patient = NatsJournal::connect(&options).await.unwrap();
    options.settled_after = Duration::ZERO;
    let journal = NatsJournal::connect(&options).await.unwrap();
    write(&journal, &"c".into(), Version(0), 1..=100).await;
    assert_eq!(patient.drop_events(newest(1)).await.unwrap(), 95);
    assert_eq!(appends(&server, &journal).await, 100, "a writer may still ask whether it was stored");
    assert_eq!(ends(&journal, &"c".into()).await, [96, 97, 98, 99, 100]);
    assert_eq!(drop_now(&journal, 1).await, 0);
    assert_eq!(appends(&server, &journal).await, 6);
    assert_whole(&journal, &"c".into(), 100).await;
}

#[tokio::test]
async fn what_is_dropped_by_several_nodes_at_once_is_dropped_once() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.hasty(), "c".into());
    let mut journals = Vec::new();
    for _ in 0..4 {
        journals.push(NatsJournal::connect(&options).await.unwrap());
    }
    let mut version = Version(0);
    for round in 1..=6 {
        version = write(&journals[0], &id, version, 100 * round - 99..=100 * round).await;
        let dropped: usize = join_all(journals.iter().map(|journal| drop_now(journal, 2))).await.iter().sum();
        assert_eq!(dropped, if round == 1 { 90 } else { 100 });
        // One of them may have been refused when it only wanted to say that it is done.
        drop_now(&journals[1], 2).await;
        assert_eq!(appends(&server, &journals[0]).await, 11);
        assert_eq!(ends(&journals[3], &id).await, (100 * round - 9..=100 * round).collect::<Vec<_>>());
        assert_whole(&journals[2], &id, 100 * round).await;
    }
}

/// Returns options to reach the same journal through a gate.
pub(crate) fn behind(gate: &Gate, options: &Options) -> Options {
    let mut behind = Options::new([gate.url.clone()]);
    behind.prefix.clone_from(&options.prefix);
    behind.settled_after = options.settled_after;
    // Longer than the gate is closed.
    behind.answer_within = Duration::from_secs(60);
    behind.give_up_after = Duration::from_secs(120);
    behind
}

#[tokio::test]
async fn a_reader_in_the_middle_sees_all_or_begins_again() {
    const APPENDS: u64 = 1000;
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.hasty(), ConversationId::from("c"));
    let journal = NatsJournal::connect(&options).await.unwrap();
    write(&journal, &id, Version(0), 1..=APPENDS).await;
    let gate = Gate::to(server.server.url(), Direction::Answers).await;
    let reader = Arc::new(NatsJournal::connect(&behind(&gate, &options)).await.unwrap());
    let (mut kept, mut interrupted) = (APPENDS / 5, 0);
    for round in 0..40 {
        // The answers are between 100 and 700 kB.
        gate.close_after(300 + 9_000 * round);
        let events = tokio::spawn({
            let (reader, id) = (reader.clone(), id.clone());
            async move { ends(&reader, &id).await }
        });
        let chunks = tokio::spawn({
            let (reader, id) = (reader.clone(), id.clone());
            async move { assert_whole(&reader, &id, APPENDS).await }
        });
        let both = async { (events.await.unwrap(), chunks.await.unwrap()).0 };
        let mut both = std::pin::pin!(both);
        let before = kept;
        let ends = tokio::select! {
            biased;
            () = gate.closed() => {
                interrupted += 1;
                kept -= 4;
                assert_eq!(drop_now(&journal, u32::try_from(kept).unwrap()).await, 20);
                gate.open();
                both.await
            }
            ends = &mut both => ends,
        };
        let first = ends[0];
        assert!(
            [before, kept].iter().any(|kept| first == APPENDS - 5 * kept + 1),
            "events begin with those of a turn that is kept: {first}"
        );
        assert_eq!(ends, (first..=APPENDS).collect::<Vec<_>>(), "and none is missing");
        gate.open();
    }
    assert!(interrupted > 10, "{interrupted}");
}

#[tokio::test]
async fn a_crash_at_any_point_loses_nothing_and_the_next_call_continues() {
    // No base exists yet.
    const APPENDS: u64 = 60;
    let Some(server) = Server::start("").await else { return };
    let mut crashes = 0;
    for sent in (150_usize..).step_by(300) {
        let (options, id) = (server.hasty(), ConversationId::from("c"));
        let journal = NatsJournal::connect(&options).await.unwrap();
        write(&journal, &id, Version(0), 1..=APPENDS).await;
        let gate = Gate::to(server.server.url(), Direction::Requests).await;
        let crashing = Arc::new(NatsJournal::connect(&behind(&gate, &options)).await.unwrap());
        gate.close_after(sent);
        let dropping = tokio::spawn(async move { drop_now(&crashing, 2).await });
        let abort = dropping.abort_handle();
        tokio::select! {
            biased;
            dropped = dropping => {
                assert_eq!(dropped.unwrap(), 50);
                break;
            }
            () = gate.closed() => abort.abort(),
        }
        crashes += 1;
        assert_whole(&journal, &id, APPENDS).await;
        let first = ends(&journal, &id).await[0];
        assert!(first == 1 || first == 51, "all of them or those that are kept: {first}");
        let dropped = drop_now(&journal, 2).await;
        assert!(dropped == 50 || first == 51, "{dropped}");
        assert_eq!(ends(&journal, &id).await, (51..=APPENDS).collect::<Vec<_>>());
        assert_eq!(appends(&server, &journal).await, 11);
        assert_whole(&journal, &id, APPENDS).await;
    }
    assert!(crashes > 10, "{crashes}");
}

#[tokio::test]
async fn a_conversation_that_is_removed_meanwhile_stays_removed() {
    let Some(server) = Server::start("").await else { return };
    let mut interrupted = 0;
    for received in (200_usize..).step_by(1_500) {
        let (options, id) = (server.hasty(), ConversationId::from("c"));
        let journal = NatsJournal::connect(&options).await.unwrap();
        write(&journal, &id, Version(0), 1..=100).await;
        // Otherwise this may still happen in the background.
        journal.save_bases(&id).await.unwrap();
        let gate = Gate::to(server.server.url(), Direction::Answers).await;
        let late = Arc::new(NatsJournal::connect(&behind(&gate, &options)).await.unwrap());
        gate.close_after(received);
        let mut dropping = tokio::spawn(async move { drop_now(&late, 3).await });
        tokio::select! {
            biased;
            dropped = &mut dropping => {
                assert_eq!(dropped.unwrap(), 85);
                break;
            }
            () = gate.closed() => {}
        }
        interrupted += 1;
        assert!(journal.remove(&id).await.unwrap());
        let is_renewed = interrupted % 2 == 0;
        if is_renewed {
            journal.append(&id, Version(0), numbered(1, "new")).await.unwrap();
        }
        gate.open();
        dropping.await.unwrap();
        let left = server.subjects(&journal, "b.>").await;
        assert!(left.is_empty(), "after {received} bytes, {left:?}");
        let chunks = journal.chunks(&id, Default::default()).await.unwrap();
        assert_eq!(chunks, if is_renewed { numbered(1, "new").chunks } else { Vec::new() });
        assert_eq!(ends(&journal, &id).await, if is_renewed { vec![1] } else { Vec::new() });
    }
    assert!(interrupted > 10, "{interrupted}");
}
