//! Provider settings.

mod api;
mod vendor;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use everturn_provider::{EndpointConfig, HttpConfig, Secret, Timeouts};

use super::{
    Environment, Hidden,
    added::Added,
    context_window::ContextWindow,
    file::Source,
    filter::Filter,
    key::{self, Keys, Missing},
    passing::Passing,
    table::{Kind, ProviderTable, TimeoutTable},
};
pub(crate) use api::Api;
use vendor::Vendor;

/// Paths of calls, which adapters append to the base URL.
const CALLS: [&str; 4] = ["/chat/completions", "/completions", "/responses", "/messages"];

/// A configured model API.
#[derive(Debug, PartialEq)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) api: Api,
    /// Further credentials, each with its name.
    pub(crate) credentials: Vec<(String, Api)>,
    pub(crate) http: HttpConfig,
    /// The provider's own names; the first is the default.
    pub(crate) models: Vec<String>,
    /// Which further models of the provider's list are offered; `None` = none, so it is not read.
    pub(crate) filter: Option<Filter>,
    /// Models that come first if they are in the list.
    pub(crate) preferred: &'static [&'static str],
    /// Known context windows of its models, in tokens.
    pub(crate) context_windows: BTreeMap<String, u64>,
    /// The context window of all its other models, if it was configured.
    pub(crate) context_window: Option<u64>,
    /// The last characters of its first key, for people. Only of keys so long that this does not help to guess them.
    pub(crate) key_end: Option<String>,
    /// How calls are passed through to it.
    pub(crate) passing: Passing,
}

/// Number of a key's characters that are shown, and the length from which on they are.
const SHOWN: usize = 4;
const LONG: usize = 16;

impl Provider {
    /// Returns the providers configured by keys in the environment, if the file has none.
    pub(super) fn of_environment(environment: &Environment<'_>) -> Result<Vec<Self>> {
        vendor::of_environment(environment)
    }

    /// Returns a warning if models are only assumed by [`of_environment`](Self::of_environment).
    pub(super) fn assumed_models(environment: &Environment<'_>) -> Option<String> {
        vendor::assumed_models(environment)
    }

    /// Resolves a provider that was added. It has its key with it.
    ///
    /// # Errors
    /// When the table is invalid.
    pub(crate) fn of_added(added: &Added) -> Result<Self> {
        let table = added.read()?;
        let nothing = Environment(&|_| None);
        let (provider, missing) = Self::resolve(&table, &nothing, &Source::default())?;
        provider.with_context(|| missing.iter().map(ToString::to_string).collect::<String>())
    }

    /// Resolves a table of the file. Also returns the missing keys; if none is left, there is no provider.
    pub(super) fn resolve(
        table: &ProviderTable,
        environment: &Environment<'_>,
        source: &Source,
    ) -> Result<(Option<Self>, Vec<Missing>)> {
        check_names(table)?;
        let passing = Passing::resolve(table)?;
        let (models, filter) = match &table.models {
            // Turns have no credential of a caller.
            _ if passing.is_of_caller => (Vec::new(), None),
            Some(names) => Filter::separate(names),
            None => (Vec::new(), Some(Filter::default())),
        };
        let window = table.context_window.as_ref();
        let windows = window.map(|window| window.of_models(&models, filter.is_some()));
        let context_windows = windows.transpose()?.unwrap_or_default();
        let vendor = vendor_of(table.kind);
        let is_vendors = table.base_url.is_none();
        let base_url = table.base_url.clone().unwrap_or_else(|| vendor.base_url.to_owned());
        check_base_url("`base_url`", &base_url)?;
        // As with the variable, the version may be left out. Others are used as they are: they may have none.
        let base_url = match table.kind {
            Kind::Anthropic => vendor::with_version(&base_url, &["v1"]),
            _ => base_url,
        };
        let Keys { found, missing } = key::of_table(table, vendor.key_variable, environment, source)?;
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
            models,
            filter,
            preferred: if is_vendors { vendor.models } else { &[] },
            context_windows,
            context_window: window.and_then(ContextWindow::of_others),
            key_end: first.as_ref().and_then(key_end),
            passing,
        };
        Ok((Some(provider), missing))
    }
}

/// Returns the providers that were added, and a line about each that cannot be used. Names of the configuration belong to
/// it.
pub(super) fn added(entries: &[Added], is_taken: impl Fn(&str) -> bool) -> (Vec<Provider>, Vec<String>) {
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for entry in entries {
        let name = entry.name();
        let away = format!("remove the added one with `everturn provider remove {name}`");
        match Provider::of_added(entry) {
            _ if is_taken(name) => {
                off.push(format!(
                    "provider {name:?} was added, but the configuration has one of this name: {away}"
                ));
            }
            Ok(provider) => on.push(provider),
            Err(problem) => {
                off.push(format!("provider {name:?} was added, but cannot be used: {problem:#}; {away}"));
            }
        }
    }
    (on, off)
}

/// Returns the last characters of a key.
fn key_end(key: &Hidden) -> Option<String> {
    let key = key.reveal();
    let (start, _) = key.char_indices().rev().nth(SHOWN - 1).filter(|_| key.len() >= LONG)?;
    Some(key[start..].to_owned())
}

fn check_names(table: &ProviderTable) -> Result<()> {
    let is_odd = |c: char| matches!(c, '/' | '#') || c.is_whitespace();
    if table.name.is_empty() || table.name.contains(is_odd) {
        bail!("its name must be one word without / or #, because models are named NAME/MODEL");
    }
    if table.name == "route" {
        bail!("its name must not be `route`, because routes are named route/NAME");
    }
    let models = table.models.as_deref().unwrap_or_default();
    if table.models.is_some() && models.is_empty() {
        bail!(
            "`models` is empty: name at least one model, or leave `models` out to offer all that the provider lists"
        );
    }
    let mut names = BTreeSet::new();
    match models.iter().find(|model| model.trim().is_empty() || !names.insert(*model)) {
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
