//! One event's payload: a piece of the answer in the form of a whole one.

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

/// What has none of these fields is not for us, such as code that the provider ran.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    pub(super) text: Option<String>,
    /// Whether the text is a thought.
    pub(super) thought: Option<bool>,
    pub(super) thought_signature: Option<String>,
    pub(super) function_call: Option<FunctionCall>,
}

/// A call is never sent in pieces.
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
    /// Says that the question was refused, and why.
    pub(super) block_reason: Option<String>,
}

/// Token counts, as far as an event has them. Later ones replace earlier ones; they are no differences.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
}

impl Frame {
    /// None where the payload is an error, or nothing that this API says.
    pub(super) fn parse(payload: &str) -> Option<Self> {
        let frame: Self = serde_json::from_str(payload).ok()?;
        frame.error.is_none().then_some(frame)
    }
}

/// What a reason to stop means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Finished(FinishReason),
    /// The model failed: what it began is no answer.
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

    /// In the kernel's terms. Thoughts are paid for like the rest of the answer; the cached part is one of the prompt.
    pub(super) fn usage(&self) -> Usage {
        let output = [self.candidates_token_count, self.thoughts_token_count];
        Usage {
            input_tokens: self.prompt_token_count.unwrap_or(0),
            output_tokens: output.into_iter().flatten().fold(0, u64::saturating_add),
            cache_read_tokens: self.cached_content_token_count,
            cache_write_tokens: None,
        }
    }
}
