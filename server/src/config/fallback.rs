//! Fallback chains: models to ask instead of a model or route that fails.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use everturn_wire::FallbackChains;
use toml::Spanned;

use super::{
    Route,
    file::{Chain, Source},
    route::Known,
};

/// The models and routes that a chain may name.
pub(super) struct Names<'a> {
    pub(super) models: &'a Known,
    /// The usable routes.
    pub(super) routes: &'a [Route],
    /// The names of all routes.
    pub(super) all_routes: Vec<&'a str>,
}

/// Validates the chains. Returns those that can be used, and a line about each disabled name.
pub(super) fn resolve(
    tables: &BTreeMap<String, Spanned<Chain>>,
    names: &Names<'_>,
    source: &Source,
) -> Result<(FallbackChains, Vec<String>)> {
    let (mut chains, mut off) = (FallbackChains::default(), Vec::new());
    for (of, chain) in tables {
        let place = source.place(chain);
        let on = |id: &str, place: &str| -> Result<bool> {
            let is_on = names.targets(id).is_some();
            if !is_on && !names.is_off(id) {
                bail!("{place}: [retry.fallback_chains] {of:?}: {}", names.unknown(id));
            }
            Ok(is_on)
        };
        let is_asked = on(of, &place)?;
        let mut usable: Vec<String> = Vec::new();
        for name in chain.get_ref() {
            let (id, place) = (name.get_ref(), source.place(name));
            let is_on = on(id, &place)?;
            if usable.contains(id) {
                bail!("{place}: [retry.fallback_chains] {of:?} names {id:?} twice");
            }
            if names.leads_back(of, id) {
                bail!(
                    "{place}: [retry.fallback_chains] {of:?} names {id:?}, which asks nothing else: name another model"
                );
            }
            match is_on {
                true => usable.push(id.clone()),
                false => off.push(format!("fallback chain of {of:?}: skipping {id} (provider disabled)")),
            }
        }
        if chain.get_ref().is_empty() {
            bail!("{place}: [retry.fallback_chains] {of:?} is empty: name at least one model or route");
        }
        if is_asked && !usable.is_empty() {
            chains.0.insert(of.clone(), usable);
        }
    }
    Ok((chains, off))
}

impl Names<'_> {
    /// Returns the models that this model or route asks; `None` if it cannot be used.
    fn targets<'a>(&'a self, id: &'a str) -> Option<Vec<&'a str>> {
        match id.strip_prefix("route/") {
            Some(name) => {
                let route = self.routes.iter().find(|route| route.name == name)?;
                Some(route.targets.iter().map(String::as_str).collect())
            }
            None => self.models.is_on(id).then(|| vec![id]),
        }
    }

    /// Whether it is configured but disabled.
    fn is_off(&self, id: &str) -> bool {
        match id.strip_prefix("route/") {
            Some(name) => self.all_routes.contains(&name),
            None => self.models.off.contains(id),
        }
    }

    fn leads_back(&self, of: &str, id: &str) -> bool {
        let own = self.targets(of).unwrap_or_else(|| vec![of]);
        self.targets(id).is_some_and(|targets| targets.iter().all(|target| own.contains(target)))
    }

    fn unknown(&self, id: &str) -> String {
        let routes = self.all_routes.iter().map(|name| format!("route/{name}"));
        let all: Vec<String> = self.models.on.iter().chain(&self.models.off).cloned().chain(routes).collect();
        let meant = everturn_terminal::nearest(id, all.iter().map(String::as_str));
        match (meant, all.is_empty()) {
            (Some(meant), _) => format!("{id:?} is not configured: did you mean {meant:?}?"),
            (None, true) => format!("{id:?} is not configured, and neither is any provider"),
            (None, false) => format!("{id:?} is not configured; known models and routes: {}", all.join(", ")),
        }
    }
}
