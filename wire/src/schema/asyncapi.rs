//! The AsyncAPI 3.0 document of the WebSocket API.

use alloc::{format, string::String, vec::Vec};

use serde_json::{Map, Value, json};

use super::{components, tag};

/// Describes the channel of the AI SDK.
const CHAT: &str = "The frames of `WebSocketChatTransport` of Vercel's AI SDK (7.0.135 or newer), as documented by the SDK. \
                    Supports concurrent requests. `abort` ends the answer to a request; its turn continues.";

/// Returns the WebSocket API as an AsyncAPI 3.0 document, from the server's side: it receives commands and sends
/// messages.
pub fn asyncapi() -> Value {
    let schemas = components(["Command", "ServerMessage"]);
    let commands = members(&schemas, "Command");
    let messages = members(&schemas, "ServerMessage");
    let all = || commands.iter().chain(&messages);
    let channel: Map<String, Value> =
        all().map(|name| (name.clone(), refer("#/components/messages", name))).collect();
    let described: Map<String, Value> = all().map(|name| (name.clone(), describe(&schemas, name))).collect();
    let mut document = json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Everturn",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Commands in, events out. Closing the socket does not affect turns.",
        },
        "defaultContentType": "application/json",
        "channels": {
            "socket": { "address": "/ws", "messages": channel },
            "chat": { "address": "/api/chat/ws", "description": CHAT },
        },
        "operations": {
            "command": operation("receive", "Commands from the client.", &commands),
            "message": operation("send", "Messages to the client.", &messages),
        },
        "components": { "messages": described, "schemas": schemas },
    });
    document.sort_all_objects();
    document
}

/// Returns the names of the members of a union.
fn members(schemas: &Value, union: &str) -> Vec<String> {
    let name = |member: &Value| Some(member["$ref"].as_str()?.rsplit('/').next()?.into());
    schemas[union]["oneOf"].as_array().into_iter().flatten().filter_map(name).collect()
}

fn describe(schemas: &Value, name: &str) -> Value {
    json!({
        "name": tag(&schemas[name]),
        "summary": schemas[name]["description"],
        "payload": refer("#/components/schemas", name),
    })
}

fn operation(action: &str, summary: &str, names: &[String]) -> Value {
    let messages: Vec<Value> = names.iter().map(|name| refer("#/channels/socket/messages", name)).collect();
    json!({
        "action": action,
        "summary": summary,
        "channel": { "$ref": "#/channels/socket" },
        "messages": messages,
    })
}

fn refer(folder: &str, name: &str) -> Value {
    json!({ "$ref": format!("{folder}/{name}") })
}
