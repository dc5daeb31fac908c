//! Providers that were added on the page or with `everturn provider add`: a file beside the data, in the format of the
//! configuration, that only its owner can read.

use std::{path::Path, time::SystemTime};

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;
use toml::{Table, Value};

use super::{file::problem, private_file::PrivateFile, table::ProviderTable};

const NOTE: &str = "# Providers that were added on Everturn's page or with `everturn provider add`. Contains keys: keep it private.\n\n";

/// The file of added providers.
#[derive(Clone, Debug)]
pub(crate) struct AddedFile {
    file: PrivateFile,
}

/// An added provider, as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Added {
    table: Table,
}

impl Added {
    /// Creates an entry from a table in the format of `[[provider]]`.
    pub(crate) fn new(table: Table) -> Self {
        Self { table }
    }

    pub(crate) fn name(&self) -> &str {
        self.table.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Reads the table like one of the configuration file. Errors quote no values.
    pub(super) fn read(&self) -> Result<ProviderTable> {
        ProviderTable::deserialize(self.table.clone())
            .map_err(|error| anyhow!("{}", problem(error.message())))
    }
}

impl AddedFile {
    /// The file beside a data file.
    pub(crate) fn beside(data: &Path) -> Self {
        Self { file: PrivateFile::beside(data, ".providers.toml") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns what was added; nothing if the file does not exist.
    ///
    /// # Errors
    /// When the file cannot be read or understood. The error quotes nothing of it.
    pub(crate) fn read(&self) -> Result<Vec<Added>> {
        let place = || format!("cannot read the added providers in {}", self.path().display());
        let Some(text) = self.file.read().with_context(place)? else { return Ok(Vec::new()) };
        let mut file: Table = toml::from_str(&text)
            .map_err(|error| anyhow!("{}", problem(error.message())))
            .with_context(place)?;
        let entries = match file.remove("provider") {
            Some(Value::Array(entries)) => entries,
            None => Vec::new(),
            Some(_) => return Err(anyhow!("`provider` must be a list of tables")).with_context(place),
        };
        let table = |entry| match entry {
            Value::Table(table) => Ok(Added::new(table)),
            _ => Err(anyhow!("`provider` must be a list of tables")).with_context(place),
        };
        entries.into_iter().map(table).collect()
    }

    /// Adds an entry, in place of one with its name. Returns whether there was one.
    ///
    /// # Errors
    /// When the file cannot be read or written; it is then unchanged.
    pub(crate) fn add(&self, added: Added) -> Result<bool> {
        self.change(|entries| {
            let known = entries.iter().position(|known| known.name() == added.name());
            match known {
                Some(at) => entries[at] = added,
                None => entries.push(added),
            }
            known.is_some()
        })
    }

    /// Removes an entry. Returns whether there was one.
    ///
    /// # Errors
    /// When the file cannot be read or written; it is then unchanged.
    pub(crate) fn remove(&self, name: &str) -> Result<bool> {
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|known| known.name() != name);
            entries.len() < before
        })
    }

    /// Returns when the file changed; `None` = it does not exist.
    pub(crate) fn changed_at(&self) -> Option<(SystemTime, u64)> {
        self.file.changed_at()
    }

    /// Changes the file while no other process does.
    fn change(&self, change: impl FnOnce(&mut Vec<Added>) -> bool) -> Result<bool> {
        let place = || format!("cannot write the added providers to {}", self.path().display());
        let _lock = self.file.lock("lock").with_context(place)?;
        let mut entries = self.read()?;
        let has_changed = change(&mut entries);
        let tables = entries.into_iter().map(|added| Value::Table(added.table)).collect();
        let file = Table::from_iter([("provider".to_owned(), Value::Array(tables))]);
        self.file.replace(&format!("{NOTE}{file}")).with_context(place)?;
        Ok(has_changed)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    fn entry(name: &str, key: &str) -> Added {
        Added::new(toml::from_str(&format!("name = {name:?}\napi_key = {key:?}")).unwrap())
    }

    fn names(file: &AddedFile) -> Vec<String> {
        file.read().unwrap().iter().map(|added| added.name().to_owned()).collect()
    }

    #[test]
    fn entries_are_added_replaced_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let file = AddedFile::beside(&home.path().join("new").join("a.db"));
        assert!(file.changed_at().is_none() && names(&file).is_empty());
        assert!(!file.add(entry("one", "sk-1")).unwrap() && !file.add(entry("two", "sk-2")).unwrap());
        assert!(file.add(entry("one", "sk-3")).unwrap());
        assert_eq!(names(&file), ["one", "two"]);
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(text.contains("sk-3") && !text.contains("sk-1"), "{text}");
        assert!(file.remove("one").unwrap() && !file.remove("one").unwrap());
        assert_eq!(names(&file), ["two"]);
        assert!(!fs::read_to_string(file.path()).unwrap().contains("sk-3"));
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let file = AddedFile::beside(&home.path().join("a.db"));
        fs::write(file.path().with_extension("new"), "left behind by a crash").unwrap();
        file.add(entry("one", "sk-1")).unwrap();
        for entry in fs::read_dir(home.path()).unwrap() {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{:?}", entry.path());
        }
    }

    #[test]
    fn two_writers_lose_nothing() {
        let home = tempfile::tempdir().unwrap();
        let file = AddedFile::beside(&home.path().join("a.db"));
        thread::scope(|scope| {
            for writer in 0..8 {
                let file = file.clone();
                scope.spawn(move || file.add(entry(&format!("p{writer}"), "sk")).unwrap());
            }
        });
        assert_eq!(names(&file).len(), 8);
    }

    #[test]
    fn a_file_that_is_not_understood_is_not_quoted_and_not_overwritten() {
        let home = tempfile::tempdir().unwrap();
        let file = AddedFile::beside(&home.path().join("a.db"));
        for text in ["[[provider]]\napi_key = \"s3cret", "provider = \"s3cret\"", "provider = [\"s3cret\"]"] {
            fs::write(file.path(), text).unwrap();
            for error in [file.read().unwrap_err(), file.add(entry("one", "sk-1")).unwrap_err()] {
                let error = format!("{error:#}");
                assert!(error.contains("a.db.providers.toml") && !error.contains("s3cret"), "{error}");
            }
            assert_eq!(fs::read_to_string(file.path()).unwrap(), text);
        }
    }
}
