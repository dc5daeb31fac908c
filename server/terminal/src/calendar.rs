//! Formats moments for people.

use jiff::{Timestamp, Zoned, tz::TimeZone};

/// The person's time zone and current time.
pub(crate) struct Calendar {
    now: Zoned,
}

impl Calendar {
    pub(crate) fn of_process() -> Self {
        Self { now: Zoned::now() }
    }

    /// To the second, in epoch milliseconds: `12:03:10` today, with the date on any other day.
    pub(crate) fn exact(&self, at: u64) -> String {
        self.written(at, "%H:%M:%S", "%b %-d %H:%M:%S", "%Y-%m-%d %H:%M:%S")
    }

    /// As short as possible: `12:03`, `Nov 20 12:03`, `2025-11-20`.
    pub(crate) fn brief(&self, at: u64) -> String {
        self.written(at, "%H:%M", "%b %-d %H:%M", "%Y-%m-%d")
    }

    /// Whether it is in the future.
    pub(crate) fn is_ahead(&self, at: u64) -> bool {
        self.place(at).is_some_and(|at| at > self.now)
    }

    fn written(&self, at: u64, today: &str, this_year: &str, ever: &str) -> String {
        let Some(at) = self.place(at) else { return format!("{at} ms") };
        let form = match () {
            () if at.date() == self.now.date() => today,
            () if at.year() == self.now.year() => this_year,
            () => ever,
        };
        at.strftime(form).to_string()
    }

    fn place(&self, at: u64) -> Option<Zoned> {
        let at = Timestamp::from_millisecond(i64::try_from(at).ok()?).ok()?;
        Some(at.to_zoned(self.zone()))
    }

    fn zone(&self) -> TimeZone {
        self.now.time_zone().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_as_long_as_it_must_be() {
        let now: Zoned = "2026-11-21T12:00:00+01:00[+01:00]".parse().unwrap();
        let calendar = Calendar { now };
        for (at, exact, brief) in [
            ("2026-11-21T11:03:10Z", "12:03:10", "12:03"),
            ("2026-11-20T23:30:00Z", "00:30:00", "00:30"),
            ("2026-11-20T22:30:00Z", "Nov 20 23:30:00", "Nov 20 23:30"),
            ("2025-01-02T00:00:00Z", "2025-01-02 01:00:00", "2025-01-02"),
        ] {
            let at: Timestamp = at.parse().unwrap();
            let at = u64::try_from(at.as_millisecond()).unwrap();
            assert_eq!((calendar.exact(at).as_str(), calendar.brief(at).as_str()), (exact, brief));
        }
        assert_eq!(calendar.exact(u64::MAX), "18446744073709551615 ms", "no calendar has it");
    }
}
