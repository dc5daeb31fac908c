//! `everturn conversations`: the conversations in a server's file, or of servers that share them.

mod archive;
mod delete;
mod export;
mod list;
mod pending;
mod remote;
pub(crate) mod selection;
mod show;
mod store;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Result, bail};
use everturn_orchestrator::{Journal, StateStore};

use crate::{
    Hidden,
    args::Conversations,
    calendar::Calendar,
    printer::{self, Printer},
    remote::{Address, Remote},
};
use archive::Archive;
use delete::Which;
use store::Store;

/// Where conversations are kept.
#[derive(Clone)]
pub enum Source {
    /// In a file.
    File(PathBuf),
    /// In a journal that servers may be using.
    Shared(Shared),
}

/// Where an action finds them.
enum Place<'a> {
    Server(Remote<'a>),
    Kept(Source),
}

/// A journal that servers may be using.
#[derive(Clone)]
pub struct Shared {
    /// The journal.
    pub journal: Arc<dyn Journal>,
    /// The documents beside it, if it does not delete them itself.
    pub state: Option<Arc<dyn StateStore>>,
}

/// Performs an action on conversations. `server`: a running server that has them, and its token, instead of `source`.
///
/// # Errors
/// When they cannot be read, or there is no such conversation.
pub async fn run(
    action: &Conversations,
    server: Option<(&str, Option<&Hidden>)>,
    source: impl AsyncFnOnce() -> Result<Source>,
) -> Result<ExitCode> {
    let address = server.map(|(server, _)| Address::parse(server)).transpose()?;
    let place = async || match (&address, server) {
        (Some(address), Some((_, token))) => Ok(Place::Server(Remote::new(address, token)?)),
        _ => source().await.map(Place::Kept),
    };
    let mut printer = Printer::of_stdout();
    printer::unless_closed(match action {
        Conversations::List { json } => list::run(&Archive::open(place().await?)?, *json, &mut printer).await,
        Conversations::Show { id, full } => {
            let (calendar, archive) = (Calendar::of_process(), Archive::open(place().await?)?);
            show::run(&archive, id, *full, &calendar, &mut printer).await
        }
        Conversations::Export { ids, output } => {
            export::run(&Archive::open(place().await?)?, ids, output.as_deref()).await
        }
        Conversations::Delete { ids, older_than, caller, yes } => {
            let which = match ids.is_empty() {
                true => Which::All { older_than: *older_than, of: caller.as_deref() },
                false => Which::Named(ids),
            };
            return delete::run(&Store::open(place().await?)?, which, *yes).await;
        }
    })
}

/// Checks that the file exists and is not empty.
fn look_at(path: &Path) -> Result<()> {
    let place = path.display();
    let advice =
        "nothing was kept there yet; name another file with --data, or a running server with --server";
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => bail!("{place} is a directory: name the file in it with --data"),
        Ok(found) if found.len() == 0 => bail!("{place} is empty: {advice}"),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("there is no {place}: {advice}"),
        // Other errors are reported when the file is opened.
        _ => Ok(()),
    }
}
