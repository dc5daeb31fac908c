//! Child processes: this program with other arguments.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{ChildStdout, Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::memory::resident;

/// A running child, killed on drop.
pub(crate) struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    pub(crate) fn start(args: &[&str]) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?).args(args).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().context("a child without output")?;
        Ok(Self { process, output: BufReader::new(output) })
    }

    /// Runs a child to its end, and returns its output.
    pub(crate) fn run(args: &[&str]) -> Result<String> {
        let output = Command::new(std::env::current_exe()?).args(args).stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "{args:?} failed: {}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Returns the next line of output.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Returns the CPU time that it has taken so far, in nanoseconds.
    pub(crate) fn cpu_ns(&self) -> Result<f64> {
        let threads = fs::read_dir(format!("/proc/{}/task", self.process.id()));
        let mut sum = 0.0;
        for thread in threads.context("CPU time is read from /proc: Linux only")? {
            let told = fs::read_to_string(thread?.path().join("schedstat"))?;
            let running: f64 = told.split_whitespace().next().context("schedstat is empty")?.parse()?;
            sum += running;
        }
        Ok(sum)
    }

    /// Returns its resident memory, in bytes.
    pub(crate) fn resident(&self) -> Result<f64> {
        Ok(resident(&self.process.id().to_string())? as f64)
    }

    pub(crate) fn stop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.stop();
    }
}
