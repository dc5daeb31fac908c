//! The words of `everturn mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConfigFlag;
use crate::config::Flags;

#[derive(Args, Debug)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) action: McpAction,
    #[command(flatten)]
    config: ConfigFlag,
    /// The file that conversations are kept in, beside which logins are kept [default: as for serve]
    #[arg(long, value_name = "PATH", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpAction {
    /// Log in at an MCP server of the configuration, in a browser
    ///
    /// Open the address that is printed. If the browser runs on another machine, it ends on a page that it cannot show: paste the
    /// address of that page here. Exit codes: 0 logged in, 1 not, 2 wrong usage.
    Login {
        /// Its name in the configuration
        name: String,
    },
    /// Forget the login at an MCP server
    Logout {
        /// Its name in the configuration
        name: String,
    },
    /// List the configured MCP servers, and which of them have a login
    List,
}

impl Mcp {
    #[cfg_attr(not(feature = "mcp"), allow(dead_code, reason = "this build refuses the command"))]
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), data: self.data.clone(), ..Flags::default() }
    }
}
