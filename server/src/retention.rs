//! Removes old data while turns run.

use std::{sync::Arc, time::Duration};

use everturn_kernel::Millis;
use everturn_orchestrator::{Journal, Orchestrator};
use tokio::time::{MissedTickBehavior, interval};

use crate::config::Keep;

/// Interval between checks.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Removes old conversations and old events now and then every hour, and gives their space back. Never returns. A journal
/// works in small steps, between which turns are saved. Servers that share a journal each do this: the second one finds
/// nothing to remove.
pub(crate) async fn run(
    orchestrator: Orchestrator,
    journal: Arc<dyn Journal>,
    keep: Keep,
    now: impl Fn() -> Millis,
) {
    let mut due = interval(EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        // What fails is tried again in an hour.
        if let Some(since) = keep.idle_since(now()) {
            match orchestrator.delete_idle(since).await {
                Ok(0) => {}
                Ok(conversations) => tracing::info!(conversations, "deleted old conversations"),
                Err(error) => tracing::warn!(%error, "cannot delete old conversations"),
            }
        }
        let events = keep.events(now());
        if !events.is_all() {
            match journal.drop_events(events).await {
                Ok(0) => {}
                Ok(events) => tracing::info!(events, "removed the events of old turns"),
                Err(error) => tracing::warn!(%error, "cannot remove the events of old turns"),
            }
        }
        match journal.give_back().await {
            Ok(0) => {}
            Ok(bytes) => tracing::info!(bytes, "gave unused space of the data file back"),
            Err(error) => tracing::warn!(%error, "cannot give unused space of the data file back"),
        }
    }
}

/// Interval between removals of expired ephemeral conversations.
const SWEEP: Duration = Duration::from_secs(60);

/// Removes expired ephemeral conversations. Never returns.
pub(crate) async fn drop_ephemeral(orchestrator: Orchestrator) {
    let mut due = interval(SWEEP);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        match orchestrator.drop_ephemeral().await {
            Ok(0) => {}
            Ok(removed) => tracing::debug!(removed, "removed ephemeral conversations"),
            Err(error) => tracing::warn!(%error, "cannot remove ephemeral conversations"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    };

    use bytes::Bytes;
    use everturn_orchestrator::{Commit, Cursor, Head, Page, StoredEvent, Version};
    use everturn_provider::Demo;
    use everturn_store_sqlite::SqliteJournal;
    use everturn_wire::{ConversationId, TurnMetrics};
    use tokio::time::sleep;

    use super::*;

    const DAY_MS: u64 = 24 * 60 * 60 * 1000;

    /// Returns a journal with one event, of a turn sealed at 0.
    async fn journal(path: &std::path::Path, id: &ConversationId) -> Arc<dyn Journal> {
        let end = Cursor::from_value(1);
        let head = Head { end, ..Head::new(Millis(0)) };
        let event = StoredEvent { start: Cursor::default(), end, json: Bytes::from_static(b"{}") };
        let figures = TurnMetrics { steps: 1, ..TurnMetrics::new("t".into()) };
        let journal = SqliteJournal::open(path).unwrap();
        journal.append(id, Version(0), Commit::new(head).event(event).seal(figures)).await.unwrap();
        Arc::new(journal)
    }

    #[tokio::test(start_paused = true)]
    async fn expired_data_is_deleted_within_an_hour_while_the_server_runs() {
        let directory = tempfile::tempdir().unwrap();
        let id = ConversationId::from("c");
        let journal = journal(&directory.path().join("everturn.db"), &id).await;
        let now = Arc::new(AtomicU64::new(DAY_MS));
        let clock = now.clone();
        let orchestrator = Orchestrator::builder()
            .model("demo", Demo::MODEL, Arc::new(Demo))
            .journal(journal.clone())
            .build();
        let keep = Keep::for_days(1);
        let sweeping = tokio::spawn(run(orchestrator, journal.clone(), keep, move || {
            Millis(clock.load(Ordering::Relaxed))
        }));
        let events = async || journal.events(&id, Cursor::default(), 9).await.unwrap().len();
        let conversations = async || journal.conversations(Page::default()).await.unwrap().len();
        for _ in 0..3 {
            sleep(EVERY).await;
            assert_eq!((events().await, conversations().await), (1, 1), "as old as what is kept");
        }
        now.store(DAY_MS + 1, Ordering::Relaxed);
        // The journal's thread does not use the paused clock, so it may still be working.
        for _ in 0..10_000 {
            sleep(EVERY).await;
            if conversations().await == 0 {
                break;
            }
        }
        assert_eq!((events().await, conversations().await), (0, 0));
        sweeping.abort();
    }
}
