//! Advice: what a person can do about a failure.

use crate::kind::Kind;
use crate::prose::Prose;
use crate::{Evidence, Stage, Transport, phrase};

/// Returns the advice for a kind of failure, depending on the stage of the call.
pub(crate) fn of(kind: Kind, evidence: &Evidence<'_>, prose: &Prose) -> &'static str {
    match kind {
        Kind::Wall => "Add credit or upgrade the plan with the provider, or switch to another model.",
        Kind::Window | Kind::Quota | Kind::Unpaid => {
            "The plan's usage limit is reached: wait until it resets, or switch to another model."
        }
        Kind::RateLimited => "The provider limits the request rate: wait, or send requests less often.",
        Kind::Overloaded => {
            "The provider is out of capacity at the moment: wait, or switch to another model."
        }
        Kind::Overflow => "Shorten or compact the conversation, or choose a model with a larger context.",
        Kind::Size => smaller(evidence, prose),
        Kind::Policy => "Rephrase the message: the provider rejected its content.",
        Kind::Auth => "Check the API key or sign in again.",
        Kind::Permission if is_blocked(evidence, prose) => {
            "Access is blocked for this client: a firewall or CDN answered, not the provider's API. Try another network, \
             without VPN or proxy, and check the base URL."
        }
        Kind::Permission => "Ask the provider for access, or choose a model that this account may use.",
        Kind::NotFound => "Check the model's name and the base URL, which often ends with /v1.",
        Kind::Request => {
            "The provider rejected the request as invalid: change its parameters or history before sending it again."
        }
        Kind::Network | Kind::Timeout if is_in_answer(evidence) => broken_off(evidence),
        Kind::Network => match evidence.transport {
            Some(Transport::Cut) => {
                "The connection was lost before an answer began: try again; if it keeps happening, look for a proxy \
                 that cuts long waits."
            }
            _ => "Check the network connection and the base URL.",
        },
        Kind::Timeout => match evidence.transport {
            Some(Transport::ConnectTimeout) => "Check the network connection and the base URL.",
            _ => "The provider took too long: try again, or with a shorter request.",
        },
        Kind::Untrusted if prose.has("does not speak tls") => {
            "Check the base URL: the server answered without TLS. It may need another port, or http:// instead of https://."
        }
        Kind::Untrusted => {
            "Check the base URL, the clock and any proxy that inspects TLS: the certificate was rejected."
        }
        Kind::Response => "The provider's answer was malformed or truncated: try again.",
        Kind::Server => "The provider failed: try again later, or switch to another model.",
        Kind::Cancelled => "The call was cancelled: send it again if that was not intended.",
        Kind::Unknown => "Unknown failure: see the provider's message.",
    }
}

/// Whether something in front of the API refused the client: APIs do not answer with web pages.
fn is_blocked(evidence: &Evidence<'_>, prose: &Prose) -> bool {
    evidence.body.trim_start().starts_with('<') || prose.has_any(phrase::body::BLOCKED)
}

/// Whether the response had begun successfully when its connection failed.
fn is_in_answer(evidence: &Evidence<'_>) -> bool {
    evidence.stage == Stage::Transport && evidence.status.is_some()
}

fn broken_off(evidence: &Evidence<'_>) -> &'static str {
    match evidence.transport {
        Some(Transport::IdleTimeout) => {
            "The stream stalled mid-answer: try again; for a model that reasons silently, raise the idle timeout."
        }
        Some(Transport::NoProgress) => {
            "The provider kept the connection open but sent no content: try again; for a model that reasons this \
             long, raise the progress timeout."
        }
        Some(Transport::TotalTimeout) => {
            "The answer exceeded the total timeout of a call: try again, or raise the timeout."
        }
        _ => {
            "The connection broke mid-answer, so URL and key are correct: try again; if it happens again, check for \
             a proxy that cuts off long streams."
        }
    }
}

/// Returns which part of an oversized request to reduce.
fn smaller(evidence: &Evidence<'_>, prose: &Prose) -> &'static str {
    if prose.has("image*") {
        "An image is too large: reduce its size, or send fewer images."
    } else if prose.has_any(&["file", "files", "pdf", "document*", "attachment*", "audio", "video"]) {
        "A file is too large: send a smaller file or part of it."
    } else if evidence.body.trim_start().starts_with('<') {
        "The request has more bytes than an intermediate proxy accepts: send smaller images, files and tool results, or \
         raise the proxy's limit (nginx: client_max_body_size)."
    } else {
        "The request is too large in bytes: send smaller images, files and tool results."
    }
}
