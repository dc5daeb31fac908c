//! `everturn conversations delete`.

use std::{
    io::{self, IsTerminal as _, Write as _},
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    printer::{Ink, Printer},
    wording,
};
use anyhow::{Result, bail};
use everturn_orchestrator::Head;
use everturn_wire::{ConversationId, ConversationStatus};

use super::{selection, store::Store};

/// Maximum length of a displayed title, in characters.
const TITLE: usize = 60;

/// Which conversations are deleted.
pub(super) enum Which<'a> {
    /// These ids, or prefixes of them. If any of them does not exist, none is deleted.
    Named(&'a [String]),
    /// All that fit.
    All {
        /// Without a message for this long and without an unfinished turn.
        older_than: Option<Duration>,
        /// Of this caller.
        of: Option<&'a str>,
    },
}

/// Deletes conversations after asking for confirmation.
pub(super) async fn run(store: &Store<'_>, which: Which<'_>, yes: bool) -> Result<ExitCode> {
    let all = store.conversations().await?;
    let chosen = match which {
        Which::Named(asked) => selection::several(&all, asked)?,
        Which::All { older_than, of } => all
            .iter()
            .filter(|(id, _)| of.is_none() || id.caller() == of)
            .filter(|(_, head)| older_than.is_none_or(|age| is_old(head, age)))
            .collect(),
    };
    if chosen.is_empty() {
        writeln!(io::stderr(), "There is no such conversation.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && !is_confirmed(&chosen)? {
        writeln!(io::stderr(), "Nothing was deleted.")?;
        return Ok(ExitCode::FAILURE);
    }
    let mut printer = Printer::of_stdout();
    for (id, head) in chosen {
        store.remove(id).await?;
        // The deletion stands even if the message cannot be printed.
        let _ = printer.line(Ink::Plain, &format!("Deleted {}", described(id, head)));
        let _ = printer.flush();
    }
    store.give_back().await?;
    Ok(ExitCode::SUCCESS)
}

/// Whether it is without a message for this long and without an unfinished turn.
fn is_old(head: &Head, age: Duration) -> bool {
    let since = SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH);
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    u128::from(head.last_activity_at.0) < since && !is_unfinished(head)
}

fn is_unfinished(head: &Head) -> bool {
    matches!(head.status, ConversationStatus::Active | ConversationStatus::Queued)
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
    let size = Some(head.last_seq).filter(|seq| *seq > 0).map(|seq| wording::count(seq, "chunk"));
    let unfinished = is_unfinished(head).then(|| "with its unfinished turn".to_owned());
    let more: Vec<String> = size.into_iter().chain(unfinished).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    format!("{id} \u{201c}{title}\u{201d}{more}")
}
