//! The servers of NATS do not hear each other, or only one way: what rivals were told is what is stored. Each rival uses one
//! server and no other, so they are on both sides.

use std::time::Duration;

use everturn_sim::nats::{self, NatsCluster, Routes};
use tokio::time::sleep;

use crate::{
    cluster::{PLAN, connect, options},
    rivals::Rivals,
    support::CLUSTER,
};

const CONVERSATIONS: usize = 20;

/// Number of successful appends between two faults.
const BETWEEN: usize = 200;

/// Times that a server is cut off and connected again in a row, and how long each takes: less than is needed to notice, and more.
const FLAPS: u64 = 8;
const FLAP: Duration = Duration::from_millis(400);

/// A fault of one server.
type Fault = fn(&Routes, usize);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_isolated_leader_is_replaced_and_acknowledges_nothing_meanwhile() {
    run(&[("the leader is isolated", Routes::isolate)], false).await;
}

/// Run it by hand: `cargo test -p everturn-store-nats --test nats partition -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn every_partition_is_told_as_it_is_stored() {
    let faults: [(&str, Fault); 3] = [
        ("the leader is isolated", Routes::isolate),
        ("the leader is not heard", Routes::mute),
        ("the leader does not hear", Routes::deafen),
    ];
    run(&faults, true).await;
}

/// `flaps`: whether each server is then cut off again and again, too.
async fn run(faults: &[(&str, Fault)], flaps: bool) {
    let Some(program) = nats::program() else { return };
    let _alone = CLUSTER.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let (cluster, routes) = NatsCluster::start_divisible(&program, directory.path()).await;
    let mut rivals = Rivals::new(CONVERSATIONS, PLAN);
    for url in cluster.urls() {
        let mut options = options([url], "rivals");
        // Shorter than a partition, so it must say that it does not know.
        options.give_up_after = Duration::from_secs(2);
        rivals.join(connect(&options).await);
    }
    rivals.appended(BETWEEN).await;
    for (what, fault) in faults {
        let leader = cluster.leader_of("RIVALS").await;
        let before = rivals.unknown();
        fault(&routes, leader);
        // The others elect another one, which serves.
        rivals.appended_elsewhere(BETWEEN, leader).await;
        routes.heal();
        rivals.appended_at(BETWEEN, leader).await;
        println!("{what}: {} answers lost", rivals.unknown() - before);
    }
    if flaps {
        for server in 0..3 {
            for flap in 0..FLAPS {
                routes.isolate(server);
                sleep(FLAP * u32::try_from(flap).unwrap()).await;
                routes.heal();
                rivals.appended(BETWEEN / 10).await;
            }
        }
        println!("cut off again and again: {} answers lost in all", rivals.unknown());
    }
    assert!(rivals.unknown() > 0, "the faults hit some append");
    rivals.audit(connect(&options(cluster.urls(), "rivals")).await).await;
}
