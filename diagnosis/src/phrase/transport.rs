//! The words in the display chains of transport errors.

use super::{Rule, rule};
use crate::kind::Kind;

/// What can never pass first.
#[rustfmt::skip]
pub(crate) const RULES: &[Rule] = &[
    rule(Kind::Auth, &["header value", "proxy authentication", "proxy authorization"]),
    rule(Kind::Untrusted, &[
        "certificate*", "unknownissuer", "self signed", "hostname mismatch", "unknown ca", "unable to verify", "cert",
        "corrupt message of type", "handshakefailure", "protocolversion", "not trusted",
    ]),
    rule(Kind::Request, &[
        "builder error", "relative url", "invalid url", "invalid uri", "unsupported scheme", "unsupported protocol",
        "empty host", "invalid header name", "too many redirects", "following redirect",
    ]),
    rule(Kind::Cancelled, &[
        "aborterror", "aborted by user", "user aborted", "request was aborted", "operation was aborted", "cancelled by",
        "canceled by", "context canceled",
    ]),
    rule(Kind::RateLimited, &["excessive load", "too many pings", "enhance your calm"]),
    rule(Kind::Server, &["unexpected internal error"]),
    rule(Kind::Timeout, &[
        "timed out", "time out", "timeout", "timeouterror", "deadline has elapsed", "deadline exceeded", "etimedout",
        "timedout", "idle", "stalled", "no bytes", "took too long",
    ]),
    rule(Kind::Response, &["while parsing", "without terminal", "terminal event", "before response completed"]),
    rule(Kind::Network, &[
        "eof", "end of file", "peer closed", "connection reset", "connection closed", "closed connection", "refused",
        "disconnected", "broken pipe",
    ]),
    rule(Kind::Response, &[
        "invalid http", "chunk size", "gzip", "deflate", "brotli", "zstd", "frame descriptor", "decompress*", "corrupt*",
        "invalid header", "message head is too large", "too many headers", "parsed", "expected value", "expected ident",
        "missing field", "trailing characters", "utf 8", "invalid json", "unexpected token", "event too large",
        "empty response",
    ]),
];
