//! Parts of a history that all APIs represent in the same way.

#[cfg(test)]
pub(crate) mod sample;

use std::borrow::Cow;

use everturn_kernel::ToolSpec;
use everturn_wire::{Chunk, Echo, Message, Role, Value};
use serde_json::json;

/// Maximum length of a tool name that all APIs accept, in characters.
const LONGEST_NAME: usize = 64;

/// Returns the instructions as one text.
pub(crate) fn instructions(messages: &[Message]) -> String {
    let system = messages.iter().filter(|message| message.role == Role::System);
    system.flat_map(Message::iter).filter_map(text).collect::<Vec<_>>().join("\n\n")
}

/// Returns a chunk's text for the model. Omits empty text, which APIs reject, reasoning, which is internal, and errors,
/// which are for people.
pub(crate) fn text(chunk: &Chunk) -> Option<&str> {
    match chunk {
        Chunk::Text { text } | Chunk::System { text, .. } => (!text.trim().is_empty()).then_some(text),
        _ => None,
    }
}

/// Returns the arguments of a call. Wraps arguments that never parsed, because APIs accept only objects.
pub(crate) fn arguments(input: &Value) -> Cow<'_, Value> {
    match input {
        Value::Object(_) => Cow::Borrowed(input),
        Value::Null => Cow::Owned(json!({})),
        malformed => Cow::Owned(json!({ "malformed": malformed })),
    }
}

/// Returns the arguments of a call as text: as they were written, if that is known.
pub(crate) fn written_arguments<'c>(input: &Value, echo: Option<&'c Echo>) -> Cow<'c, str> {
    match echo {
        Some(Echo { origin, data: Value::String(written) }) if origin == Echo::ARGUMENTS => {
            Cow::Borrowed(written)
        }
        _ => Cow::Owned(arguments(input).to_string()),
    }
}

/// Returns the name of a called tool, unchanged if that tool is offered. Models also invent names, and APIs reject a
/// history with an invalid one.
pub(crate) fn name<'a>(name: &'a str, tools: &[ToolSpec]) -> Cow<'a, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_good = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(fits);
    if is_good || tools.iter().any(|tool| tool.name == name) {
        return Cow::Borrowed(name);
    }
    let named: String = name.chars().take(LONGEST_NAME).map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if named.is_empty() { "_".to_owned() } else { named })
}

/// The name of a PDF, which APIs ask for and show to the model.
pub(crate) const PDF_NAME: &str = "document.pdf";

/// Returns the media type and base64 data of an image in a `data:` URL; `None` for other URLs. The type is normalized
/// and has no parameters, as APIs require.
pub(crate) fn inline<'a>(url: &'a str, mime_type: Option<&'a str>) -> Option<(&'a str, &'a str)> {
    let (named, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let named = match named.split(';').next() {
        None | Some("") => mime_type.unwrap_or("image/png"),
        Some(named) => named,
    };
    Some((if named == "image/jpg" { "image/jpeg" } else { named }, data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invented_tool_name_becomes_a_valid_one() {
        let offered =
            [ToolSpec { name: "fs.read".into(), description: String::new(), parameters: Value::Null }];
        let long = "x".repeat(100);
        for (given, sent) in [
            ("read_file-2", "read_file-2"),
            ("fs.read", "fs.read"),
            ("functions.read", "functions_read"),
            ("lies das", "lies_das"),
            ("über", "_ber"),
            ("", "_"),
            (&long, &long[..64]),
        ] {
            assert_eq!(name(given, &offered), sent);
        }
    }
}
