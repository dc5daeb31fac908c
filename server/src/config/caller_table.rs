//! A caller as the configuration file has it.

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// A caller. It needs one of the two forms of its token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallerTable {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) scopes: Vec<ScopeName>,
    pub(super) token_hash: Option<Spanned<String>>,
    pub(super) token_env: Option<String>,
    pub(super) until: Option<Spanned<String>>,
}

/// What a caller may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScopeName {
    /// Conversations
    Chat,
    /// Calls to models that pass through
    Calls,
    /// Everything, of all callers
    Admin,
}
