//! `everturn conversations list`.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use everturn_orchestrator::Head;
use everturn_wire::{
    ConversationId, ConversationStatus, ConversationSummary, DEFAULT_WORKSPACE, DoneReason, RetryState,
};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use super::{archive::Archive, pending::Pending, selection};
use crate::{
    calendar::Calendar,
    printer::{self, Ink, Printer},
    visible, wording,
};

/// Preferred width of a title in cells; the width below which it gets its own row; its maximum length in characters.
const TITLE: usize = 24;
const NARROW: usize = 12;
const LONGEST: usize = 200;

const GAP: &str = "  ";

/// Prints all conversations.
pub(super) async fn run(
    archive: &Archive<'_>,
    json: bool,
    printer: &mut Printer<impl Write>,
) -> Result<ExitCode> {
    let all = archive.conversations().await?;
    if json {
        let mut listed = Vec::with_capacity(all.len());
        for (id, head) in &all {
            let retry = pending(archive, id, head).await?.and_then(|pending| pending.retry);
            // A server does not tell how many chunks there are.
            let latest_seq = (!matches!(archive, Archive::Server(_))).then_some(head.last_seq);
            listed.push(Listed { retry, latest_seq, ..Listed::of(id, head) });
        }
        printer.line(Ink::Plain, &visible::json(&serde_json::to_string(&listed)?))?;
    } else {
        table(archive, &all, &Calendar::of_process(), printer).await?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// A conversation as in `GET /conversations`, and what only the file knows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    #[serde(flatten)]
    summary: ConversationSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_seq: Option<u64>,
    /// The current wait of its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryState>,
}

impl Listed {
    fn of(id: &ConversationId, head: &Head) -> Self {
        let summary = ConversationSummary {
            id: id.clone(),
            created_at: head.created_at.0,
            last_activity_at: head.last_activity_at.0,
            title: head.title.clone(),
            status: head.status,
            workspace_id: DEFAULT_WORKSPACE.to_owned(),
            model: None,
            waits_until: None,
            end_reason: head.end_reason.clone(),
            passage: None,
        };
        Self { summary, model: head.model.clone(), latest_seq: None, retry: None }
    }
}

/// The unsealed turn, if there is one according to the head.
async fn pending(archive: &Archive<'_>, id: &ConversationId, head: &Head) -> Result<Option<Pending>> {
    match head.status {
        ConversationStatus::Active | ConversationStatus::Queued => archive.pending(id).await,
        _ => Ok(None),
    }
}

/// One row of the table.
struct Row {
    id: String,
    when: String,
    status: String,
    is_busy: bool,
    title: String,
}

async fn table(
    archive: &Archive<'_>,
    all: &[(ConversationId, Head)],
    calendar: &Calendar,
    printer: &mut Printer<impl Write>,
) -> Result<()> {
    if all.is_empty() {
        return Ok(printer.line(Ink::Plain, "No conversations yet.")?);
    }
    let mut rows = Vec::with_capacity(all.len());
    for (id, head) in all {
        let pending = pending(archive, id, head).await?;
        let status = pending.map(|pending| pending.words(calendar));
        rows.push(Row {
            id: id.to_string(),
            when: calendar.brief(head.last_activity_at.0),
            is_busy: status.is_some(),
            status: status.unwrap_or_else(|| status_word(head).to_owned()),
            title: wording::one_line(&head.title, LONGEST),
        });
    }
    let rest =
        widest(&rows, |row| &row.when).max(4) + widest(&rows, |row| &row.status).max(6) + 3 * GAP.len();
    let is_narrow = |columns| widest(&rows, |row| &row.id) + rest + TITLE > columns;
    if printer.columns().is_some_and(is_narrow) {
        let cells = selection::telling(all) + 1;
        rows.iter_mut().for_each(|row| row.id = printer::cut(&row.id, cells));
    }
    print(&rows, rest, printer)
}

fn print(rows: &[Row], rest: usize, printer: &mut Printer<impl Write>) -> Result<()> {
    let id = widest(rows, |row| &row.id).max("ID".len());
    let when = widest(rows, |row| &row.when).max("WHEN".len());
    let status = widest(rows, |row| &row.status).max("STATUS".len());
    let columns = printer.columns().unwrap_or(usize::MAX);
    let title = columns.saturating_sub(id + rest);
    let is_narrow = title < NARROW;
    let mut head = vec![printer::pad("ID", id), printer::pad("WHEN", when), printer::pad("STATUS", status)];
    head.extend((!is_narrow).then(|| "TITLE".to_owned()));
    printer.line(Ink::Faint, head.join(GAP).trim_end())?;
    for row in rows {
        printer.write(
            Ink::Plain,
            &format!("{}{GAP}{}{GAP}", printer::pad(&row.id, id), printer::pad(&row.when, when)),
        )?;
        let ink = if row.is_busy { Ink::Warning } else { Ink::Faint };
        printer.write(ink, &printer::pad(&row.status, status))?;
        let title = match is_narrow {
            true => format!("\n{GAP}{}", printer::cut(&row.title, columns - GAP.len())),
            false => format!("{GAP}{}", printer::cut(&row.title, title)),
        };
        printer.line(Ink::Plain, title.trim_end_matches(' '))?;
    }
    Ok(())
}

fn status_word(head: &Head) -> &'static str {
    let failed = head.end_reason == Some(DoneReason::Error);
    match head.status {
        ConversationStatus::Idle if failed => "failed",
        ConversationStatus::Closed if failed => "failed, closed",
        // The turn counts as begun once anything of it is saved.
        ConversationStatus::Active => "unfinished",
        ConversationStatus::Queued => "queued",
        ConversationStatus::Idle => "idle",
        ConversationStatus::Closed => "closed",
        _ => "unknown",
    }
}

fn widest(rows: &[Row], of: impl Fn(&Row) -> &str) -> usize {
    rows.iter().map(|row| of(row).width()).max().unwrap_or(0)
}
