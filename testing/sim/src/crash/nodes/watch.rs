//! Watchers of a world of several nodes: they go from node to node with their cursor.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::Error;
use tokio::time::{sleep, timeout};

use super::world::{World, is_excused};
use crate::crash::watch::Watcher;

impl World {
    /// Watches to the end of the self. `place`: always at the node that is up there; otherwise at any.
    pub(super) async fn watch(self: Arc<Self>, watcher: Watcher, place: Option<usize>) {
        let book = &self.ledger.book;
        loop {
            let place = place.unwrap_or_else(|| book.below(self.plan.nodes as u64) as usize);
            if let Some(node) = self.at(place) {
                book.note(|| format!("{} goes to {}", watcher.name, node.name));
                let patience = Duration::from_millis(1_000 + book.below(60_000));
                let followed =
                    node.life.while_it_lasts(timeout(patience, watcher.follow(&node.orchestrator))).await;
                match followed {
                    // The conversation does not exist yet, or the process ended, or nothing came for a while.
                    None | Some(Err(_) | Ok(Ok(()) | Err(Error::UnknownConversation { .. }))) => {}
                    Some(Ok(Err(error))) if is_excused(&error) => {}
                    Some(Ok(Err(error))) => book.wrong(format!("{} cannot watch: {error:?}", watcher.name)),
                }
            }
            sleep(Duration::from_millis(50 + book.below(500))).await;
        }
    }
}
