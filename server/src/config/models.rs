//! Which providers and models there are, and which of them can be used.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use everturn_kernel::Target;

use super::{Environment, Provider, Route, file::Source, route::Known, table::ProviderTable};

pub(super) fn check_names(providers: &[Provider]) -> Result<()> {
    let mut names = BTreeSet::new();
    match providers.iter().find(|provider| !names.insert(&provider.name)) {
        Some(twice) => bail!("two providers are named {:?}: give each its own name", twice.name),
        None => Ok(()),
    }
}

/// Returns the ids of all models, enabled or not.
pub(super) fn known<'a>(
    providers: impl IntoIterator<Item = &'a Provider>,
    tables: &[ProviderTable],
) -> Known {
    let ids = |name: &str, models: &[String]| -> Vec<String> {
        models.iter().map(|model| format!("{name}/{model}")).collect()
    };
    let (mut on, mut open) = (BTreeSet::new(), BTreeSet::new());
    for provider in providers {
        on.extend(ids(&provider.name, &provider.models));
        open.extend(provider.filter.is_some().then(|| provider.name.clone()));
    }
    let all = tables.iter().flat_map(|table| ids(&table.name, table.models.as_deref().unwrap_or_default()));
    Known { off: all.filter(|id| !on.contains(id)).collect(), on, open }
}

/// Returns the targets of a model: one per credential.
pub(super) fn targets(id: &str, tables: &[ProviderTable]) -> Vec<Target> {
    let (provider, model) = id.split_once('/').unwrap_or((id, id));
    let table = tables.iter().find(|table| table.name == provider);
    let credential = |number| match number {
        1 => provider.to_owned(),
        number => format!("{provider}#{number}"),
    };
    let target = |number| Target {
        name: format!("{}/{model}", credential(number)),
        credential: credential(number),
        model: id.to_owned(),
    };
    (1..=table.map_or(1, ProviderTable::credentials)).map(target).collect()
}

/// Checks that a model or route is enabled.
pub(super) fn askable(
    name: &str,
    asked: &str,
    known: &Known,
    routes: &[Route],
    off: &[String],
) -> Result<()> {
    let is_route =
        asked.strip_prefix("route/").is_some_and(|name| routes.iter().any(|route| route.name == name));
    if !is_route && !known.is_on(asked) {
        let routes = routes.iter().map(|route| format!("route/{}", route.name));
        let all: Vec<String> = known.on.iter().cloned().chain(routes).collect();
        let off: String = off.iter().map(|line| format!("; {line}")).collect();
        bail!("`{name}` is {asked:?}, which is not available; available: {}{off}", all.join(", "));
    }
    Ok(())
}

/// Returns the enabled providers, and a line about each whose key is missing. It is an error if none is left and there
/// are no others, because
/// falling back to the demo would hide that.
pub(super) fn providers(
    tables: &[ProviderTable],
    environment: &Environment<'_>,
    source: &Source,
    has_others: bool,
) -> Result<(Vec<Provider>, Vec<String>)> {
    if tables.is_empty() {
        return Ok((Provider::of_environment(environment)?, Vec::new()));
    }
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for table in tables {
        let name = &table.name;
        let resolved = Provider::resolve(table, environment, source);
        let (provider, missing) = resolved.with_context(|| format!("provider {name:?}"))?;
        on.extend(provider);
        off.extend(missing.iter().map(|missing| format!("provider {name:?}: {missing}")));
    }
    if on.is_empty() && !has_others {
        bail!("{}", off.join("; "));
    }
    Ok((on, off))
}
