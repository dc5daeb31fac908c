//! Settings of titles by the model.

use anyhow::{Result, anyhow};

use super::{
    Environment,
    file::{Source, TitleTable},
};

/// How conversations get titles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Titles {
    /// The model or route that writes them; `None` = that of the conversation.
    pub(crate) model: Option<String>,
}

impl Titles {
    /// Resolves the settings; `None` = a title is the beginning of the first message. `check` rejects a model that is not
    /// available.
    pub(super) fn resolve(
        table: &TitleTable,
        environment: &Environment<'_>,
        source: &Source,
        check: impl Fn(&str, &str) -> Result<()>,
    ) -> Result<Option<Self>> {
        if let Some(model) = &table.model {
            let place = source.place(model);
            check("[titles] model", model.get_ref()).map_err(|problem| anyhow!("{place}: {problem}"))?;
        }
        let of_environment = environment.get("EVERTURN_TITLES").map(|word| word != "off");
        let is_on = of_environment.or(table.enabled).unwrap_or(true);
        Ok(is_on.then(|| Self { model: table.model.clone().map(toml::Spanned::into_inner) }))
    }
}
