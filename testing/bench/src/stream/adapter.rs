//! The adapters, each for its API.

use std::sync::Arc;

use anyhow::{Result, bail};
use everturn_kernel::{Op, Provider, Request};
use everturn_provider::{
    Anthropic, AnthropicConfig, ChatCompletions, ChatConfig, EndpointConfig, Gemini, GeminiConfig,
    HttpClient, HttpConfig, Responses, ResponsesConfig,
};
use everturn_wire::{Chunk, Message, Role};

/// Creates the adapter of an API, like an embedder.
pub(crate) fn of(api: &str, base: &str) -> Result<Arc<dyn Provider>> {
    let http = HttpClient::new(HttpConfig { system_proxy: false, ..HttpConfig::default() })?;
    let endpoint = EndpointConfig::new(base);
    Ok(match api {
        "chat" => Arc::new(ChatCompletions::new(http, ChatConfig::new(endpoint))?),
        "responses" => Arc::new(Responses::new(http, ResponsesConfig::new(endpoint))?),
        "messages" => Arc::new(Anthropic::new(http, AnthropicConfig::new(endpoint))?),
        "gemini" => Arc::new(Gemini::new(http, GeminiConfig::new(endpoint))?),
        other => bail!("no adapter is called {other:?}"),
    })
}

/// Returns a minimal request.
pub(super) fn request() -> Request {
    let chunks = vec![Chunk::Text { text: "Go".to_owned() }];
    Request {
        op: Op::default(),
        model: "m".to_owned(),
        messages: vec![Message::new(Role::User, chunks)],
        tools: [].into(),
        parameters: Default::default(),
        max_output_tokens: None,
        reasoning_effort: None,
        eager_calls: false,
        trace: None,
    }
}
