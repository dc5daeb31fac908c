//! What the rules conclude: finer than a category, because some categories depend on the hint too.

use everturn_wire::Category;

/// The longest wait for which a plan's allowance counts as a limit that passes. Beyond it, it is used up. It says nothing of
/// other limits: how long one waits for them is not for the diagnosis to say.
const WINDOW_MS: u64 = 3_600_000;

/// A conclusion. The order is that of precedence, where several codes disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Credit or plan: no wait helps.
    Wall,
    /// A usage window: passes when its hint is short, else a wall.
    Window,
    Overflow,
    /// Too many bytes, of which a shorter conversation may still have too many.
    Size,
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
        match self {
            Self::Window if hint_ms.is_some_and(|wait| wait <= WINDOW_MS) => (Category::RateLimited, true),
            Self::RateLimited => (Category::RateLimited, true),
            Self::Wall | Self::Window => (Category::QuotaExhausted, false),
            Self::Overloaded => (Category::Overloaded, true),
            Self::Server => (Category::ServerError, true),
            Self::Network => (Category::Network, true),
            Self::Untrusted => (Category::Network, false),
            Self::Timeout => (Category::Timeout, true),
            Self::Response => (Category::InvalidResponse, true),
            Self::Overflow => (Category::ContextOverflow, false),
            Self::Request | Self::Size => (Category::InvalidRequest, false),
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
}
