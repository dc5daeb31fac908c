//! JSON Schema of all wire types, generated from the types; the other documents are generated from it.

use alloc::{borrow::ToOwned, format, string::String, vec::Vec};

use schemars::{
    JsonSchema, Schema, SchemaGenerator,
    generate::SchemaSettings,
    transform::{RecursiveTransform, Transform},
};
use serde_json::{Map, Value, json};

use crate::{
    AgentEvent, Answered, ApprovalAnswer, Approvals, Attempts, AuditLog, CallOrdered, CallerLimits,
    CallerList, Calls, Chunk, ClusterState, Command, ConversationList, ConversationState, ErrorBody,
    ExportLine, Failure, Health, HistoryWindow, MadeToken, Message, ModelSettings, Models, NewCaller,
    NewToken, QuestionAnswer, QueueCancelled, QueueRequest, Queued, RenameRequest, Renamed, Retried,
    RetryControl, RetryNowRequest, RetryPatch, RetryRequest, RetrySettingsState, Revoked, SendRequest,
    ServerMessage, Stopped, Targets, Tools, TurnMetricsList, UsageReport,
};

mod asyncapi;
mod openapi;
mod typescript;
mod unknown;

pub use asyncapi::asyncapi;
pub use openapi::openapi;
pub use typescript::typescript;

/// Largest integer that JavaScript holds exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// The unions discriminated by `type`, each with the suffix of its members' names and whether clients read it. A newer
/// server may send clients unlisted members.
const UNIONS: [(&str, &str, bool); 7] = [
    ("AgentEvent", "Event", true),
    ("Chunk", "Chunk", true),
    ("Command", "Command", false),
    ("ExportLine", "Line", false),
    ("ResponseFormat", "Format", false),
    ("ServerMessage", "Message", true),
    ("ToolChoice", "ToolChoice", false),
];

/// Enums that clients read. A newer server may send other values.
const OPEN_WORDS: [&str; 30] = [
    "AfterContent",
    "ApprovalMode",
    "ApprovalScope",
    "Because",
    "Category",
    "CompactionCause",
    "CompactionOutcome",
    "ConversationStatus",
    "Decider",
    "FieldKind",
    "ForcedBy",
    "OnQuota",
    "OutputStream",
    "Priority",
    "QuestionAction",
    "QuestionKind",
    "QuestionOutcome",
    "RetryOutcome",
    "RetryPhase",
    "CallPhase",
    "RetryPreset",
    "Role",
    "RouteRevert",
    "TargetRole",
    "ToolPolicy",
    "ToolSourceLogin",
    "ToolSourceStatus",
    "Unreached",
    "UsageKey",
    "Verdict",
];

/// Returns the generated documents: file name and content.
pub fn generated() -> [(&'static str, String); 4] {
    let pretty = |document: Value| format!("{document:#}\n");
    [
        ("schema.json", pretty(json_schema())),
        ("everturn.d.ts", typescript()),
        ("openapi.json", pretty(openapi())),
        ("asyncapi.json", pretty(asyncapi())),
    ]
}

/// Returns a JSON Schema (2020-12) document with a definition for every type.
///
/// Each member of a union has its own definition, such as `ProviderRetryEvent`. An optional field is not required and
/// never null.
pub fn json_schema() -> Value {
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Everturn",
        "description": "Everything that crosses a process boundary.",
        "$defs": definitions(),
    });
    // Another crate in the build may enable serde_json's `preserve_order`.
    document.sort_all_objects();
    document
}

fn definitions() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(absent_not_null))
        .with_transform(RecursiveTransform(exact_integers))
        .into_generator();
    let list = generator.subschema_for::<ConversationList>();
    define::<(AgentEvent, Chunk, Message, Failure, Command, ServerMessage, ExportLine)>(&mut generator);
    define::<(
        SendRequest,
        HistoryWindow,
        ConversationState,
        TurnMetricsList,
        Stopped,
        RetryControl,
        RetryNowRequest,
    )>(&mut generator);
    define::<(
        RetryRequest,
        Retried,
        QueueRequest,
        Queued,
        QueueCancelled,
        Models,
        Targets,
        ClusterState,
        Calls,
        CallOrdered,
        Health,
        ErrorBody,
    )>(&mut generator);
    define::<(RenameRequest, Renamed, ModelSettings, QuestionAnswer, UsageReport)>(&mut generator);
    define::<(AuditLog, CallerList, CallerLimits, NewCaller, NewToken, MadeToken)>(&mut generator);
    define::<(RetryPatch, RetrySettingsState, ApprovalAnswer, Answered, Approvals, Revoked, Attempts, Tools)>(
        &mut generator,
    );
    let mut definitions = generator.take_definitions(true);
    definitions.insert("ConversationList".to_owned(), list.to_value());
    for (union, suffix, open) in UNIONS {
        name_members(&mut definitions, union, suffix);
        if open {
            unknown::admit_member(&mut definitions, union, suffix);
        }
    }
    for words in OPEN_WORDS {
        unknown::admit_word(&mut definitions[words]);
    }
    // Its fields were inlined into the members of unions.
    definitions.remove("ErrorReport");
    definitions
}

/// Adds a definition for each type of a tuple.
fn define<T: JsonSchema>(generator: &mut SchemaGenerator) {
    T::json_schema(generator);
}

/// Removes the null that schemars generates for an `Option`: the wire omits such a field.
fn absent_not_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            for (key, value) in only {
                schema.ensure_object().entry(key).or_insert(value);
            }
        }
    }
}

/// Limits integers to the range that every reader represents exactly.
fn exact_integers(schema: &mut Schema) {
    if schema.get("format").is_some_and(|format| format == "uint64") {
        schema.insert("maximum".to_owned(), MAX_SAFE_INTEGER.into());
    }
}

/// Gives each member of a union its own definition, including the fields that all members share.
fn name_members(definitions: &mut Map<String, Value>, union: &str, suffix: &str) {
    let known = definitions.clone();
    let Some(Value::Object(whole)) = definitions.get_mut(union) else { return };
    let shared = whole.remove("properties");
    let shared_required = whole.remove("required");
    whole.remove("type");
    let Some(Value::Array(members)) = whole.remove("oneOf") else { return };
    let mut references = Vec::with_capacity(members.len());
    let mut named = Vec::with_capacity(members.len());
    for mut member in members {
        let tag = tag(&member).to_owned();
        inline(&mut member, &known);
        add_shared(&mut member, shared.as_ref(), shared_required.as_ref());
        if union == "AgentEvent" && tag != "status" {
            require(&mut member, "turnId");
        }
        let name = format!("{}{suffix}", pascal(&tag));
        references.push(json!({ "$ref": format!("#/$defs/{name}") }));
        named.push((name, member));
    }
    whole.insert("oneOf".to_owned(), references.into());
    definitions.extend(named);
}

/// Inlines the fields of a member that is a type with a tag.
fn inline(member: &mut Value, definitions: &Map<String, Value>) {
    let Some(Value::Object(fields)) = reference(member.get("$ref")).and_then(|name| definitions.get(name))
    else {
        return;
    };
    let fields = fields.clone();
    if let Some(member) = member.as_object_mut() {
        member.remove("$ref");
    }
    add_shared(member, fields.get("properties"), fields.get("required"));
}

fn add_shared(member: &mut Value, properties: Option<&Value>, required: Option<&Value>) {
    for (name, schema) in properties.and_then(Value::as_object).into_iter().flatten() {
        member["properties"][name] = schema.clone();
    }
    for name in required.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        require(member, name);
    }
}

fn require(member: &mut Value, field: &str) {
    if let Some(required) = member["required"].as_array_mut() {
        required.push(field.into());
    }
}

/// Returns the `type` value that identifies a member of a union.
fn tag(member: &Value) -> &str {
    member["properties"]["type"]["const"].as_str().unwrap_or_default()
}

/// Converts names such as `provider-retry` and `chat.queue.cancel` to type names.
fn pascal(tag: &str) -> String {
    tag.split(['-', '.'])
        .flat_map(|word| {
            word.chars().take(1).map(|first| first.to_ascii_uppercase()).chain(word.chars().skip(1))
        })
        .collect()
}

/// Returns the named definitions and everything they reference, with references in the form that OpenAPI and AsyncAPI
/// require.
fn components(roots: impl IntoIterator<Item = &'static str>) -> Value {
    let mut definitions = definitions();
    let mut wanted: Vec<String> = roots.into_iter().map(ToOwned::to_owned).collect();
    let mut taken = Map::new();
    while let Some(name) = wanted.pop() {
        let Some(mut definition) = definitions.remove(&name) else { continue };
        let mut rebase = RecursiveTransform(|schema: &mut Schema| {
            if let Some(name) = reference(schema.get("$ref")).map(ToOwned::to_owned) {
                schema.insert("$ref".to_owned(), format!("#/components/schemas/{name}").into());
                wanted.push(name);
            }
        });
        if let Ok(schema) = (&mut definition).try_into() {
            rebase.transform(schema);
        }
        taken.insert(name, definition);
    }
    taken.into()
}

/// Returns the name that a `$ref` points to.
fn reference(value: Option<&Value>) -> Option<&str> {
    value?.as_str()?.strip_prefix("#/$defs/")
}
