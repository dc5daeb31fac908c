//! Parses points in time into epoch milliseconds. Rejects a date without a zone, which is ambiguous by hours.

use std::time::UNIX_EPOCH;

/// Parses `Tue, 01 Sep 2026 00:00:12 GMT`.
pub(super) fn http(text: &str) -> Option<f64> {
    let since = httpdate::parse_http_date(text.trim()).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_millis() as f64)
}

/// Parses lower-case `2026-09-01t09:44:51.5z`, also with a space for `t`, or `utc`. Returns the rest of the text too.
pub(super) fn rfc3339(text: &str) -> Option<(f64, &str)> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let rest = rest.strip_prefix(" at ").or_else(|| rest.strip_prefix(['t', ' ']))?;
    let (hour, rest) = digits(rest, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, rest) = rest.strip_prefix(':').map_or(Some((0, rest)), |rest| digits(rest, 2))?;
    let (fraction, rest) = fraction(rest);
    let (offset_minutes, rest) = zone(rest)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
    Some((((minutes * 60 + second) as f64 + fraction) * 1000.0, rest))
}

/// Returns days since 1970 in the Gregorian calendar. Years start in March, so that a leap day ends its year.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let shifted = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + of_year - 719_468
}

fn zone(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start_matches(' ');
    for name in ["utc", "gmt", "z"] {
        if let Some(rest) = text.strip_prefix(name) {
            return Some((0, rest));
        }
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, rest) = digits(text.strip_prefix(['+', '-'])?, 2)?;
    let (minutes, rest) = digits(rest.strip_prefix(':').unwrap_or(rest), 2)?;
    Some((sign * (hours * 60 + minutes), rest))
}

fn fraction(text: &str) -> (f64, &str) {
    let Some(after) = text.strip_prefix('.') else { return (0.0, text) };
    let length = after.bytes().take_while(u8::is_ascii_digit).count();
    (text[..=length].parse().unwrap_or(0.0), &after[length..])
}

pub(super) fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let head = text.get(..count).filter(|head| head.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some((head.parse().ok()?, &text[count..]))
}

#[cfg(test)]
mod tests {
    use super::{http, rfc3339};

    #[test]
    fn all_notations_of_one_moment_agree() {
        let moment = Some(1_788_255_891_000.0);
        assert_eq!(http("Tue, 01 Sep 2026 09:44:51 GMT"), moment);
        for text in [
            "2026-09-01t09:44:51z",
            "2026-09-01 09:44:51 utc",
            "2026-09-01t11:44:51+02:00",
            "2026-09-01t09:44:51.000z",
            "2026-09-01t04:14:51-0530",
        ] {
            assert_eq!(rfc3339(text).map(|(at, _)| at), moment, "{text}");
        }
    }

    #[test]
    fn leap_days_and_invalid_dates() {
        assert_eq!(rfc3339("2024-02-29t00:00:00z").unwrap().0, 1_709_164_800_000.0);
        for text in ["2026-13-01t00:00:00z", "2026-09-01t00:00:00", "2026-09-01", "20é6-09-01t00:00:00z", ""]
        {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }
}
