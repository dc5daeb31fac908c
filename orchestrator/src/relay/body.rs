//! The bodies of calls: in memory, or on disk while a call waits and memory is short.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

/// Maximum size of all bodies in memory, in bytes.
const MOST_IN_MEMORY: u32 = 256 << 20;

/// Maximum size of all bodies on disk, in bytes.
const MOST_ON_DISK: usize = 4 << 30;

/// A smaller body stays in memory, because a file costs as much.
const SMALL: usize = 16 << 10;

/// Room for the bodies of all calls. Not more than half of the memory is left to calls that wait, if there is a place on disk.
pub(super) struct Room {
    most: u32,
    memory: Arc<Semaphore>,
    disk: Arc<Semaphore>,
    /// A directory; `None` = bodies stay in memory.
    place: Option<Arc<Path>>,
}

impl Room {
    pub(super) fn new(place: Option<PathBuf>) -> Self {
        Self::of(MOST_IN_MEMORY, place)
    }

    fn of(most: u32, place: Option<PathBuf>) -> Self {
        let memory = Arc::new(Semaphore::new(most as usize));
        Self { most, memory, disk: Arc::new(Semaphore::new(MOST_ON_DISK)), place: place.map(Arc::from) }
    }

    /// Makes room for a body in memory; `None` if there is none.
    pub(super) fn take(self: &Arc<Self>, body: &Bytes) -> Option<Stored> {
        let size = self.size(body.len());
        let permit = self.memory.clone().try_acquire_many_owned(size).ok()?;
        Some(Stored { room: self.clone(), size, place: Place::Memory, _permit: permit })
    }

    /// A body that is larger than the room takes all of it.
    fn size(&self, len: usize) -> u32 {
        u32::try_from(len).unwrap_or(u32::MAX).min(self.most)
    }

    fn is_short(&self) -> bool {
        self.memory.available_permits() < self.most as usize / 2
    }
}

/// The room that a body takes, until it is dropped.
pub(super) struct Stored {
    room: Arc<Room>,
    size: u32,
    place: Place,
    /// Of the memory or the disk.
    _permit: OwnedSemaphorePermit,
}

enum Place {
    Memory,
    /// A file without a name, which is gone with the process.
    Disk(File),
}

impl Stored {
    /// Writes a body to disk, and empties it, if memory is short. It stays in memory if it cannot be written.
    pub(super) async fn put_away(&mut self, body: &mut Bytes) {
        let Some(directory) = self.room.place.clone() else { return };
        if !matches!(self.place, Place::Memory) || body.len() < SMALL || !self.room.is_short() {
            return;
        }
        let Ok(permit) = self.room.disk.clone().try_acquire_many_owned(self.size) else { return };
        let bytes = body.clone();
        match blocking(move || write(&directory, &bytes)).await {
            Ok(file) => {
                (self.place, self._permit) = (Place::Disk(file), permit);
                *body = Bytes::new();
            }
            Err(error) => {
                tracing::warn!(%error, "the body of a call that waits cannot be written to disk: it stays in memory");
            }
        }
    }

    /// Reads a body back, once there is room for it in memory.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) async fn fetch(&mut self, body: &mut Bytes) -> io::Result<()> {
        if matches!(self.place, Place::Memory) {
            return Ok(());
        }
        let memory =
            self.room.memory.clone().acquire_many_owned(self.size).await.map_err(io::Error::other)?;
        let Place::Disk(file) = mem::replace(&mut self.place, Place::Memory) else { return Ok(()) };
        *body = blocking(move || read(file)).await?;
        self._permit = memory;
        Ok(())
    }
}

fn write(directory: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(directory)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn read(mut file: File) -> io::Result<Bytes> {
    file.rewind()?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    Ok(bytes.into())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = SMALL + 1;

    fn body(of: u8) -> Bytes {
        vec![of; SIZE].into()
    }

    #[tokio::test]
    async fn a_body_is_on_disk_while_its_call_waits_and_memory_is_short() {
        let directory = tempfile::tempdir().unwrap();
        let most = u32::try_from(4 * SIZE).unwrap();
        let room = Arc::new(Room::of(most, Some(directory.path().to_owned())));
        let mut bodies: Vec<_> = (0..4).map(body).collect();
        let mut stored: Vec<_> = bodies.iter().map(|body| room.take(body).unwrap()).collect();
        assert!(room.take(&body(4)).is_none());
        for (stored, body) in stored.iter_mut().zip(&mut bodies) {
            stored.put_away(body).await;
        }
        let in_memory: Vec<_> = bodies.iter().map(Bytes::len).collect();
        assert_eq!(in_memory, [0, 0, SIZE, SIZE], "half of the memory is left to calls that wait");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0, "no file is left by a crash");
        let newer = [room.take(&body(5)).unwrap(), room.take(&body(6)).unwrap()];
        {
            let mut fetched = Box::pin(stored[0].fetch(&mut bodies[0]));
            assert!(futures_util::poll!(&mut fetched).is_pending(), "until there is room");
            drop(newer);
            fetched.await.unwrap();
        }
        assert_eq!(bodies[0], body(0));
        stored[0].fetch(&mut bodies[0]).await.unwrap();
        assert_eq!(bodies[0], body(0));
        drop(stored);
        assert_eq!(room.memory.available_permits(), 4 * SIZE);
        assert_eq!(room.disk.available_permits(), MOST_ON_DISK);
    }

    #[tokio::test]
    async fn a_body_that_cannot_be_written_stays_in_memory() {
        let missing = Path::new("/nowhere/at/all").to_owned();
        let room = Arc::new(Room::of(u32::try_from(SIZE).unwrap(), Some(missing)));
        let mut bytes = body(1);
        let mut stored = room.take(&bytes).unwrap();
        stored.put_away(&mut bytes).await;
        stored.fetch(&mut bytes).await.unwrap();
        assert_eq!(bytes, body(1));
    }
}
