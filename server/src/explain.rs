//! `everturn explain` with the configured retry settings.

use std::process::ExitCode;

use anyhow::Result;
use everturn_terminal::Plan;

use crate::{
    cli,
    config::{Config, Environment},
};

/// Explains what is on standard input.
pub(crate) fn run(args: &cli::Explain, environment: &Environment<'_>) -> Result<ExitCode> {
    everturn_terminal::explain(&args.words, |route| {
        let (retry, targets) = match route {
            Some(name) => Config::on_route(&args.flags(), environment, name)?,
            None => (Config::retry(&args.flags(), environment)?, Vec::new()),
        };
        Ok(Plan {
            enabled: retry.enabled,
            name: retry.policy.name().unwrap_or_default(),
            jitter: retry.policy.jitter(),
            policy: retry.policy.exact(),
            max_wait_ms: retry.max_wait_ms,
            parks: retry.parks,
            targets,
        })
    })
}
