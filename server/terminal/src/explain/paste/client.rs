//! Parses error messages of clients: `Error code: 429 - {...}`, `HTTP 529: {...}`, `failed with status code 503`.
//! Around the cause, people paste logs, tracebacks and the remarks of agents.

/// Words that precede a status.
const BEFORE: &[&str] =
    &["code", "status", "error", "exception", "http", "http/1.0", "http/1.1", "http/2", "http/3"];

/// Words of a client that sums up what happened before. Another line names the cause.
const SUMMARIES: &[&str] =
    &["retry limit", "max retries", "retries exceeded", "retries exhausted", "giving up", "last status"];

/// Maximum number of lines that are searched, from the end: more than any stack trace has.
const MOST_LINES: usize = 400;

/// What a client's text says about a failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cause<'a> {
    /// The status, if the text names one.
    pub(crate) status: Option<u16>,
    /// The text after the status, or from the line that names the cause.
    pub(crate) said: &'a str,
}

/// Finds the cause of a failure in a client's text: the last line that names a status, or that `names_cause`. A
/// traceback ends with the error; indented lines quote source code or locations.
pub(crate) fn cause<'a>(text: &'a str, names_cause: impl Fn(&str) -> bool) -> Option<Cause<'a>> {
    let text = text.trim();
    let mut begin = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        begin += line.len();
        (begin - line.len(), line)
    });
    let mut lines: Vec<_> = lines.filter(|(_, line)| !line.starts_with(char::is_whitespace)).collect();
    lines.drain(..lines.len().saturating_sub(MOST_LINES));
    let is_summary = |line: &str| SUMMARIES.iter().any(|words| line.to_ascii_lowercase().contains(words));
    let (summaries, others): (Vec<_>, Vec<_>) = lines.into_iter().partition(|(_, line)| is_summary(line));
    let cause = |(at, line): &(usize, &str)| {
        let of_status =
            named(line).map(|(status, end)| Cause { status: Some(status), said: said(text, *at, at + end) });
        of_status.or_else(|| {
            let said = said(text, *at, *at);
            names_cause(said).then_some(Cause { status: None, said })
        })
    };
    // A body that continues on further lines belongs to its status.
    let begins_body = |(_, line): &&(usize, &str)| {
        named(line).is_some_and(|(_, end)| {
            let count = |mark: &str| line[end..].matches(mark).count();
            count("{") > count("}") || (count("<html") > count("</html>"))
        })
    };
    let body = others.iter().rev().find(begins_body).and_then(cause);
    body.or_else(|| others.iter().rev().find_map(cause)).or_else(|| summaries.iter().rev().find_map(cause))
}

/// Returns the text from `end` without calls of a stack trace, or from the line at `line` if nothing follows.
fn said(text: &str, line: usize, end: usize) -> &str {
    let calls = text[end..].find("\n    at ").map_or(text.len(), |at| end + at);
    let is_dash = |c: char| c.is_whitespace() || matches!(c, '-' | ':' | ',' | '.' | ')' | '\'');
    let said = text[end..calls].trim_start_matches(is_dash).trim_end();
    if said.is_empty() { text[line..calls].trim() } else { said }
}

/// Returns a client's text without its own remarks: marks before a line, and the announcement of a retry, which is not
/// a wait that the provider asked for.
pub(crate) fn without_remarks(text: &str) -> String {
    let is_mark = |c: char| !c.is_ascii() && !c.is_alphanumeric();
    let lines = text.split('\n').map(|line| {
        let words = line.trim_start();
        let line = if words.starts_with(is_mark) {
            words.trim_start_matches(|c: char| is_mark(c) || c.is_whitespace())
        } else {
            line
        };
        let retry = line.to_ascii_lowercase().find("retrying ").filter(|at| {
            let before = line[..*at].trim_end();
            before.is_empty() || before.ends_with(|c: char| !c.is_alphanumeric() && c != '"')
        });
        retry.map_or(line, |at| {
            line[..at].trim_end_matches(|c: char| is_mark(c) || matches!(c, ' ' | ';' | ',' | '-' | '('))
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the first status in a line, and where it ends.
fn named(line: &str) -> Option<(u16, usize)> {
    let mut before = "";
    let mut at = 0;
    for word in line.split_inclusive(char::is_whitespace) {
        let digits = word.trim_start_matches(['(', '\'', '"', '[']);
        let start = at + word.len() - digits.len();
        let is_quoted = start > at;
        at += word.len();
        let length = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let is_word = digits[length..].chars().all(|c| c.is_whitespace() || c.is_ascii_punctuation());
        let status = digits[..length]
            .parse()
            .ok()
            .filter(|status| (400..=599).contains(status) && length == 3 && is_word);
        if let Some(status) = status
            && (is_quoted || before.is_empty() || leads(before))
        {
            return Some((status, start + length));
        }
        before = word.trim();
    }
    None
}

/// Whether a status may follow this word: `code:`, `RateLimitError:`, `"HTTP/1.1`.
fn leads(word: &str) -> bool {
    let is_class = word.ends_with("Error:") || word.ends_with("Exception:");
    let word = word.trim_matches(|c: char| c.is_ascii_punctuation() && c != '/').to_ascii_lowercase();
    is_class || BEFORE.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::{Cause, cause, without_remarks};

    fn told(text: &str) -> Option<(u16, &str)> {
        cause(text, |_| false).and_then(|cause| Some((cause.status?, cause.said)))
    }

    #[test]
    fn the_cause_is_found_among_other_lines() {
        let names_cause = |line: &str| line.contains("limit reached");
        for (text, status, said) in [
            ("Rate limit reached. Try again in 1s", None, "Rate limit reached. Try again in 1s"),
            ("agent started\nlimit reached\nin 2 h\n\nbye", None, "limit reached\nin 2 h\n\nbye"),
            (
                "limit reached\n  limit reached here\nRuntimeError: no",
                None,
                "limit reached\n  limit reached here\nRuntimeError: no",
            ),
            (
                "Error code: 400 - {'a': 1}\nexceeded retry limit, last status: 429 x",
                Some(400),
                "{'a': 1}\nexceeded retry limit, last status: 429 x",
            ),
            ("exceeded retry limit, last status: 429 Too Many Requests", Some(429), "Too Many Requests"),
            ("HTTP 502: {\n\"a\": \"limit reached\"\n}", Some(502), "{\n\"a\": \"limit reached\"\n}"),
            ("HTTP 403: <html>\n<p>limit reached", Some(403), "<html>\n<p>limit reached"),
        ] {
            assert_eq!(cause(text, names_cause), Some(Cause { status, said }), "{text}");
        }
        assert_eq!(cause("nothing of the kind", names_cause), None);
    }

    #[test]
    fn remarks_of_the_client_are_dropped() {
        for (text, kept) in [
            (
                "  \u{23bf} API Error (529 {}) \u{b7} Retrying in 1 seconds\u{2026} (attempt 1/10)",
                "API Error (529 {})",
            ),
            ("\u{25a0} busy; retrying 1/5 in 200ms\u{2026}", "busy"),
            ("Retrying in 5 s\nno", "\nno"),
            ("Please wait 7 s before retrying again", "Please wait 7 s before retrying again"),
            ("    indented code", "    indented code"),
        ] {
            assert_eq!(without_remarks(text), kept, "{text}");
        }
    }

    #[test]
    fn a_status_is_read_where_clients_print_it() {
        for (text, expected) in [
            ("HTTP 529: {\"error\":1}", (529, "{\"error\":1}")),
            ("HTTP 502: <html>\n<p>no", (502, "<html>\n<p>no")),
            ("429 Too Many Requests", (429, "Too Many Requests")),
            ("Request failed with status code 429", (429, "Request failed with status code 429")),
            ("API Error: 529 {}", (529, "{}")),
            ("a.ClientError: 429 RESOURCE_EXHAUSTED. {'a': 1}", (429, "RESOURCE_EXHAUSTED. {'a': 1}")),
            ("unexpected status 502 Bad Gateway: x", (502, "Bad Gateway: x")),
            (
                "HTTP status server error (503 Service Unavailable) for url (h)",
                (503, "Service Unavailable) for url (h)"),
            ),
            ("INFO POST https://h \"HTTP/1.1 429 Too Many Requests\"", (429, "Too Many Requests\"")),
            (
                "Traceback (most recent call last):\n  File \"a.py\", line 429, in x\n    raise Error: 500\n\
                 openai.BadRequestError: Error code: 400 - {'error': {}}\n",
                (400, "{'error': {}}"),
            ),
            (
                "RateLimitError: 429 Slow down.\n    at generate (error.js:63:20) {\n  status: 500,\n}",
                (429, "Slow down."),
            ),
        ] {
            assert_eq!(told(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_numbers_are_not_statuses() {
        for text in [
            "Connection refused at 127.0.0.1:500",
            "error sending request for url (http://h:429/503): connection closed",
            "File \"a.py\", line 429, in x",
            "after 500 ms",
            "error 4290",
            "HTTP 200: fine",
            "",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
