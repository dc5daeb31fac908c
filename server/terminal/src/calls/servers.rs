//! The servers that are asked for calls: the one that was named, or else the usual one and those inside `everturn with`.

use std::{
    fs, io, iter,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use anyhow::{Context as _, Result};
use everturn_wire::{CallInfo, Calls};
use tokio::time::timeout;

use crate::{
    Hidden,
    remote::{Address, Remote},
};

/// Where a server is that nobody named.
const USUAL: &str = "http://127.0.0.1:4777";

/// How long a server inside `everturn with` may take: it is on this machine.
const SOON: Duration = Duration::from_millis(500);

/// Which servers to ask.
#[derive(Clone, Copy, Debug)]
pub struct Servers<'a> {
    /// The address of the only one.
    pub named: Option<&'a str>,
    /// The token of that, or of the usual one.
    pub token: Option<&'a Hidden>,
    /// Where those inside `everturn with` are [listed](Listed).
    pub listed: Option<&'a Path>,
}

/// What a server told.
pub(super) struct Told {
    pub(super) address: Address,
    pub(super) is_listed: bool,
    pub(super) body: Vec<u8>,
    /// Times are those of this machine's clock.
    pub(super) calls: Vec<CallInfo>,
}

impl Servers<'_> {
    /// Asks them.
    ///
    /// # Errors
    /// When none answers.
    pub(super) async fn ask(&self) -> Result<Vec<Told>> {
        let usual = Told::of(self.named.unwrap_or(USUAL), self.token, false).await;
        if self.named.is_some() {
            return Ok(vec![usual?]);
        }
        let mut all = Vec::new();
        for (file, url) in self.listed.map(listed).unwrap_or_default() {
            match timeout(SOON, Told::of(&url, None, true)).await {
                Ok(Ok(told)) => all.push(told),
                // It was killed, and its port may be another program's.
                Ok(Err(_)) => _ = fs::remove_file(file),
                Err(_) => {}
            }
        }
        match usual {
            Ok(usual) => all.insert(0, usual),
            Err(error) if all.is_empty() => return Err(error),
            Err(_) => {}
        }
        Ok(all)
    }
}

impl Told {
    async fn of(url: &str, token: Option<&Hidden>, is_listed: bool) -> Result<Self> {
        let address = Address::parse(url)?;
        let answer = Remote::new(&address, token)?.get("/calls").await?;
        let answer = answer.with_context(|| {
            format!("{url} is not an everturn server, or one too old to report its calls")
        })?;
        let mut calls = answer.read::<Calls>()?.calls;
        calls.iter_mut().for_each(|call| call.next_at = call.next_at.map(|at| answer.clock.here(at)));
        Ok(Self { address, is_listed, body: answer.body, calls })
    }
}

/// Returns the files of a directory, and the addresses in them.
fn listed(directory: &Path) -> Vec<(PathBuf, String)> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .filter_map(|file| Some((fs::read_to_string(&file).ok()?, file)))
        .map(|(url, file)| (file, url))
        .collect()
}

/// Lists a server inside this process, until it is dropped.
#[derive(Debug)]
pub struct Listed {
    file: PathBuf,
    /// The directory, and those around it that it made, the innermost first.
    made: Vec<PathBuf>,
}

impl Listed {
    /// Writes the server's address to a file in this directory.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn new(directory: &Path, url: &str) -> io::Result<Self> {
        let around = directory.ancestors().skip(1).take_while(|around| !around.exists());
        let made = iter::once(directory).chain(around).map(Into::into).collect();
        fs::create_dir_all(directory)?;
        let listed = Self { file: directory.join(process::id().to_string()), made };
        fs::write(&listed.file, url)?;
        Ok(listed)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
        // Not if there is something else in them by now.
        self.made.iter().for_each(|directory| _ = fs::remove_dir(directory));
    }
}
