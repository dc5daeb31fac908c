//! Payloads of events. Each has the form of a complete answer.

use everturn_kernel::FinishReason;
use everturn_wire::{Usage, Value};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Map;

use crate::answer::own_word;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame {
    pub(super) candidates: Option<Vec<Candidate>>,
    pub(super) prompt_feedback: Option<Feedback>,
    pub(super) usage_metadata: Option<Counts>,
    pub(super) model_version: Option<Value>,
    error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    #[serde(default)]
    pub(super) index: u64,
    pub(super) content: Option<Content>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content {
    pub(super) parts: Option<Vec<Part>>,
}

/// A part with none of these fields is ignored, such as code that the provider ran.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    pub(super) text: Option<String>,
    /// Whether the text is a thought.
    pub(super) thought: Option<bool>,
    pub(super) thought_signature: Option<String>,
    pub(super) function_call: Option<FunctionCall>,
}

/// Calls are never split.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionCall {
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: String,
    pub(super) args: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Feedback {
    /// Set if the prompt was blocked, with the reason.
    pub(super) block_reason: Option<String>,
}

/// Token counts, as far as an event has them. Later counts replace earlier ones; they are not increments.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl Frame {
    /// Returns `None` if the payload is an error, or not of this API.
    pub(super) fn parse(payload: &str) -> Option<Self> {
        let frame: Self = serde_json::from_str(payload).ok()?;
        frame.error.is_none().then_some(frame)
    }
}

/// The meaning of a finish reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Finished(FinishReason),
    /// The model failed, and its partial output is not an answer.
    Broken,
}

impl Candidate {
    pub(super) fn ending(&self) -> Option<Ending> {
        let reason = match self.finish_reason.as_deref()? {
            "" | "FINISH_REASON_UNSPECIFIED" => return None,
            "STOP" => FinishReason::Stop,
            "MAX_TOKENS" => FinishReason::Length,
            "SAFETY"
            | "RECITATION"
            | "LANGUAGE"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => FinishReason::ContentFilter,
            "MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MALFORMED_RESPONSE"
            | "MISSING_THOUGHT_SIGNATURE" => return Some(Ending::Broken),
            other => own_word(other),
        };
        Some(Ending::Finished(reason))
    }
}

impl Counts {
    pub(super) fn update(&mut self, newer: Self) {
        self.prompt_token_count = newer.prompt_token_count.or(self.prompt_token_count);
        self.candidates_token_count = newer.candidates_token_count.or(self.candidates_token_count);
        self.thoughts_token_count = newer.thoughts_token_count.or(self.thoughts_token_count);
        self.cached_content_token_count =
            newer.cached_content_token_count.or(self.cached_content_token_count);
    }

    /// Converts the counts to the kernel's type. Thoughts are billed like the answer; cached tokens are part of the
    /// prompt.
    pub(crate) fn usage(&self) -> Usage {
        let output = [self.candidates_token_count, self.thoughts_token_count];
        Usage {
            input_tokens: self.prompt_token_count.unwrap_or(0),
            output_tokens: output.into_iter().flatten().fold(0, u64::saturating_add),
            cache_read_tokens: self.cached_content_token_count,
            cache_write_tokens: None,
            reasoning_tokens: self.thoughts_token_count,
        }
    }
}
