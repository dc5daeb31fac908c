//! How long failures are waited out.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use everturn_kernel::{Cycling, Interactive};
use everturn_orchestrator::{Exponential, Patient};

use super::file::{AfterContentName, QuotaName, RetryTable, RevertName, ScheduleName};

/// How long failures are waited out.
#[derive(Debug, PartialEq)]
pub(crate) struct Retry {
    pub(crate) schedule: Schedule,
    /// The most milliseconds that the waits of one step add up to.
    pub(crate) max_wait_ms: u64,
    /// Whether a partial answer that breaks off is taken back and streamed again.
    pub(crate) rewinds: bool,
    /// Whether usage limits are sat out.
    pub(crate) parks: bool,
}

/// How long a turn waits before each retry, and which target it asks then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Schedule {
    Patient,
    Exponential(Exponential),
    Interactive(Interactive),
    Cycling(Cycling),
}

impl Schedule {
    /// What decides.
    pub(crate) fn made(&self) -> Arc<dyn everturn_kernel::Schedule + Send + Sync> {
        match *self {
            Self::Patient => Arc::new(Patient),
            Self::Exponential(schedule) => Arc::new(schedule),
            Self::Interactive(schedule) => Arc::new(schedule),
            Self::Cycling(schedule) => Arc::new(schedule),
        }
    }

    /// The same without what is left to chance.
    pub(crate) fn exact(&self) -> Self {
        match *self {
            Self::Exponential(schedule) => Self::Exponential(Exponential { jitter: 0.0, ..schedule }),
            Self::Interactive(schedule) => Self::Interactive(Interactive { jitter: 0.0, ..schedule }),
            other => other,
        }
    }

    /// As it is written.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Patient => "patient",
            Self::Exponential(_) => "exponential",
            Self::Interactive(_) => "interactive",
            Self::Cycling(_) => "cycling",
        }
    }

    /// How far each wait may be off, as a share of it.
    pub(crate) fn jitter(&self) -> f64 {
        match self {
            Self::Exponential(schedule) => schedule.jitter,
            Self::Interactive(schedule) => schedule.jitter,
            Self::Patient | Self::Cycling(_) => 0.0,
        }
    }

    /// The schedule of that name with these figures. `table`: where they are written.
    pub(super) fn resolve(table: &str, name: ScheduleName, figures: &Figures) -> Result<Self> {
        figures.check(table, name)?;
        Ok(match name {
            ScheduleName::Patient => Self::Patient,
            ScheduleName::Exponential => Self::Exponential(exponential(table, figures)?),
            ScheduleName::Interactive => Self::Interactive(interactive(table, figures)?),
            ScheduleName::Cycling => Self::Cycling(cycling(table, figures)?),
        })
    }
}

/// The figures of a schedule, of which each has some.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) base_ms: Option<u64>,
    pub(super) max_delay_ms: Option<u64>,
    pub(super) max_retries: Option<u32>,
    pub(super) jitter: Option<f64>,
    pub(super) revert: Option<RevertName>,
    pub(super) max_attempts: Option<u32>,
    pub(super) clamp_hints: Option<bool>,
}

impl Figures {
    /// Whether there are any.
    pub(super) fn are_given(&self) -> bool {
        self.given().next().is_some()
    }

    /// The names of those that are given, each with the schedules that have it.
    fn given(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        const DOUBLING: &[&str] = &["exponential", "interactive"];
        let all: [(&'static str, bool, &'static [&'static str]); 7] = [
            ("base_ms", self.base_ms.is_some(), DOUBLING),
            ("max_delay_ms", self.max_delay_ms.is_some(), DOUBLING),
            ("max_retries", self.max_retries.is_some(), DOUBLING),
            ("jitter", self.jitter.is_some(), DOUBLING),
            ("revert", self.revert.is_some(), &["interactive"]),
            ("max_attempts", self.max_attempts.is_some(), &["cycling"]),
            ("clamp_hints", self.clamp_hints.is_some(), &["cycling"]),
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
                "{table} {key} has no effect with schedule = {name:?}: it belongs to schedule = {}",
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
        };
        let longest = u64::try_from(Patient::BUDGET.as_millis()).unwrap_or(u64::MAX);
        Ok(Self {
            schedule: Schedule::resolve("[retry]", table.schedule, &figures)?,
            max_wait_ms: table.max_wait_ms.unwrap_or(longest),
            rewinds: table.after_content == AfterContentName::Rewind,
            parks: table.quota == QuotaName::Park,
        })
    }
}

/// How far the waits of `exponential` are spread unless told otherwise: turns that failed together must not come back together.
const JITTER: f64 = 0.1;

fn exponential(table: &str, figures: &Figures) -> Result<Exponential> {
    let usual = Exponential::default();
    let jitter = jitter(table, figures, JITTER)?;
    let (base, max_delay) = waits(table, figures, usual.base, usual.max_delay)?;
    Ok(Exponential {
        base,
        max_delay,
        max_retries: figures.max_retries.unwrap_or(usual.max_retries),
        jitter,
        // Many servers that lost the same provider must not come back at the same moment.
        seed: if jitter > 0.0 { fastrand::u64(..) } else { usual.seed },
    })
}

fn interactive(table: &str, figures: &Figures) -> Result<Interactive> {
    let usual = Interactive::default();
    let (base, max_delay) = waits(table, figures, usual.base, usual.max_delay)?;
    Ok(Interactive {
        base,
        max_delay,
        max_retries: figures.max_retries.unwrap_or(usual.max_retries),
        jitter: jitter(table, figures, usual.jitter)?,
        reverts: figures.revert.map_or(usual.reverts, |revert| revert == RevertName::CooldownExpiry),
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
    })
}

/// The first and the longest wait. A longest delay of 0 means that there is none.
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
