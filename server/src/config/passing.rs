//! How calls are passed through to a provider.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use everturn_transport_http::read_span;
use everturn_wire::OnQuota;

use super::table::{CredentialName, ProviderTable, QuotaName};

/// How calls are passed through to a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passing {
    /// Whether the caller's credential is forwarded. Then nothing but its calls can use the provider.
    pub(crate) is_of_caller: bool,
    /// How long a call may take until its content begins; `None` = as long as a turn may wait.
    pub(crate) budget: Option<Duration>,
    /// Whether answers are held until they are complete.
    pub(crate) whole: bool,
    /// What happens at a limit that lasts for hours or days.
    pub(crate) quota: Option<OnQuota>,
}

impl Passing {
    pub(super) fn resolve(table: &ProviderTable) -> Result<Self> {
        let is_of_caller = table.credential == CredentialName::Client;
        let has_key = table.api_key.is_some() || table.api_key_env.is_some() || table.api_key_file.is_some();
        if is_of_caller && has_key {
            bail!("it has a key of its own and `credential = \"client\"`: remove one of them");
        }
        let budget = table.budget.as_deref().map(|text| {
            read_span(text).with_context(|| {
                format!("`budget` is {text:?}: write a length of time like 10m, 90s or 1h30m")
            })
        });
        Ok(Self {
            is_of_caller,
            budget: budget.transpose()?,
            whole: table.whole,
            quota: table.quota.map(|quota| match quota {
                QuotaName::Fail => OnQuota::Fail,
                QuotaName::Park => OnQuota::Park,
            }),
        })
    }
}
