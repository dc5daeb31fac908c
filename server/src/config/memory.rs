//! Limits on memory.

use anyhow::{Result, bail};
use everturn_orchestrator::MemoryLimits;
use toml::Spanned;

use super::file::{MemoryTable, Source};

/// Resolves the limits.
pub(super) fn resolve(table: &MemoryTable, source: &Source) -> Result<MemoryLimits> {
    let usual = MemoryLimits::default();
    let bytes = |mib: &Option<Spanned<u32>>, usual| match mib {
        Some(mib) if *mib.get_ref() == 0 => bail!("{}: the limit must be at least 1 MiB", source.place(mib)),
        Some(mib) => Ok(usize::try_from(u64::from(*mib.get_ref()) << 20).unwrap_or(usize::MAX)),
        None => Ok(usual),
    };
    let limits = MemoryLimits {
        conversation: bytes(&table.conversation_mib, usual.conversation)?,
        total: bytes(&table.total_mib, usual.total)?,
    };
    // A limit that was not chosen follows one that was.
    match &table.conversation_mib {
        Some(mib) if table.total_mib.is_some() && limits.conversation > limits.total => {
            bail!("{}: `conversation_mib` is more than `total_mib`", source.place(mib));
        }
        Some(_) if table.total_mib.is_none() => {
            Ok(MemoryLimits { total: limits.total.max(limits.conversation), ..limits })
        }
        _ => Ok(MemoryLimits { conversation: limits.conversation.min(limits.total), ..limits }),
    }
}
