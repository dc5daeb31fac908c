//! Compaction: what happens to a history that does not fit a model's context.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use everturn_wire::{ConversationId, Failure, TurnId};

/// Summarizes the older part of a conversation, in place of a model that is configured for it.
///
/// Each call is one attempt: a failure that is retryable is retried by the turn, with its schedule, visibly and across
/// restarts.
#[async_trait]
pub trait Compactor: Send + Sync + 'static {
    /// Returns the summary that takes the place of the older part in later requests. The future is dropped when the turn is
    /// stopped.
    ///
    /// # Errors
    /// Why there is none.
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
    /// What is to be summarized, oldest first, as plain text: each message and tool call with its author, long ones without
    /// their middle, images left out. Begins with the last summary, if there is one.
    pub transcript: String,
}

/// How histories are made to fit.
#[derive(Clone, Default)]
pub(crate) struct Compactions {
    /// Who summarizes; `None` = a model.
    pub(crate) compactor: Option<Arc<dyn Compactor>>,
    /// The share of a model's context window from which the history is summarized before it overflows.
    pub(crate) ahead: Option<f64>,
    /// Context windows in tokens, by the id of the model.
    pub(crate) windows: BTreeMap<String, u64>,
}

impl Compactions {
    /// From how many tokens on a request to this model is not sent before its history is summarized; `None` = its window is
    /// not known, or nothing is done ahead.
    pub(crate) fn limit(&self, model: &str) -> Option<u64> {
        let window = *self.windows.get(model)?;
        // Exact up to 2^53 tokens.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        self.ahead.map(|share| (window as f64 * share.clamp(0.0, 1.0)) as u64)
    }
}
