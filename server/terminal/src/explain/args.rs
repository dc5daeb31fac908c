//! The command line of `everturn explain`.

use clap::{Args, ValueEnum};
use everturn_diagnosis as diagnosis;
use jiff::Timestamp;
use serde::Deserialize;

/// The command line of `everturn explain`.
#[derive(Args, Debug)]
pub struct Explain {
    /// The HTTP status, if the input is only a body
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(100..=599))]
    pub(crate) status: Option<u16>,
    /// A response header, e.g. 'retry-after: 8'; can be repeated
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The stage of the call at which it failed [default: inferred from the input]
    #[arg(long)]
    pub(crate) stage: Option<Stage>,
    /// How the connection failed; the input is the client's error message, or empty
    #[arg(long, value_name = "KIND", conflicts_with_all = ["status", "headers", "stage"])]
    pub(crate) transport: Option<Transport>,
    /// The time of the failure, e.g. 2026-09-01T00:00:00Z; used if a wait is given as a date [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) now: Option<Timestamp>,
    /// Show what a turn on this route would do if all of its targets failed like this
    #[arg(long, value_name = "NAME")]
    pub(crate) route: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Read failures as JSON lines and print one line for each
    ///
    /// Fields of each object: id, stage ("http", "in_stream" or "transport"), status, headers, body, transport and now.
    /// Each output line has id, category, retryable and retry_after_ms.
    #[arg(long, conflicts_with_all = ["status", "headers", "stage", "transport", "now", "route", "json"])]
    pub(crate) jsonl: bool,
}

/// The stage of a call at which it failed.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A complete response, not a stream
    Http,
    /// Inside a stream that began successfully
    InStream,
    /// No response, or the connection broke
    Transport,
}

/// How a connection failed.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The host name did not resolve
    Dns,
    /// The connection failed
    Connect,
    /// The connection attempt timed out
    ConnectTimeout,
    /// The certificate or handshake was rejected
    Tls,
    /// No response arrived in time
    FirstByteTimeout,
    /// The stream stalled
    IdleTimeout,
    /// The call exceeded its total timeout
    TotalTimeout,
    /// The connection was closed early
    Cut,
    /// The stream ended without a terminal event
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

/// Converts a time to milliseconds since 1970; earlier ones are 0.
pub(super) fn epoch_ms(at: Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}
