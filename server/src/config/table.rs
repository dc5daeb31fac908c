//! The tables of the configuration file that there may be several of (providers, routes and MCP servers), and the words in them.

use std::collections::BTreeMap;

use everturn_wire::Priority;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::{Hidden, context_window::ContextWindow, one_or_more::OneOrMore, written::Written};

/// Several models offered as one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RouteTable {
    pub(super) name: Spanned<String>,
    pub(super) targets: Vec<Spanned<String>>,
    pub(super) schedule: Option<ScheduleName>,
    pub(super) base_ms: Option<u64>,
    pub(super) max_delay_ms: Option<u64>,
    pub(super) max_retries: Option<u32>,
    pub(super) jitter: Option<f64>,
    pub(super) revert: Option<RevertName>,
    pub(super) max_attempts: Option<u32>,
    pub(super) clamp_hints: Option<bool>,
    pub(super) sticky: Option<bool>,
    pub(super) final_report: Option<Spanned<Value>>,
    pub(super) report_attempts: Option<Spanned<u32>>,
    #[serde(default)]
    pub(super) priority: Priority,
}

/// The price of the models that match a pattern, for a million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceTable {
    pub(super) model: Spanned<String>,
    pub(super) input: f64,
    pub(super) output: f64,
    pub(super) cached: Option<f64>,
    pub(super) cache_write: Option<f64>,
}

/// An MCP server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct McpTable {
    pub(super) name: Spanned<String>,
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, Written>,
    pub(super) cwd: Option<String>,
    pub(super) url: Option<Hidden>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Written>,
    pub(super) oauth_client_id: Option<String>,
    pub(super) oauth_client_secret: Option<Written>,
    #[serde(default)]
    pub(super) oauth_scopes: Vec<String>,
    #[serde(default)]
    pub(super) trust_annotations: bool,
    pub(super) start_timeout_ms: Option<u64>,
    pub(super) idle_timeout_ms: Option<u64>,
    pub(super) total_timeout_ms: Option<u64>,
    pub(super) max_result_bytes: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderTable {
    pub(super) name: String,
    #[serde(default)]
    pub(super) kind: Kind,
    pub(super) base_url: Option<String>,
    pub(super) api_key: Option<OneOrMore<Hidden>>,
    pub(super) api_key_env: Option<OneOrMore<String>>,
    pub(super) api_key_file: Option<OneOrMore<String>>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Hidden>,
    #[serde(default)]
    pub(super) extra_body: Map<String, Value>,
    pub(super) output_limit: Option<OutputLimitName>,
    pub(super) include_usage: Option<bool>,
    pub(super) return_reasoning: Option<ReturnReasoningName>,
    pub(super) history: Option<HistoryName>,
    /// Names, and patterns of names in the provider's list; `None` = all of that list.
    pub(super) models: Option<Vec<String>>,
    #[serde(default)]
    pub(super) credential: CredentialName,
    /// A length of time, such as `10m`.
    pub(super) budget: Option<String>,
    #[serde(default)]
    pub(super) whole: bool,
    pub(super) quota: Option<QuotaName>,
    /// In tokens.
    pub(super) context_window: Option<ContextWindow>,
    #[serde(default)]
    pub(super) timeouts: TimeoutTable,
}

impl ProviderTable {
    /// Returns the number of configured credentials, whether or not they are available.
    pub(super) fn credentials(&self) -> usize {
        let secrets = self.api_key.as_ref().map(|keys| keys.0.len());
        let names = self.api_key_env.as_ref().or(self.api_key_file.as_ref()).map(|names| names.0.len());
        secrets.or(names).unwrap_or(1)
    }
}

/// The API of a provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) enum Kind {
    #[default]
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    #[serde(rename = "anthropic")]
    Anthropic,
    #[serde(rename = "gemini")]
    Gemini,
}

impl Kind {
    /// Returns the value in the file.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutputLimitName {
    MaxCompletionTokens,
    MaxTokens,
}

/// The field in which reasoning is sent back to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReturnReasoningName {
    ReasoningContent,
    ReasoningDetails,
}

/// The format of past messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HistoryName {
    Mistral,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TimeoutTable {
    pub(super) connect_ms: Option<u64>,
    pub(super) first_byte_ms: Option<u64>,
    pub(super) idle_ms: Option<u64>,
    pub(super) progress_ms: Option<u64>,
    pub(super) silence_ms: Option<u64>,
    pub(super) total_ms: Option<u64>,
}

/// What happens to a step that fails after part of its answer was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AfterContentName {
    #[default]
    Keep,
    Rewind,
}

/// What happens when a provider asks for a wait beyond the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum QuotaName {
    #[default]
    Fail,
    Park,
}

/// Whose credential calls to a provider have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CredentialName {
    /// The configured one.
    #[default]
    Server,
    /// The caller's, which is forwarded.
    Client,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ScheduleName {
    #[default]
    Patient,
    Exponential,
    Interactive,
    Cycling,
}

/// When a turn goes back to the first target of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RevertName {
    CooldownExpiry,
    Never,
}
