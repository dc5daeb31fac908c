//! One failure, and the order in which rules are applied to it.

use crate::because::Because;
use crate::code::{self, Rank};
use crate::kind::Kind;
use crate::prose::Prose;
use crate::shape::Findings;
use crate::{Evidence, Stage, hint, measure, message, phrase, status, transport};

/// Statuses with which a gateway hides its upstream's status.
const WRAPPING: &[u16] = &[400, 500, 502];

/// The kind that was determined, and why.
pub(crate) struct Verdict<'a> {
    pub(crate) kind: Kind,
    /// The evidence for the first conclusion.
    pub(crate) because: Because<'a>,
    /// The evidence that refined it.
    pub(crate) refined: Option<Because<'a>>,
}

impl<'a> Verdict<'a> {
    fn by((kind, because): (Kind, Because<'a>)) -> Self {
        Self { kind, because, refined: None }
    }
}

/// One failure, with what was extracted from it.
pub(crate) struct Case<'a> {
    evidence: &'a Evidence<'a>,
    found: &'a Findings,
    prose: Prose,
    /// The meaning of the most significant known code, with its index in `found.codes`.
    known: Option<(Rank, Kind, usize)>,
    /// The status that counts: the innermost error status.
    status: Option<u16>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(evidence: &'a Evidence<'a>, found: &'a Findings) -> Self {
        let mut unknown = String::new();
        let mut known: Option<(Rank, Kind, usize)> = None;
        for (at, name) in found.codes.iter().enumerate() {
            if let Some((rank, kind)) = code::meaning(&name.name) {
                let better = known.is_none_or(|best| (rank, kind) < (best.0, best.1));
                known = if better { Some((rank, kind, at)) } else { known };
            } else {
                code::words(&name.name, &mut unknown);
                unknown.push_str(" | ");
            }
        }
        let outer = evidence.status.filter(|status| status::is_error(*status));
        let vague_request = known.is_some_and(|(rank, kind, _)| rank == Rank::Vague && kind == Kind::Request);
        let refused = matches!(found.status().or(outer), Some(400 | 404 | 422)) || vague_request;
        let texts = found.texts.iter().map(String::as_str);
        let prose = Prose::new([unknown.as_str()].into_iter().chain(texts), refused);
        let spoken =
            || measure::status(&prose).filter(|_| outer.is_none_or(|status| WRAPPING.contains(&status)));
        let status = found.status().or_else(spoken).or(outer);
        Self { evidence, found, prose, known, status }
    }

    pub(crate) fn prose(&self) -> &Prose {
        &self.prose
    }

    /// Determines the kind, from the strongest evidence.
    pub(crate) fn verdict(&self) -> Verdict<'a> {
        if self.evidence.stage == Stage::Transport || self.evidence.transport.is_some() {
            return Verdict::by(transport::kind(self.evidence));
        }
        let implied = || self.found.implied.as_ref().map(|(kind, place)| (*kind, Because::Field(place)));
        let (kind, because) = implied()
            .or_else(|| self.by_code(Rank::Exact))
            .or_else(|| self.by_limit())
            .or_else(|| self.by_words())
            .or_else(|| self.by_code(Rank::Broad))
            .or_else(|| self.by_status())
            .or_else(|| self.by_code(Rank::Vague))
            .unwrap_or_else(|| self.by_stage());
        let refined = if kind.is_limit() { self.limit(kind) } else { None };
        Verdict {
            kind: refined.map_or(kind, |(kind, _)| kind),
            because,
            refined: refined.map(|(_, because)| because),
        }
    }

    /// Refines a limit: which one was hit, and whether waiting helps at all.
    fn limit(&self, kind: Kind) -> Option<(Kind, Because<'a>)> {
        let said = |phrases: &[&'static str]| phrases.iter().copied().find(|phrase| self.prose.has(phrase));
        let is_long = said(phrase::body::LONG).is_some();
        // No wait helps if one request is larger than the whole limit.
        if measure::asks_too_much(&self.prose) {
            return Some((Kind::Overflow, Because::TooMuchAtOnce));
        }
        // A token limit per request. Waiting does not raise it.
        if self.status == Some(413) {
            return Some((Kind::Overflow, Because::Status(413)));
        }
        let spent = || hint::spent_plan(self.evidence.headers, self.found);
        match kind {
            // A limit per minute, even if it is called a usage limit.
            Kind::Window if !is_long => Some((Kind::RateLimited, Because::Words(said(phrase::body::SHORT)?))),
            Kind::Window => None,
            // A plan's window, reported as another limit.
            _ if let Some(because) = spent() => Some((Kind::Window, because)),
            Kind::Quota => Some((Kind::Window, Because::Words(said(phrase::body::PLAN)?))),
            // A window that resets, even if the text does not say when.
            Kind::Unpaid if !is_long => {
                said(&["retry", "try again", "reset*", "wait"])?;
                Some((Kind::RateLimited, Because::Promised))
            }
            _ => None,
        }
    }

    /// The name of a limit shows whether it is one of minutes or of days.
    fn by_limit(&self) -> Option<(Kind, Because<'a>)> {
        let first = Because::Limit(self.found.limits.first()?);
        let mut names = String::new();
        for name in &self.found.limits {
            code::words(&name.name, &mut names);
            names.push_str(" | ");
        }
        let names = Prose::new([names.as_str()], false);
        let long = names.has_any(phrase::body::LONG).then_some(Kind::Wall);
        let kind = long.or_else(|| names.has_any(phrase::body::SHORT).then_some(Kind::RateLimited));
        kind.map(|kind| (kind, first))
    }

    fn by_code(&self, wanted: Rank) -> Option<(Kind, Because<'a>)> {
        let (rank, kind, at) = self.known?;
        let code = &self.found.codes[at];
        // A parameter may be too long. That differs from a conversation that is too long.
        let is_input = || {
            let param = self.found.param.as_deref().unwrap_or_default();
            ["messages", "input", "prompt"].iter().any(|name| param.starts_with(name))
        };
        if rank == Rank::Exact && code.name.ends_with("_above_max_length") && is_input() {
            return Some((Kind::Overflow, Because::Code(code)));
        }
        (rank == wanted).then_some((kind, Because::Code(code)))
    }

    /// Text is believed only if the status, or else a code, leaves room for it.
    fn by_words(&self) -> Option<(Kind, Because<'a>)> {
        let status = match self.known {
            Some((Rank::Broad, kind, _)) => status::of(kind).or(self.status),
            Some((Rank::Vague, kind, _)) => self.status.or(status::of(kind)),
            Some((Rank::Exact, ..)) | None => self.status,
        };
        // A rejected request may mention limits without having hit one.
        let hit = || !matches!(status, Some(400 | 422)) || self.prose.has_any(phrase::body::PASSED);
        // The client's fault cannot crash a server.
        let has_crashed = || self.prose.has_any(phrase::body::CRASHED);
        let said = phrase::kind(&self.prose, phrase::body::RULES, |kind| match kind {
            Kind::RateLimited => status::allows(status, kind) && hit(),
            Kind::Server => status::allows(status, kind) || has_crashed(),
            kind => status::allows(status, kind),
        });
        said.map(|(kind, phrase)| (kind, Because::Words(phrase)))
    }

    fn by_status(&self) -> Option<(Kind, Because<'a>)> {
        let status = self.status?;
        // Some servers reject an overlong request with an empty body.
        if status == 400 && self.evidence.body.trim().is_empty() {
            return Some((Kind::Overflow, Because::Silence(status)));
        }
        let because = match self.evidence.status {
            Some(outer) if outer == status => Because::Status(status),
            _ => Because::NamedStatus(status),
        };
        Some((status::kind(status), because)).filter(|(kind, _)| *kind != Kind::Unknown)
    }

    /// Last resort: a successful response that turned out not to be one.
    fn by_stage(&self) -> (Kind, Because<'a>) {
        let is_error = self.found.is_error;
        match self.evidence.status {
            // The provider accepted the request and then failed.
            _ if self.evidence.stage == Stage::InStream && is_error => {
                (Kind::Server, Because::ErrorInSuccess)
            }
            Some(200..=299) if is_error => (Kind::Server, Because::ErrorInSuccess),
            Some(200..=299) => (Kind::Response, Because::NoAnswer),
            // A redirect that was not followed means a wrong URL.
            Some(300..=399) => (Kind::Request, Because::Redirect),
            _ if self.evidence.stage == Stage::InStream => (Kind::Response, Because::NoAnswer),
            _ => (Kind::Unknown, Because::Nothing),
        }
    }

    /// Returns the status as text. Inside a stream, the initial 200 is not the failure's code.
    pub(crate) fn http_code(&self) -> Option<String> {
        let outer = self.evidence.status.filter(|_| self.evidence.stage == Stage::Http);
        outer.or_else(|| self.found.status()).map(|status| status.to_string())
    }

    /// Returns the provider's own code: the most significant one.
    pub(crate) fn provider_code(&self) -> Option<String> {
        let best = self.known.map(|(_, _, at)| at);
        let name = best.map_or_else(|| self.found.codes.first(), |at| self.found.codes.get(at))?;
        let name = message::without_secrets(&name.name);
        let name = code::core_of(&name);
        Some(message::short(name.strip_prefix(code::ENVELOPE).unwrap_or(name)))
    }
}
