//! Vendors that people can choose when they add a provider.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use toml::{Table, Value};

use super::{Added, Hidden};

/// A vendor of models, or an API for any other endpoint.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KnownVendor {
    /// How it is chosen, and the usual name of its provider.
    pub(crate) id: &'static str,
    /// Its name for people.
    pub(crate) label: &'static str,
    /// Whether a key is needed.
    pub(crate) needs_key: bool,
    /// Its base URL; absent if it must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<&'static str>,
    /// The page where its keys are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<&'static str>,
    /// The page where credit is bought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) billing: Option<&'static str>,
    /// Settings of its `[[provider]]`.
    #[serde(skip)]
    settings: &'static str,
}

const fn cloud(
    id: &'static str,
    label: &'static str,
    base_url: &'static str,
    [keys, billing]: [&'static str; 2],
    settings: &'static str,
) -> KnownVendor {
    KnownVendor {
        id,
        label,
        needs_key: true,
        base_url: Some(base_url),
        keys: Some(keys),
        billing: Some(billing),
        settings,
    }
}

const fn other(
    id: &'static str,
    label: &'static str,
    base_url: Option<&'static str>,
    settings: &'static str,
) -> KnownVendor {
    KnownVendor { id, label, needs_key: false, base_url, keys: None, billing: None, settings }
}

/// In the order in which they are offered. `notes/providers.md` explains the settings.
pub(crate) const KNOWN_VENDORS: [KnownVendor; 15] = [
    cloud(
        "openai",
        "OpenAI",
        "https://api.openai.com/v1",
        ["https://platform.openai.com/api-keys", "https://platform.openai.com/settings/organization/billing"],
        "kind = \"openai-responses\"\ntimeouts = { idle_ms = 900000 }",
    ),
    cloud(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com/v1",
        ["https://console.anthropic.com/settings/keys", "https://console.anthropic.com/settings/billing"],
        "kind = \"anthropic\"",
    ),
    cloud(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com/v1beta",
        ["https://aistudio.google.com/apikey", "https://aistudio.google.com/usage"],
        "kind = \"gemini\"",
    ),
    cloud(
        "openrouter",
        "OpenRouter",
        "https://openrouter.ai/api/v1",
        ["https://openrouter.ai/settings/keys", "https://openrouter.ai/settings/credits"],
        "return_reasoning = \"reasoning_details\"",
    ),
    cloud(
        "mistral",
        "Mistral",
        "https://api.mistral.ai/v1",
        ["https://console.mistral.ai/api-keys", "https://console.mistral.ai/billing"],
        "output_limit = \"max_tokens\"\ninclude_usage = false\nhistory = \"mistral\"",
    ),
    cloud(
        "deepseek",
        "DeepSeek",
        "https://api.deepseek.com/v1",
        ["https://platform.deepseek.com/api_keys", "https://platform.deepseek.com/top_up"],
        "output_limit = \"max_tokens\"\nreturn_reasoning = \"reasoning_content\"",
    ),
    cloud(
        "groq",
        "Groq",
        "https://api.groq.com/openai/v1",
        ["https://console.groq.com/keys", "https://console.groq.com/settings/billing"],
        "",
    ),
    cloud(
        "xai",
        "xAI",
        "https://api.x.ai/v1",
        ["https://console.x.ai", "https://console.x.ai"],
        "kind = \"openai-responses\"\ntimeouts = { idle_ms = 900000 }",
    ),
    cloud(
        "moonshot",
        "Moonshot",
        "https://api.moonshot.ai/v1",
        ["https://platform.moonshot.ai/console/api-keys", "https://platform.moonshot.ai/console/pay"],
        "output_limit = \"max_tokens\"\nreturn_reasoning = \"reasoning_content\"",
    ),
    other("ollama", "Ollama, on this machine", Some("http://127.0.0.1:11434/v1"), LOCAL),
    other("llama-cpp", "llama.cpp, on this machine", Some("http://127.0.0.1:8080/v1"), LOCAL),
    other("vllm", "vLLM, on this machine", Some("http://127.0.0.1:8000/v1"), LOCAL),
    other("openai-compatible", "Other, with OpenAI's API", None, ""),
    other("anthropic-compatible", "Other, with Anthropic's API", None, "kind = \"anthropic\""),
    other("gemini-compatible", "Other, with Gemini's API", None, "kind = \"gemini\""),
];

/// A first token may take as long as loading the model and reading the prompt.
const LOCAL: &str = "timeouts = { first_byte_ms = 600000 }";

/// What a person says of a provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) vendor: String,
    pub(crate) name: Option<String>,
    pub(crate) base_url: Option<String>,
    pub(crate) key: Option<Hidden>,
    /// Names and patterns; none = all that are listed.
    pub(crate) models: Vec<String>,
}

/// Returns the vendor with this id.
///
/// # Errors
/// When there is none.
pub(crate) fn known_vendor(id: &str) -> Result<&'static KnownVendor> {
    KNOWN_VENDORS.iter().find(|vendor| vendor.id == id).with_context(|| {
        let all: Vec<&str> = KNOWN_VENDORS.iter().map(|vendor| vendor.id).collect();
        format!("there is no vendor {id:?}; known: {}", all.join(", "))
    })
}

impl Wanted {
    /// Returns what is to be kept.
    ///
    /// # Errors
    /// When something is missing.
    pub(crate) fn resolve(self) -> Result<Added> {
        let vendor = known_vendor(&self.vendor)?;
        // The settings of known vendors are tested to be valid.
        let mut table: Table = toml::from_str(vendor.settings)?;
        let mut set = |name: &str, value: Value| table.insert(name.to_owned(), value);
        let base_url = self.base_url.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty());
        let is_usual =
            base_url.as_deref().is_none_or(|url| Some(url.trim_end_matches('/')) == vendor.base_url);
        let name = self.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        if base_url.is_none() && vendor.base_url.is_none() {
            bail!("its base URL is missing, e.g. https://host/v1");
        }
        if self.key.is_none() && vendor.needs_key && is_usual {
            bail!(
                "the key is missing{}",
                vendor.keys.map(|page| format!(": make one at {page}")).unwrap_or_default()
            );
        }
        set("name", Value::String(name.unwrap_or_else(|| vendor.id.to_owned())));
        // Without a URL, a table is of the vendor itself, and has the models that are known to come first.
        let is_of_kind = matches!(vendor.id, "openai" | "anthropic" | "gemini");
        let base_url = base_url.or(vendor.base_url.map(str::to_owned)).filter(|_| !(is_usual && is_of_kind));
        if let Some(base_url) = base_url {
            set("base_url", Value::String(base_url));
        }
        if let Some(key) = self.key {
            set("api_key", Value::String(key.reveal().to_owned()));
        }
        if !self.models.is_empty() {
            set("models", Value::Array(self.models.into_iter().map(Value::String).collect()));
        }
        Ok(Added::new(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Provider;

    fn wanted(vendor: &str) -> Wanted {
        let key = Hidden::new("sk-a-key-of-some-length-wxyz");
        Wanted { vendor: vendor.to_owned(), key, ..Wanted::default() }
    }

    #[test]
    fn every_vendor_is_a_valid_provider() {
        for vendor in KNOWN_VENDORS {
            let base_url = vendor.base_url.is_none().then(|| "http://127.0.0.1:1/v1".to_owned());
            let added = Wanted { base_url, ..wanted(vendor.id) }.resolve().unwrap();
            let provider = Provider::of_added(&added).unwrap();
            assert_eq!(provider.name, vendor.id);
            assert_eq!(provider.key_end.as_deref(), Some("wxyz"));
            assert!(provider.filter.is_some() && provider.models.is_empty(), "{}", vendor.id);
            let keyless = Wanted { key: None, ..wanted(vendor.id) }.resolve();
            assert_eq!(keyless.is_err(), vendor.needs_key || vendor.base_url.is_none(), "{}", vendor.id);
        }
    }

    #[test]
    fn the_vendors_own_endpoint_has_models_that_come_first() {
        let of = |wanted: Wanted| Provider::of_added(&wanted.resolve().unwrap()).unwrap().preferred;
        assert_eq!(of(wanted("openai"))[0], "gpt-5.5");
        let base_url = Some("http://127.0.0.1:1/v1".to_owned());
        assert!(of(Wanted { base_url, ..wanted("openai") }).is_empty());
        assert!(of(wanted("groq")).is_empty());
    }

    #[test]
    fn a_problem_names_what_is_missing_and_no_key() {
        for (wanted, expected) in [
            (
                Wanted { vendor: "opnai".to_owned(), ..Wanted::default() },
                "there is no vendor \"opnai\"; known: openai, ",
            ),
            (wanted("openai-compatible"), "its base URL is missing"),
            (
                Wanted { key: None, ..wanted("groq") },
                "the key is missing: make one at https://console.groq.com/keys",
            ),
        ] {
            let problem = format!("{:#}", wanted.resolve().unwrap_err());
            assert!(problem.starts_with(expected) && !problem.contains("sk-a-key"), "{problem}");
        }
        let odd = Wanted { base_url: Some("nonsense".to_owned()), ..wanted("groq") }.resolve().unwrap();
        let problem = format!("{:#}", Provider::of_added(&odd).unwrap_err());
        assert!(problem.contains("must begin with http") && !problem.contains("sk-a-key"), "{problem}");
    }
}
