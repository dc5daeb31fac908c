//! Converts the messages of a request to a history.

use std::fmt;

use everturn_wire::{Chunk, Echo, Image, Message, Role, Value};
use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};

use crate::few::Few;
use crate::openai::Refusal;

/// A message as received.
#[derive(Deserialize)]
pub(super) struct Spoken {
    role: String,
    content: Option<Content>,
    reasoning_content: Option<String>,
    tool_calls: Option<Few<Call>>,
    tool_call_id: Option<String>,
}

/// The content of a message.
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

/// A part of a message's content. Which fields it has depends on its type.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    refusal: Option<String>,
    image_url: Option<ImageUrl>,
    file: Option<File>,
}

/// A file of which only PDFs are taken, with their content.
#[derive(Deserialize)]
struct File {
    file_data: Option<String>,
}

#[derive(Deserialize)]
struct ImageUrl {
    url: String,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

/// Converts messages. Instructions come first, wherever they were, because models expect them there.
pub(super) fn messages(spoken: Vec<Spoken>) -> Result<Vec<Message>, Refusal> {
    let (mut instructions, mut rest) = (Vec::new(), Vec::new());
    // The calls of the latest message with calls.
    let mut calls: Vec<(String, String)> = Vec::new();
    for (at, message) in spoken.into_iter().enumerate() {
        let place = format!("messages[{at}]");
        match message.role.as_str() {
            "system" | "developer" => {
                let texts = texts(message.content, &place)?.into_iter();
                let chunks: Vec<_> = texts.map(|text| Chunk::System { text, keeps_from: None }).collect();
                if !chunks.is_empty() {
                    instructions.push(Message::new(Role::System, chunks));
                }
            }
            "user" => rest.push(Message::new(Role::User, user(message.content, &place)?)),
            "assistant" => {
                let chunks = assistant(message, &mut calls, &place)?;
                if !chunks.is_empty() {
                    rest.push(Message::new(Role::Assistant, chunks));
                }
            }
            "tool" => rest.push(Message::new(Role::Tool, [result(message, &calls, &place)?])),
            other => {
                let why = format!(
                    "{place}.role is {:?}: it must be system, developer, user, assistant or tool",
                    other.chars().take(32).collect::<String>()
                );
                return Err(Refusal::bad(format!("{place}.role"), why));
            }
        }
    }
    instructions.append(&mut rest);
    Ok(instructions)
}

fn user(content: Option<Content>, place: &str) -> Result<Vec<Chunk>, Refusal> {
    let parts = match content {
        Some(Content::Parts(parts)) => parts,
        content => {
            let texts = texts(content, place)?;
            let chunks = texts.into_iter().map(|text| Chunk::Text { text }).collect::<Vec<_>>();
            return if chunks.is_empty() { Err(empty(place)) } else { Ok(chunks) };
        }
    };
    let mut chunks = Vec::new();
    for (at, part) in parts.into_iter().enumerate() {
        match (part.kind.as_str(), part.text, part.image_url) {
            ("text", Some(text), _) if text.is_empty() => {}
            ("text", Some(text), _) => chunks.push(Chunk::Text { text }),
            ("image_url", _, Some(image)) => chunks.push(Chunk::Image { url: image.url, mime_type: None }),
            ("file", ..) => match part.file.and_then(|file| file.file_data) {
                Some(url) if Image::is_pdf(&url, None) => {
                    chunks.push(Chunk::Image { url, mime_type: Some(Image::PDF.to_owned()) });
                }
                _ => return Err(bad_part("file", at, place)),
            },
            (kind, ..) => return Err(bad_part(kind, at, place)),
        }
    }
    if chunks.is_empty() { Err(empty(place)) } else { Ok(chunks) }
}

fn assistant(message: Spoken, calls: &mut Vec<(String, String)>, place: &str) -> Result<Vec<Chunk>, Refusal> {
    let mut chunks = Vec::new();
    if let Some(text) = message.reasoning_content.filter(|text| !text.is_empty()) {
        chunks.push(Chunk::Thinking { text, echo: None });
    }
    chunks.extend(texts(message.content, place)?.into_iter().map(|text| Chunk::Text { text }));
    let Some(Few(called)) = message.tool_calls else { return Ok(chunks) };
    if !called.is_empty() {
        calls.clear();
    }
    for (at, Call { id, function }) in called.into_iter().enumerate() {
        let Some(Function { name, arguments }) = function else {
            let place = format!("{place}.tool_calls[{at}]");
            let why = format!("{place} has no function: only calls of functions are supported");
            return Err(Refusal::unsupported(place, why));
        };
        calls.push((id.clone(), name.clone()));
        let input = serde_json::from_str(&arguments).unwrap_or_else(|_| Value::String(arguments.clone()));
        // Spaces and numbers would be written otherwise. The model gets back what it wrote.
        let is_same = serde_json::to_string(&input).is_ok_and(|written| written == arguments);
        let echo = (!is_same).then(|| Echo { origin: Echo::ARGUMENTS.to_owned(), data: arguments.into() });
        chunks.push(Chunk::ToolCall { tool_call_id: id, tool_name: name, input, step_id: None, echo });
    }
    Ok(chunks)
}

fn result(message: Spoken, calls: &[(String, String)], place: &str) -> Result<Chunk, Refusal> {
    let place = format!("{place}.tool_call_id");
    let Some(id) = message.tool_call_id else {
        let why = format!("{place} is missing: it must name the call that this is the result of");
        return Err(Refusal::bad(place, why));
    };
    let Some((_, name)) = calls.iter().find(|(known, _)| *known == id) else {
        let why = format!(
            "{place} names {:?}, and the last message with tool_calls has no such call",
            id.chars().take(64).collect::<String>()
        );
        return Err(Refusal::bad(place, why));
    };
    Ok(Chunk::ToolResult {
        tool_name: name.clone(),
        tool_call_id: id,
        // A result is one text.
        content: texts(message.content, &place)?.join("\n\n"),
        is_error: false,
        step_id: None,
        images: Vec::new(),
        decisions: Vec::new(),
        questions: Vec::new(),
    })
}

/// Returns the parts of content that must be text, without empty ones.
fn texts(content: Option<Content>, place: &str) -> Result<Vec<String>, Refusal> {
    let parts = match content {
        None => return Ok(Vec::new()),
        Some(Content::Text(text)) => {
            return Ok(Some(text).filter(|text| !text.is_empty()).into_iter().collect());
        }
        Some(Content::Parts(parts)) => parts,
    };
    let texts =
        parts.into_iter().enumerate().map(|(at, part)| match (part.kind.as_str(), part.text, part.refusal) {
            ("text", Some(text), _) | ("refusal", _, Some(text)) => Ok(text),
            (kind, ..) => Err(bad_part(kind, at, place)),
        });
    texts.filter(|text| !text.as_ref().is_ok_and(String::is_empty)).collect()
}

fn bad_part(kind: &str, at: usize, place: &str) -> Refusal {
    let place = format!("{place}.content[{at}]");
    let kind: String = kind.chars().take(32).collect();
    let why = format!(
        "{place} is of type {kind:?}, which is not supported here or lacks its content: send text, or images and PDFs (as file_data) from the user"
    );
    Refusal::unsupported(place, why)
}

fn empty(place: &str) -> Refusal {
    let place = format!("{place}.content");
    let why = format!("{place} is empty");
    Refusal::bad(place, why)
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Contents)
    }
}

struct Contents;

impl<'de> Visitor<'de> for Contents {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Content, A::Error> {
        Few::deserialize(SeqAccessDeserializer::new(list)).map(|Few(parts)| Content::Parts(parts))
    }
}
