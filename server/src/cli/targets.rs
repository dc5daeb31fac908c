//! The words of `everturn targets`.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Targets {
    /// The running server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4777")]
    pub(crate) server: String,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long)]
    pub(crate) token: Option<String>,
    /// Print one JSON object instead, with epoch milliseconds
    #[arg(long)]
    pub(crate) json: bool,
}
