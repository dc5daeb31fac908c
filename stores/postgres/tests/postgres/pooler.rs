//! Poolers: one that keeps a connection for each client is used, one that shares connections is refused.

use std::{cell::Cell, sync::Arc};

use everturn_orchestrator::{Journal, Version};
use everturn_sim::bouncer::Bouncer;
use everturn_store_postgres::{OpenError, Options, PostgresArchive, PostgresJournal};
use tempfile::TempDir;

use crate::support::{Server, id, numbered, texts};

/// A server and a pooler in front of it.
async fn pooled(mode: &str) -> Option<(Server, Bouncer, TempDir)> {
    let server = Server::start().await?;
    let directory = tempfile::Builder::new().permissions(readable()).tempdir().unwrap();
    let bouncer = Bouncer::start(directory.path(), &server.server.address(), mode).await?;
    Some((server, bouncer, directory))
}

fn readable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

fn behind(server: &Server, bouncer: &Bouncer) -> Options {
    Options { url: server.server.url_at(bouncer.address()), ..server.options() }
}

#[tokio::test]
async fn a_journal_behind_a_pooler_in_session_mode_does_what_every_journal_does() {
    let Some((server, bouncer, _directory)) = pooled("session").await else { return };
    let count = Cell::new(0);
    everturn_sim::journal::conformance(async || {
        count.set(count.get() + 1);
        let journal = PostgresJournal::open(&behind(&server, &bouncer)).await.unwrap();
        Arc::new(journal) as Arc<dyn Journal>
    })
    .await;
    assert!(count.get() > 5, "it was asked for journals");
}

#[tokio::test]
async fn a_pooler_that_shares_connections_is_refused_with_the_reason() {
    for mode in ["transaction", "statement"] {
        let Some((server, bouncer, _directory)) = pooled(mode).await else { return };
        let error = PostgresJournal::open(&behind(&server, &bouncer)).await.unwrap_err();
        assert!(matches!(error, OpenError::Setting { .. }), "{mode}: {error}");
        let text = error.to_string();
        assert!(
            text.contains("a pooler shares each connection") && text.contains("pool_mode = session"),
            "{text}"
        );
        let error = PostgresArchive::open(&behind(&server, &bouncer)).await.map(drop).unwrap_err();
        assert!(matches!(error, OpenError::Setting { .. }), "{mode}: {error}");
        // Nothing was locked or made: a direct connection serves.
        let journal = PostgresJournal::open(&server.options()).await.unwrap();
        journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
        assert_eq!(texts(&journal).await, ["one"]);
    }
}
