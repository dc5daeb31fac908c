//! A file beside the data that only its owner can read, and that processes change one at a time.

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context as _, Result};

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    /// The file beside a data file, with its name and this ending.
    pub(crate) fn beside(data: &Path, ending: &str) -> Self {
        let mut name = data.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        Self { path: data.with_file_name(name) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its text; `None` if it does not exist.
    pub(crate) fn read(&self) -> Result<Option<String>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => Ok(Some(text)),
            // An impossible place for the data is reported where that is opened.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns when the file changed; `None` = it does not exist.
    pub(crate) fn changed_at(&self) -> Option<(SystemTime, u64)> {
        let data = fs::metadata(&self.path).ok()?;
        Some((data.modified().ok()?, data.len()))
    }

    /// Waits until no other process holds the lock with this name, and holds it until the value is dropped.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        if let Some(directory) = self.path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            fs::create_dir_all(directory)?;
        }
        let path = self.path.with_extension(name);
        let lock = private()
            .truncate(false)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(lock)
    }

    /// Opens the file to append to it. The caller holds the lock.
    pub(crate) fn append(&self) -> Result<File> {
        Ok(private().append(true).open(&self.path)?)
    }

    /// Replaces the file as a whole. The caller holds the lock.
    pub(crate) fn replace(&self, text: &str) -> Result<()> {
        let new = self.path.with_extension("new");
        // One that was left behind may be open to others.
        match fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = private().create_new(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        // The new name is durable with its directory. Not all systems can do this.
        let directory = self.path.parent().map(File::open);
        let _ = directory.map(|directory| directory.and_then(|directory| directory.sync_all()));
        Ok(())
    }
}

/// Opens files that only their owner can read and write, from the beginning.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
