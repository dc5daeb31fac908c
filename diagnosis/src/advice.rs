//! What a person can do about a failure.

use crate::kind::Kind;
use crate::prose::Prose;
use crate::{Evidence, Stage, Transport};

/// The advice for a failure of this kind, by where the call was when it failed.
pub(crate) fn of(kind: Kind, evidence: &Evidence<'_>, prose: &Prose) -> &'static str {
    match kind {
        Kind::Wall => "Add credit or raise the plan at the provider, or switch to another model.",
        Kind::Window => "The plan's allowance is used up: wait for its reset, or switch to another model.",
        Kind::RateLimited => "The provider limits how much is sent: wait, or spread requests over more time.",
        Kind::Overloaded => {
            "The provider has too little capacity just now: wait, or switch to another model."
        }
        Kind::Overflow => "Shorten or compact the conversation, or choose a model with a larger context.",
        Kind::Size => smaller(evidence, prose),
        Kind::Policy => "Rephrase the message: the provider refuses its content.",
        Kind::Auth => "Check the API key or sign in again.",
        Kind::Permission => "Ask the provider for access, or choose a model that this account may use.",
        Kind::NotFound => "Check the model's name and the base URL.",
        Kind::Request => {
            "The request itself is refused: change its parameters or history before sending it again."
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
        Kind::Untrusted => {
            "Check the base URL, the clock and any proxy that inspects TLS: the certificate is refused."
        }
        Kind::Response => "The provider's answer was broken or cut short: try again.",
        Kind::Server => "The provider failed: try again later, or switch to another model.",
        Kind::Cancelled => "The call was cancelled: send it again if that was not intended.",
        Kind::Unknown => "The provider's message is all that is known.",
    }
}

/// Whether the response had begun well when its connection failed.
fn is_in_answer(evidence: &Evidence<'_>) -> bool {
    evidence.stage == Stage::Transport && evidence.status.is_some()
}

fn broken_off(evidence: &Evidence<'_>) -> &'static str {
    match evidence.transport {
        Some(Transport::IdleTimeout) => {
            "The provider fell silent in mid-answer: ask again; for a model that thinks in silence, allow a longer \
             idle timeout."
        }
        Some(Transport::NoProgress) => {
            "The provider kept the connection open but said nothing: ask again; for a model that thinks this long, \
             allow a longer progress timeout."
        }
        Some(Transport::TotalTimeout) => {
            "The answer took longer than is allowed for a whole call: ask again, or allow a longer total timeout."
        }
        _ => {
            "The connection broke in mid-answer, so address and key are right: ask again; if it keeps happening, look \
             for a proxy that cuts long streams."
        }
    }
}

/// What to make smaller, of a request that has too many bytes.
fn smaller(evidence: &Evidence<'_>, prose: &Prose) -> &'static str {
    if prose.has("image*") {
        "An image is too large: send it smaller, or fewer of them."
    } else if prose.has_any(&["file", "files", "pdf", "document*", "attachment*", "audio", "video"]) {
        "A file is too large: send a smaller one, or a part of it."
    } else if evidence.body.trim_start().starts_with('<') {
        "The request has more bytes than a proxy on the way accepts: send smaller images, files and tool results, or \
         raise the proxy's limit (nginx: client_max_body_size)."
    } else {
        "The request has too many bytes: send smaller images, files and tool results."
    }
}
