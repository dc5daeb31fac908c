//! `everturn conversations`: the conversations in a server's file.

mod delete;
mod export;
mod list;
mod pending;
pub(crate) mod selection;
mod show;

use std::{fs, io::ErrorKind, path::Path, process::ExitCode};

use anyhow::{Result, bail};
use everturn_console::printer::{self, Printer};
use everturn_store_sqlite::SqliteArchive;

use crate::{args::Conversations, calendar::Calendar};

/// Performs an action on the conversations of a file.
///
/// # Errors
/// When the file cannot be read, or has no such conversation.
pub async fn run(action: &Conversations, path: &Path) -> Result<ExitCode> {
    look_at(path)?;
    let done = match action {
        Conversations::List { json } => list::run(&archive(path)?, *json, &mut Printer::of_stdout()),
        Conversations::Show { id, full } => {
            show::run(&archive(path)?, id, *full, &Calendar::of_process(), &mut Printer::of_stdout())
        }
        Conversations::Export { ids, output } => export::run(&archive(path)?, ids, output.as_deref()),
        Conversations::Delete { ids, yes } => return delete::run(path, ids, *yes).await,
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

fn archive(path: &Path) -> Result<SqliteArchive> {
    Ok(SqliteArchive::open(path)?)
}
