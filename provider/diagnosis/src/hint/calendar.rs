//! Parses points in time as people write them: `3pm (America/New_York)`, `Sep 3 at 5:00 AM UTC`, `midnight Pacific time`.
//!
//! Rejects a time without a zone, which is ambiguous by hours.

use super::date::{days, digits};
use super::zone::Zone;

const DAY: i64 = 24 * 60;

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// The end of the year 9999, in epoch seconds. A later clock is a wrong one.
const END: i64 = 253_402_300_800;

/// From a Thursday on, because 1970 began on one.
const WEEKDAYS: [&str; 7] = ["thursday", "friday", "saturday", "sunday", "monday", "tuesday", "wednesday"];

/// Minimum number of letters of an abbreviated month or weekday.
const SHORTEST: usize = 3;

/// On which day a time is meant.
enum Day {
    /// The next one with this time.
    Next,
    /// The next one with this name, as an index into [`WEEKDAYS`].
    Weekday(i64),
    /// Without a year, the next one with this month and day.
    Date { year: Option<i64>, month: i64, day: i64 },
}

/// Parses a time with its zone, and optionally its day, at the start of a lower-case text without punctuation. Returns
/// the first such time after `now`; both are in epoch milliseconds.
pub(super) fn read(text: &str, now: u64) -> Option<f64> {
    let (day, rest) = day(text);
    let rest = ["at ", "by "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let (time, rest) = time(rest)?;
    let zone = Zone::read(rest)?;
    let utc = |date: i64| {
        let local = date * DAY + time;
        local - zone.offset(local - zone.offset(local))
    };
    let now = i64::try_from(now / 1_000).ok().filter(|now| *now < END)?;
    let today = (now / 60 + zone.offset(now / 60)).div_euclid(DAY);
    let next = |mut dates: Box<dyn Iterator<Item = i64>>| dates.find(|date| utc(*date) * 60 > now);
    let date = match day {
        Day::Next => next(Box::new(today..=today + 1))?,
        Day::Weekday(wanted) => {
            next(Box::new((today..=today + 7).filter(move |date| date.rem_euclid(7) == wanted)))?
        }
        Day::Date { year: Some(year), month, day } => days(year, month, day),
        Day::Date { year: None, month, day } => {
            let year = 1970 + today * 400 / 146_097;
            next(Box::new([year, year + 1].into_iter().map(move |year| days(year, month, day))))?
        }
    };
    Some((utc(date) * 60_000) as f64)
}

/// Parses the day at the start, if there is one, and returns the rest of the text.
fn day(text: &str) -> (Day, &str) {
    let (first, rest) = word(text);
    let Some(weekday) = index(&WEEKDAYS, first) else { return date(text).unwrap_or((Day::Next, text)) };
    date(rest).unwrap_or((Day::Weekday(weekday), rest))
}

/// Parses `sep 3rd 2026` or `3 september`.
fn date(text: &str) -> Option<(Day, &str)> {
    let (first, rest) = word(text);
    let (second, rest) = word(rest);
    let month_first = || Some((index(&MONTHS, first)?, ordinal(second)?));
    let (month, day) = month_first().or_else(|| Some((index(&MONTHS, second)?, ordinal(first)?)))?;
    let (third, after) = word(rest);
    let year = digits(third, 4).filter(|(_, end)| end.is_empty()).map(|(year, _)| year);
    let rest = if year.is_some() { after } else { rest };
    Some((Day::Date { year, month: month + 1, day }, rest))
}

/// Parses `15:00`, `3pm`, `3:45 pm`, `noon` or `midnight` into minutes, and returns the rest of the text.
fn time(text: &str) -> Option<(i64, &str)> {
    let named = [("midnight", 0), ("noon", 12 * 60)];
    if let Some((minutes, rest)) = named.iter().find_map(|(name, at)| Some((*at, text.strip_prefix(name)?))) {
        return Some((minutes, rest));
    }
    let (hour, rest) = digits(text, 2).or_else(|| digits(text, 1))?;
    let exact = rest.strip_prefix(':').and_then(|rest| digits(rest, 2));
    let (minute, rest) = exact.unwrap_or((0, rest));
    let rest = rest.strip_prefix(':').and_then(|rest| digits(rest, 2)).map_or(rest, |(_, rest)| rest);
    let half = |names: [&'static str; 2]| {
        let rest = rest.trim_start_matches(' ');
        let rest = names.iter().find_map(|name| rest.strip_prefix(name))?;
        rest.is_empty().then_some(rest).or_else(|| rest.starts_with(' ').then_some(rest))
    };
    let (hour, rest) = match (half(["am", "a m"]), half(["pm", "p m"])) {
        (Some(rest), _) if (1..=12).contains(&hour) => (hour % 12, rest),
        (_, Some(rest)) if (1..=12).contains(&hour) => (hour % 12 + 12, rest),
        (None, None) if exact.is_some() && hour < 24 => (hour, rest),
        _ => return None,
    };
    (minute < 60).then_some((hour * 60 + minute, rest))
}

fn word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// Returns the index of a name that may be abbreviated.
fn index(names: &[&str], word: &str) -> Option<i64> {
    let at = names.iter().position(|name| word.len() >= SHORTEST && name.starts_with(word))?;
    i64::try_from(at).ok()
}

/// Parses `3`, `03` or `3rd`.
fn ordinal(word: &str) -> Option<i64> {
    let number = ["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word);
    number.parse().ok().filter(|day| (1..=31).contains(day))
}

#[cfg(test)]
mod tests {
    use super::read;

    /// Tuesday, 2026-09-01, 12:00 UTC.
    const NOW: u64 = 1_788_264_000_000;

    fn hours(text: &str) -> Option<f64> {
        read(text, NOW).map(|at| (at - NOW as f64) / 3_600_000.0)
    }

    #[test]
    fn the_next_such_moment_is_meant() {
        for (text, expected) in [
            ("15:00 utc", 3.0),
            ("15:30:20 utc and more", 3.5),
            ("3pm utc", 3.0),
            ("3:30 pm utc", 3.5),
            ("12pm utc", 24.0),
            ("12:01 pm utc", 1.0 / 60.0),
            ("12am utc", 12.0),
            ("midnight utc", 12.0),
            ("noon europe berlin", 22.0),
            ("3pm america new york", 7.0),
            ("3 p m america new york", 7.0),
            ("at 9am asia tokyo", 12.0),
            ("08:00+02:00", 18.0),
            ("friday 12:00 utc", 72.0),
            ("tue 12:00 utc", 168.0),
            ("tue sep 8 at 12:00 utc", 168.0),
            ("sep 3 5am utc", 41.0),
            ("3 september 2026 at 05:00 utc", 41.0),
            ("aug 31 at 12:00 utc", 364.0 * 24.0),
        ] {
            assert_eq!(hours(text).map(|hours| (hours * 60.0).round() / 60.0), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_moment_needs_a_time_and_a_zone() {
        for text in
            ["3pm", "15:00", "15 utc", "25:00 utc", "13pm utc", "3:99 pm utc", "sep 3 utc", "utc", "", "é"]
        {
            assert_eq!(hours(text), None, "{text}");
        }
        assert_eq!(
            hours("sep 3 2020 at 5am utc").map(|hours| hours < 0.0),
            Some(true),
            "the past is no wait"
        );
        assert_eq!(read("15:00 utc", u64::MAX), None);
    }
}
