//! Phrases in the display chains of transport errors.

use super::{Rule, rule};
use crate::kind::Kind;

/// A connection failure, whatever else the text mentions.
const PASSING: &[&str] =
    &["timed out", "timeout", "deadline*", "reset", "closed", "refused", "broken pipe", "eof", "unreachable"];

/// Permanent failures come first.
#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    rule(Kind::Auth, &["header value", "proxy authentication", "proxy authorization"]),
    rule(Kind::Auth, &["credential", "credentials", "session"])
        .with(&["locate", "no credentials", "not found", "could not find", "missing", "invalid", "expired"])
        .unless(&[PASSING]),
    rule(Kind::Untrusted, &[
        "certificate*", "unknown issuer", "self signed", "hostname mismatch", "unknown ca", "unable to verify", "cert",
        "certification path", "corrupt message of type", "handshake failure", "protocol version", "unrecognised name", "unrecognized name", "no application protocol", "not trusted",
    ]),
    rule(Kind::Request, &[
        "builder error", "relative url", "invalid url", "invalid uri", "unsupported scheme", "unsupported protocol",
        "empty host", "invalid header name", "too many redirects", "following redirect",
    ]),
    rule(Kind::Cancelled, &[
        "abort error", "aborted by user", "user aborted", "request was aborted", "operation was aborted", "cancelled by",
        "canceled by", "context canceled",
    ]),
    rule(Kind::RateLimited, &["excessive load", "too many pings", "enhance your calm"]),
    // An HTTP/2 stream that the peer reset for its own reasons.
    rule(Kind::Server, &["internal error"]).unless(&[&["alert"]]),
    rule(Kind::Timeout, &[
        "timed out", "time out", "timeout", "deadline has elapsed", "deadline exceeded", "etimedout",
        "timedout", "idle", "stalled", "no bytes for", "took too long", "after a period of time", "failed to respond",
    ]),
    rule(Kind::Response, &["while parsing", "without terminal", "terminal event", "before response completed", "stream ended before", "stream closed before"]),
    rule(Kind::Network, &[
        "eof", "end of file", "peer closed", "connection reset", "connection closed", "closed connection", "refused",
        "disconnected", "broken pipe", "failed to connect", "could not connect", "could not resolve",
    ]),
    rule(Kind::Response, &[
        "invalid http", "chunk size", "gzip", "deflate", "brotli", "zstd", "frame descriptor", "decompress*", "corrupt*",
        "invalid header", "message head is too large", "too many headers", "parsed", "expected value", "expected ident",
        "missing field", "trailing characters", "utf 8", "invalid json", "unexpected token", "event too large",
        "empty response",
    ]),
];
