//! A process that ends programs whose server was killed.
//!
//! The server of MCP programs ends them when it ends, but not if it is killed (`kill -9`, out of memory). So it tells a second
//! process which process groups it started. The end of that process's input is the end of the server, however it ended.

use std::{
    fmt, fs,
    io::{self, BufRead, Write as _},
    path::{Path, PathBuf},
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

    /// Watches a single process from now on, until the result is dropped. If this process is killed, so is that one, and then
    /// `leftover` is removed, a directory. Unlike a process group, it can share the group of this process, and so its terminal.
    pub fn watch_process(self: &Arc<Self>, process: u32, leftover: Option<&Path>) -> WatchedProcess {
        if let Some(directory) = leftover {
            self.tell('/', directory.display());
        }
        self.tell('*', process);
        WatchedProcess { watchdog: self.clone(), process }
    }

    fn tell(&self, what: char, subject: impl fmt::Display) {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(input, "{what}{subject}") {
            tracing::warn!(%error, "the watchdog of programs is gone: if this process is killed, they keep running");
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog").finish_non_exhaustive()
    }
}

/// A process that is being watched, until dropped.
pub struct WatchedProcess {
    watchdog: Arc<Watchdog>,
    process: u32,
}

impl Drop for WatchedProcess {
    fn drop(&mut self) {
        self.watchdog.tell('#', self.process);
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
    let (mut left, mut directory) = (Vec::new(), None);
    for line in input.lines().map_while(Result::ok) {
        let (what, subject) = line.split_at_checked(1).unwrap_or_default();
        if what == "/" {
            directory = Some(PathBuf::from(subject));
        }
        let Ok(id) = subject.parse::<i32>() else { continue };
        match what {
            "+" => left.push(Left::Group(id)),
            "*" => left.push(Left::Process(id)),
            "-" => left.retain(|known| *known != Left::Group(id)),
            "#" => left.retain(|known| *known != Left::Process(id)),
            _ => {}
        }
    }
    end(&left);
    if let Some(directory) = directory {
        // Gone already, unless this process's server was killed.
        let _ = fs::remove_dir_all(directory);
    }
}

/// What is still running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "nothing is ended"))]
enum Left {
    Group(i32),
    Process(i32),
}

#[cfg(unix)]
fn end(left: &[Left]) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};

    let signal = |signal: Signal| {
        // An error means that no process is left.
        let is_left = |left: &&Left| match **left {
            Left::Group(id) => Pid::from_raw(id).is_some_and(|id| kill_process_group(id, signal).is_ok()),
            Left::Process(id) => Pid::from_raw(id).is_some_and(|id| kill_process(id, signal).is_ok()),
        };
        left.iter().filter(is_left).count()
    };
    if signal(Signal::TERM) > 0 {
        std::thread::sleep(GRACE);
        signal(Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end(_: &[Left]) {}
