//! A file of ours that a program reads, in a directory of its own. It has no secrets.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use uuid::Uuid;

/// Removed when dropped, with its directory.
#[derive(Debug)]
pub(super) struct OwnFile(PathBuf);

impl OwnFile {
    /// Creates it.
    ///
    /// # Errors
    /// When the directory of temporary files cannot be written.
    pub(super) fn create(name: &str, content: &str) -> Result<Self> {
        let directory = env::temp_dir().join(format!("everturn-{}", Uuid::new_v4().simple()));
        let failed = || format!("cannot write to {}", directory.display());
        fs::create_dir(&directory).with_context(failed)?;
        let file = Self(directory.join(name));
        fs::write(&file.0, content).with_context(failed)?;
        Ok(file)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory, which has nothing else in it.
    pub(super) fn directory(&self) -> &Path {
        self.0.parent().unwrap_or(&self.0)
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.directory());
    }
}
