//! Warnings about files that other users of the machine can read.

use std::path::Path;

use crate::config::Config;

/// The mode bits that grant access to a file's group or to everyone.
#[cfg(unix)]
const OF_OTHERS: u32 = 0o077;

/// Returns a line about each file with conversations or secrets that others can read, and how to fix it.
pub(crate) fn warnings(config: &Config) -> Vec<String> {
    let data = config.data.iter().flat_map(|path| everturn_store_sqlite::files(path));
    let open = |what: &str, path: &Path| {
        let mode = open_mode(path)?;
        let place = path.display();
        Some(format!("{place} {what} and is open to other users (mode {mode:03o}): run chmod 600 {place}"))
    };
    let of_data = data.filter_map(|path| open("contains conversations", &path));
    of_data.chain(config.secret_files.iter().filter_map(|path| open("contains a secret", path))).collect()
}

/// Returns the mode of a file that exists and is accessible to others.
#[cfg(unix)]
fn open_mode(path: &Path) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = path.metadata().ok()?.permissions().mode() & 0o777;
    (mode & OF_OTHERS != 0).then_some(mode)
}

/// Other systems have no such mode.
#[cfg(not(unix))]
fn open_mode(_: &Path) -> Option<u32> {
    None
}
