//! The words of `everturn token`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use everturn_wire::Priority;

use super::ConfigFlag;
use crate::config::{Amount, Flags, Limit, ScopeName, TermsTable};

#[derive(Args, Debug)]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) action: TokenAction,
    #[command(flatten)]
    config: ConfigFlag,
    /// The file that conversations are kept in, beside which callers are kept [default: as for serve]
    #[arg(long, value_name = "PATH", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenAction {
    /// Create a token for a new caller; it is printed only this once
    New(New),
    /// List the callers
    List {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a caller's token and end its connections; its data is kept
    Revoke {
        /// Its name, as `list` prints it
        name: String,
    },
    /// Change what a caller may use; a running server notices within a second
    Limit {
        /// Its name, as `list` prints it
        name: String,
        #[command(flatten)]
        terms: Terms,
    },
    /// Replace a caller's token with a new one, even if it was revoked
    Rotate {
        /// Its name, as `list` prints it
        name: String,
        /// When the new token expires: a date, or a moment like 2027-01-31T12:00:00Z; without it, never
        #[arg(long, value_name = "DATE")]
        until: Option<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct New {
    /// The caller: 1 to 32 of the characters a-z 0-9 . _ -
    pub(crate) name: String,
    /// What it may use; may be repeated [default: chat and calls]
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',')]
    pub(crate) scopes: Vec<ScopeName>,
    /// When the token expires: at the end of a date (UTC), or at a time like 2027-01-31T12:00:00Z [default: never]
    #[arg(long, value_name = "DATE")]
    pub(crate) until: Option<String>,
    #[command(flatten)]
    pub(crate) terms: Terms,
    /// Keep nothing: print what a configuration file needs, after the token
    #[arg(long)]
    pub(crate) print: bool,
}

/// What a caller may use.
#[derive(Args, Clone, Debug)]
pub(crate) struct Terms {
    /// Calls to models in a minute; beyond that, they wait for the next one; none = no limit
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    requests_per_minute: Option<Limit>,
    /// Input and output tokens of these calls in a minute
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tokens_per_minute: Option<Limit>,
    /// Tokens of these calls in a day (UTC)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    tokens_per_day: Option<Limit>,
    /// Calls to models at once
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    parallel: Option<Limit>,
    /// What these calls cost in a day (UTC), in the currency of the prices in the configuration; models without a price are then
    /// refused
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    money_per_day: Option<Limit<Amount>>,
    /// Models and routes that it may use: NAME/MODEL or route/NAME, with * for anything; may be repeated [default: all]
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = pattern)]
    models: Vec<String>,
    /// background: other callers' calls go first when calls have to wait [default: interactive]
    #[arg(long, value_name = "PRIORITY", value_parser = priority)]
    priority: Option<Priority>,
}

fn priority(text: &str) -> Result<Priority, String> {
    match text {
        "interactive" => Ok(Priority::Interactive),
        "background" => Ok(Priority::Background),
        _ => Err("write interactive or background".to_owned()),
    }
}

/// A pattern without a slash matches only what its `*` can make one of.
fn pattern(text: &str) -> Result<String, String> {
    if text.contains('/') || text.starts_with('*') {
        return Ok(text.to_owned());
    }
    // It could be meant as none of them, or as no limit.
    if matches!(text, "none" | "all" | "") {
        return Err("write '*' for all models; to allow none, revoke the caller's token".to_owned());
    }
    Err(format!(
        "models are named NAME/MODEL: write */{text} for a model of any provider, or {text}/* for all models of one provider"
    ))
}

impl Terms {
    /// Changes what is given.
    pub(crate) fn change(self, table: &mut TermsTable) {
        change(&mut table.requests_per_minute, self.requests_per_minute);
        change(&mut table.tokens_per_minute, self.tokens_per_minute);
        change(&mut table.tokens_per_day, self.tokens_per_day);
        change(&mut table.parallel, self.parallel);
        change(&mut table.money_per_day, self.money_per_day);
        if !self.models.is_empty() {
            table.models = if self.models == ["*"] { Vec::new() } else { self.models };
        }
        if self.priority.is_some() {
            table.priority = self.priority.filter(|priority| *priority == Priority::Background);
        }
    }
}

fn change<T>(limit: &mut Option<T>, given: Option<Limit<T>>) {
    if let Some(Limit(given)) = given {
        *limit = given;
    }
}

impl Token {
    pub(crate) fn flags(&self) -> Flags {
        Flags { config: self.config.config.clone(), data: self.data.clone(), ..Flags::default() }
    }
}
