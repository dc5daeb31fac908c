//! Route settings.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use everturn_orchestrator::RetryPolicy;
use everturn_wire::{Priority, RequiredReport};
use toml::Spanned;

use super::{
    file::Source,
    report,
    retry::{self, Figures},
    table::RouteTable,
};

/// Several models offered as one, named `route/NAME`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Route {
    pub(crate) name: String,
    /// Ids of models, as `NAME/MODEL`.
    pub(crate) targets: Vec<String>,
    pub(crate) policy: RetryPolicy,
    /// Whether the policy is the route's own, and not the global one.
    pub(crate) is_own: bool,
    /// Whether its calls give way to others.
    pub(crate) priority: Priority,
    /// The required report of turns on the route, if it differs from the global one.
    pub(crate) final_report: Option<RequiredReport>,
}

/// The models that a route may contain, by id.
#[derive(Default)]
pub(super) struct Known {
    /// Enabled models.
    pub(super) on: BTreeSet<String>,
    /// Models of disabled providers.
    pub(super) off: BTreeSet<String>,
    /// Enabled providers whose other models are in their list, or were added.
    pub(super) open: BTreeSet<String>,
}

impl Known {
    /// Whether there is this model, as far as is known before its provider's list was read.
    pub(super) fn is_on(&self, id: &str) -> bool {
        let may_be = |(provider, model): (&str, &str)| self.open.contains(provider) && !model.is_empty();
        self.on.contains(id) || id.split_once('/').is_some_and(may_be)
    }
}

/// Validates the routes. Returns those that can be used, and a line about each disabled target.
pub(super) fn resolve(
    tables: &[RouteTable],
    usual: &RetryPolicy,
    known: &Known,
    source: &Source,
) -> Result<(Vec<Route>, Vec<String>)> {
    let (mut routes, mut off, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for table in tables {
        let name = table.name.get_ref();
        let place = source.place(&table.name);
        if name.is_empty() || name.contains(|c: char| c == '/' || c.is_whitespace()) {
            bail!(
                "{place}: the name of a route must be one word without a slash, because routes are named route/NAME"
            );
        }
        if !names.insert(name) {
            bail!("{place}: two routes are named {name:?}: give each its own name");
        }
        if table.targets.is_empty() {
            bail!("{place}: route {name:?} has no targets: name at least one model, as NAME/MODEL");
        }
        let policy = policy(table, usual, &place)?;
        let is_own = table.schedule.is_some();
        let (required, attempts) = (table.final_report.as_ref(), table.report_attempts.as_ref());
        let final_report = report::resolve(required, attempts, &format!("of route {name:?}"), source)?;
        let mut targets = Vec::new();
        for (number, target) in table.targets.iter().enumerate() {
            let id = target.get_ref();
            check_target(name, target, &table.targets[..number], known, source)?;
            match known.is_on(id) {
                true => targets.push(id.clone()),
                false => off.push(format!("route {name:?}: skipping {id} (provider disabled)")),
            }
        }
        match targets.is_empty() {
            true => off.push(format!("route {name:?} is disabled, because all of its targets are")),
            false => routes.push(Route {
                name: name.clone(),
                targets,
                policy,
                is_own,
                priority: table.priority,
                final_report,
            }),
        }
    }
    Ok((routes, off))
}

fn check_target(
    name: &str,
    target: &Spanned<String>,
    before: &[Spanned<String>],
    known: &Known,
    source: &Source,
) -> Result<()> {
    let (id, place) = (target.get_ref(), source.place(target));
    if id.starts_with("route/") {
        bail!(
            "{place}: route {name:?} names {id:?}: a route cannot contain a route, name its models instead"
        );
    }
    if before.iter().any(|before| before.get_ref() == id) {
        bail!("{place}: route {name:?} names {id:?} twice: list each target once, in order");
    }
    if !known.is_on(id) && !known.off.contains(id) {
        let all: Vec<&str> = known.on.iter().chain(&known.off).map(String::as_str).collect();
        let all = match all.is_empty() {
            true => "no provider is configured".to_owned(),
            false => format!("known models: {}", all.join(", ")),
        };
        bail!("{place}: route {name:?} names {id:?}, which is not configured; {all}");
    }
    Ok(())
}

/// Returns the route's own policy, else the global one.
fn policy(table: &RouteTable, usual: &RetryPolicy, place: &str) -> Result<RetryPolicy> {
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
    let of_route = format!("{place}: route {:?}", table.name.get_ref());
    match table.schedule {
        Some(name) => retry::policy(&of_route, name, &figures),
        None if figures.are_given() => {
            bail!("{of_route} has retry parameters but no schedule: add schedule = ...")
        }
        None => Ok(usual.clone()),
    }
}
