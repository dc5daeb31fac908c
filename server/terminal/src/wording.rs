//! Wording of failures and times.

use std::time::Duration;

use everturn_wire::Category;
use serde_json::Value;

use crate::visible::visible;

/// Maximum number of characters of a failure that are shown.
const LONGEST: usize = 400;

/// Shortens a provider's failure to one line: the message in its JSON, or the title of its HTML page.
pub fn brief(message: &str) -> String {
    let (head, body) = match message.split_once(": ") {
        Some((head, body)) if head.starts_with("HTTP ") => (format!("{head}: "), body),
        _ => (String::new(), message),
    };
    let said = of_json(body).or_else(|| of_page(body)).unwrap_or_else(|| body.to_owned());
    // Many pages repeat the status.
    let status = head.trim_start_matches("HTTP ").trim_end_matches(": ");
    let said = said.trim_start().strip_prefix(status).unwrap_or(&said);
    format!("{head}{}", one_line(said, LONGEST))
}

fn of_json(body: &str) -> Option<String> {
    let body: Value = serde_json::from_str(body).ok()?;
    let places = ["/error/message", "/message", "/error", "/detail"];
    let said = places.iter().find_map(|place| body.pointer(place)?.as_str().map(str::to_owned));
    said.filter(|text| !text.trim().is_empty())
}

/// Returns the title of an HTML page.
fn of_page(body: &str) -> Option<String> {
    let (_, rest) = body.trim_start().starts_with('<').then(|| body.split_once("<title>"))??;
    rest.split_once("</title>").map(|(title, _)| title.to_owned())
}

/// Puts text on one line of at most `longest` characters, without control characters.
pub fn one_line(text: &str, longest: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = visible(&words.join(" "));
    match plain.char_indices().nth(longest) {
        Some((end, _)) => format!("{}...", &plain[..end]),
        None => plain,
    }
}

/// Formats a duration in whole seconds: `5s`, `1m 05s`, `2h 03m`.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Formats a wait with its two largest units: `8 s`, `1 min`, `7 h 32 min`.
pub fn span(ms: u64) -> String {
    let (large, small, unit) = match ms {
        0..1000 => return format!("{ms} ms"),
        1000..60_000 if !ms.is_multiple_of(1000) => return format!("{:.1} s", ms as f64 / 1000.0),
        1000..60_000 => return format!("{} s", ms / 1000),
        60_000..3_600_000 => (ms / 60_000, ms % 60_000 / 1000, ("min", "s")),
        3_600_000..86_400_000 => {
            let minutes = ms.saturating_add(30_000) / 60_000;
            (minutes / 60, minutes % 60, ("h", "min"))
        }
        _ => {
            let hours = ms.saturating_add(1_800_000) / 3_600_000;
            (hours / 24, hours % 24, (if hours / 24 == 1 { "day" } else { "days" }, "h"))
        }
    };
    match small {
        0 => format!("{large} {}", unit.0),
        small => format!("{large} {} {small} {}", unit.0, unit.1),
    }
}

/// Formats `1 retry`, `2 retries`.
pub fn retries(number: u32) -> String {
    if number == 1 { "1 retry".to_owned() } else { format!("{number} retries") }
}

/// Formats `1 chunk`, `2 chunks`.
pub fn count(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Formats `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(number: u64) -> String {
    let ending = match (number % 10, number % 100) {
        (1, tens) if tens != 11 => "st",
        (2, tens) if tens != 12 => "nd",
        (3, tens) if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Returns a category in words: `rate limited`.
pub fn category(category: Category) -> String {
    let name = serde_json::to_value(category).ok();
    name.and_then(|name| Some(name.as_str()?.replace('_', " "))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_providers_message() {
        for (message, expected) in [
            (
                r#"HTTP 529: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "HTTP 529: Overloaded",
            ),
            ("HTTP 502: <html>\n<head><title>502 Bad Gateway</title></head></html>", "HTTP 502: Bad Gateway"),
            (r#"{"error":"no"}"#, "no"),
            ("HTTP 500: oops\n\n  twice", "HTTP 500: oops twice"),
            ("127.0.0.1:1: connection refused", "127.0.0.1:1: connection refused"),
            ("a\u{1b}[2Jb", "a[2Jb"),
        ] {
            assert_eq!(brief(message), expected);
        }
        assert_eq!(brief(&"é".repeat(1000)).chars().count(), LONGEST + 3);
    }

    #[test]
    fn times_are_short() {
        for (seconds, expected) in
            [(0, "0s"), (59, "59s"), (65, "1m 05s"), (1800, "30m 00s"), (7380, "2h 03m")]
        {
            assert_eq!(time(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn waits_have_two_units_at_most() {
        for (ms, expected) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (8000, "8 s"),
            (7660, "7.7 s"),
            (60_000, "1 min"),
            (65_000, "1 min 5 s"),
            (1_800_000, "30 min"),
            (27_105_000, "7 h 32 min"),
            (28_800_000, "8 h"),
            (90_000_000, "1 day 1 h"),
        ] {
            assert_eq!(span(ms), expected, "{ms}");
        }
    }

    #[test]
    fn numbers_and_categories_are_words() {
        let ordinals: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].into_iter().map(ordinal).collect();
        let expected = ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"];
        assert_eq!(ordinals, expected);
        assert_eq!((count(1, "chunk"), count(0, "chunk")), ("1 chunk".to_owned(), "0 chunks".to_owned()));
        assert_eq!(category(Category::RateLimited), "rate limited");
    }
}
