//! How much context a provider's models have.

use std::{collections::BTreeMap, fmt};

use anyhow::{Result, bail};
use serde::{
    Deserialize, Deserializer,
    de::{self, value::MapAccessDeserializer},
};

/// The context windows of a provider's models, in tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ContextWindow {
    /// The same for all models.
    Every(u64),
    /// By model.
    Each(BTreeMap<String, u64>),
}

impl ContextWindow {
    /// Returns the context window of models that have none of their own.
    pub(super) fn of_others(&self) -> Option<u64> {
        match self {
            Self::Every(tokens) => Some(*tokens),
            Self::Each(_) => None,
        }
    }

    /// Returns the known context windows, by model. `is_listed`: whether there are further models in the provider's list.
    pub(super) fn of_models(&self, models: &[String], is_listed: bool) -> Result<BTreeMap<String, u64>> {
        let windows = match self {
            Self::Every(tokens) => models.iter().map(|model| (model.clone(), *tokens)).collect(),
            Self::Each(windows) => windows.clone(),
        };
        if let Some(model) = windows.keys().find(|model| !is_listed && !models.contains(model)) {
            bail!("`context_window` names {model:?}, which is not in `models`");
        }
        match windows.values().any(|tokens| *tokens == 0) {
            true => bail!("`context_window` must be at least 1 token; leave it out if it is not known"),
            false => Ok(windows),
        }
    }
}

impl<'de> Deserialize<'de> for ContextWindow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = ContextWindow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of tokens, or a table of them by model")
    }

    fn visit_i64<E: de::Error>(self, tokens: i64) -> Result<ContextWindow, E> {
        let fits = u64::try_from(tokens).ok().map(ContextWindow::Every);
        fits.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(tokens), &self))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<ContextWindow, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(ContextWindow::Each)
    }
}
