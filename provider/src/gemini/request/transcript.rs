//! Converts a conversation to contents of two alternating roles.

use std::collections::HashMap;

use everturn_kernel::{Request, ToolSpec};
use everturn_wire::{Chunk, Echo, Image, Message, Role, Value};
use serde_json::json;

use crate::{
    gemini::echo_data::EchoData,
    history::{arguments, inline, name, text},
};

/// Accepted by the API in place of a missing signature of a call.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Image types allowed in results, for models that accept images. Others are represented by the result's text.
const SHOWN: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];

/// The contents so far.
pub(super) struct Transcript<'a> {
    origin: &'a str,
    tools: &'a [ToolSpec],
    /// Whether the model accepts images in results.
    takes_images: bool,
    turns: Vec<Turn>,
    /// The latest calls, by our id.
    calls: HashMap<&'a str, Call>,
}

struct Turn {
    by: Party,
    parts: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Party {
    Person,
    Model,
    /// The API's user role, but separate, because Vertex does not match results to calls if they are mixed with other
    /// parts.
    Tools,
}

/// The data of a call needed for its result.
struct Call {
    /// The call's position among the calls of its message.
    place: usize,
    /// The API's own id of the call.
    id: Option<String>,
}

impl<'a> Transcript<'a> {
    pub(super) fn of(request: &'a Request, origin: &'a str) -> Self {
        let mut transcript = Self {
            origin,
            tools: &request.tools,
            takes_images: takes_images(&request.model),
            turns: Vec::new(),
            calls: HashMap::new(),
        };
        request.messages.iter().for_each(|message| transcript.read(message));
        transcript
    }

    pub(super) fn contents(self) -> Value {
        let role = |by| if by == Party::Model { "model" } else { "user" };
        self.turns.into_iter().map(|turn| json!({ "role": role(turn.by), "parts": turn.parts })).collect()
    }

    fn read(&mut self, message: &'a Message) {
        match message.role {
            Role::User => {
                let parts = message.iter().filter_map(asked).collect();
                self.say(Party::Person, parts);
            }
            Role::Assistant => self.answered(message.iter()),
            Role::Tool => self.results(message.iter()),
            _ => {}
        }
    }

    fn say(&mut self, by: Party, parts: Vec<Value>) {
        match self.turns.last_mut() {
            _ if parts.is_empty() => {}
            Some(turn) if turn.by == by => turn.parts.extend(parts),
            _ => self.turns.push(Turn { by, parts }),
        }
    }

    /// Adds an assistant message. Omits reasoning without a signature, which is internal, and errors, which are for
    /// people.
    fn answered(&mut self, chunks: impl Iterator<Item = &'a Chunk>) {
        let mut parts: Vec<Value> = Vec::new();
        let mut place = 0;
        for chunk in chunks {
            match chunk {
                Chunk::Text { .. } => parts.extend(text(chunk).map(|text| json!({ "text": text }))),
                Chunk::Thinking { text, echo } => self.thought(text, echo.as_ref(), &mut parts),
                Chunk::ToolCall { tool_call_id, tool_name, input, echo, .. } => {
                    let kept = self.own(echo.as_ref()).unwrap_or_default();
                    let mut call = json!({ "name": name(tool_name, self.tools), "args": arguments(input) });
                    if let Some(id) = &kept.id {
                        call["id"] = json!(id);
                    }
                    let mut part = json!({ "functionCall": call });
                    // The API rejects a first call without a signature; later calls have none.
                    let signature = kept.thought_signature.as_deref();
                    if let Some(signature) = signature.or((place == 0).then_some(NO_SIGNATURE)) {
                        part["thoughtSignature"] = json!(signature);
                    }
                    parts.push(part);
                    self.calls.insert(tool_call_id, Call { place, id: kept.id });
                    place += 1;
                }
                _ => {}
            }
        }
        self.say(Party::Model, parts);
    }

    /// Adds a signed thought as received. A signature beside text is sent with the text, because a part with only a
    /// signature is rejected. Only signatures of calls are mandatory.
    fn thought(&self, words: &str, echo: Option<&Echo>, parts: &mut Vec<Value>) {
        let Some(EchoData { thought_signature: Some(signature), thought, .. }) = self.own(echo) else {
            return;
        };
        if thought {
            if !words.trim().is_empty() {
                parts.push(json!({ "text": words, "thought": true, "thoughtSignature": signature }));
            }
        } else if let Some(last) = parts.last_mut().filter(|last| is_text(last)) {
            last["thoughtSignature"] = json!(signature);
        }
    }

    fn own(&self, echo: Option<&Echo>) -> Option<EchoData> {
        echo.filter(|echo| echo.origin == self.origin).map(|echo| EchoData::read(&echo.data))
    }

    /// Adds results in the order of their calls, by which the API matches them if it gave no ids.
    fn results(&mut self, chunks: impl Iterator<Item = &'a Chunk>) {
        let mut results: Vec<(usize, Value)> = chunks.filter_map(|chunk| self.result(chunk)).collect();
        results.sort_by_key(|(place, _)| *place);
        self.say(Party::Tools, results.into_iter().map(|(_, part)| part).collect());
    }

    fn result(&self, chunk: &Chunk) -> Option<(usize, Value)> {
        let Chunk::ToolResult { tool_call_id, tool_name, content, is_error, images, .. } = chunk else {
            return None;
        };
        let call = self.calls.get(tool_call_id.as_str());
        let outcome = if *is_error { "error" } else { "output" };
        let mut response = json!({ "name": name(tool_name, self.tools), "response": { outcome: content } });
        if let Some(id) = call.and_then(|call| call.id.as_deref()) {
            response["id"] = json!(id);
        }
        if self.takes_images && !is_error {
            let shown: Vec<Value> = images.iter().filter_map(shown).collect();
            if !shown.is_empty() {
                response["parts"] = json!(shown);
            }
        }
        Some((call.map_or(usize::MAX, |call| call.place), json!({ "functionResponse": response })))
    }
}

/// Whether a model accepts images in results. Models before Gemini 3 reject the whole request.
fn takes_images(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let version = name.strip_prefix("gemini-").and_then(|rest| rest.split(['.', '-']).next());
    version.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= 3)
}

fn shown(shown: &Image) -> Option<Value> {
    let (mime_type, data) = inline(&shown.url, shown.mime_type.as_deref())?;
    let inline = json!({ "inlineData": { "mimeType": mime_type, "data": data } });
    SHOWN.contains(&mime_type).then_some(inline)
}

fn is_text(part: &Value) -> bool {
    part.get("text").is_some() && part.get("thought").is_none()
}

fn asked(chunk: &Chunk) -> Option<Value> {
    match chunk {
        Chunk::Image { url, mime_type } => Some(image(url, mime_type.as_deref())),
        other => text(other).map(|text| json!({ "text": text })),
    }
}

fn image(url: &str, mime_type: Option<&str>) -> Value {
    match (inline(url, mime_type), mime_type) {
        (Some((mime_type, data)), _) => json!({ "inlineData": { "mimeType": mime_type, "data": data } }),
        (None, Some(mime_type)) => json!({ "fileData": { "mimeType": mime_type, "fileUri": url } }),
        (None, None) => json!({ "fileData": { "fileUri": url } }),
    }
}
