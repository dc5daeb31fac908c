//! An in-process subscriber, e.g. for logs, alerts or a status page.

use std::collections::HashSet;

use everturn_orchestrator::{Cursor, Orchestrator};
use everturn_wire::{AgentEvent, ConversationId, EventBody};
use tokio::sync::broadcast::error::RecvError;

/// Prints every retry of every conversation.
pub(crate) async fn print_retries(orchestrator: Orchestrator) {
    let mut changes = orchestrator.status_changes();
    let mut followed = HashSet::new();
    loop {
        match changes.recv().await {
            Ok(change) => {
                if followed.insert(change.conversation_id.clone()) {
                    tokio::spawn(follow(orchestrator.clone(), change.conversation_id));
                }
            }
            // Too far behind. Each conversation reappears with its next change.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Follows a conversation from its start, at its own pace. The turn never waits for it.
async fn follow(orchestrator: Orchestrator, id: ConversationId) {
    let Ok(mut events) = orchestrator.subscribe(&id, Some(Cursor::default()), false).await else { return };
    while let Ok(frame) = events.next().await {
        // A frame contains the event as the JSON that every transport sends.
        let Ok(event) = serde_json::from_slice::<AgentEvent>(&frame.event()) else { continue };
        if let EventBody::ProviderRetry { attempt, delay_ms, message, .. } = event.body {
            println!("[watcher] retry {} in {delay_ms} ms, because of {message}", attempt + 1);
        }
    }
}
