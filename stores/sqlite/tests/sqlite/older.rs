//! A file of an older format has all it had.

use everturn_orchestrator::{
    Commit, Cursor, Definition, Head, Journal as _, Moment, Page, Retention, TurnRecord, Unsealed, Version,
    Wait, Window,
    kernel::{Effects, Millis, Prompt, Settings, Turn},
};
use everturn_store_sqlite::{SqliteArchive, SqliteJournal};
use everturn_wire::{Chunk, ConversationId, DoneReason, Role, TurnId, TurnMetrics};
use rusqlite::{Connection, params};

use super::support::{append, head};

/// What led to the fourth format, which is released.
const FOURTH: [&str; 4] = [
    include_str!("../../src/schema/1.sql"),
    include_str!("../../src/schema/2.sql"),
    include_str!("../../src/schema/3.sql"),
    include_str!("../../src/schema/4.sql"),
];

const WAITS: [(&str, Wait); 4] = [
    ("runs", Wait::Now),
    ("waits", Wait::Until(Moment { at: Millis(9), decided_ms: 4 })),
    ("asks", Wait::Person { until: None }),
    ("asks for a time", Wait::Person { until: Some(Moment { at: Millis(8), decided_ms: 3 }) }),
];

fn turn(wait: Wait) -> TurnRecord {
    let prompt = Prompt { text: "hi".to_owned(), images: Vec::new() };
    let turn = Turn::begin(TurnId::from("u"), Settings::default(), prompt, Millis(3), &mut Effects::new());
    let (from, definition) = (Cursor::from_value(1), Definition::new("test/m"));
    TurnRecord { snapshot: turn.snapshot(), wait, from, first_seq: 1, definition }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

fn event(number: u32) -> String {
    format!(r#"{{"type":"text-delta","delta":"Ä {number}"}}"#)
}

/// Two sealed turns, of a chunk and an event each, and one more of both.
fn talk(file: &Connection, key: i64) {
    for number in 1..=3_u32 {
        let chunk = json(&Chunk::Text { text: format!("Ä {number}") });
        let supersedes = (number == 3).then_some(2);
        let columns = params![key, number, chunk, supersedes];
        file.execute("INSERT INTO chunk VALUES (?1, ?2, 1, ?3, ?4)", columns).unwrap();
        let columns = params![key, number, number - 1, event(number)];
        file.execute("INSERT INTO event VALUES (?1, ?2, ?3, ?4)", columns).unwrap();
    }
    for number in 1..=2 {
        let figures = json(&TurnMetrics { steps: number, ..TurnMetrics::new(TurnId::from("t")) });
        let columns = params![key, number, number * 10, number, figures];
        file.execute("INSERT INTO sealed VALUES (?1, ?2, ?3, ?4, ?5)", columns).unwrap();
    }
}

fn conversation(file: &Connection, id: &str, wait: Option<Wait>) -> i64 {
    let sql =
        "INSERT INTO conversation (id, version, created_at, last_activity_at, title, status, ends, last_seq)
        VALUES (?1, 3, 1, 3, 'numbers', 2, 3, 3)";
    file.execute(sql, [id]).unwrap();
    let key = file.last_insert_rowid();
    if let Some(wait) = wait {
        let (sql, until) = ("INSERT OR IGNORE INTO definition (json) VALUES (?1)", wait.until());
        file.execute(sql, [json(&turn(wait).definition)]).unwrap();
        let sql =
            "UPDATE conversation SET turn = ?2, wake_at = ?3, wait_ms = ?4, for_person = ?5, turn_begins = 1,
            turn_seq = 1, definition = (SELECT key FROM definition) WHERE key = ?1";
        let (at, decided) =
            (until.map(|until| until.at.0 as i64), until.map(|until| until.decided_ms as i64));
        let for_person = matches!(wait, Wait::Person { .. });
        file.execute(sql, params![key, json(&turn(wait).snapshot), at, decided, for_person]).unwrap();
    }
    key
}

fn write(path: &std::path::Path) {
    let file = Connection::open(path).unwrap();
    file.execute_batch(&FOURTH.concat()).unwrap();
    file.pragma_update(None, "user_version", FOURTH.len() as i64).unwrap();
    talk(&file, conversation(&file, "talk", None));
    for (id, wait) in WAITS {
        conversation(&file, id, Some(wait));
    }
}

#[tokio::test]
async fn a_file_of_the_fourth_format_has_all_it_had_and_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    write(&path);
    let journal = SqliteJournal::open(&path).unwrap();
    let id = ConversationId::from("talk");

    let stored = journal.load(&id).await.unwrap().unwrap();
    assert_eq!((stored.version, stored.head, stored.turn), (Version(3), head(3), None));
    let chunks = journal.chunks(&id, Window::default()).await.unwrap();
    for (number, chunk) in (1..=3).zip(&chunks) {
        assert_eq!((chunk.seq, chunk.role), (number, Role::User));
        assert_eq!(*chunk.chunk, Chunk::Text { text: format!("Ä {number}") });
        assert_eq!(chunk.supersedes, (number == 3).then_some(2));
    }
    let events = journal.events(&id, Cursor::default(), 9).await.unwrap();
    let places: Vec<_> = events.iter().map(|event| (event.start.value(), event.end.value())).collect();
    assert_eq!(places, [(0, 1), (1, 2), (2, 3)]);
    assert!((1..=3).zip(&events).all(|(number, kept)| kept.json == event(number)), "{events:?}");
    let steps = journal.metrics(&id).await.unwrap().into_iter().map(|turn| turn.steps);
    assert_eq!(steps.collect::<Vec<_>>(), [1, 2]);

    for (id, wait) in WAITS {
        let stored = journal.load(&id.into()).await.unwrap().unwrap();
        assert_eq!(stored.turn, Some(turn(wait)), "{id}");
    }
    let due = |(id, wait): (&str, Wait)| Unsealed::new(ConversationId::from(id), wait);
    let unsealed = journal.unsealed(Millis(u64::MAX)).await.unwrap();
    assert_eq!(unsealed, [WAITS[0], WAITS[3], WAITS[1]].map(due));
    assert_eq!(journal.conversations(Page::default()).await.unwrap().len(), 5);

    append(&journal, &id, 4).await.unwrap();
    assert_eq!(journal.chunks(&id, Window::default()).await.unwrap().len(), 4);
    let all = Retention { newest_turns: Some(0), sealed_before: None };
    assert_eq!(journal.drop_events(all).await.unwrap(), 2);
    let left = journal.events(&id, Cursor::default(), 9).await.unwrap();
    assert_eq!(left.iter().map(|event| event.end.value()).collect::<Vec<_>>(), [3, 4]);
}

/// The reason why the last turn of `c` ended, as the journal's list, its head and a reader of the file have it.
async fn reasons(journal: &SqliteJournal, path: &std::path::Path) -> [Option<DoneReason>; 3] {
    let id = ConversationId::from("c");
    let listed = journal.conversations(Page::default()).await.unwrap().remove(0).1;
    let loaded = journal.load(&id).await.unwrap().unwrap().head;
    let archived = SqliteArchive::open(path).unwrap().conversations().unwrap().remove(0).1;
    [listed, loaded, archived].map(|head| head.end_reason)
}

#[tokio::test]
async fn how_a_turn_ended_is_unknown_where_an_older_version_wrote_and_known_again_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let (id, failed) =
        (ConversationId::from("c"), || Head { end_reason: Some(DoneReason::Error), ..head(3) });
    let journal = SqliteJournal::open(&path).unwrap();
    journal.append(&id, Version(0), Commit::new(failed())).await.unwrap();
    assert_eq!(reasons(&journal, &path).await, [const { Some(DoneReason::Error) }; 3]);
    drop(journal);

    // An older version seals another turn: it neither knows these columns nor minds them.
    let file = Connection::open(&path).unwrap();
    let of_old = "UPDATE conversation SET version = version + 1, created_at = 1, last_activity_at = 3, title = 'numbers',
        status = 2, model = NULL, ends = 3, last_seq = 3";
    file.execute(of_old, []).unwrap();
    drop(file);
    let journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(reasons(&journal, &path).await, [const { None }; 3]);
    journal.append(&id, Version(2), Commit::new(failed())).await.unwrap();
    assert_eq!(reasons(&journal, &path).await, [const { Some(DoneReason::Error) }; 3]);
}

#[tokio::test]
async fn a_file_that_lacks_how_turns_ended_is_listed_without_being_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let id = ConversationId::from("c");
    let journal = SqliteJournal::open(&path).unwrap();
    append(&journal, &id, 1).await.unwrap();
    drop(journal);
    let file = Connection::open(&path).unwrap();
    file.execute_batch(
        "ALTER TABLE conversation DROP COLUMN end_reason; ALTER TABLE conversation DROP COLUMN end_version",
    )
    .unwrap();
    drop(file);
    let before = std::fs::read(&path).unwrap();
    let archive = SqliteArchive::open(&path).unwrap();
    assert_eq!(archive.conversations().unwrap(), [(id.clone(), head(1))]);
    assert_eq!(archive.load(&id).unwrap().unwrap().head, head(1));
    assert_eq!(archive.chunks(&id, Window::default()).unwrap().len(), 1);
    assert_eq!(archive.events(&id, Cursor::default(), 9).unwrap().len(), 1);
    drop(archive);
    assert_eq!(std::fs::read(&path).unwrap(), before);

    let journal = SqliteJournal::open(&path).unwrap();
    let failed = Head { end_reason: Some(DoneReason::Error), ..head(2) };
    journal.append(&id, Version(1), Commit::new(failed)).await.unwrap();
    assert_eq!(reasons(&journal, &path).await, [const { Some(DoneReason::Error) }; 3]);
}
