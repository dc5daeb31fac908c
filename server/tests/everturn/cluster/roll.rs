//! A rolling upgrade: servers are replaced one by one while turns stream, wait and call tools.

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use everturn_sim::nats;
use tokio::time::{Instant, sleep};

use super::{
    TURNS,
    world::{SERVERS, Size, World},
};

/// Environment variable: another build of `everturn`, to which the servers are upgraded, and back. Without it, the same.
const OTHER: &str = "EVERTURN_CLUSTER_OTHER";

/// Pause between two replacements.
const BETWEEN: Duration = Duration::from_millis(500);

/// How long the turns may take that run at the end.
const END: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node"]
async fn servers_are_replaced_one_by_one_and_turns_go_on() {
    let Some(program) = nats::program() else { return };
    let this = Path::new(env!("CARGO_BIN_EXE_everturn"));
    roll(&program, Size { nats: 1, turns: 24, faults: SERVERS }, &[this]).await;
}

/// Run it by hand, with another build: `EVERTURN_CLUSTER_TURNS=300 EVERTURN_CLUSTER_OTHER=path/to/everturn cargo test -p
/// everturn --test everturn cluster::roll -- --ignored --nocapture`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Node"]
async fn servers_are_upgraded_and_downgraded_and_turns_go_on() {
    let Some(turns) = env::var(TURNS).ok().and_then(|turns| turns.parse().ok()) else { return };
    let Some(program) = nats::program() else { return };
    let this = PathBuf::from(env!("CARGO_BIN_EXE_everturn"));
    let other = env::var_os(OTHER).map_or_else(|| this.clone(), PathBuf::from);
    let size = Size { nats: 3, turns, faults: 4 * SERVERS };
    roll(&program, size, &[&other, &this, &other, &this]).await;
}

/// Replaces all servers by each of these builds in turn, one server after another.
async fn roll(program: &Path, size: Size, builds: &[&Path]) {
    let mut world = World::start(program, size, 0).await;
    let began = Instant::now();
    let replacements = u32::try_from(builds.len() * SERVERS).unwrap();
    let people = world.people((BETWEEN + Duration::from_secs(1)) * replacements);
    for build in builds {
        for at in 0..SERVERS {
            sleep(BETWEEN).await;
            world.leave(at).await;
            world.replace_with(at, build).await;
        }
    }
    world.end(people, END).await;
    eprintln!(
        "{} turns, {replacements} replacements: {:.1?}; {} provider calls more than undisturbed",
        size.turns,
        began.elapsed(),
        world.more_calls()
    );
}
