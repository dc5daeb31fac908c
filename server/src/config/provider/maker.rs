//! Makers of models whose key in the environment is all that is needed.

use everturn_provider::{AnthropicConfig, ChatConfig, EndpointConfig, HttpConfig};

use super::{Api, Provider};
use crate::config::Environment;

/// Who makes models and serves them.
pub(super) struct Maker {
    name: &'static str,
    /// Where its API is, and the variable that says otherwise.
    pub(super) base_url: &'static str,
    base_url_variable: &'static str,
    /// The variable that has its key.
    pub(super) key_variable: &'static str,
    /// Whether another address alone will do: many servers that speak its API ask for no key.
    keyless: bool,
    /// What it offers where nobody says which models to use; the first is the default.
    models: &'static [&'static str],
    api: fn(EndpointConfig) -> Api,
}

pub(super) const OPENAI: Maker = Maker {
    name: "openai",
    base_url: "https://api.openai.com/v1",
    base_url_variable: "OPENAI_BASE_URL",
    key_variable: "OPENAI_API_KEY",
    keyless: true,
    models: &["gpt-5.5", "gpt-5.4", "gpt-5.4-mini", "gpt-5.4-nano"],
    api: |endpoint| Api::OpenAiChat(ChatConfig::new(endpoint)),
};

pub(super) const ANTHROPIC: Maker = Maker {
    name: "anthropic",
    base_url: "https://api.anthropic.com/v1",
    base_url_variable: "ANTHROPIC_BASE_URL",
    key_variable: "ANTHROPIC_API_KEY",
    keyless: false,
    models: &["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"],
    api: |mut endpoint| {
        // The variable is shared with Anthropic's own programs, which add the version.
        if !endpoint.base_url.trim_end_matches('/').ends_with("/v1") {
            endpoint.base_url = format!("{}/v1", endpoint.base_url.trim_end_matches('/'));
        }
        Api::Anthropic(AnthropicConfig::new(endpoint))
    },
};

/// In the order in which their models are offered.
const MAKERS: [Maker; 2] = [OPENAI, ANTHROPIC];

/// The providers that the environment makes where the file has none. `EVERTURN_MODEL` are the models of the first.
pub(super) fn of_environment(environment: &Environment<'_>) -> Vec<Provider> {
    let mut providers: Vec<_> = MAKERS.iter().filter_map(|maker| maker.provider(environment)).collect();
    if let (Some(first), Some(models)) = (providers.first_mut(), environment.get("EVERTURN_MODEL")) {
        let words = models.split(',').map(str::trim).filter(|word| !word.is_empty());
        let asked: Vec<_> = words.map(str::to_owned).collect();
        if !asked.is_empty() {
            first.models = asked;
        }
    }
    providers
}

impl Maker {
    fn provider(&self, environment: &Environment<'_>) -> Option<Provider> {
        let key = environment.get(self.key_variable);
        let base_url = environment.get(self.base_url_variable);
        if key.is_none() && !(self.keyless && base_url.is_some()) {
            return None;
        }
        let mut endpoint = EndpointConfig::new(base_url.unwrap_or_else(|| self.base_url.to_owned()));
        endpoint.api_key = key.map(Into::into);
        Some(Provider {
            name: self.name.to_owned(),
            api: (self.api)(endpoint),
            http: HttpConfig::default(),
            models: self.models.iter().map(|model| (*model).to_owned()).collect(),
        })
    }
}
