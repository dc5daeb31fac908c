//! The program itself: it has our terminal, and we end as it does.

use std::{
    ffi::OsString,
    io::{self, ErrorKind},
    process::ExitCode,
};

use anyhow::{Context as _, Result, anyhow};
#[cfg(unix)]
use rustix::process::Signal;
use tokio::process::Command;

use super::file::OwnFile;
use crate::watch::watchdog;

/// Added to the number of the signal that ended a program, as shells do.
const SIGNALLED: i32 = 128;

/// What a shell returns for a program that does not exist, and for one that cannot be run.
const MISSING: u8 = 127;
const NOT_RUN: u8 = 126;

/// A running program.
pub(super) struct Child {
    process: tokio::process::Child,
}

impl Child {
    /// Runs a program to its end, and returns its exit code. Signals for us are handed on; those of the terminal reach it
    /// anyway.
    pub(super) async fn run(
        name: &OsString,
        arguments: &[OsString],
        variables: &[(String, String)],
        file: Option<&OwnFile>,
    ) -> Result<ExitCode> {
        // From here on, they do not end us before the program has ended.
        let mut signals = Signals::listen().context("cannot listen for signals")?;
        let mut command = Command::new(name);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        let process = match command.spawn() {
            Ok(process) => process,
            Err(error) => return not_run(name, &error),
        };
        let mut child = Self { process };
        let watchdog = watchdog();
        let watched = match (&watchdog, child.process.id()) {
            (Some(watchdog), Some(id)) => Some(watchdog.watch_process(id, file.map(OwnFile::directory))),
            _ => None,
        };
        let status = loop {
            tokio::select! {
                status = child.process.wait() => break status.context("cannot wait for the program")?,
                signal = signals.next() => child.hand_on(signal),
            }
        };
        drop(watched);
        Ok(ExitCode::from(code(status)))
    }

    #[cfg(unix)]
    fn hand_on(&self, mut signal: Signal) {
        use rustix::process::{Pid, WaitId, WaitIdOptions, getpid, kill_process, waitid};

        let id = self.process.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let Some(id) = id else { return };
        if signal == Signal::CHILD {
            let stopped = waitid(WaitId::Pid(id), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
            if !matches!(stopped, Ok(Some(_))) || !is_in_foreground() {
                return;
            }
            // As a program stops itself at Ctrl-Z. The shell waits for us, and continues us. Without one, nobody would.
            let _ = kill_process(getpid(), Signal::STOP);
            signal = Signal::CONT;
        }
        // An error means that it has ended.
        let _ = kill_process(id, signal);
    }

    #[cfg(not(unix))]
    fn hand_on(&self, _: Signal) {}
}

fn not_run(name: &OsString, error: &io::Error) -> Result<ExitCode> {
    let (code, why) = match error.kind() {
        ErrorKind::NotFound => (MISSING, anyhow!("{} is not installed, or not in PATH", name.display())),
        _ => (NOT_RUN, anyhow!("cannot run {}: {error}", name.display())),
    };
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "everturn: {why}");
    Ok(ExitCode::from(code))
}

/// Returns the exit code for a status: the program's own.
fn code(status: std::process::ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or_else(|| signal.map(|signal: i32| SIGNALLED + signal));
    u8::try_from(code.unwrap_or(1) & 0xff).unwrap_or(1)
}

/// Signals for the program, and those that tell that it stopped.
#[cfg(unix)]
struct Signals {
    handed_on: [(Signal, tokio::signal::unix::Signal); 3],
    /// Sent by a terminal to all of its programs.
    of_terminal: [(Signal, tokio::signal::unix::Signal); 2],
}

#[cfg(unix)]
impl Signals {
    fn listen() -> io::Result<Self> {
        let listen = |signal: Signal| {
            Ok::<_, io::Error>((signal, tokio::signal::unix::signal(signal.as_raw().into())?))
        };
        Ok(Self {
            handed_on: [listen(Signal::TERM)?, listen(Signal::HUP)?, listen(Signal::CHILD)?],
            of_terminal: [listen(Signal::INT)?, listen(Signal::QUIT)?],
        })
    }

    /// Returns the next signal to hand on. Cancel-safe.
    async fn next(&mut self) -> Signal {
        let [terminate, hangup, child] = &mut self.handed_on;
        let [interrupt, quit] = &mut self.of_terminal;
        loop {
            let signal = tokio::select! {
                _ = terminate.1.recv() => return terminate.0,
                _ = hangup.1.recv() => return hangup.0,
                _ = child.1.recv() => return child.0,
                _ = interrupt.1.recv() => interrupt.0,
                _ = quit.1.recv() => quit.0,
            };
            if !is_in_foreground() {
                return signal;
            }
        }
    }
}

/// Whether the signals of a terminal's keys reach us, and so the program, too.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    use rustix::{process::getpgrp, termios::tcgetpgrp};

    std::fs::File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(terminal) == Ok(getpgrp()))
}

/// None is handed on: a console sends its signals to all of its programs.
#[cfg(not(unix))]
type Signal = std::convert::Infallible;

#[cfg(not(unix))]
struct Signals(everturn_terminal::Interrupt);

#[cfg(not(unix))]
impl Signals {
    fn listen() -> io::Result<Self> {
        everturn_terminal::Interrupt::listen().map(Self)
    }

    async fn next(&mut self) -> Signal {
        loop {
            self.0.next().await;
        }
    }
}
