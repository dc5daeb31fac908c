//! The OpenAPI 3.1 document of the HTTP API.

mod calls;

use alloc::{format, string::ToString, vec::Vec};

use serde_json::{Map, Value, json};

use super::{MAX_SAFE_INTEGER, components};
use calls::CALLS;

/// The successful response of a call.
enum Answer {
    /// A JSON body of a defined type.
    Body(&'static str),
    /// A stream of events in this media type.
    Events(&'static str),
    /// A stream of another product's events.
    Stream,
    /// An exported conversation.
    Export,
    /// A generated JSON document.
    Document,
    /// Prometheus text.
    Metrics,
}

/// One call.
struct Call {
    /// Method and path, as in `GET /health`.
    name: &'static str,
    id: &'static str,
    summary: &'static str,
    /// Names of entries under `components/parameters`, including those in the path.
    parameters: &'static [&'static str],
    /// The type of the request body.
    takes: Option<&'static str>,
    answer: Answer,
}

const fn get(name: &'static str, id: &'static str, summary: &'static str, answer: Answer) -> Call {
    Call { name, id, summary, parameters: &[], takes: None, answer }
}

const fn of_conversation(
    name: &'static str,
    id: &'static str,
    summary: &'static str,
    answer: &'static str,
) -> Call {
    Call { name, id, summary, parameters: &["id"], takes: None, answer: Answer::Body(answer) }
}

/// The type of the only optional body.
const OPTIONAL: &str = "RetryNowRequest";

/// Returns the HTTP API as an OpenAPI 3.1 document.
pub fn openapi() -> Value {
    let mut paths = Map::new();
    for call in &CALLS {
        let Some((method, path)) = call.name.split_once(' ') else { continue };
        let item = paths.entry(path).or_insert_with(|| json!({}));
        item[method.to_lowercase()] = operation(call);
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Everturn",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Agent turns that survive transient provider failures.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [],
        "paths": paths,
        "components": { "schemas": components(types()), "parameters": parameters() },
    });
    document.sort_all_objects();
    document
}

/// Returns the types that the calls refer to.
fn types() -> impl Iterator<Item = &'static str> {
    let answered = CALLS.iter().filter_map(|call| match call.answer {
        Answer::Body(name) => Some(name),
        Answer::Events(_) => Some("AgentEvent"),
        Answer::Export => Some("ExportLine"),
        Answer::Stream | Answer::Document | Answer::Metrics => None,
    });
    let taken = CALLS.iter().filter_map(|call| call.takes);
    answered.chain(taken).chain(["ErrorBody", "ConversationId"])
}

fn operation(call: &Call) -> Value {
    let parameters: Vec<Value> = call
        .parameters
        .iter()
        .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
        .collect();
    let mut operation = json!({
        "operationId": call.id,
        "summary": call.summary,
        "responses": { "200": answer(&call.answer) },
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = call.takes {
        operation["requestBody"] =
            json!({ "required": body != OPTIONAL, "content": content("application/json", body) });
    }
    let error = if call.name.contains(" /v1/") {
        json!({ "application/json": { "schema": { "type": "object" } } })
    } else if [" /api/chat", " /ag-ui", " /copilotkit"].iter().any(|base| call.name.contains(base)) {
        json!({ "text/plain": { "schema": { "type": "string" } } })
    } else {
        content("application/json", "ErrorBody")
    };
    operation["responses"]["default"] =
        json!({ "description": "What is wrong, and what to do.", "content": error });
    operation
}

fn answer(answer: &Answer) -> Value {
    match *answer {
        Answer::Body(name) => {
            let mut response =
                json!({ "description": "Success.", "content": content("application/json", name) });
            if name == "ConversationList" {
                response["headers"]["Link"] = json!({ "description": "The next page, if there is one.", "schema": { "type": "string" } });
            }
            response
        }
        Answer::Events(media) => {
            let mut response =
                json!({ "description": "A stream of events.", "content": content(media, "AgentEvent") });
            if media == "application/x-ndjson" {
                response["headers"]["X-Conversation-Id"] =
                    json!({ "description": "The conversation.", "schema": schema("ConversationId") });
                response["headers"]["X-Cursor"] = json!({ "description": "Where the events of the turn begin: a cursor to read them elsewhere.", "schema": { "type": "string" } });
            }
            response
        }
        Answer::Stream => {
            json!({ "description": "A stream of events.", "content": { "text/event-stream": { "schema": { "type": "string" } } } })
        }
        Answer::Export => {
            let mut content = content("application/x-ndjson", "ExportLine");
            content["text/markdown"] = json!({ "schema": { "type": "string" } });
            json!({ "description": "A file. Its end is missing if the conversation was deleted meanwhile: the response is then cut off.", "content": content })
        }
        Answer::Document => {
            json!({ "description": "The document.", "content": { "application/json": { "schema": { "type": "object" } } } })
        }
        Answer::Metrics => {
            json!({ "description": "Prometheus text.", "content": { "text/plain": { "schema": { "type": "string" } } } })
        }
    }
}

fn content(media: &str, name: &str) -> Value {
    let mut content = Map::new();
    content.insert(media.to_string(), json!({ "schema": schema(name) }));
    content.into()
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn parameters() -> Value {
    let seq = || json!({ "type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER });
    json!({
        "id": {
            "name": "id", "in": "path", "required": true, "description": "The conversation.",
            "schema": { "type": "string", "pattern": "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,128}(@[a-z0-9][a-z0-9._-]{0,31})?$" },
        },
        "chatId": {
            "name": "chatId", "in": "path", "required": true, "description": "The chat, by the client's own id, percent-encoded.",
            "schema": { "type": "string" },
        },
        "threadId": {
            "name": "threadId", "in": "path", "required": true, "description": "The thread, by the client's own id, percent-encoded.",
            "schema": { "type": "string" },
        },
        "agentId": {
            "name": "agentId", "in": "path", "required": true, "description": "The agent: there is one.",
            "schema": { "enum": ["default"] },
        },
        "ui": {
            "name": "ui", "in": "query", "description": "The major version of the client's `ai` package; 7 if absent.",
            "schema": { "enum": [5, 6, 7] },
        },
        "turn": {
            "name": "turnId", "in": "path", "required": true, "description": "The turn.",
            "schema": { "type": "string" },
        },
        "messageId": {
            "name": "messageId", "in": "path", "required": true, "description": "The queued message.",
            "schema": { "type": "string" },
        },
        "callId": {
            "name": "id", "in": "path", "required": true, "description": "The call, as named in `GET /calls`.",
            "schema": { "type": "string" },
        },
        "tool": {
            "name": "tool", "in": "path", "required": true, "description": "The name of the tool, percent-encoded.",
            "schema": { "type": "string" },
        },
        "sinceSeq": { "name": "sinceSeq", "in": "query", "description": "Only chunks after this one.", "schema": seq() },
        "beforeSeq": { "name": "beforeSeq", "in": "query", "description": "Only chunks before this one.", "schema": seq() },
        "limit": { "name": "limit", "in": "query", "description": "At most so many, the newest.", "schema": seq() },
        "format": {
            "name": "format", "in": "query",
            "description": "JSON lines, with everything; or Markdown, with the messages and tool calls that are not superseded.",
            "schema": { "enum": ["jsonl", "markdown"], "default": "jsonl" },
        },
        "listLimit": {
            "name": "limit", "in": "query", "description": "At most so many, and never more than 500.", "schema": seq(),
        },
        "turnId": {
            "name": "turnId", "in": "query", "description": "Only those of this turn.",
            "schema": { "type": "string" },
        },
        "before": {
            "name": "before", "in": "query",
            "description": "Only those after this place in the list: `<lastActivityAt>-<id>` of the last one seen. In a search, where the last request stopped, as its `Link` header says.",
            "schema": { "type": "string" },
        },
        "search": {
            "name": "search", "in": "query",
            "description": "Only those that have all of these words, as parts of words, in the title or in one message. Upper and lower case are the same.",
            "schema": { "type": "string", "minLength": 1, "maxLength": 200 },
        },
        "from": {
            "name": "from", "in": "query", "description": "The first day, in UTC. Default: 29 days before the last one. At most 400 days are read at once.",
            "schema": { "type": "string", "format": "date" },
        },
        "to": {
            "name": "to", "in": "query", "description": "The last day, in UTC. Default: today.",
            "schema": { "type": "string", "format": "date" },
        },
        "auditLimit": {
            "name": "limit", "in": "query", "description": "Maximum number of entries.",
            "schema": { "type": "integer", "minimum": 0, "maximum": 1_000, "default": 100 },
        },
        "beforeEntry": {
            "name": "before", "in": "query", "description": "The id of an entry: only older ones are returned.",
            "schema": { "type": "integer" },
        },
        "caller": {
            "name": "name", "in": "path", "required": true, "description": "The name of a caller.",
            "schema": { "type": "string" },
        },
        "by": {
            "name": "by", "in": "query",
            "description": "What there is a row for, separated by commas: `caller`, `model`, `target`, `day`. Without it, there is only the total.",
            "schema": { "type": "string", "examples": ["caller,day"] },
        },
        "extensions": {
            "name": "extensions", "in": "query", "description": "Whether to be sent extension events too.",
            "schema": { "type": "boolean", "default": false },
        },
        "idempotencyKey": {
            "name": "Idempotency-Key", "in": "header",
            "description": "1 to 255 visible ASCII characters. The same request with the same key follows the turn that the first one started, also after a restart; another request with the same key is a 409, also in another conversation (for a week).",
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        },
        "cursor": {
            "name": "cursor", "in": "query", "description": "The last cursor seen; what follows it is sent.",
            "schema": { "type": "string" },
        },
        "lastEventId": {
            "name": "Last-Event-ID", "in": "header", "description": "The last cursor seen; wins over the query.",
            "schema": { "type": "string" },
        },
    })
}
