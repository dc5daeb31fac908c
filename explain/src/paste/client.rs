//! Parses error messages of clients: `Error code: 429 - {...}`, `HTTP 529: {...}`, `failed with status code 503`.

/// Words that precede a status.
const BEFORE: &[&str] =
    &["code", "status", "error", "exception", "http", "http/1.0", "http/1.1", "http/2", "http/3"];

/// Returns the status in a client's text, and the text after it, or the whole text if nothing follows. The last line
/// with a status counts, except for indented lines: a traceback ends with the error, and the indented lines quote
/// source code or locations.
pub(crate) fn told(text: &str) -> Option<(u16, &str)> {
    let text = text.trim();
    let mut begin = 0;
    let mut told = None;
    for line in text.split_inclusive('\n') {
        if !line.starts_with(char::is_whitespace)
            && let Some((status, end)) = named(line)
        {
            told = Some((status, begin, begin + end));
        }
        begin += line.len();
    }
    let (status, line, end) = told?;
    let calls = text[end..].find("\n    at ").map_or(text.len(), |at| end + at);
    let is_dash = |c: char| c.is_whitespace() || matches!(c, '-' | ':' | ',' | '.' | ')' | '\'');
    let said = text[end..calls].trim_start_matches(is_dash).trim_end();
    Some((status, if said.is_empty() { text[line..calls].trim() } else { said }))
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
    use super::told;

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
