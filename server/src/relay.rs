//! Providers as endpoints that calls are passed through to.

use std::sync::Arc;

use anyhow::Result;
use everturn_orchestrator::kernel::ProviderInfo;
use everturn_orchestrator::{Dialect, Outgoing, Passed, RelayProvider, Upstream};
use everturn_provider::{AnswerForm, EndpointConfig, HttpClient, KeyHeader, Relay, RelayEvent, RelayRequest};
use futures_util::{StreamExt as _, stream::BoxStream};

use crate::config::{Api, Provider};

/// Returns a provider as an endpoint that calls are passed through to, with all its credentials.
pub(crate) fn provider(provider: &Provider, http: &HttpClient) -> Result<RelayProvider> {
    let Provider { name, api, credentials, passing, .. } = provider;
    let is_of_caller = passing.is_of_caller;
    let mut relay = RelayProvider::new(name, dialect(api), upstream(http, api, is_of_caller)?);
    for (name, api) in credentials {
        relay.credentials.push((name.clone(), upstream(http, api, is_of_caller)?));
    }
    (relay.budget, relay.whole, relay.quota) = (passing.budget, passing.whole, passing.quota);
    Ok(relay)
}

fn dialect(api: &Api) -> Dialect {
    match api {
        Api::OpenAiChat(_) => Dialect::Chat,
        Api::OpenAiResponses(_) => Dialect::Responses,
        Api::Anthropic(_) => Dialect::Messages,
        Api::Gemini(_) => Dialect::Gemini,
    }
}

fn upstream(http: &HttpClient, api: &Api, is_of_caller: bool) -> Result<Arc<dyn Upstream>> {
    let (endpoint, key): (&EndpointConfig, _) = match api {
        Api::OpenAiChat(chat) => (&chat.endpoint, KeyHeader::Bearer),
        Api::OpenAiResponses(responses) => (&responses.endpoint, KeyHeader::Bearer),
        Api::Anthropic(messages) => (&messages.endpoint, KeyHeader::XApiKey),
        Api::Gemini(gemini) => (&gemini.endpoint, KeyHeader::XGoogApiKey),
    };
    let relay = Relay::new(http.clone(), endpoint, key, is_of_caller)?;
    Ok(Arc::new(Endpoint { relay, is_of_caller }))
}

struct Endpoint {
    relay: Relay,
    is_of_caller: bool,
}

impl Upstream for Endpoint {
    fn send(&self, request: Outgoing) -> BoxStream<'static, Passed> {
        let Outgoing { method, path, query, headers, body, dialect, streams, whole } = request;
        let form = match dialect {
            Some(Dialect::Chat) => AnswerForm::Chat,
            Some(Dialect::Responses) => AnswerForm::Responses,
            Some(Dialect::Messages) => AnswerForm::Messages,
            Some(Dialect::Gemini) => AnswerForm::Gemini,
            _ => AnswerForm::Opaque,
        };
        let request = RelayRequest { method, path, query, headers, body, form, streams, whole };
        let passed = self.relay.send(request).map(|event| match event {
            RelayEvent::Head(status, headers) => Passed::Head(status, headers),
            RelayEvent::Piece(piece) => Passed::Piece(piece),
            RelayEvent::LastIsNext => Passed::LastIsNext,
            RelayEvent::Cut => Passed::Cut,
            RelayEvent::Fact(fact) => Passed::Fact(fact),
        });
        passed.boxed()
    }

    fn about(&self) -> ProviderInfo {
        self.relay.about()
    }

    fn is_of_caller(&self) -> bool {
        self.is_of_caller
    }
}
