//! The message for people: the provider's own words, without secrets, and bounded.

use crate::redaction::redact;
use crate::{Evidence, Stage};

/// Maximum length of a message, in bytes.
const LONGEST: usize = 4096;

pub(crate) fn of(evidence: &Evidence<'_>) -> String {
    let mut message = match (evidence.stage, evidence.status) {
        (Stage::Http, Some(status)) => format!("HTTP {status}: "),
        _ => String::new(),
    };
    let room = LONGEST - message.len();
    message.push_str(&redact(evidence.body.trim(), room));
    message
}

/// Redacts a provider's code. Must be called before truncation, because half a secret is not recognized.
pub(crate) fn without_secrets(code: &str) -> String {
    redact(code, LONGEST)
}

/// Truncates a provider's code.
pub(crate) fn short(code: &str) -> String {
    code[..code.floor_char_boundary(96)].to_owned()
}
