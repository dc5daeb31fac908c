//! The words of `everturn tools`.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Tools {
    /// The running server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4777")]
    pub(crate) server: String,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long)]
    pub(crate) token: Option<String>,
    /// Print one JSON object instead, with descriptions and schemas
    #[arg(long)]
    pub(crate) json: bool,
}
