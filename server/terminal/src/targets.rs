//! `everturn targets`: the availability of a running server's models.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use everturn_wire::{Category, TargetState, Targets};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    Hidden,
    args::Running,
    calendar::Calendar,
    printer::{self, Ink, Printer},
    remote::Clock,
    running,
};

const HEAD: &str = "TARGET";
const GAP: &str = "  ";

/// Prints what a server knows about its targets.
///
/// # Errors
/// When there is no such server, or it does not report its targets.
pub async fn run(args: &Running, token: Option<&Hidden>) -> Result<ExitCode> {
    let print = |told: &Targets, clock, printer: &mut Printer<_>| {
        table(&told.targets, clock, &Calendar::of_process(), printer)
    };
    running::print(args, token, ("/targets", "targets"), print).await
}

fn table(
    targets: &[TargetState],
    clock: Clock,
    calendar: &Calendar,
    printer: &mut Printer<impl Write>,
) -> Result<ExitCode> {
    let widest = targets.iter().map(|state| state.target.width()).max().unwrap_or(0).max(HEAD.len());
    printer.line(Ink::Faint, &format!("{}{GAP}STATE", printer::pad(HEAD, widest)))?;
    for state in targets {
        printer.write(Ink::Plain, &format!("{}{GAP}", printer::pad(&state.target, widest)))?;
        match state.until {
            None => printer.line(Ink::Good, "free")?,
            Some(until) => {
                let (why, until) = (words(state.category), calendar.exact(clock.here(until)));
                printer.line(Ink::Warning, &format!("{why} until {until}"))?;
            }
        }
    }
    printer.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The state of a target that is not free.
fn words(category: Option<Category>) -> &'static str {
    match category {
        Some(Category::RateLimited) => "rate limited",
        Some(Category::Overloaded) => "overloaded",
        Some(Category::QuotaExhausted) => "used up",
        Some(Category::Auth) => "key refused",
        Some(Category::Permission) => "not permitted",
        Some(Category::NotFound) => "not found",
        Some(Category::Network) => "unreachable",
        Some(Category::Timeout) => "too slow",
        _ => "failing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(targets: &[TargetState]) -> String {
        let mut out = Vec::new();
        let printer = &mut Printer::plain(&mut out, None);
        table(targets, Clock::default(), &Calendar::of_process(), printer).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_target_is_free_or_something_until_a_moment() {
        let free = |name: &str| TargetState { target: name.to_owned(), until: None, category: None };
        assert_eq!(printed(&[free("a/m")]), "TARGET  STATE\na/m     free\n");
        for (category, word) in [
            (Some(Category::RateLimited), "rate limited"),
            (Some(Category::QuotaExhausted), "used up"),
            (Some(Category::Auth), "key refused"),
            (Some(Category::Unknown), "failing"),
            (None, "failing"),
        ] {
            let marked = TargetState { until: Some(u64::MAX), category, ..free("日本語/long") };
            let row = format!("日本語/long  {word} until {} ms", u64::MAX);
            assert_eq!(printed(&[marked]), format!("TARGET       STATE\n{row}\n"));
        }
    }
}
