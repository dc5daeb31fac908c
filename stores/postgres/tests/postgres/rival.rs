//! Rivals use the same conversations while answers are lost and Postgres is killed: what they are told could be told one after
//! another.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_orchestrator::Journal;
use everturn_sim::{
    linear::{Did, Plan, Record},
    nats::wait_for,
    relay::{Mode, Relay},
};
use everturn_store_postgres::{Options, PostgresJournal};
use tokio::time::timeout;

use crate::support::Server;

const CONVERSATIONS: usize = 4;
const SEEDS: u64 = 6;

/// How often an answer is lost and Postgres is killed, and the number of successful appends before each.
const FAULTS: usize = 3;
const BETWEEN: usize = 60;

/// How long answers are dropped. If those that were under way are of readings, no append is sent any more: there is no connection.
const DROPS: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rivals_are_told_what_could_be_told_one_after_another() {
    let Some(mut server) = Server::start().await else { return };
    let relay = Relay::to([server.server.address()]).await;
    let options = Options {
        url: server.server.url_at(&relay.address),
        // Given up before its outcome can be known.
        answer_within: Duration::from_millis(300),
        give_up_after: Duration::from_millis(300),
        ..server.options()
    };
    let postgres = Arc::new(PostgresJournal::open(&options).await.unwrap());
    let journal: Arc<dyn Journal> = postgres.clone();
    let record = Record::new(CONVERSATIONS, Plan { removes: true, lists: true, may_lag: false });
    let (stored, ends) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let rivals = (0..SEEDS).flat_map(|seed| record.rivals(0, &journal, seed));
    let tasks: Vec<_> = rivals
        .map(|mut rival| {
            let (stored, ends) = (stored.clone(), ends.clone());
            tokio::spawn(async move {
                while !ends.load(Ordering::Relaxed) {
                    stored.fetch_add(usize::from(rival.step().await == Did::Stored), Ordering::Relaxed);
                }
            })
        })
        .collect();
    let more = async || {
        let wanted = stored.load(Ordering::Relaxed) + BETWEEN;
        wait_for("more is stored", async || (stored.load(Ordering::Relaxed) >= wanted).then_some(())).await;
    };
    for _ in 0..FAULTS {
        more().await;
        let lost = postgres.lost_answers();
        let is_lost = async || (postgres.lost_answers() > lost).then_some(());
        loop {
            relay.mode.send_replace(Mode::DropAnswers);
            let dropped = timeout(DROPS, wait_for("an answer is lost", is_lost)).await;
            relay.mode.send_replace(Mode::Relay);
            more().await;
            if dropped.is_ok() {
                break;
            }
        }
        server.server.restart().await;
    }
    more().await;
    ends.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.unwrap();
    }
    let counts = record.audit(&journal).await;
    println!("{counts:?}");
    assert!(counts["unknown"] > 0 && counts["stale"] > 100, "{counts:?}");
}
