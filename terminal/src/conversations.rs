//! `everturn conversations`: the conversations in a server's file, or of servers that share them.

mod archive;
mod delete;
mod export;
mod list;
mod pending;
pub(crate) mod selection;
mod show;

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Result, bail};
use everturn_console::printer::{self, Printer};
use everturn_orchestrator::{Journal, StateStore};

use crate::{args::Conversations, calendar::Calendar};
use archive::Archive;

/// Where conversations are kept.
#[derive(Clone)]
pub enum Source {
    /// In a file.
    File(PathBuf),
    /// In a journal that servers share. They may be running.
    Shared(Shared),
}

/// A journal that servers share.
#[derive(Clone)]
pub struct Shared {
    /// The journal.
    pub journal: Arc<dyn Journal>,
    /// The documents beside it.
    pub state: Arc<dyn StateStore>,
}

/// Performs an action on conversations.
///
/// # Errors
/// When they cannot be read, or there is no such conversation.
pub async fn run(action: &Conversations, source: &Source) -> Result<ExitCode> {
    let done = match action {
        Conversations::List { json } => {
            list::run(&Archive::open(source)?, *json, &mut Printer::of_stdout()).await
        }
        Conversations::Show { id, full } => {
            let calendar = Calendar::of_process();
            show::run(&Archive::open(source)?, id, *full, &calendar, &mut Printer::of_stdout()).await
        }
        Conversations::Export { ids, output } => {
            export::run(&Archive::open(source)?, ids, output.as_deref()).await
        }
        Conversations::Delete { ids, yes } => return delete::run(source, ids, *yes).await,
    };
    printer::unless_closed(done)
}

/// Checks that the file exists and is not empty.
fn look_at(path: &Path) -> Result<()> {
    let place = path.display();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => bail!("{place} is a directory: name the file in it with --data"),
        Ok(found) if found.len() == 0 => {
            bail!(
                "{place} is empty: nothing was kept there yet; name another file with --data, or start a server"
            )
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!(
                "there is no {place}: nothing was kept there yet; name another file with --data, or start a server"
            )
        }
        // Other errors are reported when the file is opened.
        _ => Ok(()),
    }
}
