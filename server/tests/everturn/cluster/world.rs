//! NATS servers, three servers of conversations, a provider, a tool, and somebody who ends processes.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use everturn_sim::{
    Loopback,
    nats::{NatsCluster, NatsConfig, NatsServer},
};
use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    person::{Addresses, Person, Seen},
    provider::{self, ANSWER, CALLS, Calls},
};
use crate::{
    client::get,
    home::{Home, Server},
};

/// Number of servers of conversations.
pub(super) const SERVERS: usize = 3;

/// How long a calm end may take: each fault costs up to a lease (15 s), one after another.
const END: Duration = Duration::from_secs(60);

/// The size of a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// NATS servers: 1 or 3.
    pub(super) nats: usize,
    pub(super) turns: usize,
    pub(super) faults: usize,
}

/// The histories of all turns, without what differs from run to run.
pub(super) type Histories = BTreeMap<String, Value>;

pub(super) struct World {
    size: Size,
    random: fastrand::Rng,
    nats: Vec<NatsServer>,
    homes: Vec<Home>,
    servers: Vec<Server>,
    addresses: Addresses,
    _provider: Loopback,
    calls: Calls,
    directory: TempDir,
}

impl World {
    pub(super) async fn start(program: &Path, size: Size, seed: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let nats = match size.nats {
            1 => vec![NatsServer::start(program, directory.path(), NatsConfig::default()).await],
            _ => NatsCluster::start(program, directory.path(), NatsConfig::default()).await.servers,
        };
        let (provider, calls) = provider::start().await;
        let urls: Vec<_> = nats.iter().map(NatsServer::url).collect();
        let tool = if size.turns > 0 { tool(directory.path()) } else { String::new() };
        let homes = (0..SERVERS).map(|_| home(&provider, &urls, &tool)).collect();
        let mut world = Self {
            size,
            random: fastrand::Rng::with_seed(seed),
            nats,
            homes,
            servers: Vec::new(),
            addresses: Addresses::default(),
            _provider: provider,
            calls,
            directory,
        };
        world.start_all().await;
        world
    }

    /// The number of calls for turns with this message.
    pub(super) fn calls_of(&self, message: &str) -> usize {
        self.calls.lock().unwrap().get(message).copied().unwrap_or(0)
    }

    pub(super) fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Returns the address of a NATS server.
    pub(super) fn nats_url(&self) -> String {
        self.nats[0].url()
    }

    /// Ends the NATS servers at once, and starts them again.
    pub(super) async fn restart_nats(&mut self) {
        for server in &mut self.nats {
            server.kill();
        }
        for server in &mut self.nats {
            server.restart();
        }
        for server in &self.nats {
            server.wait_until_healthy().await;
        }
    }

    /// Starts all servers, after their end.
    pub(super) async fn start_all(&mut self) {
        self.servers = join_all(self.homes.iter().map(Home::serve)).await;
        self.tell_addresses();
    }

    fn tell_addresses(&self) {
        *self.addresses.lock().unwrap() =
            self.servers.iter().map(|server| server.authority().to_owned()).collect();
    }

    pub(super) async fn kill(&mut self, at: usize) {
        self.servers[at].child.kill().await.unwrap();
    }

    pub(super) async fn freeze(&mut self, at: usize) {
        self.signal(at, Signal::STOP);
    }

    pub(super) async fn thaw(&mut self, at: usize) {
        self.signal(at, Signal::CONT);
    }

    fn signal(&self, at: usize, signal: Signal) {
        let pid = i32::try_from(self.servers[at].child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Runs all turns, ends processes meanwhile, and checks what became of everything. Returns the histories.
    pub(super) async fn run(mut self) -> Histories {
        let began = Instant::now();
        let people = self.people(Duration::ZERO);
        for fault in 0..self.size.faults {
            sleep(Duration::from_millis(self.random.u64(500..2_500))).await;
            self.disturb(fault).await;
        }
        let end = END + Duration::from_secs(20) * u32::try_from(self.size.faults.min(20)).unwrap();
        let (seen, histories) = self.end(people, end).await;
        eprintln!(
            "{} turns, {} faults, {} NATS servers: {:.1?}; {} provider calls more than undisturbed, {} visits of servers",
            self.size.turns,
            self.size.faults,
            self.size.nats,
            began.elapsed(),
            self.more_calls(),
            seen.iter().map(|seen| seen.servers).sum::<usize>(),
        );
        histories
    }

    /// Begins all turns, one after another, within this time.
    pub(super) fn people(&self, within: Duration) -> Vec<JoinHandle<Seen>> {
        let turns = u32::try_from(self.size.turns).unwrap();
        let people = (0..turns).map(|turn| {
            let person = Person::new(self.addresses.clone(), format!("turn-{turn}"), turn.into());
            tokio::spawn(async move {
                sleep(within * turn / turns).await;
                person.take_part().await
            })
        });
        people.collect()
    }

    /// Waits until all turns have ended, and checks what became of them.
    pub(super) async fn end(
        &self,
        people: Vec<JoinHandle<Seen>>,
        within: Duration,
    ) -> (Vec<Seen>, Histories) {
        let seen = timeout(within, join_all(people)).await.expect("all turns end");
        let seen: Vec<Seen> = seen.into_iter().map(Result::unwrap).collect();
        let histories = self.check(&seen).await;
        (seen, histories)
    }

    /// Returns the number of provider calls that nobody would have made without faults.
    pub(super) fn more_calls(&self) -> usize {
        self.calls.lock().unwrap().values().map(|calls| calls - CALLS).sum()
    }

    /// Kills, freezes or restarts a server, or a NATS server if there are several.
    async fn disturb(&mut self, fault: usize) {
        let at = self.random.usize(..SERVERS);
        let nats = self.random.usize(..self.nats.len());
        let pause = Duration::from_millis(self.random.u64(500..3_000));
        match fault % if self.size.nats > 1 { 5 } else { 3 } {
            0 => {
                self.kill(at).await;
                self.replace(at).await;
            }
            1 => {
                self.freeze(at).await;
                sleep(pause).await;
                self.thaw(at).await;
            }
            2 => {
                self.leave(at).await;
                self.replace(at).await;
            }
            3 => {
                self.nats[nats].kill();
                sleep(pause).await;
                self.nats[nats].restart();
                self.nats[nats].wait_until_healthy().await;
            }
            _ => {
                self.nats[nats].freeze();
                sleep(pause).await;
                self.nats[nats].thaw();
            }
        }
    }

    /// Asks a server to end, and waits until it has.
    pub(super) async fn leave(&mut self, at: usize) {
        self.servers[at].terminate().await;
        self.ended(at).await;
    }

    /// Waits until a server has ended.
    pub(super) async fn ended(&mut self, at: usize) {
        self.servers[at].child.wait().await.unwrap();
    }

    pub(super) async fn replace(&mut self, at: usize) {
        self.servers[at] = self.homes[at].serve().await;
        self.tell_addresses();
    }

    /// Starts a server of another build in the place of one that has ended.
    pub(super) async fn replace_with(&mut self, at: usize, program: &Path) {
        self.servers[at] = self.homes[at].serve_with(program).await;
        self.tell_addresses();
    }

    async fn check(&self, seen: &[Seen]) -> Histories {
        let server = &self.servers[0];
        let mut histories = Histories::default();
        let ran = fs::read_to_string(self.directory.path().join("calls")).unwrap_or_default();
        let mut runs: BTreeMap<&str, usize> = BTreeMap::new();
        for line in ran.lines() {
            *runs.entry(line.strip_prefix("once ").unwrap()).or_default() += 1;
        }
        for (number, seen) in seen.iter().enumerate() {
            let turn = format!("turn-{number}");
            let history = get(server, &format!("/conversations/{turn}")).await.json().await;
            let of = |kind: &'static str| {
                let chunks = history["chunks"].as_array().unwrap().iter();
                chunks.filter(move |stored| stored["chunk"]["type"] == kind).collect::<Vec<_>>()
            };
            let said = of("text").into_iter().filter(|stored| stored["role"] == "assistant");
            let said: String = said.map(|stored| stored["chunk"]["text"].as_str().unwrap()).collect();
            assert_eq!(said, format!("One moment. {}", ANSWER.concat()), "{history}");
            assert_eq!(seen.text, said, "{turn} was seen as it is");
            assert_eq!(seen.seals, 1);
            let turns = history["turns"].as_array().unwrap();
            assert!(turns.len() == 1 && turns[0]["reason"] == "stop", "{history}");
            let (called, results) = (of("tool-call"), of("tool-result"));
            assert_eq!((called.len(), results.len()), (1, 1), "{history}");
            let result = results[0]["chunk"]["content"].to_string();
            let times = runs.get(turn.as_str()).copied().unwrap_or(0);
            assert!(times <= 1, "the tool of {turn} ran {times} times");
            let is_interrupted = result.contains("interrupted");
            assert!(is_interrupted || times == 1 && result.contains("noted"), "{turn}: {result}");
            let calls = self.calls.lock().unwrap()[&turn];
            assert!(
                (CALLS..=CALLS + self.size.faults).contains(&calls),
                "{turn} asked its provider {calls} times"
            );
            histories.insert(turn, without_times(history));
        }
        histories
    }
}

/// Returns what of a history must not depend on faults: its chunks, but not how the tool ended, and its turns, but not their
/// figures.
fn without_times(mut history: Value) -> Value {
    let mut chunks = history["chunks"].take();
    for stored in chunks.as_array_mut().unwrap() {
        let chunk = &mut stored["chunk"];
        if chunk["type"] == "tool-result" {
            *chunk = json!({ "type": "tool-result", "toolCallId": chunk["toolCallId"] });
        }
    }
    let reasons: Vec<_> = history["turns"].as_array().unwrap().iter().map(|turn| &turn["reason"]).collect();
    json!({ "chunks": chunks, "reasons": reasons, "status": history["status"] })
}

/// Returns the home of a server that keeps its conversations in NATS.
fn home(provider: &Loopback, nats: &[String], tool: &str) -> Home {
    Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[cluster]\nservers = {nats:?}\n\
         [retry]\nschedule = \"exponential\"\nbase_ms = 50\njitter = 0.0\n\
         [tools.policy]\n\"counting__*\" = \"allow\"\n\
         [[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n{tool}",
        provider.base_url(),
    ))
}

/// Returns the configuration of a tool that counts its calls. It needs Node.
fn tool(directory: &Path) -> String {
    let e2e = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("testing").join("e2e");
    let script = e2e.join("support/counting-server.mjs").display().to_string();
    let calls = directory.join("calls").display().to_string();
    format!("[[mcp]]\nname = \"counting\"\ncommand = \"node\"\nargs = [{script:?}, {calls:?}]\n")
}
