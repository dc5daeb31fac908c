//! `everturn usage`: who used what of a running server, and what came of it.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use everturn_wire::{UsageKey, UsageReport, UsageRow};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    Hidden,
    args::Usage,
    printer::{self, Ink, Printer},
    running, visible, wording,
};

const GAP: &str = "  ";

/// A column: its head, and what a row has in it.
type Column = (&'static str, fn(&UsageRow) -> String);

/// The columns of figures.
const FIGURES: [Column; 11] = [
    ("TURNS", |row| row.turns.to_string()),
    ("SURVIVED", |row| row.survived.to_string()),
    ("FAILED", |row| row.failed.to_string()),
    ("WAITED", |row| if row.waited_ms == 0 { "-".to_owned() } else { wording::span(row.waited_ms) }),
    ("REQUESTS", |row| row.requests.to_string()),
    ("REFUSED", |row| row.refusals.to_string()),
    ("INPUT", |row| row.input_tokens.to_string()),
    ("CACHED", |row| row.cache_read_tokens.to_string()),
    ("OUTPUT", |row| row.output_tokens.to_string()),
    ("REASONING", |row| row.reasoning_tokens.to_string()),
    ("COST", cost),
];

/// Prints the usage of a server.
///
/// # Errors
/// When there is no such server, or it does not report usage.
pub async fn run(args: &Usage, token: Option<&Hidden>) -> Result<ExitCode> {
    let by: Vec<&str> = args.by.iter().map(|key| key.on_wire().as_str()).collect();
    let mut path = format!("/usage?by={}", by.join(","));
    for (name, day) in [("from", &args.from), ("to", &args.to)] {
        if let Some(day) = day {
            let is_plain = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
            let plain: String = day.chars().filter(is_plain).collect();
            anyhow::ensure!(plain == *day, "--{name} must be a date like 2026-11-25, not {day:?}");
            path.push_str(&format!("&{name}={day}"));
        }
    }
    running::print(&args.running, token, (&path, "usage"), |told: &UsageReport, _, printer| {
        table(told, printer)
    })
    .await
}

fn cost(row: &UsageRow) -> String {
    match (row.cost, &row.unpriced) {
        (Some(cost), None) => money(cost),
        // Some of it has no price.
        (Some(cost), Some(_)) => format!("{}+", money(cost)),
        (None, Some(_)) => "no price".to_owned(),
        (None, None) => "-".to_owned(),
    }
}

/// Formats an amount of money: small ones with more digits.
fn money(cost: f64) -> String {
    if cost > 0.0 && cost < 0.1 { format!("{cost:.4}") } else { format!("{cost:.2}") }
}

fn name(key: UsageKey, row: &UsageRow) -> String {
    let name = match key {
        UsageKey::Caller => return row.caller.clone().unwrap_or_else(|| "(administrator)".to_owned()),
        UsageKey::Model => &row.model,
        UsageKey::Target => &row.target,
        UsageKey::Day => &row.day,
    };
    visible::visible(name.as_deref().unwrap_or("-"))
}

fn table(told: &UsageReport, printer: &mut Printer<impl Write>) -> Result<ExitCode> {
    let heads =
        told.by.iter().map(|key| key.as_str().to_uppercase()).chain(FIGURES.map(|(head, _)| head.to_owned()));
    let mut lines: Vec<Vec<String>> = vec![heads.collect()];
    for row in &told.rows {
        let names = told.by.iter().map(|key| name(*key, row));
        lines.push(names.chain(FIGURES.map(|(_, figure)| figure(row))).collect());
    }
    let names =
        told.by.iter().enumerate().map(|(at, _)| if at == 0 { "total".to_owned() } else { String::new() });
    lines.push(names.chain(FIGURES.map(|(_, figure)| figure(&told.total))).collect());
    let widest = |column: usize| lines.iter().map(|line| line[column].width()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..lines[0].len()).map(widest).collect();
    printer.line(Ink::Faint, &format!("{} to {}, days in UTC", told.from, told.to))?;
    for (number, line) in lines.iter().enumerate() {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            match column < told.by.len() {
                true => printer::pad(cell, *width),
                false => format!("{}{cell}", " ".repeat(width - cell.width())),
            }
        });
        let ink = if number == 0 { Ink::Faint } else { Ink::Plain };
        printer.line(ink, cells.collect::<Vec<_>>().join(GAP).trim_end())?;
    }
    if let Some(unpriced) = &told.total.unpriced {
        let targets = unpriced.iter().map(|target| visible::visible(target)).collect::<Vec<_>>().join(", ");
        printer.line(Ink::Faint, &format!("without a price: {targets}"))?;
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_below_each_other_and_lacking_prices_are_said() {
        let row = |caller: Option<&str>, model: &str, tokens, cost, unpriced: Option<&str>| UsageRow {
            caller: caller.map(str::to_owned),
            model: Some(model.to_owned()),
            turns: 2,
            requests: 3,
            refusals: 1,
            survived: 1,
            waited_ms: 61_000,
            input_tokens: tokens,
            cost,
            unpriced: unpriced.map(|target| vec![target.to_owned()]),
            ..UsageRow::default()
        };
        let told = UsageReport {
            from: "2026-11-01".to_owned(),
            to: "2026-11-25".to_owned(),
            by: vec![UsageKey::Caller, UsageKey::Model],
            rows: vec![
                row(None, "a/m", 5, Some(0.01234), None),
                row(Some("ann"), "b/long", 123_456, None, Some("b/long")),
            ],
            total: row(None, "", 123_461, Some(12.0), Some("b/long")),
        };
        let mut out = Vec::new();
        table(&told, &mut Printer::plain(&mut out, None)).unwrap();
        let expected = "\
2026-11-01 to 2026-11-25, days in UTC
CALLER           MODEL   TURNS  SURVIVED  FAILED   WAITED  REQUESTS  REFUSED   INPUT  CACHED  OUTPUT  REASONING      COST
(administrator)  a/m         2         1       0  1m 1s  3        1       5       0       0          0    0.0123
";
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], expected.lines().next().unwrap());
        let words = |line: &str| {
            line.split("  ")
                .map(str::trim)
                .filter(|word| !word.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(lines[2])[..2], ["(administrator)", "a/m"]);
        assert!(
            lines[2].ends_with(" 0.0123") && lines[3].ends_with(" no price") && lines[4].ends_with(" 12.00+"),
            "{text}"
        );
        assert!(lines[4].starts_with("total ") && lines[4].contains("123461"), "{text}");
        assert_eq!(lines[5], "without a price: b/long");
        let widths: Vec<usize> = lines[1..5].iter().map(|line| line.width()).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
    }
}
