//! Kinds of failures. Finer than categories, because some categories also depend on the hint.

use everturn_wire::Category;

/// Maximum wait after which a quota of unknown period still counts as a rate limit.
const ROLLING_MS: u64 = 3_600_000;

/// The kind of a failure. If several codes disagree, the first kind in this order wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Credit or plan: waiting does not help.
    Wall,
    /// A plan's usage window is used up. It passes when the window resets, however soon that is.
    Window,
    /// A quota per day, or of a period that the response does not say. One that asks for a short wait lets single
    /// requests through as time passes, like a rate limit.
    Quota,
    /// An unpaid request, which may only mean a limit that passes. A requested wait says so.
    Unpaid,
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
            Self::Quota if hint_ms.is_some_and(|wait| wait <= ROLLING_MS) => (Category::RateLimited, true),
            Self::Unpaid if hint_ms.is_some() => (Category::RateLimited, true),
            Self::RateLimited => (Category::RateLimited, true),
            Self::Wall | Self::Window | Self::Quota | Self::Unpaid => (Category::QuotaExhausted, false),
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
        self.is_limit() || matches!(self, Self::Wall | Self::Overloaded | Self::Unknown)
    }

    /// Whether a limit was hit that time alone lifts.
    pub(crate) fn is_limit(self) -> bool {
        matches!(self, Self::Window | Self::Quota | Self::Unpaid | Self::RateLimited)
    }

    /// Whether the failure is temporary, or the provider asks to wait anyway.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::Server | Self::Timeout | Self::Overflow)
    }
}
