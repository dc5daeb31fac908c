//! Keeps the providers' lists, so that a server that starts while a provider is away offers the models that it offered last.

use std::{collections::HashMap, sync::Arc};

use everturn_orchestrator::StateStore;
use everturn_provider::ListedModel;
use serde::{Deserialize, Serialize};

use super::{Made, made::Listed};

/// Maximum size of a kept list, in bytes of JSON: some 10,000 models. A larger one is not kept.
const MOST_BYTES: usize = 512 << 10;

/// A list, after the base URL that it was read at.
type Stored = (Option<Arc<str>>, Arc<[ListedModel]>);

/// The lists in the store.
pub(super) struct KeptLists {
    store: Arc<dyn StateStore>,
    /// By provider.
    stored: HashMap<String, Stored>,
}

/// A list in the store.
#[derive(Serialize, Deserialize)]
struct Document {
    /// The base URL of its provider: at another one it says nothing.
    url: Option<Arc<str>>,
    /// Names and context windows.
    models: Vec<(String, Option<u64>)>,
}

impl KeptLists {
    pub(super) fn new(store: Arc<dyn StateStore>) -> Self {
        Self { store, stored: HashMap::new() }
    }

    /// Gives providers the lists that were read last. They count until new ones are read.
    pub(super) async fn restore(&mut self, all: &[Arc<Made>]) {
        for made in all.iter().filter(|made| made.is_listed()) {
            let name = &made.provider.name;
            let json = self.store.read(&document(name)).await.unwrap_or_else(|error| {
                tracing::warn!(provider = name, %error, "the last list of models cannot be read");
                None
            });
            let kept = json.and_then(|json| serde_json::from_str::<Document>(&json).ok());
            let Some(kept) = kept.filter(|kept| kept.url == made.url()) else { continue };
            let model = |(name, context_window)| ListedModel { name, context_window };
            let models: Arc<[_]> = kept.models.into_iter().map(model).collect();
            self.stored.insert(name.clone(), (kept.url, models.clone()));
            made.set_listed(Listed { models: Some(models), is_old: true, ..Listed::default() });
        }
    }

    /// Stores lists that have changed. If the store fails, a list is stored with its next change.
    pub(super) async fn keep(&mut self, all: &[Arc<Made>]) {
        for made in all {
            let name = &made.provider.name;
            let Listed { models: Some(models), is_old: false, .. } = made.listed() else { continue };
            let (url, list) = (made.url(), models.clone());
            let is_same =
                |(at, stored): &Stored| *at == url && (Arc::ptr_eq(stored, &list) || *stored == list);
            if self.stored.get(name).is_some_and(is_same) {
                continue;
            }
            self.stored.insert(name.clone(), (url.clone(), list));
            let models = models.iter().map(|model| (model.name.clone(), model.context_window)).collect();
            let json = serde_json::to_string(&Document { url, models }).unwrap_or_default();
            if json.len() > MOST_BYTES {
                continue;
            }
            if let Err(error) = self.store.write(&document(name), json).await {
                tracing::warn!(provider = name, %error, "the list of models cannot be kept");
            }
        }
    }
}

fn document(provider: &str) -> String {
    format!("models/{provider}")
}
