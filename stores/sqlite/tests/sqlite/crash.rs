//! Killed at any moment, it has what it acknowledged.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::Arc,
};

use everturn_store_sqlite::{OpenError, SqliteJournal};
use everturn_wire::ConversationId;

use super::support::{append, checked, version};

/// Where the child finds its journal.
const JOURNAL: &str = "EVERTURN_TEST_JOURNAL";

const CONVERSATIONS: usize = 4;

/// A process that appends until it is killed, and what it has acknowledged so far.
pub(crate) struct Victim {
    process: Child,
    output: BufReader<ChildStdout>,
    pub(crate) acknowledged: [u64; CONVERSATIONS],
}

impl Victim {
    pub(crate) fn start(journal: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::appends_until_it_is_killed", "--ignored", "--nocapture"])
            .env(JOURNAL, journal)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output, acknowledged: [0; CONVERSATIONS] }
    }

    /// Waits for so many more acknowledgements. False when it has ended.
    pub(crate) fn read(&mut self, mut count: usize) -> bool {
        let mut line = String::new();
        while count > 0 {
            line.clear();
            self.output.read_line(&mut line).unwrap();
            // A line without an end was cut off, and what it says is not what it meant to say.
            let Some(whole) = line.strip_suffix('\n') else { return false };
            if let Some((place, version)) = whole.strip_prefix("ack ").and_then(|ack| ack.split_once(' ')) {
                self.acknowledged[place.parse::<usize>().unwrap()] = version.parse().unwrap();
                count -= 1;
            }
        }
        true
    }

    /// Kills it and reads what it had still said.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        while self.read(1) {}
        let status = self.process.wait().unwrap();
        assert_eq!(status.code(), None, "it ended by itself: {status}");
    }
}

pub(crate) fn id(place: usize) -> ConversationId {
    ConversationId::from(format!("c{place}"))
}

#[tokio::test]
#[ignore = "the process that the others kill"]
async fn appends_until_it_is_killed() {
    let path = PathBuf::from(std::env::var_os(JOURNAL).expect("only to be run by another test"));
    let journal = Arc::new(SqliteJournal::open(path).unwrap());
    let tasks = (0..CONVERSATIONS).map(|place| {
        let journal = journal.clone();
        tokio::spawn(async move {
            for number in version(&journal, &id(place)).await + 1.. {
                append(&journal, &id(place), number).await.unwrap();
                println!("ack {place} {number}");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[cfg(unix)]
#[tokio::test]
async fn what_was_acknowledged_survives_every_kill() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let mut acknowledged = [0; CONVERSATIONS];
    for round in 0..36 {
        let mut victim = Victim::start(&path);
        victim.read(fastrand::usize(0..120));
        victim.kill();
        for (all, new) in acknowledged.iter_mut().zip(victim.acknowledged) {
            *all = new.max(*all);
        }
        // In between, it is the next victim that takes up what the last one left.
        if round % 3 != 0 {
            continue;
        }
        let journal = SqliteJournal::open(&path).unwrap();
        for (place, acknowledged) in acknowledged.iter().enumerate() {
            let version = checked(&journal, &id(place)).await;
            assert!(version >= *acknowledged, "round {round}: {version} < {acknowledged}");
        }
    }
    assert!(acknowledged.iter().sum::<u64>() > 100, "it did something: {acknowledged:?}");
}

#[cfg(unix)]
#[test]
fn another_process_is_refused_while_one_lives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal.db");
    let mut victim = Victim::start(&path);
    assert!(victim.read(1));
    let refusal = SqliteJournal::open(&path).unwrap_err();
    victim.kill();
    assert!(matches!(refusal, OpenError::InUse { .. }), "{refusal}");
    let text = refusal.to_string();
    assert!(text.contains("journal.db.lock; stop that process"), "{text}");
    SqliteJournal::open(&path).unwrap();
}
