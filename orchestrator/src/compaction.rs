//! Compaction: how a history that does not fit a model's context is shortened.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_wire::{ConversationId, Failure, TurnId};

/// Summarizes the older part of a conversation, instead of a configured model.
///
/// Each call is one attempt. The turn retries retryable failures with its schedule, visibly and across restarts.
#[async_trait]
pub trait Compactor: Send + Sync + 'static {
    /// Returns the summary that replaces the older part in later requests. The future is dropped when the turn is
    /// stopped.
    ///
    /// # Errors
    /// When no summary could be made.
    async fn compact(&self, request: CompactionRequest) -> Result<String, Failure>;
}

/// The older part of a conversation, to be summarized.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompactionRequest {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The turn whose request does not fit.
    pub turn_id: TurnId,
    /// The text to summarize, oldest first, as plain text: each message and tool call with its author. The middle of
    /// long ones is removed, and images are omitted. Begins with the last summary, if there is one.
    pub transcript: String,
}

/// How histories are shortened to fit a model's context.
#[derive(Clone, Default)]
pub(crate) struct Compactions {
    /// Makes the summaries; `None` = a model does.
    pub(crate) compactor: Option<Arc<dyn Compactor>>,
    /// The fraction of a model's context window above which the history is summarized ahead of an overflow.
    pub(crate) ahead: Option<f64>,
}

impl Compactions {
    /// Returns the number of tokens above which the history is summarized before a request to a model with this context
    /// window is sent; `None` = compaction ahead is off.
    pub(crate) fn limit(&self, window: u64) -> Option<u64> {
        // Exact up to 2^53 tokens.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        self.ahead.map(|share| (window as f64 * share.clamp(0.0, 1.0)) as u64)
    }
}
