//! Environment variables, with a lookup that tests can replace.

use std::{env, path::PathBuf};

/// Looks up variables. An empty one counts as absent.
pub(crate) struct Environment<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns the default path of the configuration; `None` without a home directory.
    pub(crate) fn config_path(&self) -> Option<PathBuf> {
        let path = |name| self.get(name).map(PathBuf::from);
        let directory = if cfg!(windows) {
            path("APPDATA")
        } else {
            path("XDG_CONFIG_HOME").or_else(|| Some(path("HOME")?.join(".config")))
        };
        Some(directory?.join("everturn").join("config.toml"))
    }

    /// Returns the default path of the data file; `None` without a home directory.
    pub(crate) fn data_path(&self) -> Option<PathBuf> {
        let path = |name| self.get(name).map(PathBuf::from);
        let directory = if cfg!(windows) {
            path("LOCALAPPDATA")
        } else if cfg!(target_os = "macos") {
            Some(path("HOME")?.join("Library").join("Application Support"))
        } else {
            path("XDG_DATA_HOME").or_else(|| Some(path("HOME")?.join(".local").join("share")))
        };
        Some(directory?.join("everturn").join("everturn.db"))
    }
}

impl Environment<'static> {
    /// Returns an environment without variables.
    pub(crate) fn empty() -> Self {
        Self(&|_| None)
    }

    /// Returns the environment of the process.
    pub(crate) fn of_process() -> Self {
        Self(&|name| env::var(name).ok())
    }
}
