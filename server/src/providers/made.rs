//! A provider with its adapters, and the models that it offers.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use everturn_kernel::Provider as ModelApi;
use everturn_orchestrator::{Catalog, RelayProvider};
use everturn_provider::{Anthropic, ChatCompletions, Gemini, HttpClient, ListedModel, Lister, Responses};
use everturn_wire::Failure;

use crate::{
    config::{Api, Provider},
    relay,
};

/// Where a provider comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The configuration file or the environment.
    Configuration,
    /// A person added it.
    Added,
}

/// A provider with its adapters.
pub(crate) struct Made {
    pub(crate) provider: Provider,
    pub(crate) source: Source,
    first: Arc<dyn ModelApi>,
    others: Vec<(String, Arc<dyn ModelApi>)>,
    lister: Lister,
    relay: RelayProvider,
    listed: Mutex<Listed>,
}

/// What is known of a provider's list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    /// The last list; `None` = none was read yet.
    pub(crate) models: Option<Arc<[ListedModel]>>,
    /// Whether an earlier process read it.
    pub(crate) is_old: bool,
    /// Why the last attempt failed, if it did.
    pub(crate) failure: Option<Failure>,
}

impl Made {
    pub(crate) fn new(provider: Provider, source: Source) -> Result<Self> {
        let in_provider = || format!("provider {:?}", provider.name);
        let http = HttpClient::new(provider.http).with_context(in_provider)?;
        let relay = relay::provider(&provider, &http).with_context(in_provider)?;
        let (first, lister) = adapter(&http, &provider.api).with_context(in_provider)?;
        let other = |(name, api): &(String, Api)| Ok((name.clone(), adapter(&http, api)?.0));
        let others =
            provider.credentials.iter().map(other).collect::<Result<_>>().with_context(in_provider)?;
        Ok(Self { first, others, lister, relay, listed: Mutex::default(), provider, source })
    }

    /// Whether the provider's list is wanted.
    pub(crate) fn is_listed(&self) -> bool {
        self.provider.filter.is_some()
    }

    pub(crate) fn api(&self) -> &Arc<dyn ModelApi> {
        &self.first
    }

    /// Returns its base URL, without what may be secret.
    pub(crate) fn url(&self) -> Option<Arc<str>> {
        self.first.about().url
    }

    pub(crate) fn lister(&self) -> &Lister {
        &self.lister
    }

    /// Reads the provider's list. A failure leaves the last list as it is.
    pub(crate) async fn look(&self) -> Result<(), Failure> {
        let fetched = self.lister.fetch().await;
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        match fetched {
            Ok(models) => *listed = Listed { models: Some(models.into()), ..Listed::default() },
            Err(failure) => listed.failure = Some(failure),
        }
        listed.failure.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn listed(&self) -> Listed {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_listed(&self, listed: Listed) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = listed;
    }

    /// Returns the models that it offers: those of the configuration, then those of its list.
    pub(crate) fn models(&self) -> Vec<ListedModel> {
        let listed = self.listed().models;
        models(&self.provider, listed.as_deref().unwrap_or_default())
    }

    /// Adds its models to a catalog.
    pub(crate) fn offer(&self, catalog: &mut Catalog) {
        let name = &self.provider.name;
        let all = self.models();
        let mut relay = self.relay.clone();
        relay.models = all.iter().map(|model| model.name.clone()).collect();
        catalog.relay(relay);
        for ListedModel { name: model, context_window } in &all {
            let id = format!("{name}/{model}");
            catalog.model(name, model, self.first.clone());
            if let Some(tokens) = context_window {
                catalog.context_window(&id, *tokens);
            }
            for (credential, api) in &self.others {
                catalog.credential(&id, credential, api.clone());
            }
        }
        let listed = self.listed();
        // Until its list is read, and if it has none, it decides itself about names.
        if self.is_listed() && (listed.models.is_none() || listed.is_old) {
            catalog.any_model(name, self.first.clone());
        }
    }
}

/// Returns the models that a provider with this list offers.
pub(crate) fn models(provider: &Provider, listed: &[ListedModel]) -> Vec<ListedModel> {
    let window = |name: &str, listed: Option<u64>| {
        provider.context_windows.get(name).copied().or(provider.context_window).or(listed)
    };
    let in_list = |name: &str| listed.iter().find(|model| model.name == name);
    let exact = provider.models.iter().map(|name| {
        let listed = in_list(name).and_then(|model| model.context_window);
        ListedModel { name: name.clone(), context_window: window(name, listed) }
    });
    let mut models: Vec<ListedModel> = exact.collect();
    let Some(filter) = &provider.filter else { return models };
    let preferred = provider.preferred.iter().filter_map(|name| in_list(name));
    for model in preferred.chain(listed) {
        let is_known = models.iter().any(|known| known.name == model.name);
        if !is_known && filter.takes(&model.name) {
            let context_window = window(&model.name, model.context_window);
            models.push(ListedModel { name: model.name.clone(), context_window });
        }
    }
    models
}

fn adapter(http: &HttpClient, api: &Api) -> Result<(Arc<dyn ModelApi>, Lister)> {
    let http = http.clone();
    Ok(match api {
        Api::OpenAiChat(chat) => {
            let api = ChatCompletions::new(http, chat.clone())?;
            (Arc::new(api.clone()), api.lister())
        }
        Api::OpenAiResponses(responses) => {
            let api = Responses::new(http, responses.clone())?;
            (Arc::new(api.clone()), api.lister())
        }
        Api::Anthropic(messages) => {
            let api = Anthropic::new(http, messages.clone())?;
            (Arc::new(api.clone()), api.lister())
        }
        Api::Gemini(gemini) => {
            let api = Gemini::new(http, gemini.clone())?;
            (Arc::new(api.clone()), api.lister())
        }
    })
}
