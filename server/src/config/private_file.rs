//! A file beside the data that only its owner can read, and that processes change one at a time.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
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
        let lock = open(&path, private().truncate(false))
            .with_context(|| format!("cannot open {}", path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(lock)
    }

    /// Opens the file to append to it. The caller holds the lock.
    pub(crate) fn append(&self) -> Result<File> {
        Ok(open(&self.path, private().append(true))?)
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
        give(&file, &self.path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        // The new name is durable with its directory. Not all systems can do this.
        let directory = self.path.parent().map(File::open);
        let _ = directory.map(|directory| directory.and_then(|directory| directory.sync_all()));
        Ok(())
    }
}

/// Opens a file, and creates it if necessary.
fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    // Only a new file is given away: what has the name already may be a link to a file of root.
    match options.clone().create_new(true).open(path) {
        Ok(file) => give(&file, path).map(|()| file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => options.open(path),
        Err(error) => Err(error),
    }
}

/// Gives a new file of root to the owner of the one that it replaces, else of its directory: a service that runs as that user
/// must be able to read what an administrator changes.
#[cfg(unix)]
fn give(file: &File, replaces: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};

    if file.metadata()?.uid() != 0 {
        return Ok(());
    }
    let directory = replaces.parent().filter(|directory| !directory.as_os_str().is_empty());
    let places = [fs::symlink_metadata(replaces), fs::metadata(directory.unwrap_or(Path::new(".")))];
    match places.into_iter().flatten().find(|place| place.uid() != 0) {
        // Not every root may: in a container it can lack the right, or the owner can be unknown there.
        Some(place) => match fchown(file, Some(place.uid()), Some(place.gid())) {
            Err(error) if !matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {
                Err(error)
            }
            _ => Ok(()),
        },
        None => Ok(()),
    }
}

#[cfg(not(unix))]
fn give(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Opens files that only their owner can read and write, from the beginning.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, chown, symlink};

    use super::*;

    #[test]
    fn what_root_writes_belongs_to_the_owner_of_the_data() {
        let home = tempfile::tempdir().unwrap();
        let owner = |path: &Path| {
            let data = fs::symlink_metadata(path).unwrap();
            (data.uid(), data.gid())
        };
        if owner(home.path()).0 != 0 {
            return; // Only root can give files away.
        }
        chown(home.path(), Some(4711), Some(4712)).unwrap();
        let file = PrivateFile::beside(&home.path().join("a.db"), ".callers.toml");
        let lock = file.path().with_extension("lock");
        let others = home.path().join("others");
        fs::write(&others, "").unwrap();
        drop(file.lock("lock").unwrap());
        file.replace("first").unwrap();
        assert_eq!((owner(file.path()), owner(&lock)), ((4711, 4712), (4711, 4712)));
        // The owner of the file goes before that of its directory.
        chown(file.path(), Some(4713), Some(4714)).unwrap();
        file.replace("second").unwrap();
        assert_eq!(owner(file.path()), (4713, 4714));
        assert_eq!(fs::metadata(file.path()).unwrap().mode() & 0o777, 0o600);
        fs::remove_file(file.path()).unwrap();
        file.append().unwrap().write_all(b"third").unwrap();
        assert_eq!((owner(file.path()), file.read().unwrap().as_deref()), ((4711, 4712), Some("third")));
        // A link does not make another file of root theirs.
        fs::remove_file(file.path()).unwrap();
        symlink(&others, file.path()).unwrap();
        file.append().unwrap().write_all(b"fourth").unwrap();
        assert_eq!(owner(&others).0, 0);
    }
}
