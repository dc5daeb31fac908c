//! The audit log: what administrators and tokens did, in a file beside the data, a line of JSON for each entry.
//!
//! Entries have no contents and no secrets. When the file is full it becomes the old one, and the former old one is dropped.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
};

use anyhow::{Context as _, Result};
use everturn_wire::AuditEntry as Entry;
use jiff::Timestamp;

use super::private_file::PrivateFile;

/// Size at which a file is full, in bytes; there are two.
const FULL: u64 = 2 << 20;

/// Maximum length of a text in an entry, in characters.
const MOST: usize = 200;

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct AuditFile {
    file: PrivateFile,
    full: u64,
}

impl AuditFile {
    pub(crate) fn beside(data: &Path) -> Self {
        Self { file: PrivateFile::beside(data, ".audit.jsonl"), full: FULL }
    }

    /// Appends an entry, and sets when it was.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn add(&self, mut entry: Entry) -> Result<()> {
        let path = self.file.path();
        let place = || format!("cannot write the audit log {}", path.display());
        for text in [Some(&mut entry.action), entry.object.as_mut()].into_iter().flatten() {
            *text = text.chars().take(MOST).collect();
        }
        let _lock = self.file.lock("lock").with_context(place)?;
        let text = read(path)?;
        let last = match entries(&text).next() {
            Some(last) => Some(last),
            None => entries(&read(&self.old())?).next(),
        };
        let (now, last) = (Timestamp::now(), last.map_or(0, |last| last.id));
        // The clock may have been set back, and another entry may be as new.
        entry.id = now.as_microsecond().max(last.saturating_add(1));
        entry.at = format!("{now:.3}");
        // A line that was cut off by a power cut or a full disk is not continued.
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let line = format!("{end}{}\n", serde_json::to_string(&entry)?);
        if fs::metadata(path).is_ok_and(|data| data.len() + line.len() as u64 > self.full) {
            fs::rename(path, self.old()).with_context(place)?;
        }
        // At once, so that a line is not split by the end of the process.
        self.file.append().and_then(|mut file| Ok(file.write_all(line.as_bytes())?)).with_context(place)
    }

    /// Returns the latest entries, newest first. `before`: only those with a smaller id.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn latest(&self, limit: usize, before: Option<i64>) -> Result<Vec<Entry>> {
        let (new, old) = (read(self.file.path())?, read(&self.old())?);
        Ok(entries(&new)
            .chain(entries(&old))
            .filter(|entry| before.is_none_or(|before| entry.id < before))
            .take(limit)
            .collect())
    }

    fn old(&self) -> std::path::PathBuf {
        self.file.path().with_extension("old.jsonl")
    }
}

/// Returns the text of a file; none if it does not exist. What was cut off may end within a character.
fn read(path: &Path) -> Result<String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(String::new())
        }
        Err(error) => Err(error).with_context(|| format!("cannot read the audit log {}", path.display())),
    }
}

/// Returns the entries in a text, newest first, without lines that were cut off.
fn entries(text: &str) -> impl Iterator<Item = Entry> {
    text.lines().rev().filter_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_has_the_latest_entries_in_order() {
        let home = tempfile::tempdir().unwrap();
        let log = AuditFile { full: 2_000, ..AuditFile::beside(&home.path().join("a.db")) };
        assert!(log.latest(10, None).unwrap().is_empty());
        for number in 0..100 {
            let object = Some(format!("{number} {}", "x".repeat(1_000)));
            log.add(Entry { action: "token new".to_owned(), object, ..Entry::default() }).unwrap();
        }
        let size = |path: &Path| fs::metadata(path).unwrap().len();
        assert!(size(log.file.path()) <= 2_000 && size(&log.old()) <= 2_000);
        let number = |entry: &Entry| entry.object.as_deref().unwrap()[..2].to_owned();
        let first = log.latest(3, None).unwrap();
        assert_eq!(first.iter().map(number).collect::<Vec<_>>(), ["99", "98", "97"]);
        let next = log.latest(100, Some(first[2].id)).unwrap();
        assert_eq!(number(&next[0]), "96");
        let lines = |path: &Path| fs::read_to_string(path).unwrap().lines().count();
        let (new, old) = (lines(log.file.path()), lines(&log.old()));
        assert_eq!((next.len(), old > 0), (new + old - 3, true), "it goes on in the old file");
    }

    #[test]
    fn no_entry_is_passed_over_whatever_the_clock_says_and_what_was_cut_off() {
        let home = tempfile::tempdir().unwrap();
        let log = AuditFile::beside(&home.path().join("a.db"));
        let add = |action: &str| log.add(Entry { action: action.to_owned(), ..Entry::default() }).unwrap();
        let actions = |before| {
            let entries = log.latest(9, before).unwrap();
            entries.into_iter().map(|entry| entry.action).collect::<Vec<_>>()
        };
        // Of a time when the clock was ahead, and the beginning of another, which ends within a character.
        let ahead = Entry { id: i64::MAX - 9, action: "first".to_owned(), ..Entry::default() };
        let line = serde_json::to_string(&ahead).unwrap() + "\n{\"id\":1,\"action\":\"";
        fs::write(log.file.path(), [line.as_bytes(), b"\xc3"].concat()).unwrap();
        add("second");
        add("third");
        assert_eq!(actions(None), ["third", "second", "first"]);
        let third = log.latest(1, None).unwrap()[0].id;
        assert_eq!(actions(Some(third)), ["second", "first"]);
        assert_eq!(actions(Some(third - 1)), ["first"]);
    }
}
