//! A caller as the configuration file has it.

use everturn_wire::Priority;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::terms::{Amount, TermsTable};

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
    pub(super) requests_per_minute: Option<u64>,
    pub(super) tokens_per_minute: Option<u64>,
    pub(super) tokens_per_day: Option<u64>,
    pub(super) parallel: Option<u64>,
    pub(super) money_per_day: Option<Amount>,
    #[serde(default)]
    pub(super) models: Vec<String>,
    pub(super) priority: Option<Priority>,
}

impl CallerTable {
    pub(super) fn terms(&self) -> TermsTable {
        TermsTable {
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
            tokens_per_day: self.tokens_per_day,
            parallel: self.parallel,
            money_per_day: self.money_per_day,
            models: self.models.clone(),
            priority: self.priority,
        }
    }
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
    /// A proxy, which names the caller of each request
    Proxy,
}
