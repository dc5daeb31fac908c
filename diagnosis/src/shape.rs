//! What a body says in its structure: codes, statuses, waits and messages, whatever envelope they come in.

mod json;
mod markup;
mod repr;
mod sse;
mod text;

use crate::hint::Field;
use crate::kind::Kind;
use crate::redaction::redact;
use crate::{Evidence, Stage};

/// Headers that name the error. The first two are those of AWS.
const CODE_HEADERS: &[&str] = &[
    "x-amzn-errortype",
    ":exception-type",
    ":error-code",
    "x-ms-error-code",
    "x-error-code",
    "x-error-type",
];

/// How deep errors within errors are followed.
const DEEPEST: usize = 6;

/// The most findings of one sort that are kept.
const MOST: usize = 32;

/// The longest code and the longest text that are kept, in bytes.
const LONGEST_CODE: usize = 128;
const LONGEST_TEXT: usize = 8192;

/// What was found in a body, in its order.
#[derive(Default)]
pub(crate) struct Findings {
    /// The provider's own codes and types.
    pub(crate) codes: Vec<String>,
    /// The names of limits that were hit.
    pub(crate) limits: Vec<String>,
    /// What is said to people.
    pub(crate) texts: Vec<String>,
    /// The innermost HTTP status that the body itself names, and its depth.
    status: Option<(usize, u16)>,
    /// Waits, by field.
    pub(crate) waits: Vec<(Field, String)>,
    /// Headers of an upstream response, quoted in the body.
    pub(crate) headers: Vec<(String, String)>,
    /// The parameter at fault.
    pub(crate) param: Option<String>,
    /// What a field means by being there, whatever its value.
    pub(crate) implied: Option<Kind>,
    /// Whether something in the body calls itself an error.
    pub(crate) is_error: bool,
}

impl Findings {
    /// Reads all structure there is.
    pub(crate) fn of(evidence: &Evidence<'_>) -> Self {
        let mut found = Self::default();
        for name in CODE_HEADERS {
            if let Some(code) = evidence.header(name) {
                found.code(code);
                found.is_error = true;
            }
        }
        if evidence.stage == Stage::Transport {
            found.text(evidence.body);
            return found;
        }
        let body = evidence.body.trim_start_matches('\u{feff}').trim();
        // A line that begins with a colon is a comment of an event stream.
        if ["data:", "event:", ":"].iter().any(|field| body.starts_with(field)) {
            sse::read(body, &mut found);
        } else if body.starts_with('<') {
            markup::read(body, &mut found);
        } else {
            text::read(body, 0, &mut found);
        }
        found
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.status.map(|(_, status)| status)
    }

    fn code(&mut self, code: &str) {
        if code.len() > LONGEST_CODE {
            // Half a secret looks like none.
            keep(&mut self.codes, &redact(code, LONGEST_CODE), LONGEST_CODE);
        } else {
            keep(&mut self.codes, code, LONGEST_CODE);
        }
    }

    fn limit(&mut self, name: &str) {
        keep(&mut self.limits, name, LONGEST_CODE);
    }

    fn text(&mut self, text: &str) {
        keep(&mut self.texts, text.trim(), LONGEST_TEXT);
    }

    fn wait(&mut self, field: Field, value: String) {
        if self.waits.len() < MOST {
            self.waits.push((field, value));
        }
    }

    fn header(&mut self, name: &str, value: String) {
        if self.headers.len() < MOST {
            self.headers.push((name.to_owned(), value));
        }
    }

    /// A gateway wraps what its upstream said, so the innermost status is the true one.
    fn saw_status(&mut self, depth: usize, status: u16) {
        if self.status.is_none_or(|(known, _)| depth > known) {
            self.status = Some((depth, status));
        }
    }
}

fn keep(list: &mut Vec<String>, text: &str, longest: usize) {
    if !text.is_empty() && list.len() < MOST {
        list.push(text[..text.floor_char_boundary(longest)].to_owned());
    }
}
