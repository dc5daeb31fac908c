//! A few connections for everything but appends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use everturn_ports::JournalError;
use futures_util::future::BoxFuture;
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{Duration, Instant, sleep},
};

use crate::{
    error::Failure,
    session::Session,
    target::{PAUSE, Target},
};

/// Maximum number of concurrent operations; further ones wait.
const AT_ONCE: usize = 4;

/// Whether an operation changes something. It must be possible to repeat either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// Connections for operations that can be repeated.
pub(crate) struct Pool {
    target: Arc<Target>,
    idle: Mutex<Vec<Arc<Session>>>,
    places: Arc<Semaphore>,
    give_up_after: Duration,
}

impl Pool {
    pub(crate) fn new(target: Arc<Target>, give_up_after: Duration) -> Self {
        Self { target, idle: Mutex::default(), places: Arc::new(Semaphore::new(AT_ONCE)), give_up_after }
    }

    /// Does something, repeatedly while the connection is lost. In a task of its own, so that a caller that is not
    /// polled cannot keep a permit from others.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Kind,
        work: impl Fn(Arc<Session>) -> BoxFuture<'static, Result<T, Failure>> + Send + Sync + 'static,
    ) -> Result<T, JournalError> {
        let pool = self.clone();
        // Dropped with the caller, which cancels it.
        let mut task = JoinSet::new();
        task.spawn(async move {
            let _place = pool.places.acquire().await;
            pool.repeat(kind, work).await
        });
        match task.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => Err(JournalError::Storage(format!(
                "the journal in {} has stopped: restart the process and look in its log for why",
                self.target.place
            ))),
        }
    }

    async fn repeat<T>(
        &self,
        kind: Kind,
        work: impl Fn(Arc<Session>) -> BoxFuture<'static, Result<T, Failure>>,
    ) -> Result<T, JournalError> {
        let until = Instant::now() + self.give_up_after;
        let mut lost = false;
        loop {
            let failure = match self.session().await {
                Err(failure) => failure,
                Ok(session) => match work(session.clone()).await {
                    Ok(done) => {
                        self.idle().push(session);
                        return Ok(done);
                    }
                    Err(failure) => {
                        match &failure {
                            Failure::Lost(_) => lost |= kind == Kind::Write,
                            _ => self.idle().push(session),
                        }
                        failure
                    }
                },
            };
            let is_final = !matches!(failure, Failure::Lost(_) | Failure::Busy(_));
            if is_final || Instant::now() >= until {
                let doing = if kind == Kind::Read { "read from" } else { "write to" };
                return Err(failure.journal(doing, &self.target.place, lost));
            }
            sleep(PAUSE).await;
        }
    }

    async fn session(&self) -> Result<Arc<Session>, Failure> {
        while let Some(session) = { self.idle().pop() } {
            if !session.is_closed() {
                return Ok(session);
            }
        }
        self.target.connect_once().await.map(Arc::new)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
