//! The words of `everturn explain`.

use clap::{Args, ValueEnum};
use everturn_diagnosis as diagnosis;
use jiff::Timestamp;
use serde::Deserialize;

/// The words of `everturn explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The HTTP status, where the input is a body alone
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(100..=599))]
    pub(crate) status: Option<u16>,
    /// A header of the response, like 'retry-after: 8'; may be given several times
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Where the call was when it failed [default: what the input looks like]
    #[arg(long)]
    pub(crate) stage: Option<Stage>,
    /// How the connection failed; the input is what the client said of it, or empty
    #[arg(long, value_name = "KIND", conflicts_with_all = ["status", "headers", "stage"])]
    pub(crate) transport: Option<Transport>,
    /// When it happened, like 2026-09-01T00:00:00Z; counts where a wait is given as a date [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<Timestamp>,
    /// Say what a turn on this route would do if all of its targets failed like this
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
    /// Print one JSON object instead
    #[arg(long)]
    pub(crate) json: bool,
    /// Read failures as JSON lines and print one line for each
    ///
    /// Of each object are read: id, stage ("http", "in_stream" or "transport"), status, headers, body, transport and now.
    /// Each line that is printed has id, category, retryable and retry_after_ms.
    #[arg(long, conflicts_with_all = ["status", "headers", "stage", "transport", "now", "route", "json"])]
    pub(crate) jsonl: bool,
}

/// Where a call was when it failed.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A response that is no stream
    Http,
    /// Inside a stream that began as a success
    InStream,
    /// No response, or its connection broke
    Transport,
}

/// How a connection failed.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The name did not resolve
    Dns,
    /// The connection could not be made
    Connect,
    /// The connection was not made in time
    ConnectTimeout,
    /// The certificate or the handshake was refused
    Tls,
    /// Nothing arrived after the request in time
    FirstByteTimeout,
    /// The stream fell silent
    IdleTimeout,
    /// The call took longer than was allowed in all
    TotalTimeout,
    /// The connection was closed before the end
    Cut,
    /// The stream ended without its terminal event
    Truncated,
    /// Anything else
    Other,
}

impl From<Stage> for diagnosis::Stage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Http => Self::Http,
            Stage::InStream => Self::InStream,
            Stage::Transport => Self::Transport,
        }
    }
}

impl From<Transport> for diagnosis::Transport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Dns => Self::Dns,
            Transport::Connect => Self::Connect,
            Transport::ConnectTimeout => Self::ConnectTimeout,
            Transport::Tls => Self::Tls,
            Transport::FirstByteTimeout => Self::FirstByteTimeout,
            Transport::IdleTimeout => Self::IdleTimeout,
            Transport::TotalTimeout => Self::TotalTimeout,
            Transport::Cut => Self::Cut,
            Transport::Truncated => Self::Truncated,
            Transport::Other => Self::Other,
        }
    }
}
