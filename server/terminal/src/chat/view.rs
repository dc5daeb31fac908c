//! Displays of a turn.

mod footer;
mod json;
mod live;
mod markdown;
mod plain;
mod style;
mod wrap;

use std::{fmt, io, time::Duration};

use crate::wording;
use tokio::time::Instant;

pub(super) use json::Json;
pub(super) use live::Live;
pub(super) use plain::Plain;

/// A display of a turn.
pub(super) trait View {
    /// An event of the turn, as the server sent it. Called before the event's meaning is shown.
    fn event(&mut self, json: &str) -> io::Result<()> {
        let _ = json;
        Ok(())
    }

    /// Begins a turn, on a new line.
    fn begin(&mut self) -> io::Result<()>;

    /// The next piece of the answer.
    fn text(&mut self, delta: &str) -> io::Result<()>;

    /// The text so far stays: its step is complete.
    fn step_complete(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The next piece of the model's reasoning.
    fn reasoning(&mut self, delta: &str) -> io::Result<()>;

    /// A permanent line.
    fn line(&mut self, line: &Line) -> io::Result<()>;

    /// Sets the current activity, until the next call.
    fn status(&mut self, status: Status) -> io::Result<()>;

    /// Sets the person's draft, and the byte offset of the cursor in it. Shown until changed.
    fn draft(&mut self, text: &str, cursor: usize) -> io::Result<()>;

    /// Updates time-dependent output.
    fn refresh(&mut self) -> io::Result<()>;

    /// Ends the turn: clears the status and begins a new line.
    fn end(&mut self) -> io::Result<()>;
}

/// A permanent line, or several of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A tool call that needs approval, with its arguments line by line.
    Approval { title: String, details: Vec<String> },
    /// Why a wait begins.
    Failure(String),
    /// A finished tool call.
    Tool { call: String, result: String, is_error: bool },
    /// A remark.
    Note(String),
    /// A remark about a command to type, which stays on one line so that it can be copied.
    Command { remark: &'static str, command: String },
    /// A remark that scripts need, too.
    Warning(String),
    /// Why the answer starts again.
    Restart(String),
    /// How the turn failed.
    Error(String),
}

/// The current activity.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Status {
    /// Nothing to show, or the answer is arriving.
    Quiet,
    /// The model was asked and has not answered yet.
    Asking,
    /// A model was asked for a summary of earlier messages.
    Summarizing,
    /// The model is thinking.
    Thinking,
    /// A tool is running.
    Tool(String),
    /// Waiting after a failure.
    Retrying(Wait),
    /// The wait is over: the model was asked again and has not answered yet.
    AskingAgain { count: Count, of_summary: bool },
    /// The provider has said nothing for a while.
    Silent(Silence),
    /// A tool call is being reviewed.
    Reviewing(String),
    /// A tool call waits for a person's answer.
    Approval(Asked),
    /// A tool waits for a person's answer.
    Question,
    /// Reconnecting to the server.
    Reconnecting { tried: u32, of: u32 },
    /// The turn is being stopped.
    Stopping,
}

/// The number of a retry within its step. `Display` has it in parentheses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// 0-based, as the wire has it.
    pub(super) attempt: u32,
    /// The maximum number of retries, if there is one.
    pub(super) of: Option<u32>,
    /// Whether no call was made before, so that there is nothing to count.
    pub(super) is_shared: bool,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = u64::from(self.attempt) + 1;
        match self.of {
            _ if self.is_shared => Ok(()),
            Some(of) => write!(f, " ({attempt}/{of})"),
            None => write!(f, " ({attempt})"),
        }
    }
}

/// How long a request is shown before single keys answer it, so that a key meant for something else does not.
const SETTLE: Duration = Duration::from_millis(500);

/// Terminal width from which the keys are shown with full labels.
const WIDE: usize = 60;

/// A tool call that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) since: Instant,
    /// When it is denied if there is no answer.
    pub(super) until: Option<Instant>,
    /// Number of further calls that wait.
    pub(super) more: usize,
}

impl Asked {
    /// Whether single keys may answer a request shown since `since`.
    pub(super) fn is_settled(since: Instant, now: Instant) -> bool {
        now.saturating_duration_since(since) >= SETTLE
    }

    /// `[y] allow once  [a] always in this conversation  [n] deny (denied in 4m 05s)`
    fn words(&self, now: Instant, width: usize, is_typing: bool) -> String {
        let keys = match (is_typing, Self::is_settled(self.since, now)) {
            (true, _) => "/allow, /allow always or /deny REASON answers; Esc clears the line",
            (false, true) if width < WIDE => "[y] allow  [a] always  [n] deny",
            (false, true) => "[y] allow once  [a] always in this conversation  [n] deny",
            (false, false) => "Waiting for your answer...",
        };
        let end = self.until.map(|until| format!("denied in {}", wording::time(seconds_left(until, now))));
        let more = (self.more > 0).then(|| format!("{} more after this", self.more));
        let notes: Vec<String> = end.into_iter().chain(more).collect();
        match notes.is_empty() {
            true => keys.to_owned(),
            false => format!("{keys} ({})", notes.join(", ")),
        }
    }
}

/// The rest of a wait. The second that has begun counts: a wait of 5 s begins with "5s" and ends after "1s".
fn seconds_left(until: Instant, now: Instant) -> Duration {
    let left = until.saturating_duration_since(now);
    Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0))
}

/// A provider that has stopped sending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Silence {
    pub(super) since: Instant,
    /// When the call is given up, as clock time.
    pub(super) gives_up: Option<String>,
    /// Whether the provider can be asked again, because nothing of the answer was shown.
    pub(super) may_ask_again: bool,
}

impl Silence {
    /// `No answer for 40 s (gives up at 12:03)`
    fn words(&self, now: Instant) -> String {
        let what = if self.may_ask_again { "No answer" } else { "Nothing new" };
        let seconds = now.saturating_duration_since(self.since).as_secs();
        let silent = wording::span(seconds.saturating_mul(1000));
        let end = self.gives_up.as_ref().map_or_else(String::new, |at| format!(" (gives up at {at})"));
        format!("{what} for {silent}{end}")
    }
}

/// A wait before a retry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wait {
    pub(super) count: Count,
    pub(super) until: Instant,
    /// When it ends as clock time, if it is long.
    pub(super) ends: Option<String>,
    /// Whether the retry is for a summary of earlier messages, not for the answer.
    pub(super) of_summary: bool,
    /// Whether it is for a limit of the caller's own, which nothing skips.
    pub(super) of_caller: bool,
}

impl Wait {
    /// `Retrying (1/21) in 5s...`. A wait behind other calls may end earlier, so its time is the longest.
    fn words(&self, now: Instant) -> String {
        let left = seconds_left(self.until, now);
        let (count, what) = (self.count, if self.of_summary { " the summary" } else { "" });
        let ends = self.ends.as_ref().map_or_else(String::new, |at| format!(" ({at})"));
        let time = wording::time(left) + &ends;
        match left.is_zero() {
            false if self.of_caller => format!("Waiting for a limit of this token, at most {time}..."),
            true => format!("Retrying{what}{count} now..."),
            false if count.is_shared => format!("Retrying{what} within {time}..."),
            false => format!("Retrying{what}{count} in {time}..."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_counts_down_to_one_and_then_is_over() {
        let now = Instant::now();
        let until = now + Duration::from_secs(5);
        let count = Count { attempt: 0, of: Some(21), is_shared: false };
        let wait = Wait { count, until, ends: None, of_summary: false, of_caller: false };
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
        let shared = Wait { count: Count { is_shared: true, ..count }, ..wait.clone() };
        assert_eq!(shared.words(now), "Retrying within 5s...");
        let endless = Wait { count: Count { attempt: 7, of: None, ..count }, of_summary: true, ..wait };
        assert_eq!(endless.words(now), "Retrying the summary (8) in 5s...");
        let limited = Wait { of_caller: true, ..endless };
        assert_eq!(limited.words(now), "Waiting for a limit of this token, at most 5s...");
        let long = Wait { until: now + Duration::from_secs(7200), ends: Some("14:05".to_owned()), ..limited };
        assert_eq!(long.words(now), "Waiting for a limit of this token, at most 2h 00m (14:05)...");
    }
}
