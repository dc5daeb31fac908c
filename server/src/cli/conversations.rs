//! The words of `everturn conversations`.

use std::path::PathBuf;

use clap::Args;

use super::ConfigFlag;
use crate::config::Flags;

/// A running server may have the file open: all commands but `delete` only read it. Conversations that servers share can also
/// be deleted while these run. If you have only a token, ask the server with --server.
#[derive(Args, Debug)]
pub(crate) struct Conversations {
    #[command(subcommand)]
    pub(crate) action: everturn_terminal::Conversations,
    #[command(flatten)]
    config: ConfigFlag,
    /// The file that conversations are kept in [default: what EVERTURN_DATA or the configuration says, as for serve]
    #[arg(long, value_name = "PATH", global = true)]
    data: Option<PathBuf>,
    /// The NATS servers over which servers share conversations, instead of a file [default: as for serve]
    #[arg(long, value_name = "SERVERS", conflicts_with = "data", global = true)]
    cluster: Option<String>,
    /// The Postgres database that a server keeps conversations in, instead of a file [default: as for serve]; with a password,
    /// prefer EVERTURN_POSTGRES
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "cluster"], global = true)]
    postgres: Option<String>,
    /// Ask this running server for them, e.g. http://127.0.0.1:4777, or have it delete them
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "data", "cluster", "postgres"], global = true)]
    pub(crate) server: Option<String>,
    /// The server's access token; prefer EVERTURN_TOKEN
    #[arg(long, requires = "server", global = true)]
    pub(crate) token: Option<String>,
}

impl Conversations {
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            config: self.config.config.clone(),
            data: self.data.clone(),
            cluster: self.cluster.clone(),
            postgres: self.postgres.clone(),
            ..Flags::default()
        }
    }
}
