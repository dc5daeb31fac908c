//! `everturn tools`: the tools that a running server offers to models.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use everturn_wire::{ToolAnnotations, ToolInfo, ToolPolicy, ToolSourceInfo, ToolSourceStatus, Tools};
use unicode_width::UnicodeWidthStr;

use crate::{
    Hidden,
    args::Running,
    printer::{self, Ink, Printer},
    running,
};

const GAP: &str = "  ";

/// Prints the tools of a server and where they come from.
///
/// # Errors
/// When there is no such server, or it does not report its tools.
pub async fn run(args: &Running, token: Option<&Hidden>) -> Result<ExitCode> {
    let table = |told: &Tools, _, printer: &mut Printer<_>| tables(told, printer);
    running::print(args, token, ("/tools", "tools"), table).await
}

/// The same as text, for the chat in the terminal.
pub(crate) fn text(told: &Tools) -> String {
    if told.tools.is_empty() && told.sources.is_empty() {
        return "Models are offered no tools.".to_owned();
    }
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = tables(told, &mut Printer::plain(&mut out, None));
    String::from_utf8_lossy(&out).trim_end().to_owned()
}

fn tables(told: &Tools, printer: &mut Printer<impl Write>) -> Result<ExitCode> {
    if !told.sources.is_empty() {
        sources(&told.sources, printer)?;
        printer.line(Ink::Plain, "")?;
    }
    let of_sources = told.sources.iter().flat_map(|source| &source.tools);
    let all: Vec<&ToolInfo> = told.tools.iter().chain(of_sources).collect();
    let widest = widest("TOOL", all.iter().map(|tool| tool.name.as_str()));
    let head = format!("{}{GAP}POLICY{GAP}CLAIMS", printer::pad("TOOL", widest));
    printer.line(Ink::Faint, &head)?;
    for tool in all {
        let policy = printer::pad(policy(tool.policy), "POLICY".len());
        let row = format!("{}{GAP}{policy}{GAP}{}", printer::pad(&tool.name, widest), claims(tool));
        printer.line(Ink::Plain, row.trim_end())?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn sources(sources: &[ToolSourceInfo], printer: &mut Printer<impl Write>) -> Result<()> {
    let widest = widest("SOURCE", sources.iter().map(|source| source.name.as_str()));
    printer.line(Ink::Faint, &format!("{}{GAP}STATE", printer::pad("SOURCE", widest)))?;
    for source in sources {
        printer.write(Ink::Plain, &format!("{}{GAP}", printer::pad(&source.name, widest)))?;
        let ink = if source.status == ToolSourceStatus::Up { Ink::Good } else { Ink::Warning };
        printer.line(ink, &state(source))?;
    }
    Ok(())
}

/// The state of a source in one line.
pub fn state(source: &ToolSourceInfo) -> String {
    let status = match source.status {
        ToolSourceStatus::Up => match source.tools.len() {
            1 => "up, 1 tool".to_owned(),
            many => format!("up, {many} tools"),
        },
        ToolSourceStatus::Starting => "starting".to_owned(),
        ToolSourceStatus::Down => "down".to_owned(),
        _ => "unknown".to_owned(),
    };
    let message = source.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    // The message may quote a program's output.
    format!("{status}{message}").replace(['\n', '\t'], " ")
}

fn widest<'n>(head: &'n str, names: impl Iterator<Item = &'n str>) -> usize {
    names.chain([head]).map(UnicodeWidthStr::width).max().unwrap_or(0)
}

fn policy(policy: ToolPolicy) -> &'static str {
    match policy {
        ToolPolicy::Allow => "allow",
        ToolPolicy::Ask => "ask",
        ToolPolicy::Review => "review",
        ToolPolicy::Deny => "deny",
        _ => "?",
    }
}

/// The source's claims about a tool that matter to people who are asked to approve it.
fn claims(tool: &ToolInfo) -> String {
    let none = ToolAnnotations::default();
    let claimed = tool.annotations.as_ref().unwrap_or(&none);
    // The other claims concern tools that change something.
    let changes = claimed.read_only != Some(true);
    let words = [
        (claimed.read_only == Some(true), "only reads"),
        (changes && claimed.destructive == Some(true), "destructive"),
        (changes && claimed.destructive == Some(false), "only adds"),
        (changes && claimed.idempotent == Some(true), "idempotent"),
    ];
    words.iter().filter(|(holds, _)| *holds).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_tools_are_listed() {
        let tool = |name: &str, policy, read_only, destructive| ToolInfo {
            name: name.to_owned(),
            policy,
            annotations: Some(ToolAnnotations { read_only, destructive, ..ToolAnnotations::default() }),
            ..ToolInfo::default()
        };
        let up = ToolSourceInfo {
            name: "files".to_owned(),
            status: ToolSourceStatus::Up,
            message: None,
            login: None,
            tools: vec![
                tool("files__read", ToolPolicy::Ask, Some(true), Some(false)),
                tool("files__write", ToolPolicy::Deny, Some(false), Some(true)),
            ],
        };
        let down = ToolSourceInfo {
            name: "web".to_owned(),
            status: ToolSourceStatus::Down,
            message: Some("it ended:\n\u{1b}[31mno key".to_owned()),
            login: None,
            tools: vec![],
        };
        let own = ToolInfo { name: "roll_dice".to_owned(), ..ToolInfo::default() };
        let mut out = Vec::new();
        let told = Tools { tools: vec![own], sources: vec![up, down] };
        tables(&told, &mut Printer::plain(&mut out, None)).unwrap();
        let expected = "SOURCE  STATE\n\
                        files   up, 2 tools\n\
                        web     down: it ended: [31mno key\n\
                        \n\
                        TOOL          POLICY  CLAIMS\n\
                        roll_dice     allow\n\
                        files__read   ask     only reads\n\
                        files__write  deny    destructive\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
