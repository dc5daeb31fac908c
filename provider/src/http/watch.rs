//! Watches a call: reports silences, and enforces timeouts.
//!
//! Compares timestamps with deadlines. An arriving piece only updates timestamps and arms no timer, because pieces are
//! frequent.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use everturn_diagnosis::Transport;
use everturn_kernel::Silence;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{ConnectionError, Timeouts};

/// Interval at which a silence is reported again, and how long a sign of life counts.
const REPEAT: Duration = Duration::from_secs(60);

/// Bytes that arrive this soon after content belong to it, such as the end of its event.
const LULL: Duration = Duration::from_secs(1);

/// Bytes that arrive this soon after others are part of the same burst.
const BURST: Duration = Duration::from_millis(1);

/// Stands for a moment that is never reached.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// A notice of the watch.
#[derive(Debug)]
pub(crate) enum Notice {
    /// No part of the answer has arrived for a while.
    Silent(Silence),
    /// The call has timed out.
    Over(ConnectionError),
}

/// Watches one call, from its request to the end of its answer.
#[derive(Debug)]
pub(crate) struct Watch {
    timeouts: Timeouts,
    begun_at: Instant,
    /// When content last arrived, or the call began.
    said_at: Instant,
    /// When the response headers arrived.
    head_at: Option<Instant>,
    /// When bytes last arrived.
    heard_at: Instant,
    is_burst: bool,
    /// When bytes without content last arrived.
    sign_at: Option<Instant>,
    /// When the silence was last reported, and whether as alive.
    told: Option<(Instant, bool)>,
    /// Fires no later than the next deadline. Later deadlines do not re-arm it.
    alarm: Pin<Box<Sleep>>,
}

impl Watch {
    /// Starts the watch at the start of a call.
    pub(crate) fn begin(timeouts: Timeouts) -> Self {
        let now = Instant::now();
        let mut watch = Self {
            timeouts,
            begun_at: now,
            said_at: now,
            head_at: None,
            heard_at: now,
            is_burst: false,
            sign_at: None,
            told: None,
            alarm: Box::pin(sleep_until(now)),
        };
        let next = watch.next_deadline();
        watch.alarm.as_mut().reset(next);
        watch
    }

    /// Handles the response headers.
    pub(crate) fn answered(&mut self) -> Option<Notice> {
        self.head_at = Some(Instant::now());
        let notice = self.heard(false);
        self.hasten();
        notice
    }

    /// Handles received bytes; `said` tells whether they had content.
    pub(crate) fn heard(&mut self, said: bool) -> Option<Notice> {
        let now = Instant::now();
        self.is_burst = now.duration_since(self.heard_at) < BURST;
        self.heard_at = now;
        if said {
            self.said_at = now;
            self.sign_at = None;
            if self.told.take().is_some() {
                self.hasten();
            }
            // If the answer never pauses, the alarm is never polled.
            return if self.timeouts.total.is_some() { self.over(now) } else { None };
        }
        let is_sign = now.duration_since(self.said_at) >= LULL;
        if is_sign {
            self.sign_at = Some(now);
        }
        // If the peer never pauses, the alarm would otherwise never be polled.
        match self.over(now) {
            Some(over) => Some(over),
            None => (is_sign && matches!(self.told, Some((_, false)))).then(|| self.silent(now)),
        }
    }

    /// Whether bytes arrived right after others, so that more may be on their way through this process.
    pub(crate) fn is_burst(&self) -> bool {
        self.is_burst
    }

    /// Polls for the next notice.
    pub(crate) fn poll_notice(&mut self, cx: &mut Context<'_>) -> Poll<Notice> {
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            let now = Instant::now();
            if let Some(over) = self.over(now) {
                return Poll::Ready(over);
            }
            let notice = self.told_next().filter(|at| *at <= now).map(|_| self.silent(now));
            let next = self.next_deadline();
            self.alarm.as_mut().reset(next);
            if let Some(notice) = notice {
                return Poll::Ready(notice);
            }
        }
    }

    fn silent(&mut self, now: Instant) -> Notice {
        let alive = self.sign_at.is_some_and(|at| now.duration_since(at) < REPEAT);
        self.told = Some((now, alive));
        let (end, _) = self.end();
        Notice::Silent(Silence {
            silent_ms: millis(now.duration_since(self.said_at)),
            left_ms: Some(millis(end.saturating_duration_since(now))),
            alive,
        })
    }

    fn over(&self, now: Instant) -> Option<Notice> {
        let (end, fault) = self.end();
        (end <= now).then(|| Notice::Over(fault()))
    }

    /// Returns when the call times out, and with which error.
    fn end(&self) -> (Instant, impl Fn() -> ConnectionError) {
        let Timeouts { first_byte, idle, .. } = self.timeouts;
        let progress = self.timeouts.progress();
        let (end, kind, what, limit) = match self.head_at {
            None => (
                after(self.said_at, first_byte),
                Transport::FirstByteTimeout,
                "no response began",
                first_byte,
            ),
            Some(head_at) => {
                let idle_end = after(self.heard_at, idle);
                let progress_end = after(self.said_at.max(head_at), progress);
                if idle_end <= progress_end {
                    (idle_end, Transport::IdleTimeout, "the stream stalled: no bytes", idle)
                } else {
                    let what = "the connection is alive, but no content arrived";
                    (progress_end, Transport::NoProgress, what, progress)
                }
            }
        };
        let total = self.timeouts.total.map(|total| (after(self.begun_at, total), total));
        let (end, kind, what, limit) = match total {
            Some((total_end, total)) if total_end < end => {
                (total_end, Transport::TotalTimeout, "the answer was not complete", total)
            }
            _ => (end, kind, what, limit),
        };
        (end, move || ConnectionError::silent(kind, what, limit))
    }

    /// Returns when the silence is reported next.
    fn told_next(&self) -> Option<Instant> {
        let silence = self.timeouts.silence;
        match self.told {
            _ if silence.is_zero() => None,
            None => Some(after(self.said_at, silence)),
            Some((at, true)) => Some((at + REPEAT).min(self.sign_at.unwrap_or(at) + REPEAT)),
            Some((at, false)) => Some(at + REPEAT),
        }
    }

    fn next_deadline(&self) -> Instant {
        let (end, _) = self.end();
        self.told_next().map_or(end, |at| at.min(end))
    }

    /// Moves the alarm forward if the next deadline is earlier.
    fn hasten(&mut self) {
        let next = self.next_deadline();
        if next < self.alarm.deadline() {
            self.alarm.as_mut().reset(next);
        }
    }
}

fn after(moment: Instant, wait: Duration) -> Instant {
    moment + wait.min(FAR)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
