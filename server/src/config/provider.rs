//! Provider settings.

mod api;
mod vendor;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Result, bail};
use everturn_provider::{EndpointConfig, HttpConfig, Secret, Timeouts};

use super::{
    Environment, Hidden,
    file::{Kind, ProviderTable, TimeoutTable},
    key::{self, Keys, Missing},
};
pub(crate) use api::Api;
use vendor::Vendor;

/// Paths of calls, which adapters append to the base URL.
const CALLS: [&str; 4] = ["/chat/completions", "/completions", "/responses", "/messages"];

/// A configured model API.
#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) api: Api,
    /// Further credentials, each with its name.
    pub(crate) credentials: Vec<(String, Api)>,
    pub(crate) http: HttpConfig,
    /// The provider's own names; the first is the default.
    pub(crate) models: Vec<String>,
    /// Known context windows of its models, in tokens.
    pub(crate) context_windows: BTreeMap<String, u64>,
}

impl Provider {
    /// Returns the providers configured by keys in the environment, if the file has none.
    pub(super) fn of_environment(environment: &Environment<'_>) -> Result<Vec<Self>> {
        vendor::of_environment(environment)
    }

    /// Returns a warning if models are only assumed by [`of_environment`](Self::of_environment).
    pub(super) fn assumed_models(environment: &Environment<'_>) -> Option<String> {
        vendor::assumed_models(environment)
    }

    /// Resolves a table of the file. Also returns the missing keys; if none is left, there is no provider.
    pub(super) fn resolve(
        table: &ProviderTable,
        environment: &Environment<'_>,
    ) -> Result<(Option<Self>, Vec<Missing>)> {
        check_names(table)?;
        let windows = table.context_window.as_ref().map(|window| window.of_models(&table.models));
        let context_windows = windows.transpose()?.unwrap_or_default();
        let vendor = vendor_of(table.kind);
        let base_url = table.base_url.clone().unwrap_or_else(|| vendor.base_url.to_owned());
        check_base_url("`base_url`", &base_url)?;
        // As with the variable, the version may be left out. Others are used as they are: they may have none.
        let base_url = match table.kind {
            Kind::Anthropic => vendor::with_version(&base_url, &["v1"]),
            _ => base_url,
        };
        let Keys { found, missing } = key::of_table(table, vendor.key_variable, environment)?;
        let api = |key: Option<&Hidden>| {
            let endpoint = EndpointConfig {
                api_key: key.map(|key| Secret::new(key.reveal())),
                headers: table
                    .headers
                    .iter()
                    .map(|(name, value)| (name.clone(), Secret::new(value.reveal())))
                    .collect(),
                ..EndpointConfig::new(&base_url)
            };
            Api::resolve(table.clone(), endpoint)
        };
        let Some(((_, first), others)) = found.split_first() else {
            // Report other errors in the table first.
            return api(None).map(|_| (None, missing));
        };
        let credential = |(number, key): &(usize, Option<Hidden>)| {
            Ok((format!("{}#{number}", table.name), api(key.as_ref())?))
        };
        let provider = Self {
            name: table.name.clone(),
            api: api(first.as_ref())?,
            credentials: others.iter().map(credential).collect::<Result<_>>()?,
            http: HttpConfig { timeouts: timeouts(&table.timeouts), ..HttpConfig::default() },
            models: table.models.clone(),
            context_windows,
        };
        Ok((Some(provider), missing))
    }
}

fn check_names(table: &ProviderTable) -> Result<()> {
    let is_odd = |c: char| matches!(c, '/' | '#') || c.is_whitespace();
    if table.name.is_empty() || table.name.contains(is_odd) {
        bail!("its name must be one word without / or #, because models are named NAME/MODEL");
    }
    if table.name == "route" {
        bail!("its name must not be `route`, because routes are named route/NAME");
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

/// Returns the vendor of an API.
fn vendor_of(kind: Kind) -> Vendor {
    match kind {
        Kind::OpenAiChat | Kind::OpenAiResponses => vendor::OPENAI,
        Kind::Anthropic => vendor::ANTHROPIC,
        Kind::Gemini => vendor::GEMINI,
    }
}

/// Checks that the base URL does not include the path of a call, which would be appended a second time. The URL is not
/// repeated, because its path may contain a secret.
fn check_base_url(name: &str, base_url: &str) -> Result<()> {
    // The address itself may contain a secret.
    if !["http://", "https://"].iter().any(|scheme| base_url.trim().starts_with(scheme)) {
        bail!("{name} must begin with http:// or https://, e.g. http://127.0.0.1:11434/v1");
    }
    let path = base_url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    match CALLS.iter().find(|call| path.ends_with(*call)) {
        Some(call) => bail!("{name} ends with {call}, which is appended for each call: remove {call}"),
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
        total: table.total_ms.map(Duration::from_millis),
    }
}
