//! Three servers: it does what every journal does, and what rivals were told is what is stored, while a leader is frozen
//! and another killed.

use std::{cell::Cell, sync::Arc, time::Duration};

use everturn_orchestrator::Journal;
use everturn_sim::{
    linear::Plan,
    nats::{self, NatsCluster, NatsConfig},
    relay::Mode,
};
use everturn_store_nats::{NatsJournal, Options};

use crate::{
    relay::{self, relay},
    rivals::Rivals,
    support::CLUSTER,
};

const WRITERS: usize = 4;
const CONVERSATIONS: usize = 40;

/// A server that was frozen or cut off may answer before it knows that it was replaced.
pub(crate) const PLAN: Plan = Plan { removes: true, lists: true, may_lag: true };

/// Number of successful appends between two faults.
const BETWEEN: usize = 300;

/// Number of appends whose answer is lost, in the long test.
const UNKNOWN: u64 = 10_000;

/// Writers of the long test, each behind a relay of its own.
const BEHIND_RELAYS: u64 = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_rivals_are_told_is_what_is_stored() {
    let Some(program) = nats::program() else { return };
    let _alone = CLUSTER.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = NatsCluster::start(&program, directory.path(), NatsConfig::default()).await;

    let count = Cell::new(0);
    everturn_sim::journal::conformance(async || {
        count.set(count.get() + 1);
        connect(&options(cluster.urls(), &format!("t{}", count.get()))).await as Arc<dyn Journal>
    })
    .await;

    let mut rivals = Rivals::new(CONVERSATIONS, PLAN);
    for writer in 0..WRITERS {
        let mut options = options(cluster.urls(), "rivals");
        if writer == 0 {
            // Shorter than an election, so it must say that it does not know.
            options.give_up_after = Duration::from_secs(2);
        }
        rivals.join(connect(&options).await);
    }
    rivals.list().await;
    rivals.appended(BETWEEN).await;
    disturb(&mut cluster, &rivals).await;
    assert!(rivals.unknown() > 0, "the faults hit some append");
    rivals.audit(connect(&options(cluster.urls(), "rivals")).await).await;
}

/// Run it by hand: `cargo test -p everturn-store-nats --test nats cluster::ten_thousand -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn ten_thousand_unknown_outcomes_are_told_as_they_are_stored() {
    let Some(program) = nats::program() else { return };
    let _alone = CLUSTER.lock().await;
    let directory = tempfile::tempdir().unwrap();
    // Otherwise clients would learn of the servers behind the relays.
    let more = NatsConfig { cluster: "no_advertise: true", ..NatsConfig::default() };
    let mut cluster = NatsCluster::start(&program, directory.path(), more).await;
    let (mut rivals, mut disturbances) = (Rivals::new(CONVERSATIONS, PLAN), Vec::new());
    for writer in 0..BEHIND_RELAYS {
        let (relay, url) = relay(cluster.urls()).await;
        let relay = Arc::new(relay);
        let mut options = options([url], "rivals");
        options.answer_within = Duration::from_millis(300);
        if writer % 2 == 0 {
            // Often shorter than what is dropped, so it must say that it does not know.
            options.give_up_after = Duration::from_millis(500);
        }
        rivals.join(connect(&options).await);
        let random = fastrand::Rng::with_seed(writer);
        let disturbed = relay.clone();
        disturbances.push((relay, tokio::spawn(async move { relay::disturb(&disturbed, random).await })));
    }
    // One that nothing stands in the way of but the servers.
    rivals.join(connect(&options(cluster.urls(), "rivals")).await);
    while rivals.unknown() < UNKNOWN {
        disturb(&mut cluster, &rivals).await;
        println!("{} answers lost", rivals.unknown());
    }
    for (relay, disturbance) in &disturbances {
        disturbance.abort();
        relay.mode.send_replace(Mode::Relay);
    }
    rivals.audit(connect(&options(cluster.urls(), "rivals")).await).await;
}

/// Freezes a leader, and kills another.
async fn disturb(cluster: &mut NatsCluster, rivals: &Rivals) {
    let frozen = cluster.leader_of("RIVALS").await;
    cluster.servers[frozen].freeze();
    rivals.appended(BETWEEN).await;
    cluster.servers[frozen].thaw();
    rivals.appended(BETWEEN).await;
    let killed = cluster.leader_of("RIVALS").await;
    cluster.servers[killed].kill();
    rivals.appended(BETWEEN).await;
    cluster.servers[killed].restart();
    cluster.servers[killed].wait_until_healthy().await;
    rivals.appended(BETWEEN).await;
}

pub(crate) fn options(servers: impl IntoIterator<Item = String>, prefix: &str) -> Options {
    let mut options = Options::new(servers);
    options.prefix = prefix.to_owned();
    options.answer_within = Duration::from_secs(1);
    options.connect_within = Duration::from_secs(60);
    options
}

pub(crate) async fn connect(options: &Options) -> Arc<NatsJournal> {
    Arc::new(NatsJournal::connect(options).await.unwrap())
}
