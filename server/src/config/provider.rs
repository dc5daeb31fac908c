//! A model API that the server may ask.

mod api;
mod maker;

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Result, bail};
use everturn_provider::{EndpointConfig, HttpConfig, Timeouts};

use super::{
    Environment,
    file::{Kind, ProviderTable, TimeoutTable},
    key::{self, Missing},
};
pub(crate) use api::Api;
use maker::Maker;

/// The paths that calls add to a base URL.
const CALLS: [&str; 4] = ["/chat/completions", "/completions", "/responses", "/messages"];

/// A model API that the server may ask.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) api: Api,
    pub(crate) http: HttpConfig,
    /// In the provider's words; the first is the default.
    pub(crate) models: Vec<String>,
}

impl Provider {
    /// The providers that keys in the environment make where the file has none.
    pub(super) fn of_environment(environment: &Environment<'_>) -> Result<Vec<Self>> {
        maker::of_environment(environment)
    }

    /// What a table of the file says. The inner error: its key is missing.
    pub(super) fn resolve(
        table: ProviderTable,
        environment: &Environment<'_>,
    ) -> Result<Result<Self, Missing>> {
        check_names(&table)?;
        let maker = maker(table.kind);
        let base_url = table.base_url.clone().unwrap_or_else(|| maker.base_url.to_owned());
        check_base_url("`base_url`", &base_url)?;
        let api_key = key::of_table(&table, maker.key_variable, environment)?;
        let (api_key, missing) = match api_key {
            Ok(key) => (key, None),
            Err(missing) => (None, Some(missing)),
        };
        let endpoint = EndpointConfig {
            api_key: api_key.map(|key| key.secret()),
            headers: table.headers.iter().map(|(name, value)| (name.clone(), value.secret())).collect(),
            ..EndpointConfig::new(base_url)
        };
        let http = HttpConfig { timeouts: timeouts(&table.timeouts), ..HttpConfig::default() };
        let (name, models) = (table.name.clone(), table.models.clone());
        let provider = Self { name, api: Api::resolve(table, endpoint)?, http, models };
        // What else is wrong with the table is told first.
        Ok(missing.map_or(Ok(provider), Err))
    }
}

fn check_names(table: &ProviderTable) -> Result<()> {
    if table.name.is_empty() || table.name.contains(|c: char| c == '/' || c.is_whitespace()) {
        bail!("its name must be one word without a slash: clients name a model NAME/MODEL");
    }
    if table.models.is_empty() {
        bail!("`models` is empty: name at least one model");
    }
    let mut names = BTreeSet::new();
    match table.models.iter().find(|model| model.trim().is_empty() || !names.insert(*model)) {
        Some(model) => bail!("`models` has {model:?} twice, or empty"),
        None => Ok(()),
    }
}

/// Who made the API.
fn maker(kind: Kind) -> Maker {
    match kind {
        Kind::OpenAiChat | Kind::OpenAiResponses => maker::OPENAI,
        Kind::Anthropic => maker::ANTHROPIC,
        Kind::Gemini => maker::GEMINI,
    }
}

/// Every request adds the path of its call: an address that has it already would be asked for it twice. The address is not
/// repeated, as its path may hold a secret.
fn check_base_url(name: &str, base_url: &str) -> Result<()> {
    let path = base_url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    match CALLS.iter().find(|call| path.ends_with(*call)) {
        Some(call) => bail!("{name} ends with {call}, which is added to it for each call: take {call} out"),
        None => Ok(()),
    }
}

fn timeouts(table: &TimeoutTable) -> Timeouts {
    let usual = Timeouts::default();
    let or = |ms: Option<u64>, usual: Duration| ms.map_or(usual, Duration::from_millis);
    Timeouts {
        connect: or(table.connect_ms, usual.connect),
        first_byte: or(table.first_byte_ms, usual.first_byte),
        idle: or(table.idle_ms, usual.idle),
        progress: or(table.progress_ms, usual.progress),
        silence: or(table.silence_ms, usual.silence),
    }
}
