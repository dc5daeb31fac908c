//! Rate limits as providers report them.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The limits that the headers of a response report, each kind at most once; empty if none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(pub Vec<Told>);

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Requests.
    Requests,
    /// Tokens of requests and answers.
    Tokens,
    /// Tokens of requests.
    InputTokens,
    /// Tokens of answers.
    OutputTokens,
}

/// One limit, as a response reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// What it counts.
    pub what: What,
    /// How much a whole window allows, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// How much is left. At most `limit`.
    pub remaining: u64,
    /// When the window is whole again, in milliseconds from the response; 0 = it is.
    pub reset_ms: u64,
}
