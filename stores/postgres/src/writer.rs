//! The tasks that append: each has a connection, and a queue of what its conversations append.

mod append;
mod definition;
mod group;
mod statement;

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use everturn_ports::JournalError;
use everturn_wire::ConversationId;
use tokio::{
    sync::mpsc,
    time::{Duration, Instant},
};

use crate::{keeper::Keeper, session::Session, target::Target};

pub(crate) use append::Append;
pub(crate) use definition::Definitions;
pub(crate) use group::Change;

/// Number of tasks. Postgres shares flushes between their connections.
const WRITERS: usize = 4;

/// Maximum number of appends in one statement, and of those that wait for the next one.
const TOGETHER: usize = 64;

/// Size in bytes from which no append is added to a statement.
const BYTES: usize = 4 << 20;

/// What a task is to do, in the order of its conversation.
pub(crate) enum Task {
    Append(Box<Append>),
    Change(Change),
}

impl Task {
    fn id(&self) -> &ConversationId {
        match self {
            Self::Append(append) => &append.id,
            Self::Change(change) => change.id(),
        }
    }
}

/// The tasks that append. What they have accepted is written even if this is dropped.
#[derive(Debug)]
pub(crate) struct Writers {
    queues: Vec<mpsc::Sender<Task>>,
    lost: Arc<AtomicU64>,
}

impl Writers {
    pub(crate) fn start(
        target: &Arc<Target>,
        keeper: &Arc<Keeper>,
        definitions: &Arc<Definitions>,
        give_up_after: Duration,
    ) -> Self {
        let lost = Arc::new(AtomicU64::default());
        let queues = (0..WRITERS).map(|_| {
            let (queue, tasks) = mpsc::channel(TOGETHER);
            let writer = Writer {
                target: target.clone(),
                keeper: keeper.clone(),
                definitions: definitions.clone(),
                give_up_after,
                session: None,
                lost: lost.clone(),
            };
            tokio::spawn(writer.run(tasks));
            queue
        });
        Self { queues: queues.collect(), lost }
    }

    /// Returns how many times the answer to a group of appends was lost.
    pub(crate) fn lost_answers(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Passes a task to the writer of its conversation, so that they are done in order, and two writers never wait for
    /// the same row.
    pub(crate) async fn send(&self, task: Task) -> Result<(), JournalError> {
        let mut hasher = DefaultHasher::new();
        task.id().hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % WRITERS as u64).unwrap_or_default();
        self.queues[at].send(task).await.map_err(|_| stopped())
    }
}

pub(crate) fn stopped() -> JournalError {
    JournalError::Storage(
        "the journal has stopped: restart the process and look in its log for why".to_owned(),
    )
}

/// One of the tasks that append.
struct Writer {
    target: Arc<Target>,
    /// Holds the lock as long as something may be written.
    keeper: Arc<Keeper>,
    definitions: Arc<Definitions>,
    give_up_after: Duration,
    session: Option<Session>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self, mut tasks: mpsc::Receiver<Task>) {
        let mut waiting: Vec<Task> = Vec::new();
        loop {
            if waiting.is_empty() {
                match tasks.recv().await {
                    Some(task) => waiting.push(task),
                    None => return,
                }
            }
            while waiting.len() < TOGETHER
                && let Ok(task) = tasks.try_recv()
            {
                waiting.push(task);
            }
            let (group, change) = next(&mut waiting);
            if !group.is_empty() {
                self.settle(group).await;
            }
            if let Some(change) = change {
                self.change(change).await;
            }
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.give_up_after
    }
}

/// Removes what is to be done next from what waits: appends to different conversations, or what comes before them.
fn next(waiting: &mut Vec<Task>) -> (Vec<Append>, Option<Change>) {
    let (mut group, mut change, mut later) = (Vec::new(), None, Vec::new());
    let (mut busy, mut bytes) = (HashSet::new(), 0);
    for task in waiting.drain(..) {
        let is_first = busy.insert(task.id().clone());
        match task {
            Task::Append(append) if is_first && change.is_none() && bytes < BYTES => {
                bytes += append.bytes;
                group.push(*append);
            }
            Task::Change(first) if is_first && change.is_none() => change = Some(first),
            other => later.push(other),
        }
    }
    *waiting = later;
    (group, change)
}
