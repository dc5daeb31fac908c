//! Parses durations into milliseconds: `6m0s`, `1h16m0.5s`, `579ms`, `4 days 20 hours 9 minutes`, `03:12:45`.

/// (unit in milliseconds, names).
const UNITS: &[(f64, &[&str])] = &[
    (1.0, &["ms", "msec", "msecs", "millis", "millisecond", "milliseconds", "毫秒"]),
    (1e3, &["s", "sec", "secs", "second", "seconds", "秒", "秒钟"]),
    (60e3, &["m", "min", "mins", "minute", "minutes", "分", "分钟"]),
    (3600e3, &["h", "hr", "hrs", "hour", "hours", "小时"]),
    (86_400e3, &["d", "day", "days", "天", "日"]),
    (604_800e3, &["w", "week", "weeks", "周"]),
    (2_592_000e3, &["month", "months"]),
    (1e-3, &["us", "µs", "μs", "microsecond", "microseconds"]),
    (1e-6, &["ns", "nanosecond", "nanoseconds"]),
];

/// Parses a text that is entirely a duration.
pub(super) fn whole(text: &str) -> Option<f64> {
    let text = text.trim();
    // ISO 8601 writes `PT1M30S`.
    let (millis, rest) = leading(text.strip_prefix("pt").unwrap_or(text))?;
    rest.trim().is_empty().then_some(millis)
}

/// Parses the duration at the start of a lower-case text, and returns the rest of the text.
pub(super) fn leading(text: &str) -> Option<(f64, &str)> {
    if let Some(clock) = clock(text) {
        return Some(clock);
    }
    let (mut total, mut smallest, mut rest) = part(text)?;
    // Units must decrease, so "in 2 minutes 3 hours" ends after the minutes.
    while let Some((millis, unit, after)) = part(continued(rest)).filter(|(_, unit, _)| *unit < smallest) {
        total += millis;
        smallest = unit;
        rest = after;
    }
    Some((total, rest))
}

fn continued(rest: &str) -> &str {
    let rest = rest.trim_start_matches([' ', ',']);
    rest.strip_prefix("and ").unwrap_or(rest)
}

/// Parses a number with its unit: milliseconds, unit, rest of the text.
fn part(text: &str) -> Option<(f64, f64, &str)> {
    let (amount, rest) = amount(text).or_else(|| in_words(text))?;
    let rest = rest.trim_start_matches(' ');
    let length = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    // In scripts without spaces, text follows the unit directly.
    let name =
        |name: &&&str| if name.is_ascii() { rest[..length] == ***name } else { rest.starts_with(**name) };
    let (unit, found) = UNITS.iter().find_map(|(unit, names)| {
        let longest = names.iter().filter(name).max_by_key(|name| name.len())?;
        Some((*unit, longest.len()))
    })?;
    Some((amount * unit, unit, &rest[found..]))
}

/// Numbers in words.
#[rustfmt::skip]
const WORDS: &[(&str, f64)] = &[
    ("half an", 0.5), ("half a", 0.5), ("a", 1.0), ("an", 1.0), ("one", 1.0), ("two", 2.0), ("three", 3.0), ("four", 4.0),
    ("five", 5.0), ("six", 6.0), ("seven", 7.0), ("eight", 8.0), ("nine", 9.0), ("ten", 10.0), ("twelve", 12.0),
];

/// Parses a number in words at the start: "an hour", "two days".
fn in_words(text: &str) -> Option<(f64, &str)> {
    WORDS.iter().find_map(|(word, number)| Some((*number, text.strip_prefix(word)?.strip_prefix(' ')?)))
}

/// Parses a decimal number at the start. Commas group thousands.
pub(super) fn amount(text: &str) -> Option<(f64, &str)> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',')).count();
    let number = text[..length].trim_end_matches(['.', ',']);
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(())?;
    Some((number.replace(',', "").parse().ok()?, &text[number.len()..]))
}

/// Parses `03:12:45`, hours first. Two parts alone would be a time of day.
fn clock(text: &str) -> Option<(f64, &str)> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b':').count();
    let mut parts = text[..length].split(':').map(|part| part.parse::<u32>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let millis = f64::from(hours) * 3600e3 + f64::from(minutes) * 60e3 + f64::from(seconds) * 1e3;
    parts.next().is_none().then_some((millis, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::{leading, whole};

    #[test]
    fn every_notation() {
        for (text, millis) in [
            ("6m0s", 360_000.0),
            ("2m59.56s", 179_560.0),
            ("1h16m0.5s", 4_560_500.0),
            ("18h31m10s", 66_670_000.0),
            ("579ms", 579.0),
            ("158 min", 9_480_000.0),
            ("6hr 29min", 23_340_000.0),
            ("4 days 20 hours 9 minutes", 418_140_000.0),
            ("1 hour and 5 minutes", 3_900_000.0),
            ("1,800 seconds", 1_800_000.0),
            ("03:12:45", 11_565_000.0),
            ("2小时5分钟", 7_500_000.0),
            ("an hour", 3_600_000.0),
            ("half an hour", 1_800_000.0),
            ("two days", 172_800_000.0),
            ("pt1m30s", 90_000.0),
        ] {
            assert_eq!(whole(text).map(f64::round), Some(millis), "{text}");
        }
    }

    #[test]
    fn only_the_leading_duration_is_read() {
        assert_eq!(leading("30秒后重试"), Some((30_000.0, "后重试")));
        assert_eq!(leading("20 seconds 5 requests"), Some((20_000.0, " 5 requests")));
        assert_eq!(leading("5 minutes 2 hours").unwrap().0, 300_000.0);
        for text in ["", "5", "5 requests", "m", ". s", "09:44", "a 5s"] {
            assert_eq!(leading(text), None, "{text}");
        }
    }
}
