//! JSON errors. Only fields that describe errors are followed, because others may echo the request.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{DEEPEST, Findings, MOST, text};
use crate::code::ENVELOPE;
use crate::field::Field;
use crate::kind::Kind;
use crate::{code, status};

/// The role of a field.
enum Role {
    /// The name or number of the error.
    Code,
    /// A code, but only if its value is a known one.
    Finish,
    /// A message for people.
    Text,
    /// A nested part of the error.
    Inner,
    /// The name of the limit that was hit.
    Limit,
    /// The size of that limit.
    Allowance,
    /// An upstream's headers.
    Headers,
    /// Present only if the content was refused.
    Refusal,
    Param,
    Wait(Field),
    /// Unrelated to the error.
    Other,
}

fn role(key: &str) -> Role {
    // Fields quoted by a gateway: `upstream_error`, `upstreamStatus`.
    match key.strip_prefix("upstream") {
        Some(inner) if !inner.is_empty() => own_role(&small(inner.trim_start_matches('_'))),
        _ => own_role(key),
    }
}

fn own_role(key: &str) -> Role {
    match key {
        "type" | "code" | "status" | "reason" | "__type" | "error_type" | "errorType" | "error_code"
        | "errorCode" | "err_code" | "status_code" | "statusCode" | "http_status" | "raw_status_code"
        | "object" => Role::Code,
        "finish_reason" | "finishReason" | "stop_reason" | "native_finish_reason" | "name" => Role::Finish,
        "message" | "msg" | "error_message" | "errorMessage" | "error_msg" | "error_description"
        | "status_msg" | "title" | "raw" | "detail" | "body" | "response_body" | "responseBody" => Role::Text,
        "error" | "errors" | "details" | "metadata" | "innererror" | "inner_error" | "response" | "cause"
        | "violations" | "base_resp" | "incomplete_details" | "status_details" | "choices" | "candidates"
        | "delta" | "data" | "provider_error" | "last_error" | "original_error" | "error_details"
        | "promptFeedback" => Role::Inner,
        "quotaId" | "quota_limit" | "quotaLimit" | "limit_name" | "limit_source" => Role::Limit,
        "quotaValue" | "quota_limit_value" => Role::Allowance,
        "headers" => Role::Headers,
        "blockReason" | "flagged_input" => Role::Refusal,
        "param" => Role::Param,
        _ => Field::named(key).map_or(Role::Other, Role::Wait),
    }
}

/// Lower-cases the first letter, because some clouds capitalize keys.
fn small(key: &str) -> Cow<'_, str> {
    match key.as_bytes() {
        [b'A'..=b'Z', b'a'..=b'z', ..] => Cow::Owned(key[..1].to_ascii_lowercase() + &key[1..]),
        _ => Cow::Borrowed(key),
    }
}

/// Maximum length of text searched for structure, in bytes.
const LONGEST: usize = 256 * 1024;

/// Reads a text: the structure in it, and the surrounding words.
pub(super) fn read_text(text: &str, depth: usize, found: &mut Findings) {
    let text = text.trim();
    if depth > DEEPEST || text.len() > LONGEST {
        return text::words(text, found);
    }
    match text::embedded(text) {
        Some((start, value, end)) => {
            text::words(&text[..start], found);
            read(&value, depth, found);
            text::words(&text[end..], found);
        }
        None => text::words(text, found),
    }
}

/// Reads one value.
fn read(value: &Value, depth: usize, found: &mut Findings) {
    match value {
        _ if depth > DEEPEST => {}
        Value::Object(fields) => {
            // By name, so that the result does not depend on the order in which a provider writes.
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in sorted {
                field(&small(key), value, depth, fields, found);
            }
        }
        Value::Array(items) => items.iter().take(MOST).for_each(|item| read(item, depth + 1, found)),
        Value::String(text) => read_text(text, depth + 1, found),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn field(key: &str, value: &Value, depth: usize, fields: &Map<String, Value>, found: &mut Findings) {
    if value.is_null() {
        return;
    }
    match role(key) {
        Role::Code => named(key, value, depth, fields, found),
        Role::Finish => finish(key, value, found),
        Role::Text => found.below(key, |found| read(value, depth, found)),
        Role::Inner => inner(key, value, depth, found),
        Role::Limit => found.limit(key, value.as_str().unwrap_or_default()),
        // A limit of zero is not temporary.
        Role::Allowance if plain(value).as_deref() == Some("0") => found.imply(Kind::Wall, key),
        Role::Headers => headers(value, found),
        Role::Refusal => {
            found.imply(Kind::Policy, key);
            finish(key, value, found);
        }
        Role::Param => found.param = value.as_str().map(str::to_owned),
        Role::Wait(field) => wait(field, key, value, found),
        // Bedrock names an event after its exception.
        Role::Other if key.ends_with("Exception") => {
            found.is_error = true;
            found.code("", key);
            found.below(key, |found| read(value, depth + 1, found));
        }
        Role::Allowance | Role::Other => {}
    }
}

fn named(key: &str, value: &Value, depth: usize, fields: &Map<String, Value>, found: &mut Findings) {
    let Some(name) = plain(value) else {
        return found.below(key, |found| read(value, depth + 1, found));
    };
    match name.parse::<u16>() {
        Ok(number) if status::is_error(number) => found.saw_status(depth, number),
        // A provider's own numbers, distinguished from others by their envelope.
        Ok(number) if key == "status_code" && fields.contains_key("status_msg") => {
            found.code(key, &format!("{ENVELOPE}{number}"));
        }
        Ok(0 | 200..=299) => {}
        _ if name == "error" => found.is_error = true,
        _ if key != "object" => found.code(key, &name),
        _ => {}
    }
}

fn finish(key: &str, value: &Value, found: &mut Findings) {
    if let Some(reason) =
        value.as_str().filter(|reason| code::meaning(reason).is_some() || *reason == "error")
    {
        found.is_error |= reason == "error";
        found.code(key, reason);
    }
}

fn inner(key: &str, value: &Value, depth: usize, found: &mut Findings) {
    let is_error = key.starts_with("error") || key.ends_with("error");
    found.is_error |= is_error;
    let is_name = |text: &&str| !text.contains(|c: char| c.is_whitespace() || matches!(c, '{' | '['));
    match value.as_str().filter(is_name) {
        // `{"error": "invalid_grant"}`
        Some(name) if is_error => found.code(key, name),
        _ => found.below(key, |found| read(value, depth + 1, found)),
    }
}

fn headers(value: &Value, found: &mut Findings) {
    for (name, value) in value.as_object().into_iter().flatten().take(MOST) {
        if let Some(value) = plain(value) {
            found.header(name, value);
        }
    }
}

fn wait(field: Field, key: &str, value: &Value, found: &mut Findings) {
    let text = match value {
        // `{"seconds": 12, "nanos": 5}`
        Value::Object(parts) => parts.get("seconds").and_then(plain).map(|seconds| {
            match parts.get("nanos").and_then(Value::as_u64) {
                Some(nanos) => format!("{seconds}.{nanos:09}"),
                None => seconds,
            }
        }),
        value => plain(value),
    };
    if let Some(text) = text {
        found.wait(field, key, text);
    }
}

/// Returns a string or a number as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
