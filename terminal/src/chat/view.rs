//! What a person sees of a turn.

mod footer;
mod json;
mod live;
mod markdown;
mod plain;
mod style;
mod wrap;

use std::{fmt, io, time::Duration};

use everturn_console::wording;
use tokio::time::Instant;

pub(super) use json::Json;
pub(super) use live::Live;
pub(super) use plain::Plain;

/// A place where a turn is shown.
pub(super) trait View {
    /// An event of the turn, as the server sent it, before what it means is shown.
    fn event(&mut self, json: &str) -> io::Result<()> {
        let _ = json;
        Ok(())
    }

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

    /// What the person is typing meanwhile, and the byte in it that the cursor is before. Kept until it is changed.
    fn draft(&mut self, text: &str, cursor: usize) -> io::Result<()>;

    /// Brings what depends on the time up to date.
    fn refresh(&mut self) -> io::Result<()>;

    /// The turn is over: nothing is going on, and a new line begins.
    fn end(&mut self) -> io::Result<()>;
}

/// A line that stays, or several of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A tool call that needs approval, and its arguments, line by line.
    Approval { title: String, details: Vec<String> },
    /// Why a wait begins.
    Failure(String),
    /// A tool that ran.
    Tool { call: String, result: String, is_error: bool },
    /// By the way.
    Note(String),
    /// Why the answer starts again.
    Restart(String),
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
    /// A model was asked for a summary of earlier messages.
    Summarizing,
    /// The model thinks.
    Thinking,
    /// A tool runs.
    Tool(String),
    /// A failure is waited out.
    Retrying(Wait),
    /// The wait is over: the model is asked again and said nothing yet.
    AskingAgain { count: Count, of_summary: bool },
    /// The provider has said nothing for a while.
    Silent(Silence),
    /// A tool call is reviewed.
    Reviewing(String),
    /// A tool call waits for an answer of a person.
    Approval(Asked),
    /// The connection to the server is being made again.
    Reconnecting { tried: u32, of: u32 },
    /// The turn is being ended.
    Stopping,
}

/// Which retry of its step one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// 0-based, as the wire has it.
    pub(super) attempt: u32,
    /// How many there may be.
    pub(super) of: Option<u32>,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = u64::from(self.attempt) + 1;
        match self.of {
            Some(of) => write!(f, "{attempt}/{of}"),
            None => write!(f, "{attempt}"),
        }
    }
}

/// How long what is asked is shown before a single key answers it: a key that was meant for something else comes sooner.
const SETTLE: Duration = Duration::from_millis(500);

/// From this width on the keys that answer have all their words.
const WIDE: usize = 60;

/// A tool call that waits for an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) since: Instant,
    /// When it is denied without an answer.
    pub(super) until: Option<Instant>,
    /// How many wait after it.
    pub(super) more: usize,
}

impl Asked {
    /// Whether a single key answers what is shown since then.
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

/// What is left of a wait. The second that has begun counts: one of 5 s begins with "5s" and ends after "1s".
fn seconds_left(until: Instant, now: Instant) -> Duration {
    let left = until.saturating_duration_since(now);
    Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0))
}

/// A provider that says nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Silence {
    pub(super) since: Instant,
    /// When the call is given up, as a clock shows it.
    pub(super) gives_up: Option<String>,
    /// Whether nothing of the answer was shown: then it can be asked again.
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
    /// What is asked for again is a summary of earlier messages, not the answer.
    pub(super) of_summary: bool,
}

impl Wait {
    /// `Retrying (1/21) in 5s...`
    fn words(&self, now: Instant) -> String {
        let left = seconds_left(self.until, now);
        let (count, what) = (self.count, if self.of_summary { " the summary" } else { "" });
        match left.is_zero() {
            true => format!("Retrying{what} ({count}) now..."),
            false => format!("Retrying{what} ({count}) in {}...", wording::time(left)),
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
        let wait = Wait { count: Count { attempt: 0, of: Some(21) }, until, of_summary: false };
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
        let endless = Wait { count: Count { attempt: 7, of: None }, of_summary: true, ..wait };
        assert_eq!(endless.words(now), "Retrying the summary (8) in 5s...");
    }
}
