//! Many parked turns over three servers: the memory of each, and how long it takes until all are known again after a restart
//! of everything.

use std::{env, fs, sync::Arc, time::Duration};

use everturn_kernel::{Millis, Provider, Request, StreamEvent};
use everturn_orchestrator::{Exponential, Journal as _, Orchestrator, StartTurn, Unsealed, Wait};
use everturn_sim::nats::{self, wait_for};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::{Category, Failure};
use futures_util::{
    StreamExt as _, future,
    stream::{self, BoxStream},
};
use tokio::time::{Instant, sleep};

use super::world::{Size, World};
use crate::{client::get, home::Server};

/// Environment variable: number of parked turns.
const PARKED: &str = "EVERTURN_CLUSTER_PARKED";

/// Number of turns that begin at once.
const AT_ONCE: usize = 128;

/// How long all may take until they are known.
const PATIENCE: Duration = Duration::from_secs(180);

/// How long the turns wait: longer than this test takes.
const WAIT: Duration = Duration::from_secs(8 * 3600);

/// Prints figures. Run it by hand: `EVERTURN_CLUSTER_PARKED=100000 cargo test -p everturn --test everturn cluster::park --
/// --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and prints figures"]
async fn many_parked_turns_are_known_again_after_a_restart_of_everything() {
    let Some(turns) = env::var(PARKED).ok().and_then(|turns| turns.parse().ok()) else { return };
    let Some(program) = nats::program() else { return };
    let mut world = World::start(&program, Size { nats: 1, turns: 0, faults: 0 }, 0).await;
    let empty = memory(&world);
    for at in 0..world.servers().len() {
        world.kill(at).await;
    }
    let began = Instant::now();
    park(&world.nats_url(), turns).await;
    eprintln!("{turns} turns are parked after {:.1?}", began.elapsed());

    for round in ["they start", "everything is restarted"] {
        let began = Instant::now();
        world.restart_nats().await;
        let nats = began.elapsed();
        let began = Instant::now();
        world.start_all().await;
        let up = began.elapsed();
        // A server that is the first to see that nobody drives them knows more than its share.
        while known(&world).await.iter().sum::<usize>() < turns {
            assert!(began.elapsed() < PATIENCE, "{:?} turns are known", known(&world).await);
            sleep(Duration::from_millis(100)).await;
        }
        let all = began.elapsed();
        eprintln!(
            "{round}: NATS serves after {nats:.1?}; the servers after {up:.1?} more, and know all turns after {all:.1?}: {:?}",
            known(&world).await
        );
        for (server, empty) in memory(&world).iter().zip(&empty) {
            eprintln!("{} MB, {} MB when empty", server >> 20, empty >> 20);
        }
        for at in 0..world.servers().len() {
            world.kill(at).await;
        }
    }
}

/// Returns the resident memory of each server, in bytes.
fn memory(world: &World) -> Vec<u64> {
    let resident = |server: &Server| {
        let statm = fs::read_to_string(format!("/proc/{}/statm", server.child.id().unwrap())).unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
    };
    world.servers().iter().map(resident).collect()
}

/// Returns the number of waiting turns that each server knows.
async fn known(world: &World) -> Vec<usize> {
    let mut all = Vec::new();
    for server in world.servers() {
        let (mut metrics, mut waiting) = (get(server, "/metrics").await, 0.0);
        while let Some(line) = metrics.line().await {
            if let Some(count) = line.strip_prefix("everturn_turns_waiting ") {
                waiting = count.parse::<f64>().unwrap();
            }
        }
        all.push(waiting as usize);
    }
    all
}

/// Begins turns whose provider is overloaded, until all wait.
async fn park(nats: &str, turns: usize) {
    let journal = Arc::new(NatsJournal::connect(&Options::new([nats])).await.unwrap());
    let schedule = Exponential { base: WAIT, max_delay: None, ..Exponential::default() };
    let builder = Orchestrator::builder().model("sim", "model", Arc::new(Overloaded));
    let parking = builder.journal(journal.clone()).schedule(schedule).build();
    let begun = stream::iter(0..turns).map(|turn| {
        let start = StartTurn::new("hi").conversation(format!("parked-{turn}").as_str());
        let parking = &parking;
        async move { parking.start(start).await.unwrap() }
    });
    begun.buffer_unordered(AT_ONCE).for_each(|_| future::ready(())).await;
    let waits = |turn: &Unsealed| matches!(turn.wait, Wait::Until(_));
    wait_for("all turns are parked", async || {
        let unsealed = journal.unsealed(Millis(u64::MAX)).await.unwrap();
        (unsealed.iter().filter(|turn| waits(turn)).count() == turns).then_some(())
    })
    .await;
    parking.abandon();
}

/// A provider that is always overloaded.
struct Overloaded;

impl Provider for Overloaded {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let failure = Failure::new(Category::Overloaded, true, "HTTP 529: overloaded");
        stream::once(future::ready(StreamEvent::Failed(failure))).boxed()
    }
}
