//! From evidence to failure: the order in which the rules are asked.

use everturn_wire::{Category, Failure};

use crate::{Evidence, Stage, Transport, hint, message};

/// Says what a failure is.
pub fn diagnose(evidence: &Evidence<'_>) -> Failure {
    let category = match (evidence.stage, evidence.status) {
        (Stage::Transport, _) => by_transport(evidence.transport),
        (_, Some(status)) => by_status(status),
        (_, None) => Category::Unknown,
    };
    let mut failure = Failure::new(category, passes(category), message::of(evidence));
    failure.code = evidence.status.map(|status| status.to_string());
    failure.hint_ms = hint::of(evidence);
    failure
}

/// Whether a failure of this category can pass within the turn by itself.
fn passes(category: Category) -> bool {
    match category {
        Category::RateLimited
        | Category::Overloaded
        | Category::ServerError
        | Category::Network
        | Category::Timeout
        | Category::InvalidResponse => true,
        Category::QuotaExhausted
        | Category::ContextOverflow
        | Category::InvalidRequest
        | Category::NotFound
        | Category::ContentPolicy
        | Category::Auth
        | Category::Permission
        | Category::Cancelled
        | Category::Internal
        | Category::Unknown => false,
    }
}

fn by_status(status: u16) -> Category {
    match status {
        200..=299 => Category::InvalidResponse,
        401 | 407 => Category::Auth,
        402 => Category::QuotaExhausted,
        403 => Category::Permission,
        404 | 410 => Category::NotFound,
        408 | 504 | 522 | 524 => Category::Timeout,
        413 => Category::ContextOverflow,
        425 | 429 => Category::RateLimited,
        499 => Category::Cancelled,
        503 | 529 => Category::Overloaded,
        400..=498 => Category::InvalidRequest,
        500..=599 => Category::ServerError,
        _ => Category::Unknown,
    }
}

fn by_transport(kind: Option<Transport>) -> Category {
    use Transport::{
        Connect, ConnectTimeout, Cut, Dns, FirstByteTimeout, IdleTimeout, Other, Tls, Truncated,
    };
    match kind {
        Some(ConnectTimeout | FirstByteTimeout | IdleTimeout) => Category::Timeout,
        Some(Truncated) => Category::InvalidResponse,
        Some(Dns | Connect | Tls | Cut | Other) | None => Category::Network,
    }
}
