//! A home directory with its own configuration, and programs run in it.

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

/// Time limit of every wait in the tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Time limit of the start of a server, which may first have to find many turns.
const START: Duration = Duration::from_secs(120);

/// A schedule whose waits only end by hand.
pub(crate) const LONG: &str = "schedule = \"exponential\"\nbase_ms = 45000\nmax_retries = 3\njitter = 0.0";
/// A schedule that is soon exhausted.
pub(crate) const SHORT: &str = "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 2\njitter = 0.0";

/// Removed with the last program that uses it.
#[derive(Clone)]
pub(crate) struct Home(Arc<TempDir>);

impl Home {
    /// Returns a home without configuration.
    pub(crate) fn empty() -> Self {
        Self(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub(crate) fn with(config: &str) -> Self {
        let home = Self::empty();
        let directory = home.0.path().join("everturn");
        fs::create_dir(&directory).unwrap();
        let file = directory.join("config.toml");
        fs::write(&file, config).unwrap();
        // It may contain keys, and a file that others can read is warned about.
        #[cfg(unix)]
        fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns a home with `sim/model` at this URL.
    pub(crate) fn with_model(base_url: &str, retry: &str) -> Self {
        Self::with(&format!(
            "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{retry}\n[[provider]]\nname = \"sim\"\n\
             base_url = \"{base_url}/v1\"\nmodels = [\"model\"]\n"
        ))
    }

    pub(crate) fn with_provider(provider: &Loopback, retry: &str) -> Self {
        Self::with_model(&provider.base_url(), retry)
    }

    /// Returns the variables of its programs, independent of the test environment.
    pub(crate) fn variables(&self) -> [(&'static str, String); 5] {
        let home = self.0.path().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        [
            ("HOME", home.clone()),
            ("XDG_CONFIG_HOME", home),
            ("PATH", path),
            ("TERM", "xterm-256color".to_owned()),
            // Tests count the calls of a provider.
            ("EVERTURN_TITLES", "off".to_owned()),
        ]
    }

    /// Returns the command `everturn` with these arguments and piped streams.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_everturn")), words)
    }

    /// Returns the command of another build of `everturn`.
    pub(crate) fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).env_clear().envs(self.variables()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&self, words: &[&str]) -> Output {
        timeout(DEADLINE, self.command(words).output()).await.expect("the program ends in time").unwrap()
    }

    /// Starts a server on a free port.
    pub(crate) async fn serve(&self) -> Server {
        self.serve_with(Path::new(env!("CARGO_BIN_EXE_everturn"))).await
    }

    /// Starts a server of another build of `everturn` on a free port.
    pub(crate) async fn serve_with(&self, program: &Path) -> Server {
        let command = self.command_of(program, &["--listen", "127.0.0.1:0"]);
        self.launch(command).await.expect("a greeting")
    }

    /// Starts a server with this command; `None` if it ends before it prints its URL.
    pub(crate) async fn launch(&self, command: Command) -> Option<Server> {
        let mut command = command;
        command.stderr(Stdio::inherit());
        Server::start(self.clone(), command).await
    }

    /// Like [`launch`](Self::launch), but keeps standard error for the caller.
    pub(crate) async fn launch_piped(&self, command: Command) -> Server {
        Server::start(self.clone(), command).await.expect("a greeting")
    }

    /// Returns the path of the conversations.
    pub(crate) fn journal(&self) -> PathBuf {
        self.0.path().join(".local/share/everturn/everturn.db")
    }

    /// Returns a path for other files of a test.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// A running server, killed on drop.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// `http://127.0.0.1:PORT`
    pub(crate) url: String,
    stdout: BufReader<ChildStdout>,
    _home: Home,
}

impl Server {
    async fn start(home: Home, mut command: Command) -> Option<Self> {
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        loop {
            line.clear();
            let read = timeout(START, stdout.read_line(&mut line));
            if read.await.expect("a greeting in time").unwrap() == 0 {
                return None;
            }
            if let Some(url) = line
                .split_whitespace()
                .find(|word| word.starts_with("http://") || word.starts_with("https://"))
            {
                let url = url.to_owned();
                return Some(Self { child, url, stdout, _home: home });
            }
        }
    }

    /// Returns the rest of its greeting, up to and including the line that begins with this word.
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

    /// Returns the address without the scheme.
    pub(crate) fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// Sends it a request to end.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    }
}

impl Drop for Server {
    /// Its files and its port are free when this returns.
    fn drop(&mut self) {
        let _ = self.child.start_kill();
        while matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
