//! The words of `everturn conversations`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ConfigFlag;
use crate::config::Flags;

/// The file may belong to a running server: all but `delete` only look into it.
#[derive(Args, Debug)]
pub(crate) struct Conversations {
    #[command(subcommand)]
    pub(crate) action: Action,
    #[command(flatten)]
    config: ConfigFlag,
    /// The file that conversations are kept in [default: what EVERTURN_DATA or the configuration says, as for serve]
    #[arg(long, value_name = "PATH", global = true)]
    data: Option<PathBuf>,
}

/// What is to be done with them.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// List them, the newest first
    List {
        /// Print one JSON array instead, with epoch milliseconds
        #[arg(long)]
        json: bool,
    },
    /// Print one as a person reads it
    Show {
        /// Its id, or a unique prefix of it
        id: String,
        /// Print long tool calls, results and thoughts whole
        #[arg(long)]
        full: bool,
    },
    /// Write them as JSON lines
    ///
    /// Each line is an object. One of type "conversation" (id, createdAt, lastActivityAt, title, status, model,
    /// latestSeq) comes before its chunks, of type "chunk" (conversationId, seq, role, chunk). Times are epoch
    /// milliseconds. The schema of a line is ExportLine in wire/generated/schema.json, which a server has at /schema.json.
    Export {
        /// Only these: ids, or unique prefixes of them
        ids: Vec<String>,
        /// Write to this new file instead of standard output
        #[arg(long, short, value_name = "PATH")]
        output: Option<PathBuf>,
    },
    /// Delete some for good; no server may have the file open
    Delete {
        /// Their ids, or unique prefixes of them
        #[arg(required = true)]
        ids: Vec<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

impl Conversations {
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), data: self.data.clone(), ..Flags::default() }
    }
}
