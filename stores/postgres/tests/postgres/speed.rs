//! Figures, not checks: `cargo test -p everturn-store-postgres --test postgres -- --ignored --nocapture speed`.

use std::{sync::Arc, time::Instant};

use everturn_orchestrator::{Journal, Page, Version, kernel::Millis};
use everturn_sim::speed;
use everturn_store_postgres::PostgresJournal;
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;

use crate::support::{Server, numbered, waiting};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute and checks nothing"]
async fn appends() {
    let Some(server) = Server::start_with(&["fsync=on"]).await else { return };
    let directory = tempfile::tempdir().unwrap();
    let sqlite: Arc<dyn Journal> = Arc::new(SqliteJournal::open(directory.path().join("j.db")).unwrap());
    let postgres = server.journal().await;
    for round in 0..3 {
        for (what, journal) in [("SQLite", &sqlite), ("Postgres", &postgres)] {
            for (writers, appends) in [(1, 1_000), (64, 200)] {
                let figures = speed::appends(journal, &round.to_string(), writers, appends).await;
                println!("{what}, {figures}");
            }
        }
    }
    let sizes = "SELECT pg_size_pretty(pg_total_relation_size('conversation')), pg_size_pretty(pg_total_relation_size('entry'))";
    println!("size of the tables conversation|entry: {}", server.sql(sizes));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute and checks nothing"]
async fn lists() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    let begun = Instant::now();
    let appends = (0..100_000_u64).map(|n| {
        let journal = &journal;
        async move {
            let id = ConversationId::from(n.to_string().as_str());
            let commit = numbered(1, "text");
            let commit = if n % 10 == 0 { commit.turn(waiting(n + 1)) } else { commit };
            journal.append(&id, Version(0), commit).await.unwrap();
        }
    });
    futures_util::stream::iter(appends).buffer_unordered(256).count().await;
    println!("100,000 conversations written in {:?}", begun.elapsed());
    let begun = Instant::now();
    println!("{} unsealed in {:?}", journal.unsealed(Millis(u64::MAX)).await.unwrap().len(), begun.elapsed());
    let begun = Instant::now();
    let page = Page { limit: Some(50), ..Page::default() };
    println!("{} listed in {:?}", journal.conversations(page).await.unwrap().len(), begun.elapsed());
}
