//! Diagnoses evidence, and explains the result.

use everturn_wire::{Category, Failure};

use crate::because::Because;
use crate::case::{Case, Verdict};
use crate::hint::Hint;
use crate::kind::Kind;
use crate::shape::Findings;
use crate::{Evidence, advice, hint, image, message, status, transport};

/// Diagnoses a failure. Never panics. The result is bounded whatever the evidence.
pub fn diagnose(evidence: &Evidence<'_>) -> Failure {
    let found = Findings::of(evidence);
    Conclusion::of(evidence, &found).failure
}

/// A failure with the evidence that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The result of [`diagnose`].
    pub failure: Failure,
    /// Why it has its category and is retryable or not: the first conclusion, then what refined it. Never empty. Each
    /// entry completes a sentence that begins with "because".
    pub category: Vec<String>,
    /// What requested the wait, if anything did.
    pub hint: Option<String>,
    /// Whether any known pattern of a provider or network failure matched. Otherwise the category is a guess.
    pub is_recognised: bool,
}

/// Diagnoses a failure and explains the result. Uses the same rules as [`diagnose`], at slightly higher cost. Never
/// panics. The result is bounded whatever the evidence.
pub fn explain(evidence: &Evidence<'_>) -> Explanation {
    let found = Findings::of(evidence);
    let Conclusion { failure, verdict, hint, settled, asked } = Conclusion::of(evidence, &found);
    let is_recognised = !matches!(verdict.because, Because::Connection | Because::Nothing);
    let category = [Some(verdict.because), verdict.refined, settled, asked];
    Explanation {
        failure,
        category: category.into_iter().flatten().map(|because| because.to_string()).collect(),
        hint: hint.map(|(_, because)| because.to_string()),
        is_recognised,
    }
}

/// A failure and the evidence behind it.
struct Conclusion<'a> {
    failure: Failure,
    verdict: Verdict<'a>,
    hint: Option<Hint<'a>>,
    /// What the wait changed.
    settled: Option<Because<'a>>,
    /// What the server's explicit instruction changed.
    asked: Option<Because<'a>>,
}

impl<'a> Conclusion<'a> {
    fn of(evidence: &'a Evidence<'a>, found: &'a Findings) -> Self {
        let case = Case::new(evidence, found);
        let verdict = case.verdict();
        let kind = verdict.kind;
        let hint = hint::of(evidence, found, case.prose(), kind);
        let hint_ms = hint.map(|(wait, _)| wait);
        let settled = kind.settle(hint_ms);
        let (category, retryable, asked) = asked_to_retry(evidence, settled);
        let failure = Failure {
            category,
            retryable,
            hint_ms,
            code: case.http_code(),
            message: message::of(evidence),
            provider_code: case.provider_code(),
            unreached: transport::unreached(evidence),
            advice: Some(advice::of(kind, evidence, case.prose()).to_owned()),
            rejects_image: !retryable && image::is_rejected(kind, found, case.prose()),
        };
        let settled = hint.and_then(|_| by_wait(kind, settled));
        Self { failure, verdict, hint, settled, asked }
    }
}

/// Returns the evidence if a wait changed the settled category.
fn by_wait(kind: Kind, settled: (Category, bool)) -> Option<Because<'static>> {
    (settled != kind.settle(None)).then_some(Because::AnyWait)
}

/// `x-should-retry` is the server's own instruction. It cannot make an overlong or unpaid request succeed.
fn asked_to_retry<'a>(
    evidence: &Evidence<'a>,
    settled: (Category, bool),
) -> (Category, bool, Option<Because<'a>>) {
    let (category, retryable) = settled;
    let refused = evidence.status.is_some_and(status::is_error);
    let asked = |word| Some(Because::ShouldRetry(word)).filter(|_| retryable == (word == "false"));
    match evidence.header("x-should-retry").filter(|_| refused) {
        Some(word @ "false") => (category, false, asked(word)),
        Some(word @ "true") if matches!(category, Category::InvalidRequest | Category::Unknown) => {
            (Category::ServerError, true, asked(word))
        }
        _ => (category, retryable, None),
    }
}
