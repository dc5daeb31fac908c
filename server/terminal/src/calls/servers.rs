//! The servers that are asked for calls: the one that was named, or else the usual one and those inside `everturn with`.

use std::{
    fs,
    io::{self, ErrorKind},
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Error, Result, anyhow};
use everturn_wire::{CallInfo, Calls};
use futures_util::future::{join, join_all};
use tokio::{net::TcpStream, time::timeout};

use crate::{
    Hidden,
    remote::{Address, Remote},
};

/// The port of a server that nobody named.
const USUAL: u16 = 4777;

/// Which servers to ask.
#[derive(Clone, Debug)]
pub struct Servers {
    /// The address of the only one.
    pub named: Option<String>,
    /// The token of that, or of the usual one.
    pub token: Option<Hidden>,
    /// Where those inside `everturn with` are [listed](Listed).
    pub listed: Option<PathBuf>,
}

/// What a server told.
pub(super) struct Told {
    pub(super) address: Address,
    pub(super) is_listed: bool,
    pub(super) body: Vec<u8>,
    /// They wait until a time on this machine's clock.
    pub(super) calls: Vec<CallInfo>,
}

impl Servers {
    /// Asks them all at once. Those that nobody named have so long to answer. Also returns why the usual one did not tell, if it is
    /// there.
    ///
    /// # Errors
    /// When one was named and does not answer.
    pub(super) async fn ask(&self, within: Duration) -> Result<(Vec<Told>, Option<Error>)> {
        let token = self.token.as_ref();
        if let Some(named) = self.named.as_deref().filter(|url| !url.trim().is_empty()) {
            return Ok((vec![Told::of(named, token, false).await?], None));
        }
        let usual = async {
            let told = timeout(within, Told::of_port(USUAL, token, false)).await;
            told.unwrap_or_else(|_| Err(anyhow!("the server on port {USUAL} does not answer")))
        };
        let listed = self.listed.as_deref().map(listed).unwrap_or_default();
        let listed = listed.into_iter().map(async |(port, file)| {
            match timeout(within, Told::of_port(port, None, true)).await {
                Ok(Ok(None)) => {
                    // It was killed.
                    let _ = fs::remove_file(file);
                    None
                }
                Ok(told) => told.ok().flatten(),
                Err(_) => None,
            }
        });
        let (usual, listed) = join(usual, join_all(listed)).await;
        let (usual, problem) = usual.map_or_else(|error| (None, Some(error)), |told| (told, None));
        Ok((usual.into_iter().chain(listed.into_iter().flatten()).collect(), problem))
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

    /// `None` if nobody listens there.
    async fn of_port(port: u16, token: Option<&Hidden>, is_listed: bool) -> Result<Option<Self>> {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(None),
            _ => Self::of(&format!("http://127.0.0.1:{port}"), token, is_listed).await.map(Some),
        }
    }
}

/// Returns the ports that are listed in a directory, and their files.
fn listed(directory: &Path) -> Vec<(u16, PathBuf)> {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    files.filter_map(|file| Some((file.file_name().to_str()?.parse().ok()?, file.path()))).collect()
}

/// Lists a server inside this process, until it is dropped.
#[derive(Debug)]
pub struct Listed(PathBuf);

impl Listed {
    /// Creates an empty file in this directory, with the server's port as its name.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn new(directory: &Path, port: u16) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let file = directory.join(port.to_string());
        fs::write(&file, "")?;
        Ok(Self(file))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // The directory stays: another one may be about to use it.
        let _ = fs::remove_file(&self.0);
    }
}
