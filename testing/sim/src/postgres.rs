//! Real Postgres servers on loopback ports, which can be frozen, killed and started again, and standbys.

use std::{
    env,
    fs::{self, File},
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::nats::wait_for;

/// Environment variable: the directory of the programs `initdb`, `postgres` and `psql`. Where it is set, tests must not
/// skip.
pub const PROGRAMS: &str = "EVERTURN_POSTGRES_BIN";

/// Where Debian installs the programs, below a directory for each version.
const INSTALLED: &str = "/usr/lib/postgresql";

/// The user and group `nobody`: Postgres refuses to run as root.
const NOBODY: u32 = 65534;

/// The user of servers.
const USER: &str = "everturn";
/// The password of the servers' user.
pub const PASSWORD: &str = "correct-horse-7";

/// Returns the directory of the programs, or prints why the calling test is skipped.
///
/// # Panics
/// If the environment names a directory without them.
pub fn programs() -> Option<PathBuf> {
    let is_complete =
        |folder: &PathBuf| ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file());
    if let Some(folder) = env::var_os(PROGRAMS).map(PathBuf::from) {
        assert!(is_complete(&folder), "{PROGRAMS} is {}, which has no initdb", folder.display());
        return Some(folder);
    }
    let versions = fs::read_dir(INSTALLED).into_iter().flatten().flatten();
    let mut installed: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    installed.sort();
    let path = env::var_os("PATH").unwrap_or_default();
    let found = installed.into_iter().rev().chain(env::split_paths(&path)).find(is_complete);
    if found.is_none() {
        eprintln!("skipped: no Postgres; `cargo xtask test` installs it, or {PROGRAMS} names its programs");
    }
    found
}

/// A server with one database, which ends when this is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    programs: PathBuf,
    directory: PathBuf,
    port: u16,
    settings: Vec<String>,
    process: Child,
}

impl PostgresServer {
    /// Starts a server that keeps its data in this directory, with additional settings such as `ssl=on` or `fsync=on`. It owns the files
    /// that are there, such as a key. It is ready when this returns.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(programs: &Path, directory: &Path, settings: &[&str]) -> Self {
        fs::write(directory.join("password"), PASSWORD).expect("the password can be written");
        give_away(directory);
        // Flushing a cluster that is empty protects nothing.
        let made = in_directory(programs, "initdb", directory)
            .args(["-D", "data", "-U", USER, "-A", "scram-sha-256", "--pwfile", "password"])
            .args(["-E", "UTF8", "--locale", "C", "--no-sync"])
            .output()
            .expect("initdb can be started");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Self::serve(programs, directory, settings).await
    }

    /// Starts a standby, which keeps its data in this directory. It is ready when this returns.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn standby(&self, directory: &Path) -> Self {
        give_away(directory);
        let copied = in_directory(&self.programs, "pg_basebackup", directory)
            .args(["-D", "data", "-R", "-X", "stream", "-c", "fast", "--no-sync"])
            .args(["-h", "127.0.0.1", "-U", USER, "-p", &self.port.to_string()])
            .env("PGPASSWORD", PASSWORD)
            .output()
            .expect("pg_basebackup can be started");
        assert!(copied.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&copied.stderr));
        Self::serve(&self.programs, directory, self.settings.clone()).await
    }

    /// Makes a standby the primary.
    ///
    /// # Panics
    /// If it does not become one.
    pub fn promote(&self) {
        assert_eq!(self.sql("SELECT pg_promote()"), "t");
    }

    async fn serve(programs: &Path, directory: &Path, settings: Vec<String>) -> Self {
        let bound = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = bound.local_addr().expect("it has an address").port();
        drop(bound);
        let process = run(programs, directory, port, &settings);
        let mut server =
            Self { programs: programs.to_owned(), directory: directory.to_owned(), port, settings, process };
        server.wait_until_ready().await;
        server
    }

    /// Returns its address, as `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL of its database, with user and password.
    pub fn url(&self) -> String {
        self.url_at(&self.address())
    }

    /// Returns the URL of its database behind this address.
    pub fn url_at(&self, address: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@{address}/postgres")
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Runs SQL as its superuser, and returns what is selected, line by line.
    ///
    /// # Panics
    /// If that fails.
    pub fn sql(&self, sql: &str) -> String {
        let ran = Command::new(self.programs.join("psql"))
            .args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", USER])
            .args(["-d", "postgres", "-p", &self.port.to_string(), "-c", sql])
            .env("PGPASSWORD", PASSWORD)
            .output()
            .expect("psql can be started");
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// Kills it, as `kill -9` does. Its connections are lost.
    pub fn kill(&mut self) {
        // Those of its connections, too: they could answer once more before they notice.
        self.signal_all("-KILL");
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again with its data, after [`Self::kill`]. It is ready when this returns.
    ///
    /// # Panics
    /// If that takes too long.
    pub async fn restart(&mut self) {
        self.kill();
        self.process = run(&self.programs, &self.directory, self.port, &self.settings);
        self.wait_until_ready().await;
    }

    async fn wait_until_ready(&mut self) {
        let server = std::cell::RefCell::new(self);
        let is_ready = async || {
            let mut server = server.borrow_mut();
            if server.process.try_wait().is_ok_and(|ended| ended.is_some()) {
                // Processes of a killed server may still use its memory.
                server.process = run(&server.programs, &server.directory, server.port, &server.settings);
            }
            let port = server.port.to_string();
            let asked = Command::new(server.programs.join("pg_isready"))
                .args(["-q", "-h", "127.0.0.1", "-p", &port])
                .status();
            asked.is_ok_and(|status| status.success()).then_some(())
        };
        wait_for("Postgres serves", is_ready).await;
    }

    /// Stops the process that accepts connections, and those of its connections, without ending them.
    pub fn freeze(&self) {
        self.signal_all("-STOP");
    }

    /// Continues what is frozen.
    pub fn thaw(&self) {
        self.signal_all("-CONT");
    }

    fn signal_all(&self, signal: &str) {
        let parent = self.process.id().to_string();
        let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        let pids = [parent.as_str()].into_iter().chain(listed.split_whitespace());
        // A child may have ended meanwhile.
        let _ = Command::new("kill").arg(signal).args(pids).stderr(Stdio::null()).status();
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // An immediate end: its processes and its shared memory go with it.
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-CONT", &pid]).stderr(Stdio::null()).status();
        let asked = Command::new("kill").args(["-QUIT", &pid]).stderr(Stdio::null()).status();
        if asked.is_ok_and(|status| status.success()) {
            let _ = self.process.wait();
        } else {
            self.kill();
        }
    }
}

fn run(programs: &Path, directory: &Path, port: u16, settings: &[String]) -> Child {
    let log = File::options().create(true).append(true).open(directory.join("log"));
    let log = log.expect("the log can be opened");
    let mut command = in_directory(programs, "postgres", directory);
    command.args(["-D", "data", "-p", &port.to_string()]);
    // Its own socket would be in a directory of the system. The end of processes loses nothing that was not flushed, and
    // nothing here ends the system.
    for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off"] {
        command.args(["-c", setting]);
    }
    for setting in settings {
        command.args(["-c", setting]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.spawn().expect("postgres can be started")
}

/// Returns a command in this directory that does not run as root.
fn in_directory(programs: &Path, name: &str, directory: &Path) -> Command {
    let mut command = Command::new(programs.join(name));
    unprivileged(command.current_dir(directory));
    command
}

/// Runs a command as somebody else than root: these programs refuse to run as root.
pub(crate) fn unprivileged(command: &mut Command) {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// Gives a directory and the files in it to the user of the server.
fn give_away(directory: &Path) {
    if !is_root() {
        return;
    }
    let files = fs::read_dir(directory).expect("the directory can be listed").flatten();
    for path in files.map(|file| file.path()).chain([directory.to_owned()]) {
        chown(path, Some(NOBODY), Some(NOBODY)).expect("root can give files away");
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}
