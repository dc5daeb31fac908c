//! From configuration to a running orchestrator.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use everturn_kernel::Provider as ModelApi;
use everturn_orchestrator::{Builder, Orchestrator, Patient};
use everturn_provider::{Anthropic, ChatCompletions, Demo, HttpClient};

use crate::{
    config::{Api, Config, Provider, Schedule},
    dice::Dice,
};

/// Makes the orchestrator; connects to nothing yet.
pub(crate) fn orchestrator(config: &Config) -> Result<Orchestrator> {
    let mut builder = Orchestrator::builder().settings(config.settings.clone());
    builder = match &config.retry.schedule {
        Schedule::Patient => builder.schedule(Patient),
        Schedule::Exponential(schedule) => builder.schedule(*schedule),
    };
    if let Some(prompt) = &config.system_prompt {
        builder = builder.system_prompt(prompt);
    }
    if config.dice {
        builder = builder.tool(Dice);
    }
    if config.providers.is_empty() {
        return Ok(builder.model("demo", Demo::MODEL, Arc::new(Demo)).build());
    }
    let all = config.providers.iter().try_fold(builder, |builder, provider| {
        add(builder, provider).with_context(|| format!("provider {:?}", provider.name))
    });
    all.map(Builder::build)
}

fn add(builder: Builder, provider: &Provider) -> Result<Builder> {
    let http = HttpClient::new(provider.http)?;
    let api: Arc<dyn ModelApi> = match &provider.api {
        Api::OpenAiChat(chat) => Arc::new(ChatCompletions::new(http, chat.clone())?),
        Api::Anthropic(messages) => Arc::new(Anthropic::new(http, messages.clone())?),
    };
    let models = provider.models.iter();
    Ok(models.fold(builder, |builder, model| builder.model(&provider.name, model, api.clone())))
}
