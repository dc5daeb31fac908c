//! Everything at once: turns, calls that pass through, callers whose tokens change, deletions, stops, and a provider that
//! fails, with one server that lives on and one that is killed again and again. Nobody is answered twice or not at all, and
//! what the first server uses stays the same. `cargo xtask soak --minutes N` runs it for long.

mod client;
mod follower;
mod gauge;
mod provider;
mod site;

use std::{
    env,
    time::{Duration, Instant},
};

use tokio::join;

use gauge::Gauge;
use site::{Over, Site};

/// How long it runs; in an ordinary test run a number of tasks instead.
const MINUTES: &str = "EVERTURN_SOAK_MINUTES";
/// Tasks of clients, of each server, without [`MINUTES`].
const TASKS: usize = 120;
/// Threads that an ordinary run may begin for what blocks: it is over before they were idle for ten seconds, and end. A leaked
/// thread for each task would be 40 in the last third.
const POOL: u64 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_and_the_server_stays_as_it_is() {
    let minutes = env::var(MINUTES).ok().map(|text| text.parse::<f64>().expect("a number of minutes"));
    let over = match minutes {
        Some(minutes) => Over::At(Instant::now() + Duration::from_secs_f64(minutes * 60.0)),
        None => Over::After(TASKS),
    };
    let steady = Site::new(over, None).await;
    let killed = Site::new(over, Some(TASKS / 6)).await;
    let mut gauge = Gauge::default();
    join!(steady.run(|site, server| gauge.read(site, server)), killed.run(|_, _| {}));
    eprintln!("steady: {}\nkilled: {}\n{gauge}", steady.tally(), killed.tally());
    let grown = gauge.grown(if minutes.is_none() { POOL } else { 0 });
    // A short run is over before memory and the file have what they need.
    assert!(minutes.is_none() || grown.is_empty(), "still growing: {grown:?}");
    assert!(!grown.iter().any(|what| ["descriptors", "threads"].contains(what)), "still growing: {grown:?}");
}
