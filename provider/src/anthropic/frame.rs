//! Payloads of events.

use everturn_kernel::FinishReason;
use everturn_wire::{Usage, Value};
use serde::Deserialize;

use crate::answer::own_word;

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Frame {
    MessageStart {
        message: Opening,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        #[serde(default)]
        index: Value,
    },
    MessageDelta {
        delta: Closing,
        usage: Option<Counts>,
    },
    MessageStop,
    Error,
    /// A ping, or an event of a later API version.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct Opening {
    pub(super) model: Option<Value>,
    pub(super) usage: Option<Counts>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    /// Thinking that the provider does not reveal.
    RedactedThinking { data: String },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: String },
    /// Sent once, complete, at the end of its block.
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    /// A citation, or a delta of a later API version.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct Closing {
    stop_reason: Option<String>,
}

/// Token counts, as far as an event has them. Later counts replace earlier ones; they are not increments.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
}

impl Closing {
    pub(super) fn finish_reason(&self) -> Option<FinishReason> {
        Some(match self.stop_reason.as_deref()? {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            other => own_word(other),
        })
    }
}

impl Counts {
    pub(crate) fn update(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens =
            newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
    }

    /// Converts the counts to the kernel's type, in which input tokens include those of the cache.
    pub(crate) fn usage(&self) -> Usage {
        let cached = [self.cache_read_input_tokens, self.cache_creation_input_tokens];
        let sum = |total: u64, count: Option<u64>| total.saturating_add(count.unwrap_or(0));
        Usage {
            input_tokens: cached.into_iter().fold(self.input_tokens.unwrap_or(0), sum),
            output_tokens: self.output_tokens.unwrap_or(0),
            cache_read_tokens: self.cache_read_input_tokens,
            cache_write_tokens: self.cache_creation_input_tokens,
            reasoning_tokens: None,
        }
    }
}
