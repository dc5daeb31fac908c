//! Who reviews tool calls.

mod pool;

use std::sync::Arc;

use crate::reviewer::Reviewer;
pub(super) use pool::Earlier;
use pool::Pool;

/// Who reviews tool calls.
pub(crate) enum Reviews {
    /// An embedder's reviewer.
    Own(Arc<dyn Reviewer>),
    /// A model.
    Model(ModelReviewer),
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
