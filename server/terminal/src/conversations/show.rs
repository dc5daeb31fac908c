//! `everturn conversations show`.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use everturn_orchestrator::Head;
use everturn_wire::{Chunk, ConversationId, Role, StoredChunk, Value, Verdict};

use super::{archive::Archive, export, pending::Pending, selection};
use crate::{
    calendar::Calendar,
    decision,
    failure_summary::FailureSummary,
    printer::{Ink, Printer},
    wording,
};

/// Maximum number of lines shown of a tool call or result, or of reasoning, without `--full`.
const LINES: usize = 8;

const MARGIN: &str = "  ";

/// Prints a conversation.
pub(super) async fn run(
    archive: &Archive<'_>,
    asked: &str,
    full: bool,
    calendar: &Calendar,
    printer: &mut Printer<impl Write>,
) -> Result<ExitCode> {
    let all = archive.conversations().await?;
    let (id, listed) = selection::one(&all, asked)?;
    let last_seq = archive.last_seq(id).await?.ok_or_else(|| export::deleted(id))?;
    let head = Head { last_seq, ..listed.clone() };
    let mut transcript = Transcript { printer, lines: if full { usize::MAX } else { LINES }, speaker: None };
    transcript.head(id, &head, calendar)?;
    export::each_chunk(archive, id, last_seq, |chunk| transcript.chunk(chunk)).await?;
    if let Some(pending) = archive.pending(id).await? {
        transcript.pending(&pending, calendar)?;
    }
    transcript.printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints a conversation for reading.
struct Transcript<'a, W: Write> {
    printer: &'a mut Printer<W>,
    lines: usize,
    /// The most recent speaker.
    speaker: Option<&'static str>,
}

impl<W: Write> Transcript<'_, W> {
    fn head(&mut self, id: &ConversationId, head: &Head, calendar: &Calendar) -> Result<()> {
        self.printer.block(Ink::Strong, "", &wording::one_line(&head.title, usize::MAX))?;
        let mut facts = vec![id.to_string(), calendar.brief(head.created_at.0)];
        facts.extend(head.model.clone());
        facts.push(wording::count(head.last_seq, "chunk"));
        Ok(self.printer.block(Ink::Faint, "", &facts.join(" \u{b7} "))?)
    }

    fn chunk(&mut self, stored: &StoredChunk) -> Result<()> {
        let speaker = match (stored.role, &*stored.chunk) {
            (_, Chunk::Error(_)) => "Error",
            (_, Chunk::System { keeps_from: Some(_), .. }) => "Summary",
            (Role::System, _) => "System",
            (Role::User, _) => "You",
            // A tool's result is shown with the model's call.
            _ => "Model",
        };
        if self.speaker.replace(speaker) != Some(speaker) {
            let ink = if speaker == "Error" { Ink::Bad } else { Ink::Strong };
            self.printer.line(Ink::Plain, "")?;
            self.printer.line(ink, speaker)?;
        }
        match &*stored.chunk {
            Chunk::System { text, keeps_from: Some(_) } => self.summary(text)?,
            Chunk::Text { text } => self.printer.block(Ink::Plain, MARGIN, text)?,
            // Addressed to the model.
            Chunk::System { text, .. } => self.printer.block(Ink::Faint, MARGIN, text)?,
            Chunk::Thinking { text, .. } => self.short(Ink::Faint, MARGIN, text)?,
            Chunk::ToolCall { tool_name, input, .. } => self.call(tool_name, input)?,
            Chunk::ToolResult { tool_name, content, is_error, decisions, questions, .. } => {
                for decision in decisions {
                    let ink = if decision.verdict == Verdict::Allowed { Ink::Faint } else { Ink::Warning };
                    self.printer.block(ink, "    ", &decision::line(decision))?;
                }
                for question in questions {
                    self.printer.block(Ink::Faint, "    ", &decision::question_line(question))?;
                }
                self.result(tool_name, content, *is_error)?;
            }
            Chunk::Error(report) => {
                self.printer.block(Ink::Bad, MARGIN, &report.message)?;
                let failure_summary = FailureSummary::of(report);
                let lines: Vec<String> =
                    failure_summary.tried().into_iter().chain(failure_summary.next()).collect();
                self.printer.block(Ink::Faint, MARGIN, &lines.join("\n"))?;
            }
            Chunk::Image { url, mime_type } => {
                let place = if url.starts_with("data:") { "inside the message" } else { url };
                let kind = mime_type.as_deref().unwrap_or("an image");
                self.printer.block(Ink::Faint, MARGIN, &format!("[{kind}, {place}]"))?;
            }
            _ => self.printer.block(Ink::Faint, MARGIN, "[written by a newer version of Everturn]")?,
        }
        Ok(())
    }

    fn summary(&mut self, text: &str) -> Result<()> {
        let words = "(for the model, in place of earlier messages)";
        self.printer.block(Ink::Faint, MARGIN, words)?;
        self.short(Ink::Faint, MARGIN, text)
    }

    fn call(&mut self, name: &str, input: &Value) -> Result<()> {
        let input = match input {
            Value::Object(fields) if fields.is_empty() => String::new(),
            Value::String(text) => text.clone(),
            input => input.to_string(),
        };
        self.short(Ink::Good, MARGIN, &format!("\u{25cf} {name} {input}"))
    }

    fn result(&mut self, name: &str, content: &str, is_error: bool) -> Result<()> {
        let (ink, content) = match (is_error, content.trim()) {
            (true, content) => (Ink::Bad, format!("{name} failed: {content}")),
            (false, "") => (Ink::Faint, "(nothing)".to_owned()),
            (false, content) => (Ink::Faint, content.to_owned()),
        };
        self.short(ink, "    ", &content)
    }

    /// The beginning of a text, and how much more there is.
    fn short(&mut self, ink: Ink, margin: &str, text: &str) -> Result<()> {
        let all = text.lines().count();
        let shown: Vec<&str> = text.lines().take(self.lines).collect();
        self.printer.block(ink, margin, &shown.join("\n"))?;
        if all > self.lines {
            let more = wording::count((all - self.lines) as u64, "more line");
            self.printer.block(Ink::Faint, margin, &format!("... {more} (--full shows all)"))?;
        }
        Ok(())
    }

    /// Describes an unsealed turn.
    fn pending(&mut self, pending: &Pending, calendar: &Calendar) -> Result<()> {
        self.printer.line(Ink::Plain, "")?;
        let words = match (pending.waits(), &pending.retry) {
            (true, None) => format!("The turn {}", pending.words(calendar)),
            (true, Some(retry)) => {
                let kind = retry.category.map(wording::category);
                let name: Vec<String> = retry.code.clone().into_iter().chain(kind).collect();
                let comma = if name.is_empty() { "" } else { ", " };
                format!("The turn {}{comma}{}", pending.words(calendar), name.join(" "))
            }
            (false, _) => {
                "The turn is unfinished: a server is running it, or will resume it when one starts."
                    .to_owned()
            }
        };
        self.printer.block(Ink::Warning, "", &words)?;
        if let Some(message) = pending.retry.as_ref().and_then(|retry| retry.message.as_ref()) {
            self.printer.block(Ink::Faint, MARGIN, &wording::brief(message))?;
        }
        for text in &pending.queue {
            let text = wording::one_line(text, 200);
            self.printer.block(Ink::Faint, "", &format!("Queued: {text}"))?;
        }
        Ok(())
    }
}
