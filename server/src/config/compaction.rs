//! Compaction settings.

use std::{collections::BTreeMap, fmt};

use anyhow::{Result, anyhow, bail};
use serde::{
    Deserialize, Deserializer,
    de::{self, value::MapAccessDeserializer},
};
use toml::Spanned;

use super::file::{CompactionTable, Source};

/// Default fraction of the context window at which a history is compacted. It leaves room for an answer.
const AHEAD: f64 = 0.85;

/// How histories that exceed the model's context are compacted.
#[derive(Debug, PartialEq)]
pub(crate) struct Compaction {
    /// The model or route that summarizes, by the clients' name for it; `None` = that of the conversation.
    pub(crate) model: Option<String>,
    /// The fraction of a known context window at which compaction starts before the provider rejects a request; `None`
    /// = only after a rejection.
    pub(crate) ahead: Option<f64>,
}

impl Compaction {
    /// Resolves the settings; `None` = no compaction. `check` rejects a model that is not available.
    pub(super) fn resolve(
        table: &CompactionTable,
        source: &Source,
        check: impl Fn(&str, &str) -> Result<()>,
    ) -> Result<Option<Self>> {
        if let Some(ahead) = table.ahead.as_ref().filter(|ahead| !(0.0..=1.0).contains(ahead.get_ref())) {
            let (place, ahead) = (source.place(ahead), ahead.get_ref());
            bail!(
                "{place}: `ahead` is {ahead}, but it is a fraction of the context window: write 0 (off) to 1"
            );
        }
        if table.enabled == Some(false) {
            return Ok(None);
        }
        if let Some(model) = &table.model {
            let place = source.place(model);
            check("[compaction] model", model.get_ref()).map_err(|problem| anyhow!("{place}: {problem}"))?;
        }
        let ahead = table.ahead.as_ref().map_or(AHEAD, |ahead| *ahead.get_ref());
        Ok(Some(Self {
            model: table.model.clone().map(Spanned::into_inner),
            ahead: Some(ahead).filter(|ahead| *ahead > 0.0),
        }))
    }
}

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
