//! A provider that follows a script, for tests and demonstrations.

use std::{
    collections::VecDeque,
    future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use everturn_kernel::{Provider, Request, StreamEvent};
use everturn_wire::{Category, Failure, Parameters};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};

/// The next step of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cue {
    /// Yields an event.
    Tell(StreamEvent),
    /// Waits, by tokio's clock.
    Pause(Duration),
    /// Stays silent and does not end.
    Hang,
    /// Panics with this message, like a broken adapter.
    Panic(String),
}

impl From<StreamEvent> for Cue {
    fn from(fact: StreamEvent) -> Self {
        Self::Tell(fact)
    }
}

/// A provider that answers its first call with the first list of cues, its second with the second, and so on. The last
/// list is repeated, unless [`Scripted::once`] was called. Clones share the script and its position.
///
/// A list that ends without `Finished` or `Failed` produces a truncated stream.
#[derive(Clone, Debug)]
pub struct Scripted {
    calls: Arc<[Arc<[Cue]>]>,
    repeats: bool,
    record: Arc<Mutex<Record>>,
}

#[derive(Debug, Default)]
struct Record {
    begun: usize,
    /// The latest requests, oldest first.
    requests: VecDeque<Request>,
}

impl Scripted {
    /// Maximum number of remembered requests.
    pub const REMEMBERED: usize = 1024;

    /// Creates a provider with one list of cues per call.
    pub fn new<C: Into<Cue>>(calls: impl IntoIterator<Item = Vec<C>>) -> Self {
        let call = |cues: Vec<C>| cues.into_iter().map(Into::into).collect();
        Self { calls: calls.into_iter().map(call).collect(), repeats: true, record: Arc::default() }
    }

    /// Fails calls beyond the script with [`Category::Internal`] instead of repeating its last one.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.repeats = false;
        self
    }

    /// Returns the number of calls made.
    pub fn calls(&self) -> usize {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).begun
    }

    /// Returns the latest requests, at most [`Scripted::REMEMBERED`], oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).requests.iter().cloned().collect()
    }

    fn next_call(&self, request: Request) -> Arc<[Cue]> {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        let place = record.begun;
        record.begun += 1;
        if record.requests.len() == Self::REMEMBERED {
            record.requests.pop_front();
        }
        record.requests.push_back(request);
        let last = if self.repeats { self.calls.last() } else { None };
        self.calls.get(place).or(last).cloned().unwrap_or_else(|| {
            let message = format!("the script has {} calls, this is call {}", self.calls.len(), place + 1);
            let failure = Failure::new(Category::Internal, false, message);
            [Cue::Tell(StreamEvent::Failed(failure))].into()
        })
    }
}

impl Provider for Scripted {
    /// Accepts all parameters, because the script does not depend on them; [`Self::requests`] returns them.
    fn refuses(&self, _: &Parameters) -> Vec<&'static str> {
        Vec::new()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        play(self.next_call(request))
    }
}

/// Returns a stream that follows a list of cues to its end.
pub(crate) fn play(cues: Arc<[Cue]>) -> BoxStream<'static, StreamEvent> {
    stream::unfold((cues, 0), |(cues, mut place)| async move {
        loop {
            let cue = cues.get(place)?.clone();
            place += 1;
            match cue {
                Cue::Tell(fact) => return Some((fact, (cues, place))),
                Cue::Pause(time) => tokio::time::sleep(time).await,
                Cue::Hang => future::pending().await,
                Cue::Panic(message) => panic!("{message}"),
            }
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests;
