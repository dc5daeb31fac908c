//! A user's home: a configuration of its own, and the programs run in it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::Arc,
    time::Duration,
};

use everturn_sim::Loopback;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

/// How long anything may take before a test gives up on it.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// A schedule whose waits end by hand only.
pub(crate) const LONG: &str = "schedule = \"exponential\"\nbase_ms = 45000\nmax_retries = 3\njitter = 0.0";
/// A schedule that is soon at its end.
pub(crate) const SHORT: &str = "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 2\njitter = 0.0";

/// Removed with the last program that uses it.
#[derive(Clone)]
pub(crate) struct Home(Arc<TempDir>);

impl Home {
    /// With nothing configured.
    pub(crate) fn empty() -> Self {
        Self(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub(crate) fn with(config: &str) -> Self {
        let home = Self::empty();
        let directory = home.0.path().join("everturn");
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("config.toml"), config).unwrap();
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// With `sim/model` behind this address.
    pub(crate) fn with_model(base_url: &str, retry: &str) -> Self {
        Self::with(&format!(
            "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{retry}\n[[provider]]\nname = \"sim\"\n\
             base_url = \"{base_url}/v1\"\nmodels = [\"model\"]\n"
        ))
    }

    pub(crate) fn with_provider(provider: &Loopback, retry: &str) -> Self {
        Self::with_model(&provider.base_url(), retry)
    }

    /// The variables of its programs: none of those who run the tests.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        let home = self.0.path().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        [
            ("HOME", home.clone()),
            ("XDG_CONFIG_HOME", home),
            ("PATH", path),
            ("TERM", "xterm-256color".to_owned()),
        ]
    }

    /// `everturn` with these words, its streams piped.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_everturn"));
        command.args(words).env_clear().envs(self.variables()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) async fn run(&self, words: &[&str]) -> Output {
        timeout(DEADLINE, self.command(words).output()).await.expect("the program ends in time").unwrap()
    }

    /// Starts a server on a free port.
    pub(crate) async fn serve(&self) -> Server {
        self.launch(self.command(&["--listen", "127.0.0.1:0"])).await.expect("a greeting")
    }

    /// Starts a server in that way. None when it ends before it says where it is.
    pub(crate) async fn launch(&self, command: Command) -> Option<Server> {
        Server::start(self.clone(), command).await
    }

    /// Where its conversations are kept.
    pub(crate) fn journal(&self) -> PathBuf {
        self.0.path().join(".local/share/everturn/everturn.db")
    }

    /// A place of its own for whatever a test needs.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A running server. It is killed when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
    stdout: BufReader<ChildStdout>,
    _home: Home,
}

impl Server {
    async fn start(home: Home, mut command: Command) -> Option<Self> {
        let mut child = command.stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        loop {
            line.clear();
            let read = timeout(DEADLINE, stdout.read_line(&mut line));
            if read.await.expect("a greeting in time").unwrap() == 0 {
                return None;
            }
            if let Some(url) = line.split_whitespace().find(|word| word.starts_with("http://")) {
                let url = url.to_owned();
                return Some(Self { child, url, stdout, _home: home });
            }
        }
    }

    /// The rest of its greeting, up to and with the line that begins with this word.
    pub(crate) async fn greeting(&mut self, last: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        while lines.last().is_none_or(|line| !line.trim_start().starts_with(last)) {
            let mut line = String::new();
            let read = timeout(DEADLINE, self.stdout.read_line(&mut line));
            assert!(read.await.expect("a greeting in time").unwrap() > 0, "{lines:?}");
            lines.push(line.trim().to_owned());
        }
        lines
    }

    /// The address without its scheme.
    pub(crate) fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Asks it to end.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
