//! Retry settings.

use std::time::Duration;

use anyhow::{Result, bail};
use everturn_orchestrator::{Cycling, Exponential, Patient, RetryPolicy, Switching};

use super::file::RetryTable;
use super::table::{AfterContentName, QuotaName, RevertName, ScheduleName};

/// Retry settings.
#[derive(Debug, PartialEq)]
pub(crate) struct Retry {
    /// Whether failures are retried.
    pub(crate) enabled: bool,
    pub(crate) policy: RetryPolicy,
    /// Maximum sum of the waits of one step, in milliseconds.
    pub(crate) max_wait_ms: u64,
    /// Whether a truncated answer is withdrawn and streamed again.
    pub(crate) rewinds: bool,
    /// Whether limits that last longer than the budget are waited out.
    pub(crate) parks: bool,
}

/// Resolves the schedule with this name and these parameters. `table`: their location, for errors.
pub(super) fn policy(table: &str, name: ScheduleName, figures: &Figures) -> Result<RetryPolicy> {
    figures.check(table, name)?;
    Ok(match name {
        ScheduleName::Patient => Patient.into(),
        ScheduleName::Exponential => exponential(table, figures, None, JITTER)?.into(),
        ScheduleName::Interactive => {
            let reverts = figures.revert != Some(RevertName::Never);
            exponential(table, figures, Some(Switching { reverts }), 0.0)?.into()
        }
        ScheduleName::Cycling => cycling(table, figures)?.into(),
    })
}

/// The parameters of schedules. Each schedule uses some of them.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) base_ms: Option<u64>,
    pub(super) max_delay_ms: Option<u64>,
    pub(super) max_retries: Option<u32>,
    pub(super) jitter: Option<f64>,
    pub(super) revert: Option<RevertName>,
    pub(super) max_attempts: Option<u32>,
    pub(super) clamp_hints: Option<bool>,
    pub(super) sticky: Option<bool>,
}

impl Figures {
    /// Whether any parameter is set.
    pub(super) fn are_given(&self) -> bool {
        self.given().next().is_some()
    }

    /// Iterates over the names of set parameters, each with the schedules that use it.
    fn given(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        const DOUBLING: &[&str] = &["exponential", "interactive"];
        let all: [(&'static str, bool, &'static [&'static str]); 8] = [
            ("base_ms", self.base_ms.is_some(), DOUBLING),
            ("max_delay_ms", self.max_delay_ms.is_some(), DOUBLING),
            ("max_retries", self.max_retries.is_some(), DOUBLING),
            ("jitter", self.jitter.is_some(), DOUBLING),
            ("revert", self.revert.is_some(), &["interactive"]),
            ("max_attempts", self.max_attempts.is_some(), &["cycling"]),
            ("clamp_hints", self.clamp_hints.is_some(), &["cycling"]),
            ("sticky", self.sticky.is_some(), &["cycling"]),
        ];
        all.into_iter().filter(|(_, given, _)| *given).map(|(key, _, schedules)| (key, schedules))
    }

    fn check(&self, table: &str, name: ScheduleName) -> Result<()> {
        let name = match name {
            ScheduleName::Patient => "patient",
            ScheduleName::Exponential => "exponential",
            ScheduleName::Interactive => "interactive",
            ScheduleName::Cycling => "cycling",
        };
        match self.given().find(|(_, schedules)| !schedules.contains(&name)) {
            Some((key, schedules)) => bail!(
                "{table} {key} has no effect with schedule = {name:?}: it is for schedule = {}",
                schedules.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ")
            ),
            None => Ok(()),
        }
    }
}

impl Retry {
    pub(super) fn resolve(table: &RetryTable) -> Result<Self> {
        let figures = Figures {
            base_ms: table.base_ms,
            max_delay_ms: table.max_delay_ms,
            max_retries: table.max_retries,
            jitter: table.jitter,
            revert: table.revert,
            max_attempts: table.max_attempts,
            clamp_hints: table.clamp_hints,
            sticky: table.sticky,
        };
        let longest = u64::try_from(Patient::BUDGET.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            enabled: table.enabled.unwrap_or(true),
            policy: policy("[retry]", table.schedule, &figures)?,
            max_wait_ms: table.max_wait_ms.unwrap_or(longest),
            rewinds: table.after_content == AfterContentName::Rewind,
            parks: table.quota == QuotaName::Park,
        })
    }
}

/// Default jitter of `exponential`, so that turns that failed together do not retry together.
const JITTER: f64 = 0.1;

/// `usual_jitter`: without a configured one.
fn exponential(
    table: &str,
    figures: &Figures,
    switching: Option<Switching>,
    usual_jitter: f64,
) -> Result<Exponential> {
    let usual = Exponential::default();
    let jitter = jitter(table, figures, usual_jitter)?;
    let (base, max_delay) = waits(table, figures, usual.base, usual.max_delay)?;
    Ok(Exponential {
        base,
        max_delay,
        max_retries: figures.max_retries.unwrap_or(usual.max_retries),
        jitter,
        // Many servers that lost the same provider must not retry at the same moment.
        seed: if jitter > 0.0 && switching.is_none() { fastrand::u64(..) } else { usual.seed },
        switching,
    })
}

fn jitter(table: &str, figures: &Figures, usual: f64) -> Result<f64> {
    let jitter = figures.jitter.unwrap_or(usual);
    if !(0.0..=1.0).contains(&jitter) {
        bail!("{table} jitter is a fraction of the wait: write a number from 0 to 1");
    }
    Ok(jitter)
}

fn cycling(table: &str, figures: &Figures) -> Result<Cycling> {
    let usual = Cycling::default();
    if figures.max_attempts == Some(0) {
        bail!("{table} max_attempts counts all calls of a step: write 1 or more");
    }
    Ok(Cycling {
        max_attempts: figures.max_attempts.unwrap_or(usual.max_attempts),
        clamp_hints: figures.clamp_hints.unwrap_or(usual.clamp_hints),
        sticky: figures.sticky.unwrap_or(usual.sticky),
    })
}

/// Returns the first and the longest wait. A longest wait of 0 means no limit.
fn waits(
    table: &str,
    figures: &Figures,
    base: Duration,
    max_delay: Option<Duration>,
) -> Result<(Duration, Option<Duration>)> {
    let base = figures.base_ms.map_or(base, Duration::from_millis);
    let max_delay = match figures.max_delay_ms {
        None => max_delay,
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms)),
    };
    if let Some(max_delay) = max_delay.filter(|max_delay| base > *max_delay) {
        let by_default = if figures.max_delay_ms.is_none() { " by default" } else { "" };
        bail!(
            "{table} base_ms, the first wait, is {} ms, but max_delay_ms allows {} ms{by_default}: lower base_ms, or raise \
             max_delay_ms (0 = no limit)",
            base.as_millis(),
            max_delay.as_millis()
        );
    }
    Ok((base, max_delay))
}
