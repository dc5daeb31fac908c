//! The report about a failure, for people and programs.

use std::io::Write;

use anyhow::Result;
use everturn_diagnosis::{Explanation, redact};
use serde_json::json;

use crate::{
    printer::{Ink, Printer, pad},
    wording,
};

use super::{case::Case, forecast::Forecast, plan::Plan};

/// Width of the labels, in cells.
const NAMES: usize = 10;

/// Maximum number of different waits listed.
const WAITS: usize = 12;

pub(super) struct Report<'a> {
    pub(super) case: &'a Case,
    pub(super) explanation: Explanation,
    pub(super) forecast: Forecast,
    pub(super) plan: &'a Plan,
    /// The target that a route asks first; `None` without a route.
    pub(super) first: Option<String>,
}

impl Report<'_> {
    pub(super) fn text(&self, printer: &mut Printer<impl Write>) -> Result<()> {
        let failure = &self.explanation.failure;
        let waits = &self.forecast.waits_ms;
        let said = wording::brief(&failure.message);
        let said = said.trim_end_matches([':', ' ']);
        if !said.is_empty() {
            printer.block(Ink::Strong, "", said)?;
            printer.line(Ink::Plain, "")?;
        }
        fact(printer, Ink::Plain, "input", &self.case.described())?;
        let ink = if waits.is_empty() { Ink::Bad } else { Ink::Warning };
        fact(printer, ink, "category", &wording::category(failure.category))?;
        fact(printer, Ink::Plain, "because", &without_keys(&self.explanation.category.join("\n")))?;
        fact(printer, ink, "retried", &self.retried())?;
        if let (Some(reason), Some(_)) = (&self.explanation.hint, failure.hint_ms) {
            fact(printer, Ink::Plain, "because", &without_keys(reason))?;
        }
        if !waits.is_empty() {
            match &self.first {
                Some(first) => fact(printer, Ink::Plain, "asks", &self.asks(first))?,
                None => fact(printer, Ink::Plain, "waits", &self.waits())?,
            }
            fact(printer, Ink::Plain, "total", &self.total())?;
        }
        if let Some(advice) = &failure.advice {
            fact(printer, Ink::Plain, "advice", advice)?;
        }
        fact(printer, Ink::Plain, "version", concat!("everturn ", env!("CARGO_PKG_VERSION")))?;
        Ok(printer.flush()?)
    }

    /// Whether it is retried, and when first.
    fn retried(&self) -> String {
        let failure = &self.explanation.failure;
        let asked = failure.hint_ms.map(wording::span);
        let next = self.forecast.targets.first().filter(|next| Some(*next) != self.first.as_ref());
        if let (Some(next), Some(wait_ms)) = (next, self.forecast.waits_ms.first()) {
            return format!("yes, {}, on {next}", after(*wait_ms));
        }
        match (self.forecast.waits_ms.first(), asked) {
            (Some(first), Some(asked)) if failure.hint_ms == Some(*first) => {
                format!("yes, after {asked}, as the provider asked")
            }
            (Some(first), Some(asked)) => {
                format!("yes, after {}; the provider asked for at least {asked}", wording::span(*first))
            }
            (Some(first), None) => format!("yes, after {}", wording::span(*first)),
            (None, _) if !self.plan.enabled => "no: retries are switched off in the configuration".to_owned(),
            (None, _) if let Some(end) = &self.forecast.end => format!("no: {end}"),
            (None, _) if failure.retryable => "no: the schedule has no retries".to_owned(),
            (None, Some(asked)) => {
                format!("no: it will not pass within a turn (the provider asked for {asked})")
            }
            (None, None) => "no: the same request would fail again".to_owned(),
        }
    }

    /// Lists the waits: `5 s, 10 s, 14 x 30 min`.
    fn waits(&self) -> String {
        let groups: Vec<&[u64]> = self.forecast.waits_ms.chunk_by(|one, next| one == next).collect();
        let named = groups.iter().take(WAITS).map(|group| match group.len() {
            1 => wording::span(group[0]),
            count => format!("{count} x {}", wording::span(group[0])),
        });
        let more = if groups.len() > WAITS { ", ..." } else { "" };
        format!("{}{more}, if it keeps failing like this", named.collect::<Vec<_>>().join(", "))
    }

    /// Lists the targets: `a/m, b/m at once, a/m after 8 s`.
    fn asks(&self, first: &str) -> String {
        let Forecast { waits_ms, targets, .. } = &self.forecast;
        let named = waits_ms.iter().zip(targets).take(WAITS);
        let named = named.map(|(wait_ms, target)| format!("{target} {}", after(*wait_ms)));
        let all: Vec<String> = [first.to_owned()].into_iter().chain(named).collect();
        let more = if waits_ms.len() > WAITS { ", ..." } else { "" };
        format!("{}{more}, if all of them fail like this", all.join(", "))
    }

    fn total(&self) -> String {
        let count = self.forecast.waits_ms.len() as u64;
        let retries = if count == 1 { "1 retry".to_owned() } else { format!("{count} retries") };
        let cut = if self.forecast.is_cut { " and more" } else { "" };
        let budget = wording::span(self.plan.max_wait_ms);
        let Plan { name, jitter, .. } = self.plan;
        let schedule = match *jitter > 0.0 {
            true => format!("the {name} schedule, each wait ±{:.0} %", jitter * 100.0),
            false => format!("the {name} schedule"),
        };
        let schedule = if self.first.is_some() { format!("{schedule} of the route") } else { schedule };
        let total = wording::span(self.forecast.total_ms());
        format!("{retries}{cut} over {total}, by {schedule} and a budget of {budget}")
    }

    pub(super) fn json(&self, printer: &mut Printer<impl Write>) -> Result<()> {
        let Explanation { failure, category, hint, .. } = &self.explanation;
        let mut object = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "readAs": self.case.described(),
            "failure": failure,
            "because": category.iter().map(|reason| without_keys(reason)).collect::<Vec<_>>(),
            "retry": {
                "waitsMs": self.forecast.waits_ms,
                "totalMs": self.forecast.total_ms(),
                "hasMore": self.forecast.is_cut,
            },
        });
        if self.first.is_some() {
            object["retry"]["firstTarget"] = json!(self.first);
            object["retry"]["targets"] = json!(self.forecast.targets);
        }
        if let Some(hint) = hint {
            object["hintBecause"] = json!(without_keys(hint));
        }
        if let Some(end) = &self.forecast.end {
            object["retry"]["end"] = json!(end);
        }
        printer.line(Ink::Plain, &serde_json::to_string(&object)?)?;
        Ok(printer.flush()?)
    }
}

/// Formats a wait as `at once` or `after 8 s`.
fn after(wait_ms: u64) -> String {
    if wait_ms == 0 { "at once".to_owned() } else { format!("after {}", wording::span(wait_ms)) }
}

/// Redacts keys in a reason, because it quotes the input and people post it.
fn without_keys(reason: &str) -> String {
    redact(reason, 4096)
}

/// Prints a label and a text. Further lines are indented below the first.
fn fact(printer: &mut Printer<impl Write>, ink: Ink, name: &str, text: &str) -> Result<()> {
    let margin = " ".repeat(NAMES);
    let mut first = true;
    for row in printer.rows(&margin, text) {
        let name = if std::mem::take(&mut first) { pad(name, NAMES) } else { margin.clone() };
        printer.write(Ink::Faint, &name)?;
        printer.line(ink, &row)?;
    }
    Ok(())
}
