//! A log of what happened.

use std::sync::{Arc, Mutex, MutexGuard};

use everturn_kernel::{Millis, Op};
use everturn_wire::{Chunk, Role};

use crate::Fact;

/// A log of facts, in order. Clones share the log.
///
/// ```
/// use everturn_kernel::Millis;
/// use everturn_testkit::{Fact, Log};
///
/// let log = Log::new(Millis(1_000));
/// log.note(Millis(1_005), Fact::Slept(20));
/// assert_eq!(log.transcript(), "    5 > sleep 20\n");
/// assert_eq!(log.sleeps(), [20]);
/// ```
#[derive(Clone, Debug)]
pub struct Log {
    start: Millis,
    facts: Arc<Mutex<Vec<(Millis, Fact)>>>,
}

impl Log {
    /// Creates an empty log. Its transcript counts time from this moment.
    pub fn new(start: Millis) -> Self {
        Self { start, facts: Arc::default() }
    }

    /// Records a fact.
    pub fn note(&self, now: Millis, fact: Fact) {
        self.facts().push((now, fact));
    }

    /// Calls the closure with each fact, oldest first. The closure must not record facts.
    pub fn each(&self, mut see: impl FnMut(Millis, &Fact)) {
        for (at, fact) in self.facts().iter() {
            see(*at, fact);
        }
    }

    /// Returns the results of the closure for the facts that it selects.
    pub fn pick<T>(&self, mut pick: impl FnMut(&Fact) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        self.each(|_, fact| picked.extend(pick(fact)));
        picked
    }

    /// Like [`Self::pick`], with the time of each fact.
    pub fn pick_at<T>(&self, mut pick: impl FnMut(Millis, &Fact) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        self.each(|at, fact| picked.extend(pick(at, fact)));
        picked
    }

    /// Returns what was kept in the history.
    pub fn history(&self) -> Vec<(Role, Chunk)> {
        self.pick(|fact| match fact {
            Fact::Kept(role, chunk) => Some((*role, chunk.clone())),
            _ => None,
        })
    }

    /// Returns the provider calls.
    pub fn calls(&self) -> Vec<Op> {
        self.pick(|fact| if let Fact::Called(op, _) = fact { Some(*op) } else { None })
    }

    /// Returns the requested sleeps, in milliseconds.
    pub fn sleeps(&self) -> Vec<u64> {
        self.pick(|fact| if let Fact::Slept(ms) = fact { Some(*ms) } else { None })
    }

    /// Returns the facts for reading and comparing, one per line (see [`Fact::line`]), each after the milliseconds
    /// since the start.
    pub fn transcript(&self) -> String {
        let mut transcript = String::new();
        self.each(|at, fact| {
            if let Some(text) = fact.line() {
                transcript.push_str(&format!("{:>5} {text}\n", at.since(self.start)));
            }
        });
        transcript
    }

    fn facts(&self) -> MutexGuard<'_, Vec<(Millis, Fact)>> {
        self.facts.lock().expect("no thread panics while it holds the log")
    }
}
