//! The message a person reads: the provider's own words, without secrets, never long.

use crate::redaction::redact;
use crate::{Evidence, Stage};

/// The longest message, in bytes.
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

/// A provider's code before any part of it is taken: half a secret looks like none.
pub(crate) fn without_secrets(code: &str) -> String {
    redact(code, LONGEST)
}

/// A provider's code, which is nobody's place for a novel.
pub(crate) fn short(code: &str) -> String {
    code[..code.floor_char_boundary(96)].to_owned()
}
