//! Builds the orchestrator from the configuration.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use everturn_kernel::Provider as ModelApi;
use everturn_orchestrator::{Builder, Observer, Orchestrator};
use everturn_provider::{Anthropic, ChatCompletions, Demo, Gemini, HttpClient, Responses};
use everturn_store_sqlite::SqliteJournal;

use crate::{
    config::{Api, Compaction, Config, Provider, Route},
    dice::Dice,
    mcp::McpServers,
    relay,
    storage::Storage,
};

/// Builds the orchestrator without connecting.
pub(crate) fn orchestrator(
    config: &Config,
    storage: Storage,
    servers: &McpServers,
    traces: Option<Arc<dyn Observer>>,
) -> Result<Orchestrator> {
    let mut builder = Orchestrator::builder().settings(config.settings.clone());
    if let Some(traces) = traces {
        builder = builder.observer(traces);
    }
    builder = storage.keep(builder);
    if let Some(steps) = config.usual_max_steps {
        builder = builder.usual_max_steps(steps);
    }
    if let Some(report) = &config.final_report {
        builder = builder.final_report(report.clone());
    }
    builder = builder.schedule(config.retry.schedule.made()).auto_retry(config.retry.enabled);
    for (of, chain) in &config.fallback_chains.0 {
        builder = builder.fallback_chain(of, chain);
    }
    if config.retry.parks {
        builder = builder.sit_out_usage_limits();
    }
    if let Some(prompt) = &config.system_prompt {
        builder = builder.system_prompt(prompt);
    }
    builder = builder.keep_ephemeral(config.keep_ephemeral).memory_limits(config.memory);
    if config.dice {
        builder = builder.tool(Dice);
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
    if config.providers.is_empty() {
        return Ok(builder.model("demo", Demo::MODEL, Arc::new(Demo)).build());
    }
    let all = config.providers.iter().try_fold(builder, |builder, provider| {
        add(builder, provider).with_context(|| format!("provider {:?}", provider.name))
    });
    let mut builder = all?;
    for Route { name, targets, schedule, is_own, final_report } in &config.routes {
        builder = match is_own {
            true => builder.route(name, targets, schedule.made()),
            false => builder.plain_route(name, targets),
        };
        if let Some(report) = final_report {
            builder = builder.route_report(name, report.clone());
        }
    }
    if let Some(model) = &config.default_model {
        builder = builder.default_model(model);
    }
    Ok(builder.build())
}

fn compacting(builder: Builder, Compaction { model, ahead }: &Compaction) -> Builder {
    let builder = match model {
        Some(model) => builder.compact_with(model),
        None => builder.compact(),
    };
    ahead.iter().fold(builder, |builder, share| builder.compact_ahead(*share))
}

/// Opens the file that conversations are kept in, and creates it if necessary.
pub(crate) fn journal(path: &Path) -> Result<Arc<SqliteJournal>> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory).with_context(|| {
            format!(
                "cannot create {} for conversations: choose another path with --data",
                directory.display()
            )
        })?;
    }
    Ok(Arc::new(SqliteJournal::open(path)?))
}

fn add(builder: Builder, provider: &Provider) -> Result<Builder> {
    let http = HttpClient::new(provider.http)?;
    let builder = builder.relay(relay::provider(provider, &http)?);
    let first = model_api(&http, &provider.api)?;
    let models = || provider.models.iter();
    let mut builder =
        models().fold(builder, |builder, model| builder.model(&provider.name, model, first.clone()));
    for (model, tokens) in &provider.context_windows {
        builder = builder.context_window(format!("{}/{model}", provider.name), *tokens);
    }
    for (credential, api) in &provider.credentials {
        let api = model_api(&http, api)?;
        for model in models() {
            builder = builder.credential(&format!("{}/{model}", provider.name), credential, api.clone());
        }
    }
    Ok(builder)
}

fn model_api(http: &HttpClient, api: &Api) -> Result<Arc<dyn ModelApi>> {
    let http = http.clone();
    Ok(match api {
        Api::OpenAiChat(chat) => Arc::new(ChatCompletions::new(http, chat.clone())?),
        Api::OpenAiResponses(responses) => Arc::new(Responses::new(http, responses.clone())?),
        Api::Anthropic(messages) => Arc::new(Anthropic::new(http, messages.clone())?),
        Api::Gemini(gemini) => Arc::new(Gemini::new(http, gemini.clone())?),
    })
}
