//! What the rules conclude: finer than a category, because some categories depend on the hint too.

use everturn_wire::Category;

/// The longest wait that still belongs to a turn. Beyond it, a limit is a wall.
const WALL_MS: u64 = 3_600_000;

/// A conclusion. The order is that of precedence, where several codes disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Credit or plan: no wait helps.
    Wall,
    /// A usage window: passes when its hint is short, else a wall.
    Window,
    Overflow,
    Policy,
    Auth,
    Permission,
    Overloaded,
    RateLimited,
    NotFound,
    Timeout,
    /// The answer itself is broken.
    Response,
    Network,
    /// The peer's certificate is refused: a network failure that does not pass.
    Untrusted,
    Request,
    Server,
    Cancelled,
    Unknown,
}

impl Kind {
    /// The category, and whether it passes by itself within the turn.
    pub(crate) fn settle(self, hint_ms: Option<u64>) -> (Category, bool) {
        let within_turn = hint_ms.is_some_and(|wait| wait <= WALL_MS);
        match self {
            Self::Window if within_turn => (Category::RateLimited, true),
            Self::RateLimited if within_turn || hint_ms.is_none() => (Category::RateLimited, true),
            Self::Wall | Self::Window | Self::RateLimited => (Category::QuotaExhausted, false),
            Self::Overloaded => (Category::Overloaded, true),
            Self::Server => (Category::ServerError, true),
            Self::Network => (Category::Network, true),
            Self::Untrusted => (Category::Network, false),
            Self::Timeout => (Category::Timeout, true),
            Self::Response => (Category::InvalidResponse, true),
            Self::Overflow => (Category::ContextOverflow, false),
            Self::Request => (Category::InvalidRequest, false),
            Self::NotFound => (Category::NotFound, false),
            Self::Policy => (Category::ContentPolicy, false),
            Self::Auth => (Category::Auth, false),
            Self::Permission => (Category::Permission, false),
            Self::Cancelled => (Category::Cancelled, false),
            Self::Unknown => (Category::Unknown, hint_ms.is_some()),
        }
    }

    /// Whether the provider's limits or capacity are at fault, so that a wait named in passing is meant for us.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Wall | Self::Window | Self::RateLimited | Self::Overloaded | Self::Unknown)
    }

    /// Whether it passes, or a provider asks to wait over it all the same.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::Server | Self::Timeout | Self::Overflow)
    }

    /// What a person can do about it.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Wall => "Add credit or raise the plan at the provider, or switch to another model.",
            Self::Window => {
                "The plan's allowance is used up: wait for its reset, or switch to another model."
            }
            Self::RateLimited => {
                "The provider limits how much is sent: wait, or spread requests over more time."
            }
            Self::Overloaded => {
                "The provider has too little capacity just now: wait, or switch to another model."
            }
            Self::Overflow => "Shorten or compact the conversation, or choose a model with a larger context.",
            Self::Policy => "Rephrase the message: the provider refuses its content.",
            Self::Auth => "Check the API key or sign in again.",
            Self::Permission => "Ask the provider for access, or choose a model that this account may use.",
            Self::NotFound => "Check the model's name and the base URL.",
            Self::Request => {
                "The request itself is refused: change its parameters or history before sending it again."
            }
            Self::Network => "Check the network connection and the base URL.",
            Self::Untrusted => {
                "Check the base URL, the clock and any proxy that inspects TLS: the certificate is refused."
            }
            Self::Timeout => "The provider took too long: try again, or with a shorter request.",
            Self::Response => "The provider's answer was broken or cut short: try again.",
            Self::Server => "The provider failed: try again later, or switch to another model.",
            Self::Cancelled => "The call was cancelled: send it again if that was not intended.",
            Self::Unknown => "The provider's message is all that is known.",
        }
    }
}
