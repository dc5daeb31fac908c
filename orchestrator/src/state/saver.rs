//! Saves a document whenever its source changes.

use std::sync::{Arc, Weak};

use tokio::sync::watch;

use super::StateStore;

/// Saves a document after each change, or after several at once while the store is busy, as long as its owner exists. A
/// document that could not be saved is saved with the next change.
pub(crate) async fn save_changes<T: Send + Sync>(
    name: &'static str,
    owner: Weak<T>,
    mut changed: watch::Receiver<()>,
    store: Arc<dyn StateStore>,
    json: impl Fn(&T) -> serde_json::Result<String> + Send,
) {
    while changed.changed().await.is_ok() {
        let Some(document) = owner.upgrade().map(|owner| json(&owner)) else { return };
        let saved = match document {
            Ok(document) => store.write(name, document).await,
            Err(error) => {
                tracing::warn!(document = name, %error, "shared state could not be serialized");
                continue;
            }
        };
        if let Err(error) = saved {
            tracing::warn!(document = name, %error, "shared state could not be saved");
        }
    }
}
