//! The words of `everturn provider`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConfigFlag;
use crate::config::Flags;

#[derive(Args, Debug)]
pub(crate) struct Provider {
    #[command(subcommand)]
    pub(crate) action: ProviderAction,
    #[command(flatten)]
    config: ConfigFlag,
    /// The file that conversations are kept in, beside which providers are kept [default: as for serve]
    #[arg(long, value_name = "PATH", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProviderAction {
    /// Try a provider and add it: its key is asked for, or read from standard input
    ///
    /// Its models come from its own list. A key is never an argument, because others on this machine could see it.
    /// Exit codes: 0 added, 1 not added because it does not work, 2 wrong usage.
    Add(Add),
    /// List the providers: where they come from, and the last characters of their keys
    List,
    /// Remove a provider that was added, with its key
    Remove {
        /// Its name, as `list` prints it
        name: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Add {
    /// The vendor, e.g. openai, anthropic, gemini, openrouter, ollama; without it, all are listed
    pub(crate) vendor: Option<String>,
    /// The name that its models begin with, as in NAME/MODEL [default: that of the vendor]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Another address of its API, e.g. http://127.0.0.1:8000/v1
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Offer only these models: names, patterns like gpt-5*, or exclusions that begin with !; may be repeated
    #[arg(long = "model", value_name = "PATTERN")]
    pub(crate) models: Vec<String>,
    /// Read the key from this environment variable
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    /// Add it even if it does not work now
    #[arg(long)]
    pub(crate) anyway: bool,
}

impl Provider {
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), data: self.data.clone(), ..Flags::default() }
    }
}
