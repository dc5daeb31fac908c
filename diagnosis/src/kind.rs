//! Kinds of failures. Finer than categories, because some categories also depend on the hint.

use everturn_wire::Category;

/// Maximum wait for which a plan's usage limit counts as temporary. With a longer wait, the quota is exhausted. Does
/// not apply to other limits, for which the caller decides how long to wait.
const WINDOW_MS: u64 = 3_600_000;

/// The kind of a failure. If several codes disagree, the first kind in this order wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Credit or plan: waiting does not help.
    Wall,
    /// A usage window: temporary if the hint is short, else a wall.
    Window,
    Overflow,
    /// Too many bytes. A shorter conversation may still have too many.
    Size,
    Policy,
    Auth,
    Permission,
    Overloaded,
    RateLimited,
    NotFound,
    Timeout,
    /// The answer is malformed.
    Response,
    Network,
    /// The peer's certificate was rejected: a network failure that is not temporary.
    Untrusted,
    Request,
    Server,
    Cancelled,
    Unknown,
}

impl Kind {
    /// Returns the category, and whether the failure is temporary within a turn.
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

    /// Whether the provider's limits or capacity are the cause, so that a wait in the text applies to this client.
    pub(crate) fn waits(self) -> bool {
        matches!(self, Self::Wall | Self::Window | Self::RateLimited | Self::Overloaded | Self::Unknown)
    }

    /// Whether the failure is temporary, or the provider asks to wait anyway.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::Server | Self::Timeout | Self::Overflow)
    }
}
