//! What a herd of turns knows of its target outlives its process.

use std::sync::Arc;

use everturn_sim::herd::{self, Store};

/// The same file, each time it is opened.
fn file(directory: &tempfile::TempDir) -> impl Fn() -> Store {
    let path = directory.path().join("journal.db");
    move || {
        let journal = Arc::new(super::open::reopened(&path));
        (journal.clone(), journal)
    }
}

#[test]
fn a_limited_target_is_asked_once_after_a_restart() {
    herd::asks_once_after_a_restart(300, file(&tempfile::tempdir().unwrap()));
}

#[test]
fn a_target_that_answered_before_a_restart_is_known_after_it() {
    herd::is_offline_after_a_restart(file(&tempfile::tempdir().unwrap()));
}
