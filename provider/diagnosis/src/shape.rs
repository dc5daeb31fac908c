//! The structure of a body: codes, statuses, waits and messages, in any envelope.

mod json;
mod markup;
mod repr;
mod sse;
mod text;

use std::borrow::Cow;

use crate::field::Field;
use crate::kind::Kind;
use crate::named::Named;
use crate::redaction::redact;
use crate::{Evidence, Stage};

/// Headers that name the error. The first two are AWS headers.
const CODE_HEADERS: &[&str] = &[
    "x-amzn-errortype",
    ":exception-type",
    ":error-code",
    "x-ms-error-code",
    "x-error-code",
    "x-error-type",
];

/// Headers of CDNs that ask for a proof that the client is a browser.
const CHALLENGE_HEADERS: &[&str] = &["cf-mitigated", "x-vercel-mitigated", "x-amzn-waf-action"];

/// Maximum depth of nested errors.
const DEEPEST: usize = 6;

/// Maximum number of findings kept of each kind.
const MOST: usize = 32;

/// Maximum lengths of codes and texts kept, in bytes.
const LONGEST_CODE: usize = 128;
const LONGEST_TEXT: usize = 8192;

/// Maximum length of a key in a location, in bytes.
const LONGEST_KEY: usize = 32;

/// Findings in a body, in their order.
#[derive(Default)]
pub(crate) struct Findings {
    /// The provider's own codes and types.
    pub(crate) codes: Vec<Named>,
    /// Names of the limits that were hit.
    pub(crate) limits: Vec<Named>,
    /// Messages for people.
    pub(crate) texts: Vec<String>,
    /// The innermost HTTP status in the body, and its depth.
    status: Option<(usize, u16)>,
    /// Waits, by field.
    pub(crate) waits: Vec<(Field, Named)>,
    /// Headers of an upstream response quoted in the body.
    pub(crate) headers: Vec<(String, String)>,
    /// The parameter at fault.
    pub(crate) param: Option<String>,
    /// The meaning and location of a field whose presence alone is significant.
    pub(crate) implied: Option<(Kind, String)>,
    /// Whether something in the body is labelled an error.
    pub(crate) is_error: bool,
    /// The path of keys to the current position.
    path: String,
}

impl Findings {
    /// Extracts all structure from the evidence.
    pub(crate) fn of(evidence: &Evidence<'_>) -> Self {
        let mut found = Self::default();
        for name in CODE_HEADERS {
            if let Some(code) = evidence.header(name) {
                let place = || format!("header {name}");
                keep(&mut found.codes, &whole(code), LONGEST_CODE, |name| Named { name, place: place() });
                found.is_error = true;
            }
        }
        let is_challenge = |name: &&&str| matches!(evidence.header(name), Some("challenge" | "captcha"));
        if let Some(name) = CHALLENGE_HEADERS.iter().find(is_challenge) {
            found.implied = Some((Kind::Permission, format!("header {name}")));
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
            json::read_text(body, 0, &mut found);
        }
        found
    }

    pub(crate) fn status(&self) -> Option<u16> {
        self.status.map(|(_, status)| status)
    }

    /// Records a code found under `key`.
    fn code(&mut self, key: &str, code: &str) {
        let path = &self.path;
        let named = |name| Named { name, place: place(path, key) };
        keep(&mut self.codes, &whole(code), LONGEST_CODE, named);
    }

    fn limit(&mut self, key: &str, name: &str) {
        let path = &self.path;
        let named = |name| Named { name, place: place(path, key) };
        keep(&mut self.limits, &whole(name), LONGEST_CODE, named);
    }

    fn text(&mut self, text: &str) {
        keep(&mut self.texts, text.trim(), LONGEST_TEXT, |text| text);
    }

    fn wait(&mut self, field: Field, key: &str, value: String) {
        if self.waits.len() < MOST {
            self.waits.push((field, Named { name: value, place: place(&self.path, key) }));
        }
    }

    fn imply(&mut self, kind: Kind, key: &str) {
        self.implied = Some((kind, place(&self.path, key)));
    }

    /// Reads the value under `key`.
    fn below(&mut self, key: &str, read: impl FnOnce(&mut Self)) {
        let above = self.path.len();
        if above > 0 {
            self.path.push('.');
        }
        self.path.push_str(&key[..key.floor_char_boundary(LONGEST_KEY)]);
        read(self);
        self.path.truncate(above);
    }

    fn header(&mut self, name: &str, value: String) {
        if self.headers.len() < MOST {
            self.headers.push((name.to_owned(), value));
        }
    }

    /// Records a status. A gateway wraps its upstream's response, so the innermost status is the real one.
    fn saw_status(&mut self, depth: usize, status: u16) {
        if self.status.is_none_or(|(known, _)| depth > known) {
            self.status = Some((depth, status));
        }
    }
}

/// Returns a name with secrets removed before it is truncated, because half a secret is not recognized.
fn whole(name: &str) -> Cow<'_, str> {
    match name.len() {
        0..=LONGEST_CODE => name.into(),
        _ => redact(name, LONGEST_CODE).into(),
    }
}

fn keep<T>(list: &mut Vec<T>, text: &str, longest: usize, make: impl FnOnce(String) -> T) {
    if !text.is_empty() && list.len() < MOST {
        list.push(make(text[..text.floor_char_boundary(longest)].to_owned()));
    }
}

/// Returns a location such as `error.type`; empty for the text itself.
fn place(path: &str, key: &str) -> String {
    let mut place = String::with_capacity(path.len() + 1 + key.len());
    place.push_str(path);
    if !path.is_empty() && !key.is_empty() {
        place.push('.');
    }
    place.push_str(key);
    place
}
