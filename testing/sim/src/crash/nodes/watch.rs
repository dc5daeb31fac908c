//! Watchers of a world of several nodes: they go from node to node with their cursor.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::Error;
use tokio::time::{sleep, timeout};

use super::{
    super::watch::Watcher,
    world::{World, is_excused},
};

/// Watches to the end of the world. `place`: always at the node that is up there; otherwise at any.
pub(super) async fn watch(world: Arc<World>, watcher: Watcher, place: Option<usize>) {
    let book = &world.ledger.book;
    loop {
        let place = place.unwrap_or_else(|| book.below(world.plan.nodes as u64) as usize);
        if let Some(node) = world.at(place) {
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
