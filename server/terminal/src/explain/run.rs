//! `everturn explain`: the diagnosis of a failure, its reasons, and what a turn would do.

use std::{
    io::{self, IsTerminal as _, Read as _, Write as _},
    process::ExitCode,
};

use anyhow::{Context as _, Result, anyhow, bail};
use everturn_diagnosis::redact;
use everturn_kernel::{NoRetry, Settings};
use everturn_orchestrator::{Clock as _, SystemClock};
use everturn_orchestrator::{LongLimits, RetryPolicy};

use crate::printer::{self, Printer};

use super::{
    args::{Explain, epoch_ms},
    case::Case,
    forecast::Forecast,
    plan::Plan,
    report::Report,
    row,
    verdict::Verdict,
};

/// Maximum input size, in bytes: more than any client keeps of a failed response.
const LONGEST_INPUT: u64 = 8 << 20;

/// Maximum length of an error about the input, in bytes.
const LONGEST_ERROR: usize = 4096;

/// Explains one failure, or each line of the input. `plan` returns the configured retry behaviour, for a route or
/// without one.
///
/// The exit code is 1 if the input is not recognised as a failure, or as the complete answer that it is.
///
/// # Errors
/// Returns an error if the input or the configuration is invalid.
pub fn run(args: &Explain, plan: impl FnOnce(Option<&str>) -> Result<Plan>) -> Result<ExitCode> {
    if args.jsonl {
        let written = row::predict(io::stdin().lock(), io::BufWriter::new(io::stdout()));
        return printer::unless_closed(written.map(|()| ExitCode::SUCCESS));
    }
    let mut plan = plan(args.route.as_deref())?;
    // The error quotes the input, and people post it.
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
        let written = verdict.write(&mut printer, &said, args.json);
        return printer::unless_closed(written.map(|()| verdict.exit_code()));
    }
    let mut settings = Settings::default();
    settings.budget.max_wait_ms = Some(plan.max_wait_ms);
    let mut policy = plan.policy.clone();
    if args.route.is_some() {
        policy = policy.on_route();
    }
    if plan.parks {
        policy = policy.with(LongLimits::SitOut);
    }
    if !plan.enabled {
        policy = RetryPolicy::own(NoRetry);
    }
    settings.targets = std::mem::take(&mut plan.targets);
    let first = settings.targets.first().map(|target| target.name.clone());
    let forecast = Forecast::of(&explanation.failure, &policy, settings, now);
    let report = Report { case: &case, explanation, forecast, plan: &plan, first };
    let mut printer = Printer::of_stdout();
    let written = match args.json {
        true => report.json(&mut printer),
        false => report.text(&mut printer),
    };
    printer::unless_closed(written.map(|()| ExitCode::SUCCESS))
}

/// Reads the pasted or piped input.
fn input() -> Result<String> {
    let mut stdin = io::stdin();
    if stdin.is_terminal() {
        writeln!(io::stderr(), "Paste the response, then press Ctrl-D on an empty line:")?;
    }
    let mut bytes = Vec::new();
    (&mut stdin).take(LONGEST_INPUT + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
    if bytes.len() as u64 > LONGEST_INPUT {
        bail!("the input exceeds {} MiB: reduce it to the failed response", LONGEST_INPUT >> 20);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
