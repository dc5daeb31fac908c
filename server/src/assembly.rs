//! Builds the orchestrator from the configuration.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

use everturn_orchestrator::{Builder, Observer, Orchestrator};

use crate::{
    config::{Compaction, Config},
    dice::Dice,
    mcp::McpServers,
    providers::Providers,
    storage::Storage,
};

/// Builds the orchestrator without connecting.
pub(crate) fn orchestrator(
    config: &Config,
    providers: &Providers,
    storage: Storage,
    servers: &McpServers,
    traces: Option<Arc<dyn Observer>>,
) -> Orchestrator {
    let mut builder = Orchestrator::builder().settings(config.settings.clone());
    if let Some(traces) = traces {
        builder = builder.observer(traces);
    }
    if !matches!(storage, Storage::Memory) {
        builder = builder.spool(spool(config.data.as_deref()));
    }
    builder = storage.keep(builder);
    if let Some(steps) = config.usual_max_steps {
        builder = builder.usual_max_steps(steps);
    }
    if let Some(report) = &config.final_report {
        builder = builder.final_report(report.clone());
    }
    builder = builder.schedule(config.retry.policy.clone()).auto_retry(config.retry.enabled);
    for (of, chain) in &config.fallback_chains.0 {
        builder = builder.fallback_chain(of, chain);
    }
    for (models, price) in &config.prices {
        builder = builder.price(models, *price);
    }
    if config.retry.parks {
        builder = builder.sit_out_usage_limits();
    }
    if let Some(prompt) = &config.system_prompt {
        builder = builder.system_prompt(prompt);
    }
    builder = builder.keep_ephemeral(config.keep_ephemeral).memory_limits(config.memory);
    // The demo shows a tool; a real model has only the configured ones.
    if config.dice != Some(false) {
        builder = builder.tool(Dice { only: config.dice.is_none().then(|| providers.is_demo()) });
    }
    for (pattern, policy) in &config.permissions.policies {
        builder = builder.tool_policy(pattern, *policy);
    }
    if let Some(wait) = config.permissions.approval_timeout {
        builder = builder.approval_timeout(wait);
    }
    if let Some(review) = &config.permissions.review {
        builder = builder.review_with(&review.model);
        if let Some(within) = review.within {
            builder = builder.review_timeout(within);
        }
        if review.denies_undecided {
            builder = builder.deny_without_review();
        }
    }
    if let Some(compaction) = &config.compaction {
        builder = compacting(builder, compaction);
    }
    builder = servers.offer(builder);
    for route in &config.routes {
        if let Some(report) = &route.final_report {
            builder = builder.route_report(&route.name, report.clone());
        }
    }
    builder.catalog(providers.catalog()).build()
}

fn compacting(builder: Builder, Compaction { model, ahead }: &Compaction) -> Builder {
    let builder = match model {
        Some(model) => builder.compact_with(model),
        None => builder.compact(),
    };
    ahead.iter().fold(builder, |builder, share| builder.compact_ahead(*share))
}

/// Returns where bodies of waiting calls go: beside the data file, which is on a disk.
fn spool(data: Option<&Path>) -> PathBuf {
    let beside = data.and_then(Path::parent);
    beside.map_or_else(env::temp_dir, |directory| Path::new(".").join(directory))
}
