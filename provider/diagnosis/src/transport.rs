//! Failures without a response: classified by the transport's own kind first, then by text.

use everturn_wire::Unreached;

use crate::because::Because;
use crate::kind::Kind;
use crate::phrase;
use crate::prose::Prose;
use crate::{Evidence, Transport, code, measure, status};

/// Maximum length of text examined, in bytes.
const LONGEST: usize = 8192;

/// Returns the kind of a failed connection. An unknown one counts as a network failure.
pub(crate) fn kind(evidence: &Evidence<'_>) -> (Kind, Because<'static>) {
    use Transport::{
        Connect, ConnectTimeout, Cut, Dns, FirstByteTimeout, IdleTimeout, NoProgress, NoRoute, Other, Tls,
        TotalTimeout, Truncated,
    };
    let mut text = String::new();
    code::parted(&evidence.body[..evidence.body.floor_char_boundary(LONGEST)], &mut text);
    let prose = Prose::new([text.as_str()], false);
    let words = || {
        let said = phrase::kind(&prose, phrase::transport::RULES, |_| true);
        said.map(|(kind, phrase)| (kind, Because::Words(phrase)))
    };
    // Some clients turn statuses into errors and name them in the text.
    let told = || measure::named_status(&prose).map(|told| (status::kind(told), Because::NamedStatus(told)));
    let itself = evidence.transport.map_or(Because::Connection, Because::Transport);
    match evidence.transport {
        Some(Dns | NoRoute) => (Kind::Network, itself),
        Some(ConnectTimeout | FirstByteTimeout | IdleTimeout | NoProgress | TotalTimeout) => {
            (Kind::Timeout, itself)
        }
        Some(Truncated) => (Kind::Response, itself),
        // An interrupted handshake is temporary; a rejected one is not.
        Some(Tls) => match words() {
            Some(passing @ (Kind::Timeout | Kind::Network, _)) => passing,
            _ if prose.has("bad record mac") => (Kind::Network, Because::Words("bad record mac")),
            _ => (Kind::Untrusted, itself),
        },
        // A rejected certificate may also be reported as a failed connection.
        Some(Connect | Cut | Other) | None => words().or_else(told).unwrap_or((Kind::Network, itself)),
    }
}

/// Returns why the request did not reach the provider, if it did not. A rejected certificate means that it was reached.
pub(crate) fn unreached(evidence: &Evidence<'_>) -> Option<Unreached> {
    match evidence.transport? {
        Transport::NoRoute => Some(Unreached::NoRoute),
        Transport::Dns => Some(Unreached::NoName),
        Transport::Connect | Transport::ConnectTimeout if kind(evidence).0 != Kind::Untrusted => {
            Some(Unreached::NoConnection)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::kind;
    use crate::kind::Kind;
    use crate::{Evidence, Stage, Transport};

    fn of(transport: Option<Transport>, body: &str) -> Kind {
        kind(&Evidence { stage: Stage::Transport, status: None, headers: &[], body, transport, now: 0 }).0
    }

    #[test]
    fn the_kind_decides_and_words_refine() {
        for (transport, body, expected) in [
            (Transport::Dns, "timed out", Kind::Network),
            (Transport::Connect, "tcp connect error: Connection refused", Kind::Network),
            (Transport::Connect, "invalid peer certificate: UnknownIssuer", Kind::Untrusted),
            (Transport::ConnectTimeout, "", Kind::Timeout),
            (Transport::Tls, "invalid peer certificate: Expired", Kind::Untrusted),
            (Transport::Tls, "received fatal alert: HandshakeFailure", Kind::Untrusted),
            (Transport::Tls, "tls handshake eof", Kind::Network),
            (Transport::Tls, "operation timed out", Kind::Timeout),
            (Transport::FirstByteTimeout, "", Kind::Timeout),
            (Transport::IdleTimeout, "", Kind::Timeout),
            (Transport::Cut, "stream error received: unexpected internal error encountered", Kind::Server),
            (Transport::Cut, "", Kind::Network),
            (Transport::Truncated, "", Kind::Response),
            (Transport::Other, "error decoding response body: Invalid gzip header", Kind::Response),
            (Transport::Other, "Unable to locate credentials", Kind::Auth),
            (Transport::Cut, "connection reset by peer while refreshing credentials", Kind::Network),
            (Transport::Other, "credentials provider: operation timed out", Kind::Timeout),
            (Transport::Other, "session has expired: connection closed", Kind::Network),
        ] {
            assert_eq!(of(Some(transport), body), expected, "{transport:?} {body}");
        }
    }

    #[test]
    fn a_port_is_not_a_status() {
        assert_eq!(
            of(None, "error sending request for url (http://h:429/503): connection closed"),
            Kind::Network
        );
        assert_eq!(of(None, "HTTP status server error (503 Service Unavailable) for url"), Kind::Overloaded);
    }
}
