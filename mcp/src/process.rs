//! A server's process: started with a clean environment in a group of its own, and ended with all that it started.

use std::{
    env,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{Command, Setting, link::Link};

/// The variables that a program is given of ours: where programs, the user's files and temporary files are, and how the user
/// reads. Others may hold secrets.
#[cfg(not(windows))]
const INHERITED: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ"];
#[cfg(windows)]
const INHERITED: [&str; 12] = [
    "PATH",
    "PATHEXT",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "COMSPEC",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMFILES",
];

/// How long a process may take to end after its standard input was closed, and again after it was asked to.
const GRACE: Duration = Duration::from_secs(1);

/// The longest line of standard error that is logged, in bytes.
const LONGEST: usize = 1 << 10;

/// A process, and what it has started. They are killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    /// Taken once all of the group are gone.
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    said: Said,
}

/// How long what it printed last may take to be read, after it ended.
const READING: Duration = Duration::from_millis(200);

/// The last line that a process printed to standard error: it often says why it ended.
#[derive(Clone, Default)]
struct Said {
    last: Arc<Mutex<String>>,
    /// Nothing more will come.
    all: CancellationToken,
}

impl Process {
    /// Starts it. Returns also what it is spoken with.
    ///
    /// # Errors
    /// When it cannot be started, as people are told.
    pub(crate) fn start(
        command: &Command,
        link: &Arc<Link>,
    ) -> Result<(Self, ChildStdout, ChildStdin), String> {
        let mut program = tokio::process::Command::new(&command.program);
        let inherited = INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?)));
        let configured = command.env.iter().map(|(name, value)| (name, Setting::reveal(value)));
        program.args(&command.args).env_clear().envs(inherited).envs(configured);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(directory) = &command.cwd {
            program.current_dir(directory);
        }
        #[cfg(unix)]
        program.process_group(0);
        let mut child =
            program.spawn().map_err(|error| format!("{:?} cannot be started: {error}", command.program))?;
        let missing = || "its standard streams are missing".to_owned();
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let said = Said::default();
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(log(stderr, link.clone(), said.clone()));
        }
        #[cfg(unix)]
        let group = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let process = Self {
            child,
            #[cfg(unix)]
            group,
            said,
        };
        Ok((process, stdout, stdin))
    }

    /// Waits for its end. Says how it ended.
    pub(crate) async fn ended(&mut self) -> String {
        let how = match self.child.wait().await {
            Ok(status) => how(status),
            Err(error) => format!("it cannot be waited for: {error}"),
        };
        // What it started may hold the stream open for ever.
        let _ = timeout(READING, self.said.all.cancelled()).await;
        let said = self.said.last.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() { how } else { format!("{how}: {said}") }
    }

    /// How it ended, if it does so within a moment: its streams are closed before its end can be seen.
    pub(crate) async fn just_ended(&mut self) -> Option<String> {
        timeout(Duration::from_millis(500), self.ended()).await.ok()
    }

    /// Ends it, and all that it started, after its standard input was closed.
    pub(crate) async fn close(mut self) {
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(false);
            // Whether it ended or not, nothing is left of it.
            let _ = timeout(GRACE, self.child.wait()).await;
        }
        self.signal(true);
        let _ = self.child.kill().await;
        self.forget();
    }

    /// Asks all of the group to end, or kills them.
    fn signal(&self, kill: bool) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            let signal = if kill { rustix::process::Signal::KILL } else { rustix::process::Signal::TERM };
            // An error says that none is left.
            let _ = rustix::process::kill_process_group(group, signal);
        }
        #[cfg(not(unix))]
        let _ = kill;
    }

    fn forget(&mut self) {
        #[cfg(unix)]
        {
            self.group = None;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(true);
    }
}

fn how(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("it ended with exit code {code}"),
        None => format!("it was ended by a {status}"),
    }
}

/// Logs what it prints to standard error, line by line.
async fn log(stderr: ChildStderr, link: Arc<Link>, said: Said) {
    let mut stderr = BufReader::with_capacity(LONGEST, stderr);
    let mut line = Vec::new();
    while let Ok(piece) = stderr.fill_buf().await {
        if piece.is_empty() {
            break;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        let room = LONGEST.saturating_sub(line.len());
        line.extend_from_slice(&piece[..taken.min(room)]);
        stderr.consume(taken);
        if end.is_some() {
            told(&std::mem::take(&mut line), &link, &said);
        }
    }
    told(&line, &link, &said);
    said.all.cancel();
}

fn told(line: &[u8], link: &Link, said: &Said) {
    let line = String::from_utf8_lossy(line);
    let line = link.veil.over(line.trim());
    if !line.is_empty() {
        tracing::info!(server = link.name(), "{line}");
        *said.last.lock().unwrap_or_else(PoisonError::into_inner) = line.into_owned();
    }
}
