//! Days.

use std::{fmt, str::FromStr};

use everturn_kernel::Millis;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Days of 400 years, and from 0000-03-01 to 1970-01-01.
const CYCLE: u64 = 146_097;
const TO_EPOCH: u64 = 719_468;

/// A day in UTC, as written in ISO 8601: `2026-11-25`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(u64);

/// Text that is no day.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a date like 2026-11-25")]
pub struct InvalidDay(String);

impl Day {
    /// Returns the day of a moment; the last one of the year 9999 for all after it.
    pub fn of(moment: Millis) -> Self {
        Self((moment.0 / DAY_MS).min(2_932_896))
    }

    /// Returns the day so many days earlier, but not before 1970.
    #[must_use]
    pub fn before(self, days: u64) -> Self {
        Self(self.0.saturating_sub(days))
    }

    /// Returns the number of days from an earlier one.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns year, month and day. Years are counted from March, so that a leap day is the last one of its year.
    fn date(self) -> (u64, u64, u64) {
        let days = self.0 + TO_EPOCH;
        let (cycle, of_cycle) = (days / CYCLE, days % CYCLE);
        let year = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
        let of_year = of_cycle - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (year + cycle * 400 + u64::from(month <= 2), month, day)
    }

    /// The inverse of [`date`](Self::date), for plausible numbers.
    fn from_date(year: u64, month: u64, day: u64) -> Option<Self> {
        let year = year.checked_sub(u64::from(month <= 2))?;
        let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day.checked_sub(1)?;
        let (cycle, year) = (year / 400, year % 400);
        let days = cycle * CYCLE + year * 365 + year / 4 - year / 100 + of_year;
        days.checked_sub(TO_EPOCH).map(Self)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.date();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl FromStr for Day {
    type Err = InvalidDay;

    fn from_str(text: &str) -> Result<Self, InvalidDay> {
        let number =
            |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?;
        let read = || {
            let mut parts = text.splitn(3, '-');
            let (year, month, day) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
            let is_near = (1970..=9999).contains(&year) && (1..=12).contains(&month) && day <= 31;
            is_near.then(|| Self::from_date(year, month, day)).flatten()
        };
        // Only what is written as it would be shown; that also refuses days that a month lacks.
        read()
            .filter(|day| day.to_string() == text)
            .ok_or_else(|| InvalidDay(text.chars().take(32).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_as_they_are_written() {
        for (epoch_ms, text) in [
            (0, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (951_868_799_999, "2000-02-29"),
            (951_868_800_000, "2000-03-01"),
            (1_735_689_599_000, "2024-12-31"),
            (4_107_542_400_000, "2100-03-01"),
            (u64::MAX, "9999-12-31"),
        ] {
            let day = Day::of(Millis(epoch_ms));
            assert_eq!(day.to_string(), text);
            assert_eq!(text.parse(), Ok(day));
        }
        let mut day = Day(0);
        for _ in 0..60_000 {
            assert_eq!(day.to_string().parse(), Ok(day), "{day:?}");
            day = Day(day.0 + 1);
        }
    }

    #[test]
    fn other_text_is_no_day() {
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-2-3",
            "26-01-01",
            "2026-01-01T",
            "+2026-01-01",
            "1969-12-31",
        ] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }
}
