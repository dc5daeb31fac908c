//! Arguments of `everturn usage`.

use clap::{Args, ValueEnum};
use everturn_wire::UsageKey;

use super::Running;

/// Arguments of `everturn usage`.
#[derive(Args, Debug)]
pub struct Usage {
    /// The server.
    #[command(flatten)]
    pub running: Running,
    /// What to group rows by; separate several with commas
    #[arg(long, value_name = "KEY", value_delimiter = ',', default_value = "caller,model")]
    pub(crate) by: Vec<Key>,
    /// The first day, in UTC, e.g. 2026-11-01 [default: 29 days before the last]
    #[arg(long, value_name = "DATE")]
    pub(crate) from: Option<String>,
    /// The last day, in UTC [default: today]
    #[arg(long, value_name = "DATE")]
    pub(crate) to: Option<String>,
}

/// What a row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Key {
    /// Callers
    Caller,
    /// Models, whatever the key
    Model,
    /// Models by key
    Target,
    /// Days, in UTC
    Day,
}

impl Key {
    pub(crate) fn on_wire(self) -> UsageKey {
        match self {
            Self::Caller => UsageKey::Caller,
            Self::Model => UsageKey::Model,
            Self::Target => UsageKey::Target,
            Self::Day => UsageKey::Day,
        }
    }
}
