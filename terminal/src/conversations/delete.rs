//! `everturn conversations delete`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    path::Path,
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Result, anyhow, bail};
use everturn_console::{
    printer::{Ink, Printer},
    wording,
};
use everturn_orchestrator::{Head, Journal, Page, delete_documents};
use everturn_store_sqlite::{OpenError, SqliteJournal};
use everturn_wire::{ConversationId, ConversationStatus};

use super::{Source, look_at, selection};

/// Maximum length of a displayed title, in characters.
const TITLE: usize = 60;

/// Deletes conversations after asking for confirmation. If any of them does not exist, none is deleted.
pub(super) async fn run(source: &Source, asked: &[String], yes: bool) -> Result<ExitCode> {
    let (journal, state): (Arc<dyn Journal>, _) = match source {
        Source::File(path) => (Arc::new(open(path)?), None),
        Source::Shared(shared) => (shared.journal.clone(), Some(&shared.state)),
    };
    let all = journal.conversations(Page::default()).await?;
    let chosen = selection::several(&all, asked)?;
    if !yes && !is_confirmed(&chosen)? {
        writeln!(io::stderr(), "Nothing was deleted.")?;
        return Ok(ExitCode::FAILURE);
    }
    let mut printer = Printer::of_stdout();
    for (id, head) in chosen {
        if let Some(state) = state {
            delete_documents(&**state, id).await?;
        }
        journal.remove(id).await?;
        // The deletion stands even if the message cannot be printed.
        let _ = printer.line(Ink::Plain, &format!("Deleted {}", described(id, head)));
        let _ = printer.flush();
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens the file for writing; it can have only one writer.
fn open(path: &Path) -> Result<SqliteJournal> {
    look_at(path)?;
    SqliteJournal::open(path).map_err(|error| match error {
        OpenError::InUse { path, .. } => anyhow!(
            "a server has {} open, and would go on writing to what is deleted: stop it, delete, and start it again",
            path.display()
        ),
        error => error.into(),
    })
}

fn is_confirmed(chosen: &[&(ConversationId, Head)]) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!(
            "refusing to delete without confirmation: standard input is not a terminal; use --yes to confirm"
        );
    }
    let mut out = io::stderr();
    for (id, head) in chosen {
        writeln!(out, "  {}", described(id, head))?;
    }
    write!(out, "Delete {} for good? [y/N] ", wording::count(chosen.len() as u64, "conversation"))?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn described(id: &ConversationId, head: &Head) -> String {
    let title = wording::one_line(&head.title, TITLE);
    let unfinished = match head.status {
        ConversationStatus::Active | ConversationStatus::Queued => ", with its unfinished turn",
        _ => "",
    };
    format!("{id} \u{201c}{title}\u{201d} ({}{unfinished})", wording::count(head.last_seq, "chunk"))
}
