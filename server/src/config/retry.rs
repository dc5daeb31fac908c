//! How long failures are waited out.

use std::time::Duration;

use anyhow::{Result, bail};
use everturn_orchestrator::{Exponential, Patient};

use super::file::{RetryTable, ScheduleName};

/// How long failures are waited out.
#[derive(Debug, PartialEq)]
pub(crate) struct Retry {
    pub(crate) schedule: Schedule,
    /// The most milliseconds that the waits of one step add up to.
    pub(crate) max_wait_ms: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Schedule {
    Patient,
    Exponential(Exponential),
}

impl Schedule {
    /// Its waits, without what is left to chance.
    pub(crate) fn exact(&self) -> Box<dyn everturn_kernel::Schedule> {
        match self {
            Self::Patient => Box::new(Patient),
            Self::Exponential(schedule) => Box::new(Exponential { jitter: 0.0, ..*schedule }),
        }
    }
}

impl Retry {
    pub(super) fn resolve(table: &RetryTable) -> Result<Self> {
        let schedule = match table.schedule {
            ScheduleName::Patient => {
                only_exponential(table)?;
                Schedule::Patient
            }
            ScheduleName::Exponential => Schedule::Exponential(exponential(table)?),
        };
        let longest = u64::try_from(Patient::BUDGET.as_millis()).unwrap_or(u64::MAX);
        Ok(Self { schedule, max_wait_ms: table.max_wait_ms.unwrap_or(longest) })
    }
}

fn only_exponential(table: &RetryTable) -> Result<()> {
    let given = [
        ("base_ms", table.base_ms.is_some()),
        ("max_delay_ms", table.max_delay_ms.is_some()),
        ("max_retries", table.max_retries.is_some()),
        ("jitter", table.jitter.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((key, _)) => {
            bail!("[retry] {key} has no effect here: add schedule = \"exponential\" to [retry]")
        }
        None => Ok(()),
    }
}

/// How far waits are spread unless told otherwise: turns that failed together must not come back together.
const JITTER: f64 = 0.1;

/// A longest delay of 0 means that there is none.
fn exponential(table: &RetryTable) -> Result<Exponential> {
    let usual = Exponential::default();
    let jitter = table.jitter.unwrap_or(JITTER);
    if !(0.0..=1.0).contains(&jitter) {
        bail!("[retry] jitter is a part of the wait: write a number from 0 to 1");
    }
    let base = table.base_ms.map_or(usual.base, Duration::from_millis);
    let max_delay = match table.max_delay_ms {
        None => usual.max_delay,
        Some(0) => None,
        Some(ms) => Some(Duration::from_millis(ms)),
    };
    if let Some(max_delay) = max_delay.filter(|max_delay| base > *max_delay) {
        let by_default = if table.max_delay_ms.is_none() { " by default" } else { "" };
        bail!(
            "[retry] base_ms, the first wait, is {} ms, but max_delay_ms allows {} ms{by_default}: lower base_ms, or raise \
             max_delay_ms (0 = no limit)",
            base.as_millis(),
            max_delay.as_millis()
        );
    }
    Ok(Exponential {
        base,
        max_delay,
        max_retries: table.max_retries.unwrap_or(usual.max_retries),
        jitter,
        // Many servers that lost the same provider must not come back at the same moment.
        seed: if jitter > 0.0 { fastrand::u64(..) } else { usual.seed },
    })
}
