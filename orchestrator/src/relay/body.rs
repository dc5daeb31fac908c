//! The bodies of calls: in memory, or on disk while a call waits and memory is short.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use everturn_kernel::StreamEvent;
use everturn_wire::{Category, Failure};
use futures_core::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _, future, stream};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use crate::upstream::Passed;

/// Maximum size of the bodies that calls keep in memory, in bytes.
const MOST_KEPT: u32 = 192 << 20;

/// Maximum size of the bodies that are read back, in bytes. Room of their own, because a waiting call can hold the other for
/// hours.
const MOST_READ: u32 = 64 << 20;

/// Maximum size of all bodies on disk, in bytes.
const MOST_ON_DISK: usize = 4 << 30;

/// A smaller body stays in memory, because a file costs as much.
const SMALL: usize = 16 << 10;

/// Room for the bodies of all calls. If there is a place on disk, a third of the memory is left to calls that do not wait yet.
pub(super) struct Room {
    most: u32,
    kept: Arc<Semaphore>,
    read: Arc<Semaphore>,
    disk: Arc<Semaphore>,
    /// A directory; `None` = bodies stay in memory.
    place: Option<Arc<Path>>,
}

impl Room {
    pub(super) fn new(place: Option<PathBuf>) -> Self {
        // Without a place, nothing is read back.
        let most = if place.is_some() { MOST_KEPT } else { MOST_KEPT + MOST_READ };
        Self::of(most, MOST_READ, place)
    }

    fn of(most: u32, read: u32, place: Option<PathBuf>) -> Self {
        Self {
            most,
            kept: Arc::new(Semaphore::new(most as usize)),
            read: Arc::new(Semaphore::new(read as usize)),
            disk: Arc::new(Semaphore::new(MOST_ON_DISK)),
            place: place.map(Arc::from),
        }
    }

    /// Makes room for a body in memory; `None` if there is none. One that is larger than the room takes all of it.
    pub(super) fn take(self: &Arc<Self>, body: &Bytes) -> Option<Stored> {
        let len = body.len();
        let size = u32::try_from(len).unwrap_or(u32::MAX);
        let permit = self.kept.clone().try_acquire_many_owned(size.min(self.most)).ok()?;
        Some(Stored { room: self.clone(), len, size, file: None, _permit: permit })
    }
}

/// The room that a body takes, until it is dropped.
pub(super) struct Stored {
    room: Arc<Room>,
    /// Its length, in bytes.
    pub(super) len: usize,
    size: u32,
    /// A file without a name, which is gone with the process; `None` = it is in memory.
    file: Option<Arc<File>>,
    /// Of the memory or the disk.
    _permit: OwnedSemaphorePermit,
}

impl Stored {
    /// Writes a body to disk, and empties it, if memory is short. It stays in memory if it cannot be written.
    pub(super) async fn put_away(&mut self, body: &mut Bytes) {
        let Some(directory) = self.room.place.clone() else { return };
        let is_ample = self.room.kept.available_permits() >= self.room.most as usize / 3;
        if self.file.is_some() || self.len < SMALL || is_ample {
            return;
        }
        let Ok(permit) = self.room.disk.clone().try_acquire_many_owned(self.size) else { return };
        let bytes = body.clone();
        match blocking(move || write(&directory, &bytes)).await {
            Ok(file) => {
                (self.file, self._permit) = (Some(Arc::new(file)), permit);
                *body = Bytes::new();
            }
            Err(error) => {
                tracing::warn!(%error, "the body of a call that waits cannot be written to disk: it stays in memory");
            }
        }
    }

    /// Sends a body. One that is on disk is read back first, once there is room for it, which it takes until it is answered.
    pub(super) fn send<S>(
        &self,
        body: Bytes,
        send: S,
    ) -> impl FnOnce() -> BoxStream<'static, Passed> + Send + use<S>
    where
        S: FnOnce(Bytes) -> BoxStream<'static, Passed> + Send + 'static,
    {
        let (file, room, size) = (self.file.clone(), self.room.read.clone(), self.size.min(MOST_READ));
        move || match file {
            None => send(body),
            Some(file) => read_back(file, room, size)
                .map(|read| match read {
                    Ok((body, mut permit)) => {
                        let is_answer =
                            |passed: &Passed| !matches!(passed, Passed::Fact(StreamEvent::Silent(_)));
                        send(body).inspect(move |passed| drop(permit.take_if(|_| is_answer(passed)))).boxed()
                    }
                    Err(error) => stream::once(future::ready(unreadable(&error))).boxed(),
                })
                .flatten_stream()
                .boxed(),
        }
    }
}

/// Reads a body, as soon as there is room for it.
async fn read_back(
    file: Arc<File>,
    room: Arc<Semaphore>,
    size: u32,
) -> io::Result<(Bytes, Option<OwnedSemaphorePermit>)> {
    let permit = room.acquire_many_owned(size).await.map_err(io::Error::other)?;
    Ok((blocking(move || read(&file)).await?, Some(permit)))
}

fn unreadable(error: &io::Error) -> Passed {
    let text = format!("the body of the call was written to disk and cannot be read: {error}");
    Passed::Fact(StreamEvent::Failed(Failure::new(Category::Internal, false, text)))
}

fn write(directory: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = tempfile::tempfile_in(directory)?;
    // Without a name it still is as readable as any new file.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    file.write_all(bytes)?;
    Ok(file)
}

fn read(mut file: &File) -> io::Result<Bytes> {
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
    use std::sync::mpsc;

    use super::*;

    const SIZE: usize = SMALL + 1;

    fn body(of: u8) -> Bytes {
        vec![of; SIZE].into()
    }

    fn room(bodies: usize, place: &Path) -> Arc<Room> {
        let size = |bodies: usize| u32::try_from(bodies * SIZE).unwrap();
        Arc::new(Room::of(size(bodies), size(1), Some(place.to_owned())))
    }

    /// Repeats the body as an answer that does not end.
    fn echo(body: Bytes) -> BoxStream<'static, Passed> {
        stream::iter([Passed::Piece(body)]).chain(stream::pending()).boxed()
    }

    async fn sent(answer: &mut BoxStream<'static, Passed>) -> Bytes {
        let Some(Passed::Piece(body)) = answer.next().await else { panic!() };
        body
    }

    #[test]
    fn a_body_is_on_disk_while_its_call_waits_and_memory_is_short() {
        // One thread uses the disk, so that it can be kept from it.
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build();
        runtime.unwrap().block_on(bodies_on_disk());
    }

    async fn bodies_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let room = room(3, directory.path());
        let mut bodies: Vec<_> = (0..3).map(body).collect();
        let mut stored: Vec<_> = bodies.iter().map(|body| room.take(body).unwrap()).collect();
        assert!(room.take(&body(3)).is_none());
        for (stored, body) in stored.iter_mut().zip(&mut bodies) {
            stored.put_away(body).await;
        }
        let in_memory: Vec<_> = bodies.iter().map(Bytes::len).collect();
        assert_eq!(in_memory, [0, SIZE, SIZE], "a third is left to others");
        assert_eq!(directory.path().read_dir().unwrap().count(), 0, "no file is left by a crash");
        let newer = room.take(&body(4)).unwrap();
        stored[1].put_away(&mut bodies[1]).await;
        for _ in 0..2 {
            let (release, released) = mpsc::channel::<()>();
            let _keeps_disk = tokio::task::spawn_blocking(move || released.recv());
            // The second has no room before the first is answered, whatever waiting calls hold.
            let [mut first, mut second] = [0, 1].map(|n| stored[n].send(bodies[n].clone(), echo)());
            assert!(futures_util::poll!(first.next()).is_pending());
            assert_eq!(room.read.available_permits(), 0);
            assert!(futures_util::poll!(second.next()).is_pending());
            drop(release);
            assert_eq!((sent(&mut first).await, sent(&mut second).await), (body(0), body(1)));
        }
        assert_eq!(sent(&mut stored[2].send(bodies[2].clone(), echo)()).await, body(2));
        drop((stored, newer));
        assert_eq!((room.kept.available_permits(), room.read.available_permits()), (3 * SIZE, SIZE));
        assert_eq!(room.disk.available_permits(), MOST_ON_DISK);
    }

    #[tokio::test]
    async fn a_body_that_cannot_be_written_stays_in_memory() {
        let room = room(1, Path::new("/nowhere/at/all"));
        let mut bytes = body(1);
        let mut stored = room.take(&bytes).unwrap();
        stored.put_away(&mut bytes).await;
        assert_eq!(sent(&mut stored.send(bytes, echo)()).await, body(1));
    }
}
