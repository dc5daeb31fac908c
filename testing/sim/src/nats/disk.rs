//! Small disks for the data of NATS servers.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// File systems in memory, one for each server, whose sizes can be changed. Only programs run by [`Self::within`] see them. They are
/// gone once this is dropped and those have ended.
#[derive(Debug)]
pub struct SmallDisks {
    directory: PathBuf,
    /// Keeps the mount namespace.
    holder: Child,
}

impl SmallDisks {
    /// Mounts them for servers of these names that are going to keep their data in this directory. `None` if this process may
    /// not mount anything, which is printed.
    ///
    /// # Panics
    /// If a directory cannot be created.
    pub fn mount(directory: &Path, servers: &[&str], mebibytes: u32) -> Option<Self> {
        let script =
            "for at do mount -t tmpfs -o size=$0m none \"$at\" || exit; done; echo mounted; exec sleep 3600";
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).arg(mebibytes.to_string());
        for server in servers {
            let at = data(directory, server);
            std::fs::create_dir_all(&at).expect("the directory can be created");
            command.arg(at);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut said = String::new();
        let disks = command.spawn().ok().and_then(|mut holder| {
            let output = holder.stdout.take()?;
            let disks = Self { directory: directory.to_owned(), holder };
            BufReader::new(output).read_line(&mut said).ok()?;
            Some(disks)
        });
        let disks = disks.filter(|_| said == "mounted\n");
        if disks.is_none() {
            eprintln!("skipped: this process may not mount file systems");
        }
        disks
    }

    /// Changes the size of one.
    ///
    /// # Panics
    /// If that fails, such as below what is used.
    pub fn resize(&self, server: &str, mebibytes: u32) {
        let mut command = self.command();
        command
            .args(["mount", "-o", &format!("remount,size={mebibytes}m")])
            .arg(data(&self.directory, server));
        assert!(command.status().expect("nsenter can be started").success(), "{mebibytes} MiB for {server}");
    }

    /// Returns how much of one is used, in mebibytes, rounded up.
    ///
    /// # Panics
    /// If that is not known.
    pub fn used(&self, server: &str) -> u32 {
        let mut command = self.command();
        command.args(["df", "--block-size=1M", "--output=used"]).arg(data(&self.directory, server));
        let output = command.output().expect("nsenter can be started").stdout;
        let said = String::from_utf8_lossy(&output).into_owned();
        said.lines().last().and_then(|line| line.trim().parse().ok()).expect("df tells the used blocks")
    }

    /// Returns the command, in words, that runs a program with these disks.
    pub fn within(&self) -> Vec<String> {
        ["nsenter", "--mount", "--target", &self.holder.id().to_string()].map(str::to_owned).to_vec()
    }

    fn command(&self) -> Command {
        let words = self.within();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// Where a server of this name keeps its data.
fn data(directory: &Path, server: &str) -> PathBuf {
    directory.join(server).join("jetstream")
}

impl Drop for SmallDisks {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
