//! What a run showed.

use std::collections::BTreeMap;

use everturn_pacing::Priority;

use super::load::Wish;

/// What a run showed.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Calls that the provider received.
    pub calls: u64,
    /// How many of them it refused.
    pub refused: u64,
    /// Turns that were not served within a day.
    pub unserved: usize,
    /// When the last call was accepted, in milliseconds.
    pub last_ms: u64,
    /// When each was.
    accepted_ms: Vec<u64>,
    /// From wanting to the first byte, in milliseconds, per call.
    interactive_ms: Vec<u64>,
    background_ms: Vec<u64>,
    callers_ms: BTreeMap<u8, Vec<u64>>,
}

impl Figures {
    pub(super) fn served(&mut self, now: u64, waited_ms: u64, wish: &Wish) {
        self.last_ms = now;
        self.accepted_ms.push(now);
        wish.caller.into_iter().for_each(|of| self.callers_ms.entry(of).or_default().push(waited_ms));
        match wish.priority {
            _ if wish.caller == Some(0) => {}
            Priority::Interactive => self.interactive_ms.push(waited_ms),
            Priority::Background => self.background_ms.push(waited_ms),
        }
    }

    /// Returns the share of calls that were refused, 0 to 1.
    pub fn refused_share(&self) -> f64 {
        self.refused as f64 / self.calls.max(1) as f64
    }

    /// Returns the wait that this part of interactive calls did not exceed, 0 to 1, in milliseconds.
    pub fn wait_ms(&self, part: f64) -> u64 {
        quantile(&self.interactive_ms, part)
    }

    /// Returns the mean and the longest wait of each caller but the greedy one, in milliseconds.
    pub fn callers_ms(&self) -> impl Iterator<Item = (u64, u64)> {
        let of = |waits: &Vec<u64>| (waits.iter().sum::<u64>() / waits.len() as u64, quantile(waits, 1.0));
        self.callers_ms.range(1..).map(move |(_, waits)| of(waits))
    }

    /// Returns how much of the provider's capacity was used, 0 to 1: how many calls were accepted in the time in which
    /// `best` had all of them accepted, and a second.
    pub fn used(&self, best: &Self) -> f64 {
        let in_time = self.accepted_ms.iter().filter(|at| **at <= best.last_ms + 1_000).count();
        in_time as f64 / best.accepted_ms.len().max(1) as f64
    }
}

fn quantile(values: &[u64], part: f64) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    let at = ((values.len() as f64 * part).ceil() as usize).clamp(1, values.len().max(1)) - 1;
    values.get(at).copied().unwrap_or(0)
}
