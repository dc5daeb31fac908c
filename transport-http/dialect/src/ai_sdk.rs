//! The UI message stream of Vercel's AI SDK (`useChat`), server side.
//!
//! [`ChatRequest::read`] parses a request of `DefaultChatTransport`. The events of its turn are pushed into [`Chunks`].
//! [`queued`] answers a message that is queued behind a running turn. `WebSocketChatTransport` sends the same requests in
//! frames: [`Frame::read`] parses one, and [`Reply`] turns a stream into frames.

mod chunks;
mod data;
mod frame;
mod message;
mod place;
mod reply;
mod request;
mod spoken;

pub use chunks::Chunks;
pub use data::queued;
pub use frame::{Frame, FrameAsk, FrameError};
pub use message::Response;
pub use place::Place;
pub use reply::{Reply, ReplyFrame};
pub use request::{Ask, ChatRequest};

/// The major version of the client's `ai` package. Each has chunks that older versions reject.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `ai` 5: no approvals, no rewinds.
    Five,
    /// `ai` 6: no rewinds.
    Six,
    /// `ai` 7, from 7.0.70 on.
    #[default]
    Seven,
}

impl Version {
    /// Returns the version with this number, if it is supported.
    pub fn of(number: &str) -> Option<Self> {
        match number {
            "5" => Some(Self::Five),
            "6" => Some(Self::Six),
            "7" => Some(Self::Seven),
            _ => None,
        }
    }
}
