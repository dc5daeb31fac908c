//! Arguments of `everturn calls`.

use clap::{Args, Subcommand};

/// Arguments of `everturn calls`.
#[derive(Args, Debug)]
pub struct Calls {
    /// The running server [default: http://127.0.0.1:4777, and those inside `everturn with`]
    #[arg(long, global = true, env = "EVERTURN_SERVER", value_name = "URL")]
    pub server: Option<String>,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long, global = true)]
    pub token: Option<String>,
    /// Print the calls as one JSON object instead
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show them again every second, until interrupted
    #[arg(long, conflicts_with = "json")]
    pub(crate) watch: bool,
    #[command(subcommand)]
    pub(crate) order: Option<CallOrder>,
}

/// What is to be done with a call.
#[derive(Debug, Subcommand)]
pub(crate) enum CallOrder {
    /// Retry a waiting call at once
    Retry {
        /// The call, as the list shows it [default: the only one that waits]
        id: Option<String>,
    },
    /// End a call with its last refusal
    GiveUp {
        /// The call, as the list shows it [default: the only one that waits]
        id: Option<String>,
    },
}
