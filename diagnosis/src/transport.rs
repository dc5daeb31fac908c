//! Failures without a response: by the transport's own kind first, by its words second.

use crate::kind::Kind;
use crate::phrase;
use crate::prose::Prose;
use crate::{Evidence, Transport, measure, status};

/// What a broken or never-made connection means. Anything unknown is the network's fault.
pub(crate) fn kind(evidence: &Evidence<'_>) -> Kind {
    use Transport::{
        Connect, ConnectTimeout, Cut, Dns, FirstByteTimeout, IdleTimeout, Other, Tls, Truncated,
    };
    let prose = Prose::new([evidence.body], false);
    let words = || phrase::kind(&prose, phrase::transport::RULES, |_| true);
    // A client that turns statuses into errors tells them in its text.
    let told = || measure::named_status(&prose).map(status::kind);
    match evidence.transport {
        Some(Dns) => Kind::Network,
        Some(ConnectTimeout | FirstByteTimeout | IdleTimeout) => Kind::Timeout,
        Some(Truncated) => Kind::Response,
        // A handshake that was cut passes; one that was refused does not.
        Some(Tls) => match words() {
            Some(Kind::Timeout) => Kind::Timeout,
            Some(Kind::Network) => Kind::Network,
            _ if prose.has("bad record mac") => Kind::Network,
            _ => Kind::Untrusted,
        },
        // A refused certificate also counts as a failed connect.
        Some(Connect | Cut | Other) | None => words().or_else(told).unwrap_or(Kind::Network),
    }
}
