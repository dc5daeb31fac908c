use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use everturn_wire::{UsageKey, UsageReport};

use super::*;
use crate::{MemoryState, error::Error};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const TODAY: u64 = 20_000 * DAY_MS;

fn node(store: &Arc<dyn StateStore>) -> Arc<UsageBook> {
    let mut prices = Prices::default();
    prices.add("a/*".to_owned(), Price { input: 1.0, output: 2.0, ..Price::default() });
    Arc::new(UsageBook::new(store.clone(), prices))
}

fn used(input: u64) -> Figures {
    Figures { requests: 1, input, output: 1, ..Figures::default() }
}

async fn total(book: &UsageBook, by: &[UsageKey]) -> UsageReport {
    let query = UsageQuery { by: by.to_vec(), ..UsageQuery::default() };
    book.report(query, None, Millis(TODAY)).await.unwrap()
}

#[tokio::test]
async fn nodes_add_to_the_same_days_and_a_caller_sees_its_own() {
    let store: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let nodes = [node(&store), node(&store)];
    for (number, book) in nodes.iter().enumerate() {
        for (caller, credential) in [(None, "a"), (Some("ann"), "a"), (Some("ben"), "b")] {
            book.add(caller, &Target::new(credential, "m"), Millis(TODAY), &used(10));
            book.add(caller, &Target::new(credential, "m"), Millis(TODAY - DAY_MS), &used(number as u64));
        }
        book.save().await.unwrap();
    }
    nodes[0].add(Some("ann"), &Target::new("a", "m"), Millis(TODAY), &used(100));
    for book in &nodes {
        // What another node has not saved yet is not seen; this asks the one that has it first.
        let all = total(book, &[UsageKey::Caller]).await;
        let of = |row: &everturn_wire::UsageRow| (row.caller.clone(), row.requests, row.input_tokens);
        let rows: Vec<_> = all.rows.iter().map(of).collect();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(rows, [(None, 4, 21), (name("ann"), 5, 121), (name("ben"), 4, 21)]);
        assert_eq!(all.total.requests, 13);
        assert_eq!(all.total.unpriced, Some(vec!["b/m".to_owned()]));
        assert!((all.total.cost.unwrap() * 1e6 - (142.0 + 18.0)).abs() < 1e-6, "{:?}", all.total);
    }
    let query = UsageQuery { by: vec![UsageKey::Day, UsageKey::Target], ..UsageQuery::default() };
    let bens = nodes[1].report(query, Some("ben"), Millis(TODAY)).await.unwrap();
    let rows: Vec<_> = bens
        .rows
        .iter()
        .map(|row| (row.day.clone().unwrap(), row.target.clone().unwrap(), row.requests))
        .collect();
    assert_eq!(
        rows,
        [("2024-10-03".to_owned(), "b/m".to_owned(), 2), ("2024-10-04".to_owned(), "b/m".to_owned(), 2)]
    );
    assert_eq!((bens.total.cost, bens.total.requests), (None, 4));
}

/// A store that does what it is asked, and then says that it failed, every other time.
struct Doubtful(MemoryState, AtomicU64);

#[async_trait]
impl StateStore for Doubtful {
    async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
        self.0.read(name).await
    }

    async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
        self.0.write(name, json).await?;
        match self.1.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Err(JournalError::Unknown("no reply".to_owned())),
            _ => Ok(()),
        }
    }

    async fn delete(&self, name: &str) -> Result<(), JournalError> {
        self.0.delete(name).await
    }
}

#[tokio::test]
async fn a_save_whose_outcome_is_unknown_counts_once() {
    let store: Arc<dyn StateStore> = Arc::new(Doubtful(MemoryState::new(), AtomicU64::new(0)));
    let book = node(&store);
    for _ in 0..20 {
        book.add(None, &Target::new("a", "m"), Millis(TODAY), &used(1));
        while book.save().await.is_err() {}
    }
    assert_eq!(total(&book, &[]).await.total.requests, 20);
}

#[tokio::test]
async fn old_days_are_dropped_and_long_questions_refused() {
    let store: Arc<dyn StateStore> = Arc::new(MemoryState::new());
    let book = node(&store);
    for days in [500, 401, 400, 399, 0] {
        book.add(None, &Target::new("a", "m"), Millis(TODAY - days * DAY_MS), &used(1));
        book.save().await.unwrap();
    }
    let day = |days: u64| Day::of(Millis(TODAY - days * DAY_MS));
    for (days, is_kept) in [(500, false), (401, false), (400, false), (399, true), (0, true)] {
        assert_eq!(store.read(&format!("usage/{}", day(days))).await.unwrap().is_some(), is_kept, "{days}");
    }
    let ask = |from, to| book.report(UsageQuery { from, to, ..UsageQuery::default() }, None, Millis(TODAY));
    assert_eq!(ask(Some(day(399)), None).await.unwrap().total.requests, 2);
    for (from, to) in [(Some(day(400)), None), (Some(day(0)), Some(day(1)))] {
        assert!(matches!(ask(from, to).await, Err(Error::BadUsageQuery { .. })), "{from:?} {to:?}");
    }
}
