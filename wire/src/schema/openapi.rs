//! The OpenAPI 3.1 document of the HTTP API.

use alloc::{format, string::ToString, vec::Vec};

use serde_json::{Map, Value, json};

use super::{MAX_SAFE_INTEGER, components};

/// The successful response of a call.
enum Answer {
    /// A JSON body of a defined type.
    Body(&'static str),
    /// A stream of events in this media type.
    Events(&'static str),
    /// A stream of another product's events.
    Stream,
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
    /// Names of entries under `components/parameters`, those in the path included.
    parameters: &'static [&'static str],
    /// The type of the body it takes.
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

/// The body that may be absent.
const OPTIONAL: &str = "RetryNowRequest";

const CALLS: [Call; 43] = [
    Call {
        name: "POST /chat",
        id: "send",
        summary: "Start a turn and follow its events, one per line, until `turn-sealed`.",
        parameters: &["extensions", "idempotencyKey"],
        takes: Some("SendRequest"),
        answer: Answer::Events("application/x-ndjson"),
    },
    Call {
        name: "GET /conversations",
        id: "listConversations",
        summary: "Conversations, newest activity first, 500 at most; where there are more, the header `Link` has the address of the next page as rel=\"next\".",
        parameters: &["listLimit", "before", "hidden"],
        takes: None,
        answer: Answer::Body("ConversationList"),
    },
    Call {
        name: "GET /conversations/{id}",
        id: "readHistory",
        summary: "Persisted chunks with sinceSeq < seq < beforeSeq, ascending: the newest `limit` of them, else the newest 500. With `sinceSeq` and no `limit` it is the oldest 500, and `more` says that there are more after the last one. An answer ends before 1 MiB of chunks (4 MiB with a `limit`), but has one.",
        parameters: &["id", "sinceSeq", "beforeSeq", "limit", "hidden"],
        takes: None,
        answer: Answer::Body("HistoryWindow"),
    },
    Call {
        name: "PATCH /conversations/{id}",
        id: "renameConversation",
        summary: "Give the conversation another title, durably, whether a turn runs or not.",
        parameters: &["id"],
        takes: Some("RenameRequest"),
        answer: Answer::Body("Renamed"),
    },
    of_conversation(
        "DELETE /conversations/{id}",
        "deleteConversation",
        "Delete the conversation for good. A running turn is stopped first, and its end is told as that of any other.",
        "Stopped",
    ),
    of_conversation(
        "GET /conversations/{id}/status",
        "readStatus",
        "Whether a turn runs or waits.",
        "ConversationState",
    ),
    of_conversation(
        "GET /conversations/{id}/metrics",
        "readMetrics",
        "Figures of its sealed turns.",
        "TurnMetricsList",
    ),
    Call {
        name: "GET /conversations/{id}/turns/{turnId}",
        id: "readTurn",
        summary: "Figures of one turn, and its final report if it had to end with one. Of the running turn there is only the id.",
        parameters: &["id", "turn"],
        takes: None,
        answer: Answer::Body("TurnMetrics"),
    },
    Call {
        name: "GET /conversations/{id}/attempts",
        id: "readAttempts",
        summary: "Failed provider calls, for people: the newest `limit` (500 at most), oldest first. Of a sealed turn the newest 100 are kept, as long as its history.",
        parameters: &["id", "turnId", "listLimit"],
        takes: None,
        answer: Answer::Body("Attempts"),
    },
    Call {
        name: "GET /conversations/{id}/events",
        id: "followEvents",
        summary: "Live events as SSE, one per message; `id:` is the cursor to resume from.",
        parameters: &["id", "extensions", "cursor", "lastEventId"],
        takes: None,
        answer: Answer::Events("text/event-stream"),
    },
    of_conversation("POST /conversations/{id}/stop", "stop", "End the running turn. Idempotent.", "Stopped"),
    of_conversation(
        "POST /conversations/{id}/close",
        "close",
        "End the running turn and close the conversation. Idempotent.",
        "Stopped",
    ),
    Call {
        name: "POST /conversations/{id}/retry",
        id: "retry",
        summary: "Ask again over the same history: for the last turn, one that ended in an error or was stopped; or, by `seq`, for any user message, with another text if one is given.",
        parameters: &["id"],
        takes: Some("RetryRequest"),
        answer: Answer::Body("Retried"),
    },
    of_conversation(
        "POST /conversations/{id}/retry/abort",
        "abortRetry",
        "End the running turn if its step is being retried. Idempotent.",
        "RetryControl",
    ),
    Call {
        name: "POST /conversations/{id}/retry/now",
        id: "retryNow",
        summary: "Skip the wait for the next retry, and continue with another model or route if one is named. Idempotent.",
        parameters: &["id"],
        takes: Some("RetryNowRequest"),
        answer: Answer::Body("RetryControl"),
    },
    of_conversation(
        "GET /conversations/{id}/retry",
        "readConversationRetrySettings",
        "Retry settings of a conversation: what is set, and what the next turn begins with.",
        "RetrySettingsState",
    ),
    Call {
        name: "PATCH /conversations/{id}/retry",
        id: "changeConversationRetrySettings",
        summary: "Change the retry settings of a conversation, durably; null resets a field, so that it is inherited. They hold from the next turn on; `enabled: false` also ends a turn that waits for a retry.",
        parameters: &["id"],
        takes: Some("RetryPatch"),
        answer: Answer::Body("RetrySettingsState"),
    },
    get(
        "GET /retry",
        "readRetrySettings",
        "The global retry settings: what is set, and what the next turn begins with.",
        Answer::Body("RetrySettingsState"),
    ),
    Call {
        name: "PATCH /retry",
        id: "changeRetrySettings",
        summary: "Change the global retry settings, durably; null resets a field to the configuration. They hold from the next turn on; `enabled: false` also for running ones, whose waits under way go on.",
        parameters: &[],
        takes: Some("RetryPatch"),
        answer: Answer::Body("RetrySettingsState"),
    },
    of_conversation(
        "GET /conversations/{id}/approvals",
        "readApprovals",
        "The tool calls that wait for a person, and the tools that were allowed for the conversation.",
        "Approvals",
    ),
    Call {
        name: "POST /conversations/{id}/approvals",
        id: "answerApproval",
        summary: "Answer a request for approval. A late or second answer changes nothing, and says so.",
        parameters: &["id"],
        takes: Some("ApprovalAnswer"),
        answer: Answer::Body("Answered"),
    },
    Call {
        name: "DELETE /conversations/{id}/approvals/tools/{tool}",
        id: "revokeTool",
        summary: "Ask again before each call of a tool that was allowed for the conversation. Idempotent.",
        parameters: &["id", "tool"],
        takes: None,
        answer: Answer::Body("Revoked"),
    },
    Call {
        name: "POST /conversations/{id}/queue",
        id: "queueMessage",
        summary: "Queue a user message for the next tool-result boundary; starts a turn where none runs.",
        parameters: &["id"],
        takes: Some("QueueRequest"),
        answer: Answer::Body("Queued"),
    },
    Call {
        name: "DELETE /conversations/{id}/queue/{messageId}",
        id: "cancelQueued",
        summary: "Take a queued message back. Idempotent.",
        parameters: &["id", "messageId"],
        takes: None,
        answer: Answer::Body("QueueCancelled"),
    },
    get(
        "GET /models",
        "listModels",
        "Models that can be asked for; the first is the default.",
        Answer::Body("Models"),
    ),
    Call {
        name: "POST /v1/chat/completions",
        id: "createChatCompletion",
        summary: "OpenAI's Chat Completions API over the configured models and routes, streamed or in one piece. Requests, answers and errors are described by OpenAI.",
        parameters: &["idempotencyKey"],
        takes: None,
        answer: Answer::Document,
    },
    get(
        "GET /v1/models",
        "listOpenAiModels",
        "The same models, as OpenAI's API lists them.",
        Answer::Document,
    ),
    Call {
        name: "POST /api/chat",
        id: "createUiMessage",
        summary: "What `useChat` of Vercel's AI SDK sends: a new message, one that is answered again or edited, or answers to requests for approval; answered with a UI message stream. Both are described by the AI SDK. A message to a running turn is queued.",
        parameters: &["ui", "idempotencyKey"],
        takes: None,
        answer: Answer::Stream,
    },
    Call {
        name: "GET /api/chat/{chatId}/stream",
        id: "resumeUiMessage",
        summary: "The running turn of a chat from its start, as a UI message stream. 204 where none runs.",
        parameters: &["chatId", "ui"],
        takes: None,
        answer: Answer::Stream,
    },
    Call {
        name: "POST /api/chat/{chatId}/stop",
        id: "stopUiMessage",
        summary: "End the running turn of a chat. Idempotent. Closing the connection of a stream does not.",
        parameters: &["chatId"],
        takes: None,
        answer: Answer::Body("Stopped"),
    },
    Call {
        name: "POST /ag-ui",
        id: "runAgent",
        summary: "A run of AG-UI: takes a `RunAgentInput` with a new message, one that is answered again or edited, or answers to interrupts; answered with AG-UI's events. Both are described by AG-UI. A message to a running turn is queued.",
        parameters: &["idempotencyKey"],
        takes: None,
        answer: Answer::Stream,
    },
    Call {
        name: "POST /ag-ui/{threadId}/stop",
        id: "stopThread",
        summary: "End the running turn of a thread. Idempotent. Closing the connection of a run does not.",
        parameters: &["threadId"],
        takes: None,
        answer: Answer::Body("Stopped"),
    },
    get(
        "GET /copilotkit/info",
        "readCopilotKitInfo",
        "What CopilotKit asks its runtime for: the agents that there are.",
        Answer::Document,
    ),
    Call {
        name: "POST /copilotkit/agent/{agentId}/run",
        id: "runCopilotKitAgent",
        summary: "The same as `POST /ag-ui`, where CopilotKit asks for it.",
        parameters: &["agentId", "idempotencyKey"],
        takes: None,
        answer: Answer::Stream,
    },
    Call {
        name: "POST /copilotkit/agent/{agentId}/connect",
        id: "connectCopilotKitAgent",
        summary: "The messages of a thread and its running turn from its start, as AG-UI's events.",
        parameters: &["agentId"],
        takes: None,
        answer: Answer::Stream,
    },
    Call {
        name: "POST /copilotkit/agent/{agentId}/stop/{threadId}",
        id: "stopCopilotKitAgent",
        summary: "End the running turn of a thread, as CopilotKit asks for it. Idempotent.",
        parameters: &["agentId", "threadId"],
        takes: None,
        answer: Answer::Document,
    },
    get(
        "GET /targets",
        "listTargets",
        "All models by all credentials, and until when each is not worth asking.",
        Answer::Body("Targets"),
    ),
    get(
        "GET /tools",
        "listTools",
        "The tools that turns which begin now are offered, and the sources that they come from.",
        Answer::Body("Tools"),
    ),
    get("GET /health", "health", "Whether the server serves.", Answer::Body("Health")),
    get("GET /openapi.json", "openapi", "This document.", Answer::Document),
    get("GET /asyncapi.json", "asyncapi", "The WebSocket, as AsyncAPI 3.0.", Answer::Document),
    get("GET /schema.json", "schema", "Every type, as JSON Schema.", Answer::Document),
    get("GET /metrics", "metrics", "Figures of the server for Prometheus.", Answer::Metrics),
];

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
            "summary": "Agent turns that survive passing provider failures.",
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

/// The types that the calls refer to.
fn types() -> impl Iterator<Item = &'static str> {
    let answered = CALLS.iter().filter_map(|call| match call.answer {
        Answer::Body(name) => Some(name),
        Answer::Events(_) => Some("AgentEvent"),
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
        json!({ "description": "What is wrong and what to do.", "content": error });
    operation
}

fn answer(answer: &Answer) -> Value {
    match *answer {
        Answer::Body(name) => {
            let mut response =
                json!({ "description": "Done.", "content": content("application/json", name) });
            if name == "ConversationList" {
                response["headers"]["Link"] = json!({ "description": "The next page, where there is one.", "schema": { "type": "string" } });
            }
            response
        }
        Answer::Events(media) => {
            let mut response = json!({ "description": "Events, one after another.", "content": content(media, "AgentEvent") });
            if media == "application/x-ndjson" {
                response["headers"]["X-Conversation-Id"] =
                    json!({ "description": "The conversation.", "schema": schema("ConversationId") });
            }
            response
        }
        Answer::Stream => {
            json!({ "description": "Events, one after another.", "content": { "text/event-stream": { "schema": { "type": "string" } } } })
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
            "schema": { "type": "string", "pattern": "^(?!\\.{1,2}$)[A-Za-z0-9._:-]{1,128}$" },
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
        "tool": {
            "name": "tool", "in": "path", "required": true, "description": "The name of the tool, percent-encoded.",
            "schema": { "type": "string" },
        },
        "sinceSeq": { "name": "sinceSeq", "in": "query", "description": "Only chunks after this one.", "schema": seq() },
        "beforeSeq": { "name": "beforeSeq", "in": "query", "description": "Only chunks before this one.", "schema": seq() },
        "limit": { "name": "limit", "in": "query", "description": "At most so many, the newest.", "schema": seq() },
        "hidden": {
            "name": "hidden", "in": "query",
            "description": "True for the conversations in which a model reviews tool calls, instead of people's.",
            "schema": { "type": "boolean" },
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
            "description": "Only those after this place in the list: `<lastActivityAt>-<id>` of the last one seen.",
            "schema": { "type": "string" },
        },
        "extensions": {
            "name": "extensions", "in": "query", "description": "Whether to be sent extension events too.",
            "schema": { "type": "boolean", "default": false },
        },
        "idempotencyKey": {
            "name": "Idempotency-Key", "in": "header",
            "description": "1 to 255 visible ASCII characters. The same request with the same key follows the turn that the first one started, also after a restart; another request with the same key is a 409.",
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
