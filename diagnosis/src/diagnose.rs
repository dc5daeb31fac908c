//! From evidence to failure.

use everturn_wire::{Category, Failure};

use crate::case::Case;
use crate::shape::Findings;
use crate::{Evidence, hint, message, status};

/// Says what a failure is. Never panics; the result is bounded whatever the evidence.
pub fn diagnose(evidence: &Evidence<'_>) -> Failure {
    let found = Findings::of(evidence);
    let case = Case::new(evidence, &found);
    let kind = case.kind();
    let hint_ms = hint::of(evidence, &found, case.prose(), kind);
    let (category, retryable) = asked_to_retry(evidence, kind.settle(hint_ms));
    Failure {
        category,
        retryable,
        hint_ms,
        code: case.http_code(),
        message: message::of(evidence),
        provider_code: case.provider_code(),
        advice: Some(kind.advice().to_owned()),
    }
}

/// `x-should-retry` is the server's own word on it. It cannot make a request valid that is too long or unpaid.
fn asked_to_retry(evidence: &Evidence<'_>, settled: (Category, bool)) -> (Category, bool) {
    let (category, retryable) = settled;
    let refused = evidence.status.is_some_and(status::is_error);
    match evidence.header("x-should-retry").filter(|_| refused) {
        Some("false") => (category, false),
        Some("true") if matches!(category, Category::InvalidRequest | Category::Unknown) => {
            (Category::ServerError, true)
        }
        _ => (category, retryable),
    }
}
