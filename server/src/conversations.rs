//! `everturn conversations`: what a server keeps in its file.

mod delete;
mod export;
mod list;
mod pending;
mod selection;
mod show;

use std::{path::Path, process::ExitCode};

use anyhow::{Result, bail};
use everturn_store_sqlite::SqliteArchive;

use crate::{
    cli::{self, Action},
    config::{Config, Environment},
    moment::Calendar,
    paper::{self, Paper},
};

/// Does one thing with the conversations of a file.
pub(crate) async fn run(args: &cli::Conversations, environment: &Environment<'_>) -> Result<ExitCode> {
    let path = Config::data(&args.flags(), environment)?;
    if !path.exists() {
        bail!(
            "there is no {}: nothing was kept there yet; name another file with --data, or start a server",
            path.display()
        );
    }
    let done = match &args.action {
        Action::List { json } => list::run(&archive(&path)?, *json, &mut Paper::of_stdout()),
        Action::Show { id, full } => {
            show::run(&archive(&path)?, id, *full, &Calendar::of_process(), &mut Paper::of_stdout())
        }
        Action::Export { ids, output } => export::run(&archive(&path)?, ids, output.as_deref()),
        Action::Delete { ids, yes } => return delete::run(&path, ids, *yes).await,
    };
    paper::unless_closed(done)
}

fn archive(path: &Path) -> Result<SqliteArchive> {
    Ok(SqliteArchive::open(path)?)
}
