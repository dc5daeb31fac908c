//! The API of a provider, with its settings.

use anyhow::{Result, bail};
use everturn_provider::{
    AnthropicConfig, ChatConfig, EndpointConfig, GeminiConfig, HistoryForm, OutputLimit, ResponsesConfig,
    ReturnReasoning,
};

use crate::config::table::{HistoryName, Kind, OutputLimitName, ProviderTable, ReturnReasoningName};

/// The API of a provider, with its settings.
#[derive(Debug, PartialEq)]
pub(crate) enum Api {
    OpenAiChat(ChatConfig),
    OpenAiResponses(ResponsesConfig),
    Anthropic(AnthropicConfig),
    Gemini(GeminiConfig),
}

impl Api {
    /// Returns the value of `kind` in the file.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::OpenAiChat(_) => Kind::OpenAiChat.name(),
            Self::OpenAiResponses(_) => Kind::OpenAiResponses.name(),
            Self::Anthropic(_) => Kind::Anthropic.name(),
            Self::Gemini(_) => Kind::Gemini.name(),
        }
    }

    pub(super) fn resolve(table: ProviderTable, endpoint: EndpointConfig) -> Result<Self> {
        check_fields(&table)?;
        let extra_body = table.extra_body;
        Ok(match table.kind {
            Kind::OpenAiChat => Self::OpenAiChat(ChatConfig {
                output_limit: match table.output_limit {
                    None | Some(OutputLimitName::MaxCompletionTokens) => OutputLimit::MaxCompletionTokens,
                    Some(OutputLimitName::MaxTokens) => OutputLimit::MaxTokens,
                },
                include_usage: table.include_usage.unwrap_or(true),
                return_reasoning: match table.return_reasoning {
                    None => ReturnReasoning::Never,
                    Some(ReturnReasoningName::ReasoningContent) => ReturnReasoning::Content,
                    Some(ReturnReasoningName::ReasoningDetails) => ReturnReasoning::Details,
                },
                history: match table.history {
                    None => HistoryForm::Usual,
                    Some(HistoryName::Mistral) => HistoryForm::Mistral,
                },
                extra_body,
                ..ChatConfig::new(endpoint)
            }),
            Kind::OpenAiResponses => {
                Self::OpenAiResponses(ResponsesConfig { extra_body, ..ResponsesConfig::new(endpoint) })
            }
            Kind::Anthropic => {
                Self::Anthropic(AnthropicConfig { extra_body, ..AnthropicConfig::new(endpoint) })
            }
            Kind::Gemini => Self::Gemini(GeminiConfig { extra_body, ..GeminiConfig::new(endpoint) }),
        })
    }
}

/// Rejects fields of Chat Completions for other APIs, where they would have no effect.
fn check_fields(table: &ProviderTable) -> Result<()> {
    let of_chat = [
        ("output_limit", table.output_limit.is_some()),
        ("include_usage", table.include_usage.is_some()),
        ("return_reasoning", table.return_reasoning.is_some()),
        ("history", table.history.is_some()),
    ];
    match of_chat.iter().find(|(_, given)| *given) {
        Some((key, _)) if table.kind != Kind::OpenAiChat => {
            bail!("`{key}` has no effect with kind = \"{}\": remove it", table.kind.name())
        }
        _ => Ok(()),
    }
}
