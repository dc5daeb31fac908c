//! The server's clock, which its events refer to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Differences up to this cannot be distinguished from the error of a `Date` header, which has whole seconds.
const UNSURE_MS: i64 = 2000;

/// An estimate of the server's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// How far it is ahead of this machine's clock, in milliseconds.
    ahead_ms: i64,
    wall_ms: fn() -> u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { ahead_ms: 0, wall_ms }
    }
}

impl Clock {
    /// The clock of a server that just answered with this `Date`; assumed to equal the local clock without one.
    pub(crate) fn of_answer(date: Option<&str>) -> Self {
        date.and_then(|date| httpdate::parse_http_date(date).ok()).map_or_else(Self::default, |date| {
            // The second has already begun: on average, half of it has passed.
            Self::new(epoch_ms(date).saturating_add(500), wall_ms)
        })
    }

    /// A clock that shows `server_ms` now.
    pub(crate) fn new(server_ms: u64, wall_ms: fn() -> u64) -> Self {
        let ahead_ms = server_ms.cast_signed().saturating_sub(wall_ms().cast_signed());
        Self { ahead_ms: if ahead_ms.abs() > UNSURE_MS { ahead_ms } else { 0 }, wall_ms }
    }

    /// Time until the server's clock shows `at`, in epoch milliseconds; zero if that has passed.
    pub(crate) fn until(&self, at: u64) -> Duration {
        Duration::from_millis(self.here(at).saturating_sub((self.wall_ms)()))
    }

    /// Converts `at` from the server's clock to this machine's clock, both in epoch milliseconds.
    pub(crate) fn here(&self, at: u64) -> u64 {
        at.saturating_add_signed(self.ahead_ms.saturating_neg())
    }
}

fn wall_ms() -> u64 {
    epoch_ms(SystemTime::now())
}

fn epoch_ms(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine whose clock shows 100 s after the epoch.
    const HERE: fn() -> u64 = || 100_000;

    #[test]
    fn a_server_s_moment_is_counted_down_to_by_its_own_clock() {
        for (server_ms, at, left_ms) in [
            (100_000, 105_000, 5000),
            (101_900, 105_000, 5000),
            (160_000, 165_000, 5000),
            (40_000, 45_000, 5000),
            (40_000, 39_000, 0),
        ] {
            let clock = Clock::new(server_ms, HERE);
            assert_eq!(clock.until(at), Duration::from_millis(left_ms), "{server_ms} {at}");
        }
    }

    #[test]
    fn a_date_is_a_clock() {
        for (date, is_far) in
            [(Some("Thu, 01 Jan 1970 00:00:10 GMT"), true), (Some("soon"), false), (None, false)]
        {
            assert_eq!(Clock::of_answer(date).ahead_ms < -UNSURE_MS, is_far, "{date:?}");
        }
    }
}
