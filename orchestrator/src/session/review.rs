//! Who reviews tool calls. How they do is in `host/review.rs`, which uses the ports that this is one of.

mod pool;

use std::sync::Arc;

use everturn_wire::ConversationId;

use crate::reviewer::Reviewer;
pub(super) use pool::EarlierReviews;
use pool::Pool;

/// Who reviews tool calls.
pub(crate) enum Reviews {
    /// An embedder's reviewer.
    Own(Arc<dyn Reviewer>),
    /// A model.
    Model(ModelReviewer),
}

impl Reviews {
    /// Drops what is kept of a conversation that was deleted.
    pub(crate) fn forget(&self, id: &ConversationId) {
        if let Self::Model(reviewer) = self {
            reviewer.pool.forget(id);
        }
    }
}

/// A model that reviews, and sees its earlier reviews in the conversation.
pub(crate) struct ModelReviewer {
    /// The id of the model or route.
    pub(super) model: String,
    pub(super) pool: Pool,
}

impl ModelReviewer {
    pub(crate) fn new(model: String) -> Self {
        Self { model, pool: Pool::default() }
    }
}
