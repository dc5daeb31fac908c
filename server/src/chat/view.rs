//! What a person sees of a turn.

mod live;
mod plain;
mod wrap;

use std::{io, time::Duration};

use tokio::time::Instant;

pub(super) use live::{Live, columns};
pub(super) use plain::Plain;

use crate::wording;

/// A place where a turn is shown.
pub(super) trait View {
    /// A turn begins, on a new line.
    fn begin(&mut self) -> io::Result<()>;

    /// The next piece of the answer.
    fn text(&mut self, delta: &str) -> io::Result<()>;

    /// The next piece of what the model thinks.
    fn reasoning(&mut self, delta: &str) -> io::Result<()>;

    /// A line that stays.
    fn line(&mut self, line: &Line) -> io::Result<()>;

    /// What is going on now, until something else is.
    fn status(&mut self, status: Status) -> io::Result<()>;

    /// Brings what depends on the time up to date.
    fn refresh(&mut self) -> io::Result<()>;

    /// The turn is over: nothing is going on, and a new line begins.
    fn end(&mut self) -> io::Result<()>;
}

/// A line that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Why a wait begins.
    Failure(String),
    /// A tool that ran.
    Tool { call: String, result: String, is_error: bool },
    /// By the way.
    Note(String),
    /// How the turn failed.
    Error(String),
}

/// What is going on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Status {
    /// The answer, or nothing: there is nothing to say.
    Quiet,
    /// The model was asked and said nothing yet.
    Asking,
    /// The model thinks.
    Thinking,
    /// A tool runs.
    Tool(String),
    /// A failure is waited out.
    Retrying(Wait),
    /// The connection to the server is being made again.
    Reconnecting { tried: u32, of: u32 },
    /// The turn is being ended.
    Stopping,
}

/// A wait before a retry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wait {
    /// 0-based, as the wire has it.
    pub(super) attempt: u32,
    /// How many there may be.
    pub(super) of: Option<u32>,
    pub(super) until: Instant,
}

impl Wait {
    /// `Retrying (1/21) in 5s...`
    fn words(&self, now: Instant) -> String {
        let left = self.until.saturating_duration_since(now);
        // The second that has begun counts: a wait of 5 s begins with "5s" and ends after "1s".
        let left = Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0));
        let attempt = u64::from(self.attempt) + 1;
        let count = self.of.map_or_else(|| attempt.to_string(), |of| format!("{attempt}/{of}"));
        match left.is_zero() {
            true => format!("Retrying ({count}) now..."),
            false => format!("Retrying ({count}) in {}...", wording::time(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_counts_down_to_one_and_then_is_over() {
        let now = Instant::now();
        let wait = Wait { attempt: 0, of: Some(21), until: now + Duration::from_secs(5) };
        for (ms, expected) in [
            (0, "Retrying (1/21) in 5s..."),
            (999, "Retrying (1/21) in 5s..."),
            (1000, "Retrying (1/21) in 4s..."),
            (4999, "Retrying (1/21) in 1s..."),
            (5000, "Retrying (1/21) now..."),
            (9000, "Retrying (1/21) now..."),
        ] {
            assert_eq!(wait.words(now + Duration::from_millis(ms)), expected, "after {ms} ms");
        }
        let endless = Wait { attempt: 7, of: None, ..wait };
        assert_eq!(endless.words(now), "Retrying (8) in 5s...");
    }
}
