//! The windows of a client, which limit how much may be sent to it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

/// The size of every window before anything is announced.
const DEFAULT: i64 = 65_535;

/// The windows of a connection and its streams.
#[derive(Debug)]
pub(super) struct Windows {
    sizes: Mutex<Sizes>,
    grown: Notify,
}

#[derive(Debug)]
struct Sizes {
    initial: i64,
    connection: i64,
    /// By how much each stream differs from a new one.
    streams: HashMap<u32, i64>,
}

impl Windows {
    pub(super) fn new() -> Self {
        let sizes = Sizes { initial: DEFAULT, connection: DEFAULT, streams: HashMap::new() };
        Self { sizes: Mutex::new(sizes), grown: Notify::new() }
    }

    /// Sets the size of new streams' windows, and changes all others by the difference.
    pub(super) fn begin_with(&self, size: u32) {
        self.lock().initial = size.into();
        self.grown.notify_waiters();
    }

    /// Enlarges the window of a stream, or of the connection if it is 0.
    pub(super) fn grow(&self, stream: u32, by: u32) {
        let mut sizes = self.lock();
        match stream {
            0 => sizes.connection += i64::from(by),
            _ => *sizes.streams.entry(stream).or_default() += i64::from(by),
        }
        drop(sizes);
        self.grown.notify_waiters();
    }

    /// Waits for room in the windows, and takes up to `most` of it.
    pub(super) async fn take(&self, stream: u32, most: usize) -> usize {
        loop {
            let grown = self.grown.notified();
            match self.try_take(stream, most) {
                0 => grown.await,
                taken => return taken,
            }
        }
    }

    fn try_take(&self, stream: u32, most: usize) -> usize {
        let mut sizes = self.lock();
        let of_stream = sizes.initial + sizes.streams.get(&stream).copied().unwrap_or(0);
        let room = sizes.connection.min(of_stream).min(i64::try_from(most).unwrap_or(i64::MAX)).max(0);
        sizes.connection -= room;
        *sizes.streams.entry(stream).or_default() -= room;
        usize::try_from(room).unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, Sizes> {
        self.sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
