//! Vendors that need no configuration except a key in the environment.

use std::collections::BTreeMap;

use anyhow::Result;
use everturn_provider::{AnthropicConfig, ChatConfig, EndpointConfig, GeminiConfig, HttpConfig};

use super::{Api, Provider, check_base_url, key_end};
use crate::config::{Environment, Hidden, Passing};

/// A vendor of models.
pub(super) struct Vendor {
    name: &'static str,
    /// The default URL of its API, and the variable that overrides it.
    pub(super) base_url: &'static str,
    base_url_variable: &'static str,
    /// The variable with its key.
    pub(super) key_variable: &'static str,
    /// Whether another URL is sufficient, because many servers of its API need no key.
    keyless: bool,
    /// The default models; the first is the default.
    pub(super) models: &'static [&'static str],
    api: fn(EndpointConfig) -> Api,
}

pub(super) const OPENAI: Vendor = Vendor {
    name: "openai",
    base_url: "https://api.openai.com/v1",
    base_url_variable: "OPENAI_BASE_URL",
    key_variable: "OPENAI_API_KEY",
    keyless: true,
    models: &["gpt-5.5", "gpt-5.4", "gpt-5.4-mini", "gpt-5.4-nano"],
    api: |endpoint| Api::OpenAiChat(ChatConfig::new(endpoint)),
};

pub(super) const ANTHROPIC: Vendor = Vendor {
    name: "anthropic",
    base_url: "https://api.anthropic.com/v1",
    base_url_variable: "ANTHROPIC_BASE_URL",
    key_variable: "ANTHROPIC_API_KEY",
    keyless: false,
    models: &["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"],
    api: |endpoint| Api::Anthropic(AnthropicConfig::new(versioned(endpoint, &["v1"]))),
};

pub(super) const GEMINI: Vendor = Vendor {
    name: "gemini",
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    base_url_variable: "GOOGLE_GEMINI_BASE_URL",
    key_variable: "GEMINI_API_KEY",
    keyless: false,
    models: &["gemini-3.8-flash", "gemini-4-argon", "gemini-3.5-flash-lite"],
    api: |endpoint| Api::Gemini(GeminiConfig::new(versioned(endpoint, &["v1beta", "v1"]))),
};

/// In the order in which their models are offered.
const VENDORS: [Vendor; 3] = [OPENAI, ANTHROPIC, GEMINI];

/// Returns the providers configured by the environment, if the file has none. `EVERTURN_MODEL` sets the models of the
/// first.
pub(super) fn of_environment(environment: &Environment<'_>) -> Result<Vec<Provider>> {
    let made = VENDORS.iter().filter_map(|vendor| vendor.provider(environment).transpose());
    let mut providers = made.collect::<Result<Vec<_>>>()?;
    if let (Some(first), Some(models)) = (providers.first_mut(), environment.get("EVERTURN_MODEL")) {
        let words = models.split(',').map(str::trim).filter(|word| !word.is_empty());
        let asked: Vec<_> = words.map(str::to_owned).collect();
        if !asked.is_empty() {
            first.models = asked;
        }
    }
    Ok(providers)
}

/// Returns a warning if the models of another endpoint than OpenAI's are not named. A key suggests a proxy to OpenAI.
pub(super) fn assumed_models(environment: &Environment<'_>) -> Option<String> {
    let is_elsewhere = environment.get(OPENAI.base_url_variable).is_some();
    let is_named =
        environment.get(OPENAI.key_variable).or_else(|| environment.get("EVERTURN_MODEL")).is_some();
    (is_elsewhere && !is_named).then(|| {
        format!(
            "EVERTURN_MODEL is not set, so the endpoint in {} is asked for models of OpenAI: set it to models that \
             the endpoint has, e.g. EVERTURN_MODEL=llama3.2",
            OPENAI.base_url_variable
        )
    })
}

impl Vendor {
    fn provider(&self, environment: &Environment<'_>) -> Result<Option<Provider>> {
        let key = environment.get(self.key_variable);
        let base_url = environment.get(self.base_url_variable);
        if key.is_none() && !(self.keyless && base_url.is_some()) {
            return Ok(None);
        }
        if let Some(base_url) = &base_url {
            check_base_url(self.base_url_variable, base_url)?;
        }
        let mut endpoint = EndpointConfig::new(base_url.unwrap_or_else(|| self.base_url.to_owned()));
        let key_end = key.as_deref().and_then(Hidden::new).as_ref().and_then(key_end);
        endpoint.api_key = key.map(Into::into);
        Ok(Some(Provider {
            name: self.name.to_owned(),
            api: (self.api)(endpoint),
            credentials: Vec::new(),
            http: HttpConfig::default(),
            models: self.models.iter().map(|model| (*model).to_owned()).collect(),
            filter: None,
            preferred: &[],
            context_windows: BTreeMap::new(),
            context_window: None,
            key_end,
            passing: Passing::default(),
        }))
    }
}

fn versioned(endpoint: EndpointConfig, versions: &[&str]) -> EndpointConfig {
    EndpointConfig { base_url: with_version(&endpoint.base_url, versions), ..endpoint }
}

/// Appends the first version unless the URL ends with one of them. The variable is shared with the vendor's own
/// programs, which append it.
pub(super) fn with_version(base_url: &str, versions: &[&str]) -> String {
    let bare = base_url.trim_end_matches('/');
    match versions.contains(&bare.rsplit('/').next().unwrap_or_default()) {
        true => base_url.to_owned(),
        false => format!("{bare}/{}", versions[0]),
    }
}
