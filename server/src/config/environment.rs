//! The environment, as a lookup that a test can replace.

use std::{env, path::PathBuf};

/// Looks variables up. One that is empty counts as absent.
pub(crate) struct Environment<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// Where the configuration is looked for when nobody says where it is; none without a home.
    pub(crate) fn config_path(&self) -> Option<PathBuf> {
        let path = |name| self.get(name).map(PathBuf::from);
        let directory = if cfg!(windows) {
            path("APPDATA")
        } else {
            path("XDG_CONFIG_HOME").or_else(|| Some(path("HOME")?.join(".config")))
        };
        Some(directory?.join("everturn").join("config.toml"))
    }

    /// Where conversations are kept when nobody says where; none without a home.
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
    /// The process's own.
    pub(crate) fn of_process() -> Self {
        Self(&|name| env::var(name).ok())
    }
}
