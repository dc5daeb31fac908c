//! The UI message stream of Vercel's AI SDK (`useChat`), as its server speaks it.
//!
//! [`ChatRequest::read`] understands a request of `DefaultChatTransport`. The events of its turn go into [`Chunks`]; a message
//! that waits behind a running turn is answered with [`queued`]. `WebSocketChatTransport` sends the same in frames:
//! [`Frame::read`] understands one, and [`Reply`] makes frames of a stream.

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
pub use place::Place;
pub use reply::{Reply, ReplyFrame};
pub use request::{Ask, ChatRequest, Response};

/// The major version of the client's `ai` package. Each knows chunks that break those before it.
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
    /// The version of this number, if it is one that can be served.
    pub fn of(number: &str) -> Option<Self> {
        match number {
            "5" => Some(Self::Five),
            "6" => Some(Self::Six),
            "7" => Some(Self::Seven),
            _ => None,
        }
    }
}
