//! The words of `everturn health`.

use anyhow::Result;
use clap::Args;
use everturn_terminal::Running;

use super::ConfigFlag;
use crate::config::{Config, Environment, Flags};

/// Without a server, it is the one that `everturn serve` would be here.
#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct Health {
    #[command(flatten)]
    config: ConfigFlag,
    /// The running server [default: where serve listens, by EVERTURN_LISTEN or the configuration]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long)]
    token: Option<String>,
    /// Print the server's whole answer as one JSON object instead
    #[arg(long)]
    json: bool,
}

impl Health {
    /// Returns the server to ask.
    ///
    /// # Errors
    /// When no server is named, and the configuration does not say where it listens.
    pub(crate) fn running(self, environment: &Environment<'_>) -> Result<Running> {
        let server = match self.server {
            Some(server) => server,
            None => {
                let flags = Flags { config: self.config.config, ..Flags::default() };
                Config::own_url(&flags, environment)?
            }
        };
        Ok(Running { server, token: self.token, json: self.json })
    }
}
