//! A write-ahead log that ends anywhere is read as far as it goes.
#![cfg(unix)]

use std::{fs, path::Path};

use everturn_store_sqlite::SqliteJournal;

use super::{
    crash::{Victim, id},
    support::checked,
};

/// What SQLite writes before the frames of its log and before the page of each.
const HEADER: usize = 32;
const FRAME: usize = 24 + 1024;

async fn versions(directory: &Path, database: &[u8], log: &[u8]) -> [u64; 2] {
    let path = directory.join("torn.db");
    fs::write(&path, database).unwrap();
    fs::write(directory.join("torn.db-wal"), log).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    [checked(&journal, &id(0)).await, checked(&journal, &id(1)).await]
}

#[tokio::test]
async fn a_torn_log_is_read_as_far_as_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let mut victim = Victim::start(&path);
    victim.read(60);
    victim.kill();
    let acknowledged = [victim.acknowledged[0], victim.acknowledged[1]];
    let (database, log) =
        (fs::read(&path).unwrap(), fs::read(directory.path().join("journal.db-wal")).unwrap());
    assert!(log.len() > HEADER + 20 * FRAME, "there is something to lose");

    let whole = versions(directory.path(), &database, &log).await;
    assert!(whole >= acknowledged, "{whole:?} < {acknowledged:?}");
    let mut offsets = vec![0, 1, HEADER - 1, HEADER, HEADER + FRAME - 1, log.len() - 1, log.len() - FRAME];
    offsets.extend((0..30).map(|_| fastrand::usize(0..log.len())));
    offsets.sort_unstable();
    let mut before = [0, 0];
    for offset in offsets {
        let cut = versions(directory.path(), &database, &log[..offset]).await;
        assert!(cut[0] >= before[0] && cut[1] >= before[1], "a longer log has at least as much, at {offset}");
        let mut spoilt = log.clone();
        spoilt[offset..].iter_mut().for_each(|byte| *byte ^= 0x55);
        assert_eq!(versions(directory.path(), &database, &spoilt).await, cut, "spoilt from {offset}");
        before = cut;
    }
    assert!(before <= whole);
}
