//! The audit log: what administrators and tokens did, in a file beside the data, a line of JSON for each entry.
//!
//! Entries have no contents and no secrets. When the file is full it becomes the old one, and the former old one is dropped.

use std::{fs, io::Write as _, path::Path};

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
        let now = Timestamp::now();
        (entry.id, entry.at) = (now.as_microsecond(), format!("{now:.3}"));
        for text in [Some(&mut entry.action), entry.object.as_mut()].into_iter().flatten() {
            *text = text.chars().take(MOST).collect();
        }
        let line = serde_json::to_string(&entry)? + "\n";
        let _lock = self.file.lock("lock").with_context(place)?;
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
        let place = || format!("cannot read the audit log {}", self.file.path().display());
        let new = self.file.read().with_context(place)?.unwrap_or_default();
        let old = PrivateFile::at(self.old()).read().with_context(place)?.unwrap_or_default();
        // A line that was cut off by a power cut is left out.
        let entries =
            new.lines().rev().chain(old.lines().rev()).filter_map(|line| serde_json::from_str(line).ok());
        Ok(entries
            .filter(|entry: &Entry| before.is_none_or(|before| entry.id < before))
            .take(limit)
            .collect())
    }

    fn old(&self) -> std::path::PathBuf {
        self.file.path().with_extension("old.jsonl")
    }
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
}
