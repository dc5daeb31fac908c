//! A database that refuses to write.

use everturn_orchestrator::{Journal, JournalError, Version};
use everturn_store_postgres::PostgresJournal;
use futures_util::future::join_all;

use crate::support::{Server, id, numbered, texts};

/// Refuses rows that contain "large", as a quota does.
const QUOTA: &str = "CREATE FUNCTION quota() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.text LIKE '%large%' THEN
            RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER quota BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION quota()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_appends_that_do_not_fit_fail() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    server.sql(QUOTA);
    let appends = (0..40).map(|n: u32| {
        let (journal, text) = (&journal, if n.is_multiple_of(4) { "large" } else { "small" });
        let id = format!("c{n}");
        async move { journal.append(&id.as_str().into(), Version(0), numbered(1, text)).await }
    });
    for (n, answer) in join_all(appends).await.into_iter().enumerate() {
        if n % 4 > 0 {
            assert_eq!(answer, Ok(Version(1)), "{n}");
            continue;
        }
        let error = answer.unwrap_err();
        assert!(matches!(error, JournalError::Storage(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("No space left on device") && text.contains("free space"), "{text}");
        let id = format!("c{n}");
        assert!(journal.load(&id.as_str().into()).await.unwrap().is_none(), "nothing of it is stored");
    }
    server.sql("DROP TRIGGER quota ON entry");
    journal.append(&"c0".into(), Version(0), numbered(1, "large")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_becomes_read_only_fails_until_it_is_writable() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'everturn'";
    server.sql("ALTER DATABASE postgres SET default_transaction_read_only = on");
    server.sql(end);
    let error = journal.append(&id(), Version(1), numbered(2, "two")).await.unwrap_err();
    assert!(!error.is_permanent() && error.to_string().contains("read-only"), "{error}");
    assert_eq!(texts(&journal).await, ["one"]);
    server.sql("SET TRANSACTION READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only");
    server.sql(end);
    journal.append(&id(), Version(1), numbered(2, "two")).await.unwrap();
    assert_eq!(texts(&journal).await, ["one", "two"]);
}

#[tokio::test]
async fn what_postgres_cannot_store_is_refused_for_good() {
    let Some(server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    let error = journal.append(&id(), Version(0), numbered(1, "a\0b")).await.unwrap_err();
    assert!(matches!(error, JournalError::Refused(_)), "{error}");
    let mut options = server.options();
    options.max_append = 4096;
    let journal = PostgresJournal::open(&options).await.unwrap();
    let error = journal.append(&id(), Version(0), numbered(1, &"x".repeat(5000))).await.unwrap_err();
    assert!(matches!(error, JournalError::TooLarge { limit: 4096, .. }), "{error}");
    journal.append(&id(), Version(0), numbered(1, "x")).await.unwrap();
}
