//! Reasons: the evidence behind a diagnosis, in words for people.

use std::fmt;

use crate::{Transport, message, named::Named};

/// A piece of evidence that a rule relied on. Cheap to create; it is put into words only on request.
#[derive(Clone, Copy)]
pub(crate) enum Because<'a> {
    /// A code from the table.
    Code(&'a Named),
    /// A field whose presence has a meaning.
    Field(&'a str),
    /// The name of the limit that was hit.
    Limit(&'a Named),
    /// A phrase in the text, as written in the rules.
    Words(&'static str),
    Status(u16),
    /// A status named in the body.
    NamedStatus(u16),
    /// An error status without a body.
    Silence(u16),
    Transport(Transport),
    /// A broken connection without further details.
    Connection,
    ErrorInSuccess,
    NoAnswer,
    Redirect,
    Nothing,
    /// One request that exceeds the whole limit.
    TooMuchAtOnce,
    /// An unpaid request that may succeed once a usage window resets.
    Promised,
    /// A wait was requested, for whatever reason.
    AnyWait,
    ShouldRetry(&'a str),
    /// A header that requests a wait. It may belong to an upstream response quoted in the body.
    Header {
        name: &'a str,
        value: &'a str,
        is_quoted: bool,
    },
    /// A field that requests a wait.
    Wait(&'a Named),
    /// Text that requests a wait.
    Spoken,
}

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(named) => write!(f, "{} is `{}`", Location(&named.place), message::short(&named.name)),
            Self::Field(place) => write!(f, "{} is there", Location(place)),
            Self::Limit(named) => {
                write!(f, "{} names the limit `{}`", Location(&named.place), message::short(&named.name))
            }
            Self::Words(phrase) => write!(f, "the text says \"{}\"", phrase.trim_end_matches('*')),
            Self::Status(status) => write!(f, "the status is {status}"),
            Self::NamedStatus(status) => write!(f, "the body names the status {status}"),
            Self::Silence(status) => {
                write!(f, "the status is {status} without a body, as some servers refuse an overlong request")
            }
            Self::Transport(transport) => f.write_str(transport.words()),
            Self::Connection => f.write_str("there was no response, and no cause is known"),
            Self::ErrorInSuccess => f.write_str("an error followed the start of a successful response"),
            Self::NoAnswer => f.write_str("the response is successful but has no answer"),
            Self::Redirect => f.write_str("the response is a redirect"),
            Self::Nothing => f.write_str("no known pattern matches"),
            Self::TooMuchAtOnce => f.write_str("the request asks for more than the whole limit allows"),
            Self::Promised => f.write_str("the text mentions a reset or a wait"),
            Self::AnyWait => f.write_str("a wait was requested"),
            Self::ShouldRetry(value) => write!(f, "header x-should-retry: {}", message::short(value)),
            Self::Header { name, value, is_quoted } => {
                let quoted = if *is_quoted { " of the upstream, quoted in the body" } else { "" };
                write!(f, "header {}: {}{quoted}", message::short(name), message::short(value))
            }
            Self::Wait(named) => write!(f, "{} is {}", Location(&named.place), message::short(&named.name)),
            Self::Spoken => f.write_str("the text names the wait"),
        }
    }
}

/// A location, in words.
struct Location<'a>(&'a str);

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => f.write_str("the error that the text names"),
            itself if ["header ", "the link "].iter().any(|start| itself.starts_with(start)) => {
                f.write_str(itself)
            }
            path => write!(f, "the body's {}", message::short(path)),
        }
    }
}

impl Transport {
    fn words(self) -> &'static str {
        match self {
            Self::NoRoute => "there is no route to the host",
            Self::Dns => "the name did not resolve",
            Self::Connect => "the connection failed",
            Self::ConnectTimeout => "the connection attempt timed out",
            Self::Tls => "the TLS certificate or handshake was rejected",
            Self::FirstByteTimeout => "no response arrived in time",
            Self::IdleTimeout => "the stream stalled",
            Self::NoProgress => "only keep-alives arrived, and no part of an answer",
            Self::TotalTimeout => "the call exceeded its total timeout",
            Self::Cut => "the connection was closed before the end",
            Self::Truncated => "the stream ended without a terminal event",
            Self::Other => "the connection failed for an unknown reason",
        }
    }
}
