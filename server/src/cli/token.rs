//! The words of `everturn token`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConfigFlag;
use crate::config::{Flags, ScopeName};

#[derive(Args, Debug)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) action: TokenAction,
    #[command(flatten)]
    config: ConfigFlag,
    /// The file that conversations are kept in, beside which callers are kept [default: as for serve]
    #[arg(long, value_name = "PATH", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// Make a token for a new caller, and print it, this once
    New(New),
    /// List the callers
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuse the token of a caller from now on, and end its connections; what it has is kept
    Revoke {
        /// Its name, as `list` prints it
        name: String,
    },
    /// Make another token for a caller in place of its present one, also after it was revoked
    Rotate {
        /// Its name, as `list` prints it
        name: String,
        /// When the new token expires: a date, or a moment like 2027-01-31T12:00:00Z; without it, never
        #[arg(long, value_name = "DATE")]
        until: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct New {
    /// The caller: 1 to 32 of the characters a-z 0-9 . _ -
    pub(crate) name: String,
    /// What it may use; may be repeated [default: chat and calls]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<ScopeName>,
    /// When the token expires: a date, at whose end (UTC), or a moment like 2027-01-31T12:00:00Z; without it, never
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
    /// Keep nothing: print what a configuration file needs, after the token
    #[arg(long)]
    pub(crate) print: bool,
}

impl Token {
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), data: self.data.clone(), ..Flags::default() }
    }
}
