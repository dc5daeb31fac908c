//! OpenAI's Chat Completions API, server side.
//!
//! [`ChatRequest::read`] parses a request. The events of its turn are pushed into [`Chunks`] for a stream, else into
//! [`Completion`]. A [`Refusal`] is an error in the API's format.

mod chunks;
mod completion;
mod ending;
mod model;
mod refusal;
mod request;
mod wait;

pub use chunks::Chunks;
pub use completion::Completion;
pub use model::{list, one, resolve};
pub use refusal::Refusal;
pub use request::{ChatRequest, OnDisconnect};

/// The common fields of all frames of an answer.
#[derive(Clone, Debug)]
pub struct Head {
    /// The id of the answer, `chatcmpl-...`; the same for every answer to the same turn.
    pub id: String,
    /// The model, as the client named it.
    pub model: String,
    /// When the answer began, in seconds since the epoch.
    pub created: u64,
}

impl Head {
    /// Creates the common fields of a turn's answer.
    pub fn new(turn_id: &everturn_wire::TurnId, model: impl Into<String>, created: u64) -> Self {
        Self { id: format!("chatcmpl-{turn_id}"), model: model.into(), created }
    }
}
