//! Where no more fits, what was acknowledged stays, and smaller things go on.

use everturn_orchestrator::{Journal as _, JournalError, Version};
use everturn_store_sqlite::{FileLimits, SqliteJournal};
use everturn_wire::ConversationId;
use futures_util::future::join_all;

use super::support::{append, checked, numbered, version};

const LIMITS: FileLimits = FileLimits { max_bytes: Some(256 << 10) };

fn id(text: &str) -> ConversationId {
    ConversationId::from(text)
}

fn is_full(error: &JournalError) -> bool {
    let text = error.to_string();
    matches!(error, JournalError::Storage(_)) && text.contains("full.db") && text.contains("free space")
}

#[tokio::test]
async fn a_full_disk_costs_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("full.db");
    let journal = SqliteJournal::open_within(&path, LIMITS).unwrap();
    append(&journal, &id("kept"), 1).await.unwrap();
    let mut number = 1;
    let error = loop {
        let large = numbered(number, "x".repeat(10_000));
        match journal.append(&id("large"), Version(number - 1), large).await {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(is_full(&error), "{error}");
    assert!(number > 10, "{number}");
    assert_eq!(checked(&journal, &id("large")).await, number - 1);

    assert!(journal.delete(&id("large")).await.unwrap());
    append(&journal, &id("kept"), 2).await.unwrap();
    drop(journal);
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(checked(&journal, &id("kept")).await, 2);
    assert_eq!(checked(&journal, &id("large")).await, 0);
}

#[tokio::test]
async fn one_that_does_not_fit_costs_only_itself() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open_within(directory.path().join("full.db"), LIMITS).unwrap();
    let ids: Vec<_> = (0..40).map(|n| id(&format!("c{n}"))).collect();
    for round in 1..=3 {
        let answers = join_all(ids.iter().enumerate().map(|(n, id)| {
            let size = if n == 7 { 1_000_000 } else { 10 };
            journal.append(id, Version(round - 1), numbered(round, "x".repeat(size)))
        }));
        for (n, answer) in answers.await.into_iter().enumerate() {
            match answer {
                Ok(version) => assert_eq!((n != 7, version), (true, Version(round))),
                Err(JournalError::Stale { found, .. }) => assert_eq!((n, found), (7, Version(0))),
                Err(error) => assert!(n == 7 && is_full(&error), "{n}: {error}"),
            }
        }
    }
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(version(&journal, id).await, if n == 7 { 0 } else { 3 });
    }
}

#[tokio::test]
async fn a_place_that_is_taken_is_refused_whole() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    append(&journal, &id("c"), 1).await.unwrap();
    let again = journal.append(&id("c"), Version(1), numbered(1, "again".to_owned())).await.unwrap_err();
    assert!(again.to_string().contains("load it again"), "{again}");
    assert_eq!(checked(&journal, &id("c")).await, 1);
    append(&journal, &id("c"), 2).await.unwrap();
}
