//! Arguments of `everturn conversations`.

use std::{path::PathBuf, time::Duration};

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
    /// Delete some for good, and give their space back
    ///
    /// No server may have the file or the Postgres database open; a running server deletes them with --server.
    Delete {
        /// Their ids, or unique prefixes of them
        #[arg(required_unless_present_any = ["older_than", "caller"])]
        ids: Vec<String>,
        /// All without a message for this long, e.g. 90d, 12h; those with an unfinished turn stay
        #[arg(long, value_name = "AGE", conflicts_with = "ids", value_parser = age)]
        older_than: Option<Duration>,
        /// All of this caller, e.g. ann: those that its administrator knows as ID@ann, also with an unfinished turn
        #[arg(long, value_name = "NAME", conflicts_with = "ids")]
        caller: Option<String>,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

impl Conversations {
    /// Whether conversations are deleted, and not only read.
    pub fn deletes(&self) -> bool {
        matches!(self, Self::Delete { .. })
    }
}

/// Parses a number of days, hours or weeks.
fn age(text: &str) -> Result<Duration, String> {
    let hours = match text.trim().char_indices().last() {
        Some((_, 'h')) => Some(1),
        Some((_, 'd')) => Some(24),
        Some((_, 'w')) => Some(24 * 7),
        _ => None,
    };
    let number =
        text.trim().get(..text.trim().len().saturating_sub(1)).and_then(|number| number.parse::<u32>().ok());
    match (number, hours) {
        (Some(number), Some(hours)) => Ok(Duration::from_secs(u64::from(number) * hours * 3600)),
        _ => Err("write a number with h, d or w, like 90d".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_with_a_unit() {
        for (text, hours) in [("12h", 12), ("90d", 90 * 24), ("2w", 14 * 24), ("0d", 0)] {
            assert_eq!(age(text), Ok(Duration::from_secs(hours * 3600)), "{text}");
        }
        for text in ["", "d", "90", "-1d", "90 days", "1.5d", "9\u{e9}"] {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
