//! Waits before a server is restarted.

use std::time::Duration;

/// The wait before the first restart.
const SHORTEST: Duration = Duration::from_secs(1);

/// The maximum wait.
const LONGEST: Duration = Duration::from_secs(60);

/// After being up for this long, a server has recovered, and is restarted soon.
const RECOVERED: Duration = Duration::from_secs(60);

/// The waits between restarts: 1 s, doubling to 60 s.
#[derive(Default)]
pub(crate) struct Backoff {
    last: Option<Duration>,
}

impl Backoff {
    /// Returns the next wait, given how long the server was up.
    pub(crate) fn next(&mut self, up: Duration) -> Duration {
        let last = self.last.filter(|_| up < RECOVERED);
        let next = last.map_or(SHORTEST, |last| last.saturating_mul(2).min(LONGEST));
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_reset_after_a_minute_of_uptime() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..8).map(|_| backoff.next(Duration::ZERO).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.next(Duration::from_secs(59)).as_secs(), 60);
        assert_eq!(backoff.next(Duration::from_secs(60)).as_secs(), 1);
        assert_eq!(backoff.next(Duration::ZERO).as_secs(), 2);
    }
}
