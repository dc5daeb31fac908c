//! A decoder for server-sent events.

use std::{borrow::Cow, mem};

use memchr::{memchr, memchr2};

/// Decodes UTF-8 with replacement characters. Checks the whole text first, which is faster.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Maximum number of bytes kept of lines that belong to no event.
const LONGEST_STRAY: usize = 64 << 10;

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; `message` if there is none.
    pub name: Cow<'a, str>,
    /// The `data` lines, joined with line feeds.
    pub data: Cow<'a, str>,
}

/// An event exceeds the decoder's limit. The stream cannot be read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an event of the stream has more than {limit} bytes: raise the limit if the endpoint does send such events"
)]
pub struct EventTooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Decodes a stream of server-sent events, however its bytes are split.
///
/// Pure and linear in the bytes fed. Holds at most one event of at most `limit` bytes. Lines end with LF, CR or CRLF. A
/// byte order mark, comments, `id`, `retry` and unknown fields are skipped. Invalid UTF-8 becomes U+FFFD, as the format
/// demands. An event truncated by the end of the stream is not returned.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    /// The start of a line whose end has not arrived.
    line: Vec<u8>,
    name: Vec<u8>,
    /// The data lines so far, each followed by a line feed.
    data: Vec<u8>,
    /// Lines since the latest event that do not follow the format, each followed by a line feed.
    stray: Vec<u8>,
    /// The last line ended with CR. A line feed right after it belongs to that line end.
    after_cr: bool,
    /// No line has ended yet. The next one may begin with a byte order mark.
    at_start: bool,
    /// The last call returned references to `name` and `data`.
    lent: bool,
}

impl SseDecoder {
    /// Default limit of an event, in bytes: 16 MiB.
    pub const DEFAULT_LIMIT: usize = 16 << 20;

    /// Creates a decoder at the start of a stream. `limit` bounds an event including its unfinished line, in bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            stray: Vec::new(),
            after_cr: false,
            at_start: true,
            lent: false,
        }
    }

    /// Consumes bytes of `input` until an event is complete. Returns `None` once `input` is empty.
    ///
    /// # Errors
    /// Returns an error if an event exceeds the limit. Every later call fails, too.
    pub fn next<'a>(&'a mut self, input: &mut &[u8]) -> Result<Option<SseEvent<'a>>, EventTooLarge> {
        if mem::take(&mut self.lent) {
            self.name.clear();
            self.data.clear();
        }
        while let Some(&first) = input.first() {
            if mem::take(&mut self.after_cr) && first == b'\n' {
                *input = &input[1..];
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', input) else {
                self.keep(input)?;
                *input = &[];
                break;
            };
            if self.take_line(&input[..end])? {
                self.after_cr = input[end] == b'\r';
                *input = &input[end + 1..];
                self.lent = true;
                self.stray.clear();
                return Ok(Some(self.event()));
            }
            self.after_cr = input[end] == b'\r';
            *input = &input[end + 1..];
        }
        Ok(None)
    }

    /// Returns the data since the latest event that does not follow the format, including the unfinished line; at most
    /// 64 KiB. A server that fails mid-stream may write its error into the stream as if into an empty body.
    pub fn stray(&self) -> Cow<'_, str> {
        let line = &self.line[..self.line.len().min(LONGEST_STRAY - self.stray.len())];
        if self.stray.is_empty() {
            text(line)
        } else {
            text(&[&self.stray, line].concat()).into_owned().into()
        }
    }

    /// Returns the memory that the decoder holds, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.line.capacity() + self.data.capacity()
    }

    /// Consumes the end of a line. Returns whether the line completes an event.
    fn take_line(&mut self, tail: &[u8]) -> Result<bool, EventTooLarge> {
        if self.line.is_empty() {
            self.check(tail.len())?;
            return Ok(self.read(tail));
        }
        self.keep(tail)?;
        let mut line = mem::take(&mut self.line);
        let complete = self.read(&line);
        line.clear();
        self.line = line;
        Ok(complete)
    }

    fn read(&mut self, line: &[u8]) -> bool {
        let first = mem::take(&mut self.at_start);
        let line = if first { line.strip_prefix(BOM).unwrap_or(line) } else { line };
        if line.is_empty() {
            if self.data.is_empty() {
                self.name.clear();
            }
            return !self.data.is_empty();
        }
        let (field, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"" | b"id" | b"retry" => {}
            _ if self.stray.len() + line.len() < LONGEST_STRAY => {
                self.stray.extend_from_slice(line);
                self.stray.push(b'\n');
            }
            _ => {}
        }
        false
    }

    fn event(&self) -> SseEvent<'_> {
        let name = match self.name.as_slice() {
            [] => Cow::Borrowed("message"),
            name => text(name),
        };
        let data = self.data.strip_suffix(b"\n").unwrap_or(&self.data);
        SseEvent { name, data: text(data) }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        self.check(bytes.len())?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn check(&self, more: usize) -> Result<(), EventTooLarge> {
        let held = self.line.len() + self.name.len() + self.data.len();
        if held + more > self.limit { Err(EventTooLarge { limit: self.limit }) } else { Ok(()) }
    }
}
