//! The meaning of an HTTP status by itself, and which explanations are plausible with it.

use crate::kind::Kind;

/// Whether a number is an HTTP error status.
pub(crate) fn is_error(status: u16) -> bool {
    (400..=599).contains(&status)
}

/// Returns the kind of failure if only the status is known.
pub(crate) fn kind(status: u16) -> Kind {
    match status {
        401 | 407 => Kind::Auth,
        402 => Kind::Unpaid,
        403 | 451 => Kind::Permission,
        404 | 410 => Kind::NotFound,
        408 | 504 | 522 | 524 | 598 | 599 => Kind::Timeout,
        // Bytes, unless the body mentions tokens.
        413 => Kind::Size,
        421 => Kind::Network,
        429 => Kind::RateLimited,
        // 498 and 529 are two providers' own numbers for "no capacity in this tier" and "overloaded".
        498 | 503 | 529 => Kind::Overloaded,
        499 => Kind::Cancelled,
        // A lock, an upstream or a replay failed. The same request may succeed.
        409 | 424 | 425 | 500 | 502..=504 | 506..=599 => Kind::Server,
        400..=498 | 501 | 505 => Kind::Request,
        _ => Kind::Unknown,
    }
}

/// Returns the status that a code implies, if no status is known.
pub(crate) fn of(kind: Kind) -> Option<u16> {
    match kind {
        Kind::RateLimited => Some(429),
        Kind::Overloaded => Some(503),
        Kind::Permission => Some(403),
        Kind::NotFound => Some(404),
        Kind::Request => Some(400),
        _ => None,
    }
}

/// Whether text of this kind is plausible with this status, and not a quotation.
pub(crate) fn allows(status: Option<u16>, kind: Kind) -> bool {
    use Kind::{
        Auth, Network, NotFound, Overflow, Overloaded, Permission, Policy, Quota, RateLimited, Request, Size,
        Timeout, Wall, Window,
    };
    let Some(status) = status else { return true };
    match status {
        401 | 402 | 403 | 404 | 407 | 410 | 429 | 503 | 529 if matches!(kind, Wall | Window | Quota) => true,
        401 | 407 => kind == Auth,
        402 => kind == Overflow,
        403 => matches!(kind, Policy | Auth | Permission | RateLimited),
        404 | 410 => matches!(kind, Permission | NotFound),
        429 => matches!(kind, Overflow | Overloaded | RateLimited),
        503 | 529 => matches!(kind, Overflow | Overloaded | RateLimited | Permission),
        408 | 504 | 522 | 524 => matches!(kind, Timeout | Overflow),
        500..=599 => !matches!(kind, Auth | Permission | NotFound | Network),
        _ => {
            matches!(
                kind,
                Wall | Window | Quota | Overflow | Size | Policy | Auth | Permission | NotFound | Request
            ) || matches!(kind, RateLimited | Overloaded)
        }
    }
}
