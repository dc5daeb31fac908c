//! Arguments of `everturn conversations`.

use std::path::PathBuf;

use clap::Subcommand;

/// What is to be done with them.
#[derive(Debug, Subcommand)]
pub enum Conversations {
    /// List them, the newest first
    List {
        /// Print one JSON array instead, with epoch milliseconds
        #[arg(long)]
        json: bool,
    },
    /// Print one in readable form
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
