//! What decided: one piece of evidence, in words for people.

use std::fmt;

use crate::{Transport, message, named::Named};

/// A piece of evidence that a rule went by. It is cheap to make; words are made of it only where they are asked for.
#[derive(Clone, Copy)]
pub(crate) enum Because<'a> {
    /// A code that the table knows.
    Code(&'a Named),
    /// A field that says it by being there.
    Field(&'a str),
    /// The name of the limit that was hit.
    Limit(&'a Named),
    /// A phrase of the texts, as the rules have it.
    Words(&'static str),
    Status(u16),
    /// A status that the body names.
    NamedStatus(u16),
    /// A refusal without a body.
    Silence(u16),
    Transport(Transport),
    /// A broken connection of which nothing more is known.
    Connection,
    ErrorInSuccess,
    NoAnswer,
    Redirect,
    Nothing,
    /// One request is larger than all that is allowed.
    TooMuchAtOnce,
    /// An unpaid request may pass when its window comes round.
    Promised,
    /// A wait was asked for, whatever it is for.
    AnyWait,
    ShouldRetry(&'a str),
    /// A header that asks for a wait; of an upstream, where the body quotes it.
    Header {
        name: &'a str,
        value: &'a str,
        is_quoted: bool,
    },
    /// A field that asks for a wait.
    Wait(&'a Named),
    /// Words that ask for a wait.
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
            Self::Connection => f.write_str("no response came, and nothing says why"),
            Self::ErrorInSuccess => f.write_str("an error came where the response had begun as a success"),
            Self::NoAnswer => f.write_str("the response is a success without an answer"),
            Self::Redirect => f.write_str("the response leads to another address"),
            Self::Nothing => f.write_str("nothing in it is known"),
            Self::TooMuchAtOnce => f.write_str("the request asks for more than the whole limit allows"),
            Self::Promised => f.write_str("the text speaks of a reset or a wait"),
            Self::AnyWait => f.write_str("a wait was asked for"),
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

/// A place in words.
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
            Self::Connect => "the connection could not be made",
            Self::ConnectTimeout => "the connection was not made in time",
            Self::Tls => "the certificate or the handshake was refused",
            Self::FirstByteTimeout => "nothing arrived after the request in time",
            Self::IdleTimeout => "the stream fell silent",
            Self::NoProgress => "signs of life came, and nothing of an answer",
            Self::TotalTimeout => "the call took longer than is allowed in all",
            Self::Cut => "the connection was closed before the end",
            Self::Truncated => "the stream ended without its terminal event",
            Self::Other => "the connection failed in a way that has no name",
        }
    }
}
