//! Connection errors, classified by structure. Texts contain addresses, and ports look like status codes.

use std::{error::Error, fmt::Write as _, io, time::Duration};

use everturn_diagnosis::Transport;
use hyper_util::client::legacy;
use tokio::time::error::Elapsed;

use super::connect::NameError;

/// A connection that failed or broke.
#[derive(Debug)]
pub(crate) struct ConnectionError {
    pub(crate) kind: Transport,
    /// What happened, without any address.
    pub(crate) text: String,
}

impl ConnectionError {
    /// Creates the error that `what` did not happen within `limit`.
    pub(super) fn silent(kind: Transport, what: &str, limit: Duration) -> Self {
        Self { kind, text: format!("{what} within {limit:?}") }
    }

    /// Creates the error of a request that could not be built.
    pub(super) fn unsent(error: &hyper::http::Error) -> Self {
        Self { kind: Transport::Other, text: format!("cannot build the request: {error}") }
    }
}

/// Before the response headers.
impl From<legacy::Error> for ConnectionError {
    fn from(error: legacy::Error) -> Self {
        let mut text = chain(&error);
        if causes(&error).any(is_without_tls) {
            text.push_str(": the server does not speak TLS on this port");
        }
        Self { kind: kind(&error, error.is_connect()), text }
    }
}

/// In the body.
impl From<hyper::Error> for ConnectionError {
    fn from(error: hyper::Error) -> Self {
        Self { kind: kind(&error, false), text: chain(&error) }
    }
}

fn kind(error: &(dyn Error + 'static), is_connect: bool) -> Transport {
    let any = |is: fn(&(dyn Error + 'static)) -> bool| causes(error).any(is);
    match is_connect {
        _ if any(<dyn Error>::is::<NameError>) => Transport::Dns,
        _ if any(is_without_route) => Transport::NoRoute,
        true if any(<dyn Error>::is::<Elapsed>) => Transport::ConnectTimeout,
        true if any(<dyn Error>::is::<rustls::Error>) => Transport::Tls,
        true => Transport::Connect,
        false if any(is_cut) => Transport::Cut,
        false => Transport::Other,
    }
}

fn is_without_route(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
    matches!(kind, Some(HostUnreachable | NetworkDown | NetworkUnreachable))
}

/// Whether the peer answered a TLS handshake with something else, such as plain HTTP.
fn is_without_tls(cause: &(dyn Error + 'static)) -> bool {
    use rustls::{Error::InvalidMessage, InvalidMessage::InvalidContentType};
    matches!(cause.downcast_ref(), Some(InvalidMessage(InvalidContentType)))
}

fn is_cut(cause: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, TimedOut, UnexpectedEof,
    };
    if let Some(error) = cause.downcast_ref::<hyper::Error>() {
        return error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    }
    cause.downcast_ref::<io::Error>().is_some_and(|error| {
        matches!(
            error.kind(),
            BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | TimedOut | UnexpectedEof
        )
    })
}

/// Iterates over an error and its causes, outermost first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        // The error wrapped by an I/O error is not its `source`.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match wrapped {
            Some(inner) => Some(inner as &'a (dyn Error + 'static)),
            None => error.source(),
        }
    })
}

/// Formats an error and its causes on one line, without repetitions.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
