//! The only thread that writes.

mod added;
mod append;
mod group;
mod left;
mod row;

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicU64},
    thread::{self, JoinHandle},
};

use everturn_ports::JournalError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::error;

pub(crate) use append::Append;

/// Maximum number of appends that share one flush, and of those that wait for the next.
const TOGETHER: usize = 64;

/// Size in bytes from which an append is large. It takes up to a second, so it is written alone.
const LARGE: usize = 1 << 20;

/// The only thread that writes. Dropping it waits until all accepted work is done.
#[derive(Debug)]
pub(crate) struct WriterThread {
    path: PathBuf,
    /// `None` while being dropped, which ends the thread.
    inbox: Option<mpsc::Sender<Task>>,
    thread: Option<JoinHandle<()>>,
    /// The highest version of a conversation that was deleted: those that begin later have higher ones.
    pub(crate) removed: Arc<AtomicU64>,
}

#[expect(clippy::large_enum_variant, reason = "nearly all tasks are appends")]
enum Task {
    Append(Append),
    /// Work that needs exclusive use of the connection.
    Alone(Box<dyn FnOnce(&mut Connection) + Send>),
}

impl WriterThread {
    pub(crate) fn start(connection: Connection, path: &Path) -> io::Result<Self> {
        let (inbox, jobs) = mpsc::channel(TOGETHER);
        let (owned, removed) = (path.to_owned(), Arc::<AtomicU64>::default());
        let known = append::Known { removed: removed.clone(), ..append::Known::default() };
        let thread = thread::Builder::new()
            .name("everturn-journal".into())
            .spawn(move || run(connection, jobs, known, &owned))?;
        Ok(Self { path: path.to_owned(), inbox: Some(inbox), thread: Some(thread), removed })
    }

    /// Passes an append to the thread; the answer comes through the append's own channel.
    pub(crate) async fn append(&self, append: Append) -> Result<(), JournalError> {
        self.send(Task::Append(append)).await
    }

    /// Runs `work` between two groups of appends.
    pub(crate) async fn alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, JournalError> {
        let (answer, answered) = oneshot::channel();
        let job = move |connection: &mut Connection| {
            let _ = answer.send(work(connection));
        };
        self.send(Task::Alone(Box::new(job))).await?;
        let result = answered.await.map_err(|_| error::stopped(&self.path))?;
        result.map_err(|error| error::storage("write to", &self.path, &error))
    }

    /// The database.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    async fn send(&self, job: Task) -> Result<(), JournalError> {
        let inbox = self.inbox.as_ref().ok_or_else(|| error::stopped(&self.path))?;
        inbox.send(job).await.map_err(|_| error::stopped(&self.path))
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Slow work (large appends, and what needs exclusive use of the connection) is done in order of arrival, so that a removal cannot
/// overtake an append whose caller has given up. Before each, all small appends that have arrived are written.
fn run(mut connection: Connection, mut jobs: mpsc::Receiver<Task>, mut known: append::Known, path: &Path) {
    let mut slow = VecDeque::new();
    loop {
        let mut next = if slow.is_empty() { jobs.blocking_recv() } else { jobs.try_recv().ok() };
        if next.is_none() && slow.is_empty() {
            return;
        }
        let mut group = Vec::new();
        while let Some(job) = next {
            match job {
                Task::Append(append) if append.size() < LARGE => group.push(append),
                job => slow.push_back(job),
            }
            next = if group.len() == TOGETHER { None } else { jobs.try_recv().ok() };
        }
        group::settle(&mut connection, path, group, &mut known);
        match slow.pop_front() {
            Some(Task::Append(append)) => group::settle(&mut connection, path, vec![append], &mut known),
            Some(Task::Alone(work)) => {
                work(&mut connection);
                known.definition.forget();
            }
            None => {}
        }
    }
}
