//! A server's process: started with a clean environment in its own group, and ended with all its children.

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

use crate::{
    Command, Setting,
    link::Link,
    watchdog::{GRACE, Watched},
};

/// Variables passed on to programs: paths of programs, user files and temporary files, and locale. Others may contain
/// secrets.
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

/// Maximum length of a logged line of standard error, in bytes.
const LONGEST: usize = 1 << 10;

/// A process and its children. They are killed on drop.
pub(crate) struct Process {
    child: Child,
    /// `None` once all processes of the group are gone.
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
    /// Dropped after the group was killed.
    _watched: Option<Watched>,
    said: Said,
}

/// How long to wait for the last output after the process ended.
const READING: Duration = Duration::from_secs(1);

/// The last line of a process's standard error, which often says why it ended.
#[derive(Clone, Default)]
struct Said {
    last: Arc<Mutex<String>>,
    /// Set at the end of the output.
    all: CancellationToken,
}

impl Process {
    /// Starts the process. Returns its streams too.
    ///
    /// # Errors
    /// Returns the reason, for people, if it cannot be started.
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
            program.spawn().map_err(|error| format!("cannot start {:?}: {error}", command.program))?;
        let missing = || "its standard streams are missing".to_owned();
        let stdout = child.stdout.take().ok_or_else(missing)?;
        let stdin = child.stdin.take().ok_or_else(missing)?;
        let said = Said::default();
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(log(stderr, link.clone(), said.clone()));
        }
        #[cfg(unix)]
        let group = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
        let watchdog = link.config.watchdog.as_ref();
        let process = Self {
            _watched: child.id().zip(watchdog).map(|(group, watchdog)| watchdog.watch(group)),
            child,
            #[cfg(unix)]
            group,
            said,
        };
        Ok((process, stdout, stdin))
    }

    /// Waits for the process to end. Returns how it ended.
    pub(crate) async fn ended(&mut self) -> String {
        let how = match self.child.wait().await {
            Ok(status) => how(status),
            Err(error) => format!("waiting for it failed: {error}"),
        };
        // Its children may hold the stream open for ever.
        let _ = timeout(READING, self.said.all.cancelled()).await;
        let said = self.said.last.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_empty() { how } else { format!("{how}: {said}") }
    }

    /// Returns how it ended if it does so within a moment, because its streams close before its exit can be observed.
    pub(crate) async fn just_ended(&mut self) -> Option<String> {
        timeout(Duration::from_millis(500), self.ended()).await.ok()
    }

    /// Ends the process and all its children, after its standard input was closed.
    pub(crate) async fn close(mut self) {
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(false);
            // Whether it ended or not, the group is killed.
            let _ = timeout(GRACE, self.child.wait()).await;
        }
        self.signal(true);
        let _ = self.child.kill().await;
        self.forget();
    }

    /// Asks the whole group to end, or kills it.
    fn signal(&self, kill: bool) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            let signal = if kill { rustix::process::Signal::KILL } else { rustix::process::Signal::TERM };
            // An error means that no process is left.
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

/// Logs its standard error, line by line.
async fn log(stderr: ChildStderr, link: Arc<Link>, said: Said) {
    let mut stderr = BufReader::with_capacity(LONGEST, stderr);
    let mut line = Vec::new();
    while let Ok(piece) = stderr.fill_buf().await {
        if piece.is_empty() {
            break;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(piece.len(), |end| end + 1);
        // A secret in it is recognized only as a whole.
        let room = (8 * LONGEST).saturating_sub(line.len());
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
    let line = link.redactor.redact(line.trim());
    let line = &line[..line.floor_char_boundary(LONGEST)];
    if !line.is_empty() {
        tracing::info!(server = link.name(), "{line}");
        *said.last.lock().unwrap_or_else(PoisonError::into_inner) = line.to_owned();
    }
}
