//! The watch over a call: how long nothing has come, and when that is too long.
//!
//! Moments are compared with deadlines. A piece that arrives moves moments and arms no timer, as pieces are many.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use everturn_diagnosis::Transport;
use everturn_kernel::Silence;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{ConnectionError, Timeouts};

/// How often a silence that lasts is told again, and for how long a sign of life counts as one.
const REPEAT: Duration = Duration::from_secs(60);

/// What arrives this soon after words belongs to them, such as the end of their event.
const LULL: Duration = Duration::from_secs(1);

/// Bytes that arrive this soon after others are taken for parts of one burst.
const BURST: Duration = Duration::from_millis(1);

/// Stands for moments that no clock reaches.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// What a watch has to say.
#[derive(Debug)]
pub(crate) enum Notice {
    /// Nothing of the answer has come for a while.
    Silent(Silence),
    /// The call is given up.
    Over(ConnectionError),
}

/// Watches one call, from its request to the end of its answer.
#[derive(Debug)]
pub(crate) struct Watch {
    timeouts: Timeouts,
    begun_at: Instant,
    /// When something of the answer was said last; until then, when the call began.
    said_at: Instant,
    /// When the response's head arrived.
    head_at: Option<Instant>,
    /// When bytes arrived last.
    heard_at: Instant,
    is_burst: bool,
    /// When bytes arrived last that said nothing.
    sign_at: Option<Instant>,
    /// When the silence was told last, and as what.
    told: Option<(Instant, bool)>,
    /// Fires no later than the next deadline. Deadlines move on without it.
    alarm: Pin<Box<Sleep>>,
}

impl Watch {
    /// The call begins now.
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

    /// The head of the response arrived.
    pub(crate) fn answered(&mut self) -> Option<Notice> {
        self.head_at = Some(Instant::now());
        let notice = self.heard(false);
        self.hasten();
        notice
    }

    /// Bytes arrived; `said` tells whether they were of the answer, rather than signs of life alone.
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
            // An answer that never pauses would keep the alarm from being looked at.
            return if self.timeouts.total.is_some() { self.over(now) } else { None };
        }
        let is_sign = now.duration_since(self.said_at) >= LULL;
        if is_sign {
            self.sign_at = Some(now);
        }
        // A peer that never pauses would otherwise keep the alarm from being looked at.
        match self.over(now) {
            Some(over) => Some(over),
            None => (is_sign && matches!(self.told, Some((_, false)))).then(|| self.silent(now)),
        }
    }

    /// Whether bytes arrived right behind others: then more may be on their way through this process.
    pub(crate) fn is_burst(&self) -> bool {
        self.is_burst
    }

    /// Pending until there is something to say.
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

    /// When the call is given up unless something comes, and why.
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
                    (idle_end, Transport::IdleTimeout, "the stream fell silent: no bytes", idle)
                } else {
                    let what = "the connection is alive, but nothing of an answer came";
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

    /// When the silence is told next.
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

    /// Sets the alarm to an earlier moment, where the next deadline is before it.
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
