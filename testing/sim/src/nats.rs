//! Real NATS servers on loopback ports, which can be frozen, killed and started again, and cut off from each other.

mod disk;
mod routes;

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{self, Instant},
};

pub use disk::SmallDisks;
pub use routes::Routes;

/// Environment variable: the path of the `nats-server` program. Where it is set, tests must not skip.
pub const PROGRAM: &str = "EVERTURN_NATS_SERVER";

/// Where the test command installs the program, below the target directory.
const INSTALLED: &str = "nats/bin/nats-server";

/// How long a server or an election may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Returns the `nats-server` program, or prints why the calling test is skipped.
///
/// # Panics
/// If the environment names a program that does not exist.
pub fn program() -> Option<PathBuf> {
    if let Some(path) = env::var_os(PROGRAM).map(PathBuf::from) {
        assert!(path.is_file(), "{PROGRAM} is {}, which is not a file", path.display());
        return Some(path);
    }
    let test = env::current_exe().ok()?;
    let found = test.ancestors().map(|folder| folder.join(INSTALLED)).find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: no nats-server; `cargo xtask test` installs it, or {PROGRAM} names it");
    }
    found
}

/// Additions to a server's configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct NatsConfig<'c> {
    /// What is added to the block `jetstream`, such as `sync_interval: always`.
    pub jetstream: &'c str,
    /// What is added outside of blocks.
    pub server: &'c str,
    /// What is added to the block `cluster`, such as `no_advertise: true`.
    pub cluster: &'c str,
    /// The command that runs the server, such as `strace -D`, in words; it must become the server. Empty = none.
    pub within: &'c [String],
}

/// A server, which ends when this is dropped.
#[derive(Debug)]
pub struct NatsServer {
    /// The command in words: the program comes last.
    command: Vec<OsString>,
    config: PathBuf,
    log: PathBuf,
    name: String,
    client_port: u16,
    monitor_port: u16,
    process: Child,
}

impl NatsServer {
    /// Starts a server that keeps its data in this directory, with additional configuration. It is ready when this
    /// returns.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(program: &Path, directory: &Path, more: NatsConfig<'_>) -> Self {
        let server = Self::launch(program, directory, "single", free_ports(), more);
        server.wait_until_healthy().await;
        server
    }

    fn launch(
        program: &Path,
        directory: &Path,
        name: &str,
        [client_port, monitor_port]: [u16; 2],
        more: NatsConfig<'_>,
    ) -> Self {
        let directory = directory.join(name);
        fs::create_dir_all(&directory).expect("the directory can be created");
        let config = directory.join("server.conf");
        let text = format!(
            "server_name: {name}\nlisten: \"127.0.0.1:{client_port}\"\nhttp: \"127.0.0.1:{monitor_port}\"\n\
             jetstream {{ store_dir: \"{}\", max_file_store: 20GB, {} }}\n{}\n",
            directory.display(),
            more.jetstream,
            more.server
        );
        fs::write(&config, text).expect("the configuration can be written");
        let log = directory.join("server.log");
        let command: Vec<OsString> = more.within.iter().map(OsString::from).chain([program.into()]).collect();
        let process = run(&command, &config, &log);
        Self { command, config, log, name: name.to_owned(), client_port, monitor_port, process }
    }

    /// Returns its address for clients.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.client_port)
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Kills it, as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops its process without ending it: its connections stay open, and nothing is answered.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Continues its frozen process.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status();
        assert!(sent.expect("kill can be started").success(), "{signal} to {}", self.name);
    }

    /// Starts it again with its data, after [`Self::kill`]. It may not be ready yet.
    pub fn restart(&mut self) {
        self.kill();
        self.process = run(&self.command, &self.config, &self.log);
    }

    /// Waits until it serves.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn wait_until_healthy(&self) {
        let is_healthy = async || {
            let health = self.monitor("/healthz").await?;
            (health["status"] == "ok").then_some(())
        };
        wait_for(&format!("{} serves (its log is {})", self.name, self.log.display()), is_healthy).await;
    }

    /// Returns a document of its monitoring, such as `/jsz`; `None` if it does not answer soon.
    pub async fn monitor(&self, path: &str) -> Option<Value> {
        time::timeout(Duration::from_secs(1), get(self.monitor_port, path)).await.ok()?
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A cluster of three servers, which end when this is dropped.
#[derive(Debug)]
pub struct NatsCluster {
    /// The servers.
    pub servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts three servers that keep their data in this directory, with additional configuration. They are ready when
    /// this returns.
    ///
    /// # Panics
    /// If they do not start.
    pub async fn start(program: &Path, directory: &Path, more: NatsConfig<'_>) -> Self {
        let ports: [u16; 9] = free_ports();
        let route = |port| format!("127.0.0.1:{port}");
        Self::launch(program, directory, ports, |_, to| route(ports[to]), more).await
    }

    /// Like [`Self::start`], with relays between the servers.
    ///
    /// # Panics
    /// If they do not start.
    pub async fn start_divisible(program: &Path, directory: &Path) -> (Self, Routes) {
        let ports: [u16; 9] = free_ports();
        let routes = Routes::between([ports[0], ports[1], ports[2]]).await;
        // Nobody learns of a way around the relays: nothing listens on the advertised port.
        let more = NatsConfig {
            cluster: "no_advertise: true, cluster_advertise: \"127.0.0.1:1\"",
            ..NatsConfig::default()
        };
        let address = |from, to| routes.address(from, to);
        let cluster = Self::launch(program, directory, ports, address, more).await;
        (cluster, routes)
    }

    /// Starts servers with these ports: for routes, for clients and for monitoring. `route`: the address at which one
    /// reaches another.
    async fn launch(
        program: &Path,
        directory: &Path,
        ports: [u16; 9],
        route: impl Fn(usize, usize) -> String,
        more: NatsConfig<'_>,
    ) -> Self {
        let server = |n: usize| {
            let others = (0..3).filter(|to| *to != n);
            let routes: Vec<_> = others.map(|to| format!("\"nats://{}\"", route(n, to))).collect();
            // A frozen peer is noticed sooner than after minutes.
            let server = format!(
                "ping_interval: \"2s\"\ncluster {{ name: test, listen: \"127.0.0.1:{}\", routes: [{}], {} }}\n{}",
                ports[n],
                routes.join(", "),
                more.cluster,
                more.server
            );
            let client_and_monitor = [ports[3 + n], ports[6 + n]];
            NatsServer::launch(
                program,
                directory,
                &format!("n{n}"),
                client_and_monitor,
                NatsConfig { server: &server, ..more },
            )
        };
        let servers: Vec<_> = (0..3).map(server).collect();
        for server in &servers {
            server.wait_until_healthy().await;
            // Two of three are enough to serve, but then clients of the third do not hear the others' clients.
            let knows_others = async || {
                let state = server.monitor("/routez").await?;
                let peers =
                    state["routes"].as_array()?.iter().filter_map(|route| route["remote_name"].as_str());
                (peers.collect::<BTreeSet<_>>().len() == 2).then_some(())
            };
            wait_for(&format!("{} is connected to the others", server.name), knows_others).await;
        }
        Self { servers }
    }

    /// Returns the addresses for clients.
    pub fn urls(&self) -> Vec<String> {
        self.servers.iter().map(NatsServer::url).collect()
    }

    /// Waits until a server that answers knows the leader of a stream, and returns the leader's place in the list.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn leader_of(&self, stream: &str) -> usize {
        wait_for(&format!("{stream} has a leader"), async || {
            for server in &self.servers {
                let Some(state) = server.monitor("/jsz?accounts=1&streams=1").await else { continue };
                let accounts = state["account_details"].as_array().into_iter().flatten();
                let mut streams =
                    accounts.flat_map(|account| account["stream_detail"].as_array().into_iter().flatten());
                let leader =
                    streams.find(|found| found["name"] == stream).map(|found| &found["cluster"]["leader"]);
                let place =
                    leader.and_then(|name| self.servers.iter().position(|server| *name == *server.name));
                if place.is_some() {
                    return place;
                }
            }
            None
        })
        .await
    }
}

/// Waits until `look` returns something.
///
/// # Panics
/// If that takes three minutes.
pub async fn wait_for<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < until, "waited {PATIENCE:?} until {what}");
        time::sleep(Duration::from_millis(20)).await;
    }
}

fn run(words: &[OsString], config: &Path, log: &Path) -> Child {
    let log = File::options().create(true).append(true).open(log).expect("the log can be opened");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("-c").arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("nats-server can be started")
}

/// Returns ports that were free a moment ago. Unlike ports that the server chooses, they are the same after a restart.
fn free_ports<const N: usize>() -> [u16; N] {
    let bound = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    bound.map(|port| port.local_addr().expect("it has an address").port())
}

async fn get(port: u16, path: &str) -> Option<Value> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    connection.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    connection.take(16 << 20).read_to_end(&mut answer).await.ok()?;
    let text = String::from_utf8(answer).ok()?;
    serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
}
