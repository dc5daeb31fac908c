//! Parses pasted input: a body, a response as printed by `curl -i`, or the output of `curl -v`.

pub(super) mod client;
mod meter;

use anyhow::{Context as _, Result};

/// Maximum number of lines before a response, such as the command or curl's remarks.
const HEAD: usize = 64;

/// A response, as far as the input contains it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Paste {
    pub(super) status: Option<u16>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Paste {
    pub(super) fn parse(input: &str) -> Result<Self> {
        let input = input.trim_start_matches('\u{feff}');
        let input = meter::without(&input.replace("\r\n", "\n"));
        let is_talk = |line: &str| line.starts_with("< HTTP/") || line.starts_with("* ");
        let input = input.trim_start();
        if input.lines().take(HEAD).any(is_talk) {
            return Self::of_talk(input);
        }
        match response(input) {
            Some(response) => Self::of_response(response),
            None => Ok(Self { body: input.trim_end().to_owned(), ..Self::default() }),
        }
    }

    /// Parses consecutive heads. The last one counts; the others are from proxies, redirects and 1xx responses.
    fn of_response(text: &str) -> Result<Self> {
        let mut rest = text;
        let mut response = Self::default();
        while rest.starts_with("HTTP/") {
            let (head, after) = rest.split_once("\n\n").unwrap_or((rest, ""));
            response = Self::of_head(head.lines())?;
            rest = after.trim_start_matches('\n');
        }
        Ok(Self { body: rest.trim_end().to_owned(), ..response })
    }

    fn of_head<'a>(mut lines: impl Iterator<Item = &'a str>) -> Result<Self> {
        let first = lines.next().unwrap_or_default();
        let status = first.split_ascii_whitespace().nth(1).and_then(|word| word.parse().ok());
        let status = status.filter(|status| (100..=599).contains(status)).with_context(|| {
            format!("{:?} is not a status line; expected e.g. HTTP/1.1 429 Too Many Requests", start(first))
        })?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':').with_context(|| {
                format!("{:?} is not a header; separate headers and body with an empty line", start(line))
            })?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        };
        let lines = lines.filter(|line| !line.trim().is_empty());
        let headers = lines.map(header).collect::<Result<_>>()?;
        Ok(Self { status: Some(status), headers, body: String::new() })
    }

    /// Parses `curl -v` output: `<` marks received lines, `>` sent lines, and `*` curl's remarks.
    fn of_talk(text: &str) -> Result<Self> {
        let Some(begin) = text.rmatch_indices("< HTTP/").map(|(at, _)| at).find(|at| is_line(text, *at))
        else {
            return Ok(Self { body: remark(text), ..Self::default() });
        };
        let mut head = Vec::new();
        let mut body = Vec::new();
        for line in text[begin..].lines() {
            match line.strip_prefix('<').filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
                Some(rest) => head.push(rest.trim()),
                None if line.starts_with("* ") || line.starts_with("{ [") || line.starts_with("} [") => {}
                // The remark that the connection stays open follows the body on the same line.
                None => body.push(line.split("* Connection #").next().unwrap_or_default()),
            }
        }
        let response = Self::of_head(head.into_iter())?;
        Ok(Self { body: body.join("\n").trim().to_owned(), ..response })
    }
}

/// Returns the response without the preceding command. A body that quotes a response is still a body.
fn response(text: &str) -> Option<&str> {
    if text.starts_with("HTTP/") {
        return Some(text);
    }
    if text.starts_with(['{', '[', '<', '"']) {
        return None;
    }
    let begin = text.match_indices("\nHTTP/").map(|(at, _)| at + 1).next()?;
    (text[..begin].lines().count() <= HEAD).then(|| &text[begin..])
}

fn is_line(text: &str, at: usize) -> bool {
    at == 0 || text.as_bytes()[at - 1] == b'\n'
}

/// Words of curl that indicate a failure.
const FAILED: &[&str] =
    &["failed", "refused", "timed out", "reset", "error", "could not", "couldn't", "unable", "problem"];

/// Returns curl's error message if there is no response, without its remarks on cleaning up.
fn remark(text: &str) -> String {
    let is_failure = |line: &&str| {
        let line = line.to_ascii_lowercase();
        line.starts_with("curl: (")
            || (line.starts_with("* ") && FAILED.iter().any(|word| line.contains(word)))
    };
    let failures: Vec<_> =
        text.lines().filter(is_failure).map(|line| line.trim_start_matches("* ").trim()).collect();
    if !failures.is_empty() {
        return failures.join("\n");
    }
    let is_said = |line: &&str| !line.starts_with('>') && !line.trim().is_empty();
    let last = text.lines().rfind(is_said).unwrap_or_default();
    last.trim_start_matches("* ").trim().to_owned()
}

/// Returns the start of a line, to identify it in an error.
fn start(line: &str) -> String {
    line.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paste(status: u16, headers: &[(&str, &str)], body: &str) -> Paste {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Paste { status: Some(status), headers: headers.iter().map(owned).collect(), body: body.to_owned() }
    }

    #[test]
    fn a_response_is_read_to_its_last_head() {
        let plain = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 8\r\nx: a:b\r\n\r\n{\"a\":1}\n";
        let expected = paste(429, &[("Retry-After", "8"), ("x", "a:b")], "{\"a\":1}");
        assert_eq!(Paste::parse(plain).unwrap(), expected);
        let proxied =
            "HTTP/1.1 200 Connection established\n\nHTTP/1.1 100 Continue\n\nHTTP/2 529 \nx: 1\n\na\n\nb";
        assert_eq!(Paste::parse(proxied).unwrap(), paste(529, &[("x", "1")], "a\n\nb"));
        assert_eq!(Paste::parse("HTTP/2 503").unwrap(), paste(503, &[], ""));
    }

    #[test]
    fn the_verbose_output_of_curl_is_parsed() {
        let talk = "* Host api.test:443 was resolved.\n> POST /v1 HTTP/1.1\n> Host: api.test\n>\n< HTTP/1.1 529 \n\
                    < retry-after: 8\n<\n{ [85 bytes data]\n{\"error\":\n  \"x\"}* Connection #0 to host api.test left intact";
        assert_eq!(Paste::parse(talk).unwrap(), paste(529, &[("retry-after", "8")], "{\"error\":\n  \"x\"}"));
        let refused = "*   Trying 127.0.0.1:9...\n* connect to 127.0.0.1 failed: Connection refused\n\
                       curl: (7) Failed to connect to 127.0.0.1 port 9\n";
        let cause = "connect to 127.0.0.1 failed: Connection refused";
        let expected = format!("{cause}\ncurl: (7) Failed to connect to 127.0.0.1 port 9");
        assert_eq!(Paste::parse(refused).unwrap(), Paste { body: expected, ..Paste::default() });
        let silent = "*   Trying 127.0.0.1:9...\n* connect to 127.0.0.1 port 9 failed: Connection refused\n\
                      * Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server\n\
                      * Closing connection\n";
        let body = Paste::parse(silent).unwrap().body;
        assert!(body.contains("Connection refused") && !body.contains("Closing"), "{body}");
    }

    #[test]
    fn the_command_and_the_meter_are_left_out() {
        let typed = "$ curl -i https://api.test \\\n  -d '{}'\nHTTP/2 401\nx: 1\n\nno";
        assert_eq!(Paste::parse(typed).unwrap(), paste(401, &[("x", "1")], "no"));
        let metered = "  % Total    % Received % Xferd  Average Speed\n                  Dload  Upload   Total\n\
                       \r  0     0    0     0 --:--:-- --:--:-- --:--:--     0\r100    4  100     4    0     0  \
                       301      0 --:--:-- --:--:-- --:--:--   303HTTP/1.1 503 x\n\nbusy\n";
        assert_eq!(Paste::parse(metered).unwrap(), paste(503, &[], "busy"));
        let talk = "* Connected\n< HTTP/2 529\n<\n{ [4 bytes data]\n\r100  4  100  4  0  0  9k  0 --:--:-- --:--:-- \
                    --:--:--   9k\n* Connection #0 to host x left intact\nbusy";
        assert_eq!(Paste::parse(talk).unwrap(), paste(529, &[], "busy"));
    }

    #[test]
    fn anything_else_is_a_body() {
        for text in [
            "{\"error\":1}",
            "data: {}\n\ndata: [DONE]",
            "<html>",
            "Connection refused",
            "{\nHTTP/2 500\n}",
            "",
        ] {
            assert_eq!(Paste::parse(text).unwrap(), Paste { body: text.to_owned(), ..Paste::default() });
        }
    }

    #[test]
    fn input_that_is_not_a_response_is_quoted() {
        for (text, expected) in [
            ("HTTP/1.1 what\n\n", "\"HTTP/1.1 what\" is not a status line"),
            ("HTTP/1.1 999\n\n", "is not a status line"),
            ("HTTP/1.1 500\nno header here\n\n", "\"no header here\" is not a header; separate"),
        ] {
            let problem = Paste::parse(text).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
