//! A model API that the server may ask.

mod api;
mod maker;

use std::{collections::BTreeSet, fs, time::Duration};

use anyhow::{Context as _, Result, bail};
use everturn_provider::{EndpointConfig, HttpConfig, Timeouts};

use super::{
    Environment, Hidden,
    file::{Kind, ProviderTable, TimeoutTable},
};
pub(crate) use api::Api;
use maker::Maker;

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
    pub(super) fn of_environment(environment: &Environment<'_>) -> Vec<Self> {
        maker::of_environment(environment)
    }

    pub(super) fn resolve(table: ProviderTable, environment: &Environment<'_>) -> Result<Self> {
        check_names(&table)?;
        let api_key = api_key(&table, environment)?;
        let usual = maker(table.kind).base_url;
        let base_url = table.base_url.clone().unwrap_or_else(|| usual.to_owned());
        let endpoint = EndpointConfig {
            api_key: api_key.map(|key| key.secret()),
            headers: table.headers.iter().map(|(name, value)| (name.clone(), value.secret())).collect(),
            ..EndpointConfig::new(base_url)
        };
        let http = HttpConfig { timeouts: timeouts(&table.timeouts), ..HttpConfig::default() };
        let (name, models) = (table.name.clone(), table.models.clone());
        Ok(Self { name, api: Api::resolve(table, endpoint)?, http, models })
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

/// The key, from where the table says. The maker's own address is given its usual key; another address never is.
fn api_key(table: &ProviderTable, environment: &Environment<'_>) -> Result<Option<Hidden>> {
    match (&table.api_key, &table.api_key_env, &table.api_key_file) {
        (None, None, None) if table.base_url.is_some() => Ok(None),
        (None, None, None) => of_variable(maker(table.kind).key_variable, environment).map(Some),
        (Some(key), None, None) => Hidden::new(key.reveal()).context("`api_key` is empty").map(Some),
        (None, Some(name), None) => of_variable(name, environment).map(Some),
        (None, None, Some(path)) => {
            let text =
                fs::read_to_string(path).with_context(|| format!("cannot read `api_key_file` {path}"))?;
            Hidden::new(&text).with_context(|| format!("`api_key_file` {path} is empty")).map(Some)
        }
        _ => bail!("it has more than one key: keep one of `api_key`, `api_key_env`, `api_key_file`"),
    }
}

fn of_variable(name: &str, environment: &Environment<'_>) -> Result<Hidden> {
    let value = environment.get(name).as_deref().and_then(Hidden::new);
    value.with_context(|| format!("its key is missing: set the environment variable {name}"))
}

fn timeouts(table: &TimeoutTable) -> Timeouts {
    let usual = Timeouts::default();
    let or = |ms: Option<u64>, usual: Duration| ms.map_or(usual, Duration::from_millis);
    Timeouts {
        connect: or(table.connect_ms, usual.connect),
        first_byte: or(table.first_byte_ms, usual.first_byte),
        idle: or(table.idle_ms, usual.idle),
    }
}
