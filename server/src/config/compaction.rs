//! Compaction settings.

use anyhow::{Result, anyhow, bail};
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
