//! `everturn explain`: what a failure is, why, and what would be done about it.

mod case;
mod forecast;
mod paste;
mod report;
mod row;
mod verdict;

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context as _, Result, anyhow, bail};
use everturn_diagnosis::redact;
use everturn_kernel::{Handover, Settings, Walls};
use everturn_orchestrator::{Clock as _, SystemClock};

use crate::{
    cli,
    config::{Config, Environment},
    printer::{self, Printer},
};
use case::Case;
use forecast::Forecast;
use report::Report;
use verdict::Verdict;

/// The most that is read, in bytes: more than any client keeps of a failed response.
const LONGEST_INPUT: u64 = 8 << 20;

/// The longest error about the input, in bytes.
const LONGEST_ERROR: usize = 4096;

/// Explains one failure, or every line's.
pub(crate) fn run(args: &cli::Explain, environment: &Environment<'_>) -> Result<ExitCode> {
    if args.jsonl {
        let written = row::predict(io::stdin().lock(), io::BufWriter::new(io::stdout()));
        return printer::unless_closed(written.map(|()| ExitCode::SUCCESS));
    }
    let (retry, targets) = match &args.route {
        Some(name) => Config::on_route(&args.flags(), environment, name)?,
        None => (Config::retry(&args.flags(), environment)?, Vec::new()),
    };
    // What is wrong with the input is quoted, and people post it.
    let case =
        Case::new(args, &input()?).map_err(|error| anyhow!(redact(&format!("{error:#}"), LONGEST_ERROR)))?;
    let now = args.now.map_or_else(|| SystemClock::new().now().0, epoch_ms);
    let explanation = case.explain(now);
    let verdict = match () {
        () if case.is_success() => Some(Verdict::Success),
        () if case.is_guessed() && !explanation.is_recognised => Some(Verdict::Unrecognised),
        () => None,
    };
    if let Some(verdict) = verdict {
        let mut printer = Printer::of_stdout();
        let said = redact(&explanation.failure.message, LONGEST_ERROR);
        return printer::unless_closed(
            verdict.write(&mut printer, &said, args.json).map(|()| ExitCode::SUCCESS),
        );
    }
    let mut settings = Settings::default();
    settings.budget.max_wait_ms = Some(retry.max_wait_ms);
    let mut schedule = retry.schedule.exact().made();
    if args.route.is_some() && !schedule.chooses_targets() {
        schedule = Arc::new(Handover(schedule));
    }
    if retry.parks {
        schedule = Arc::new(Walls(schedule));
    }
    let first = targets.first().map(|target| target.name.clone());
    settings.targets = targets;
    let forecast = Forecast::of(&explanation.failure, schedule.as_ref(), settings, now);
    let report = Report { case: &case, explanation, forecast, retry: &retry, first };
    let mut printer = Printer::of_stdout();
    let written = match args.json {
        true => report.json(&mut printer),
        false => report.text(&mut printer),
    };
    printer::unless_closed(written.map(|()| ExitCode::SUCCESS))
}

/// What was pasted or piped.
fn input() -> Result<String> {
    let mut stdin = io::stdin();
    if stdin.is_terminal() {
        writeln!(io::stderr(), "Paste what came back, on lines of its own, then press Ctrl-D:")?;
    }
    let mut bytes = Vec::new();
    (&mut stdin).take(LONGEST_INPUT + 1).read_to_end(&mut bytes).context("standard input cannot be read")?;
    if bytes.len() as u64 > LONGEST_INPUT {
        bail!("that is more than {} MiB: cut it to the response that failed", LONGEST_INPUT >> 20);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn epoch_ms(at: jiff::Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}
