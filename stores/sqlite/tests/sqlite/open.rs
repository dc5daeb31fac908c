//! What cannot be opened is refused with what to do, and left as it is.

use std::fs;

use everturn_store_sqlite::{OpenError, SqliteJournal};
use everturn_wire::ConversationId;
use rusqlite::Connection;

use super::support::{append, checked};

#[test]
fn opening_twice_is_refused_whichever_way_the_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let journal = SqliteJournal::open(&path).unwrap();
    let crooked = directory.path().join(".").join("journal.db");
    let mut names = vec![path.clone(), crooked];
    #[cfg(unix)]
    {
        let link = directory.path().join("link.db");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        names.push(link);
    }
    #[cfg(target_os = "linux")]
    {
        let other = directory.path().join("other.db");
        fs::hard_link(&path, &other).unwrap();
        names.push(other);
    }
    for name in &names {
        let refusal = SqliteJournal::open(name).unwrap_err();
        assert!(matches!(refusal, OpenError::InUse { .. }), "{}: {refusal}", name.display());
    }
    drop(journal);
    for name in names {
        SqliteJournal::open(name).unwrap();
    }
}

#[test]
fn what_is_no_journal_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("letter.txt");
    let letter = "Dear Sir or Madam, ".repeat(500);
    fs::write(&text, &letter).unwrap();
    let refusal = SqliteJournal::open(&text).unwrap_err().to_string();
    assert!(refusal.contains("letter.txt is not an Everturn journal"), "{refusal}");
    assert_eq!(fs::read_to_string(&text).unwrap(), letter);

    let songs = directory.path().join("songs.db");
    Connection::open(&songs).unwrap().execute_batch("CREATE TABLE song (title)").unwrap();
    let before = fs::read(&songs).unwrap();
    let refusal = SqliteJournal::open(&songs).unwrap_err().to_string();
    assert!(refusal.contains("another program: move it away"), "{refusal}");
    assert_eq!(fs::read(&songs).unwrap(), before);
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    drop(SqliteJournal::open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 7).unwrap();
    let before = fs::read(&path).unwrap();
    let refusal = SqliteJournal::open(&path).unwrap_err();
    assert!(matches!(refusal, OpenError::TooNew { found: 7, known: 5, .. }), "{refusal}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_database_without_tables_is_given_ours() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    Connection::open(&path).unwrap().execute_batch("VACUUM").unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 0);
    let journal = SqliteJournal::open(&path).unwrap();
    append(&journal, &ConversationId::from("c"), 1).await.unwrap();
    assert_eq!(checked(&journal, &ConversationId::from("c")).await, 1);
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let mut places = vec![
        directory.path().to_owned(),
        directory.path().join("nowhere").join("journal.db"),
        file.join("journal.db"),
        "".into(),
        "/".into(),
    ];
    if cfg!(target_os = "linux") {
        // A directory where nobody may make files.
        places.push("/proc/journal.db".into());
    }
    for place in places {
        let refusal = SqliteJournal::open(&place).unwrap_err();
        assert!(matches!(refusal, OpenError::Place { .. }), "{}: {refusal}", place.display());
        assert!(refusal.to_string().contains("must exist and be writable"), "{refusal}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_may_read_what_was_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    append(&journal, &ConversationId::from("c"), 1).await.unwrap();
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(Result::unwrap).collect();
    assert!(files.len() == 4, "{files:?}");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{file:?}");
    }
}

/// Bytes of a page.
const PAGE: usize = 1024;

/// A database whose process was killed, with much in it that is not in its log any more, and then was spoilt.
async fn spoilt(directory: &std::path::Path) -> std::path::PathBuf {
    let (path, copy) = (directory.join("journal.db"), directory.join("copy.db"));
    let id = ConversationId::from("c");
    {
        let journal = SqliteJournal::open(&path).unwrap();
        for number in 1..=50 {
            append(&journal, &id, number).await.unwrap();
        }
    }
    let journal = reopened(&path);
    append(&journal, &id, 51).await.unwrap();
    let mut database = fs::read(&path).unwrap();
    database[PAGE..].fill(0xa5);
    fs::write(&copy, database).unwrap();
    fs::copy(directory.join("journal.db-wal"), directory.join("copy.db-wal")).unwrap();
    copy
}

/// A journal that was just closed. A process that another test starts at this moment has its lock, too, until it runs.
pub(crate) fn reopened(path: &std::path::Path) -> SqliteJournal {
    let mut tries = (0..10_000).map(|_| SqliteJournal::open(path));
    let opened = tries.find(|opened| !matches!(opened, Err(OpenError::InUse { .. })));
    opened.expect("it is let go of").unwrap()
}

#[tokio::test]
async fn damage_is_found_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let path = spoilt(directory.path()).await;
    let refusal = SqliteJournal::open(&path).unwrap_err();
    assert!(matches!(refusal, OpenError::Damaged { .. }), "{refusal}");
    assert!(refusal.to_string().contains("restore it from a backup"), "{refusal}");
}

#[tokio::test]
async fn damage_is_found_before_anything_is_added_to_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = spoilt(directory.path()).await;
    fs::remove_file(directory.path().join("copy.db-wal")).unwrap();
    let before = fs::read(&path).unwrap();
    let refusal = SqliteJournal::open(&path).unwrap_err();
    assert!(matches!(refusal, OpenError::Damaged { .. }), "{refusal}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn damage_that_is_met_later_is_an_error_with_advice() {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use everturn_orchestrator::{Cursor, Journal as _};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let id = ConversationId::from("c");
    {
        let journal = SqliteJournal::open(&path).unwrap();
        for number in 1..=50 {
            append(&journal, &id, number).await.unwrap();
        }
    }
    let journal = reopened(&path);
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(PAGE as u64)).unwrap();
    file.write_all(&vec![0xa5; file.metadata().unwrap().len() as usize - PAGE]).unwrap();
    let errors =
        [journal.load(&id).await.unwrap_err(), journal.events(&id, Cursor::default(), 9).await.unwrap_err()];
    for error in errors.map(|error| error.to_string()) {
        assert!(error.contains("journal.db") && error.contains("restore it from a backup"), "{error}");
    }
}
