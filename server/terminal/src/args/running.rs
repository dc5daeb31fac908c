//! Arguments of the commands that query a running server.

use clap::Args;

/// Arguments of the commands that ask a running server: `targets` and `tools`. `health` has its own default for `server`.
#[derive(Args, Debug)]
pub struct Running {
    /// The running server
    #[arg(
        long,
        global = true,
        env = "EVERTURN_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:4777"
    )]
    pub server: String,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long, global = true)]
    pub token: Option<String>,
    /// Print the server's whole answer as one JSON object instead
    #[arg(long, global = true)]
    pub json: bool,
}
