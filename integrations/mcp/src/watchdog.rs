//! A process that ends programs whose server was killed.
//!
//! The server of MCP programs ends them when it ends, but not if it is killed (`kill -9`, out of memory). So it tells a second
//! process which process groups it started. The end of that process's input is the end of the server, however it ended.

use std::{
    fmt,
    io::{self, BufRead, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// How long a process may take to exit after its standard input is closed, and again after SIGTERM.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// A process that ends the programs of this one if this one is killed. Children of programs end, too, unless they left the
/// process group of their program.
///
/// Only Unix has process groups: elsewhere, nothing is watched.
pub struct Watchdog {
    /// Dropped before the child: its end tells the process to look what is left.
    input: Mutex<ChildStdin>,
    _child: Child,
}

/// A process group that is being watched, until dropped.
pub(crate) struct Watched {
    watchdog: Arc<Watchdog>,
    group: u32,
}

impl Watchdog {
    /// Starts the process: a program that calls [`watch_over`] with its standard input, usually this one with other
    /// arguments.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        command.env_clear().stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in a terminal goes to the whole group of the server.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or_else(|| io::Error::other("it has no standard input"))?;
        Ok(Self { input: Mutex::new(input), _child: child })
    }

    /// Watches a process group from now on.
    pub(crate) fn watch(self: &Arc<Self>, group: u32) -> Watched {
        self.tell('+', group);
        Watched { watchdog: self.clone(), group }
    }

    fn tell(&self, what: char, group: u32) {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(input, "{what}{group}") {
            tracing::warn!(%error, "the watchdog of MCP programs is gone: if this process is killed, they keep running");
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watchdog.tell('-', self.group);
    }
}

/// The work of the process that [`Watchdog::start`] starts: waits for the end of `input`, then ends what is still running, with
/// SIGTERM and a second later with SIGKILL.
pub fn watch_over(input: impl BufRead) {
    let mut groups = Vec::new();
    for line in input.lines().map_while(Result::ok) {
        let group = line.get(1..).and_then(|group| group.parse::<i32>().ok());
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) => groups.push(group),
            (Some(b'-'), Some(group)) => groups.retain(|known| *known != group),
            _ => {}
        }
    }
    end(&groups);
}

#[cfg(unix)]
fn end(groups: &[i32]) {
    use rustix::process::{Pid, Signal, kill_process_group};

    let signal = |signal: Signal| {
        let groups = groups.iter().filter_map(|group| Pid::from_raw(*group));
        // An error means that no process is left.
        groups.filter(|group| kill_process_group(*group, signal).is_ok()).count()
    };
    if signal(Signal::TERM) > 0 {
        std::thread::sleep(GRACE);
        signal(Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end(_: &[i32]) {}
