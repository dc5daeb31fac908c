//! Builds requests of the Gemini API.

mod transcript;

use everturn_kernel::{Request, ToolSpec};
use everturn_wire::{Parameters, ResponseFormat, ToolChoice, Value};
use serde_json::{Map, json};

use super::GeminiConfig;
use crate::{
    history::instructions,
    parameter::{merge, put, stop},
};
use transcript::Transcript;

/// Builds the body. Only echoes of `origin` are sent back.
pub(super) fn body(config: &GeminiConfig, origin: &str, request: &Request) -> Value {
    let mut body = Map::new();
    body.insert("contents".to_owned(), Transcript::of(request, origin).contents());
    let system = instructions(&request.messages);
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({ "parts": [{ "text": system }] }));
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
        body.insert("tools".to_owned(), json!([{ "functionDeclarations": declarations }]));
    }
    let mut generation = Map::new();
    if let Some(limit) = request.max_output_tokens {
        generation.insert("maxOutputTokens".to_owned(), json!(limit));
    }
    passed_on(&request.parameters, &mut generation);
    // Without tools, the API refuses it.
    if let Some(choice) = request.parameters.tool_choice.as_ref().filter(|_| !request.tools.is_empty()) {
        body.insert("toolConfig".to_owned(), json!({ "functionCallingConfig": calling(choice) }));
    }
    generation.insert("thinkingConfig".to_owned(), thinking(request.reasoning_effort.as_deref()));
    body.insert("generationConfig".to_owned(), Value::Object(generation));
    merge(&mut body, &config.extra_body);
    Value::Object(body)
}

/// The parameters that the API has. The model decides about parallel calls.
pub(super) const PARAMETERS: [&str; 8] = [
    "temperature",
    "topP",
    "stop",
    "toolChoice",
    "responseFormat",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
];

fn passed_on(parameters: &Parameters, generation: &mut Map<String, Value>) {
    let (kind, schema) = match &parameters.response_format {
        None => (None, None),
        Some(ResponseFormat::Text) => (Some("text/plain"), None),
        Some(ResponseFormat::JsonObject) => (Some("application/json"), None),
        Some(ResponseFormat::JsonSchema { schema, .. }) => (Some("application/json"), Some(schema.clone())),
    };
    let fields = [
        ("temperature", parameters.temperature.map(Value::from)),
        ("topP", parameters.top_p.map(Value::from)),
        ("stopSequences", stop(parameters)),
        ("responseMimeType", kind.map(Value::from)),
        // Standard JSON Schema, unlike `responseSchema`; likewise for tool parameters.
        ("responseJsonSchema", schema),
        ("seed", parameters.seed.map(Value::from)),
        ("presencePenalty", parameters.presence_penalty.map(Value::from)),
        ("frequencyPenalty", parameters.frequency_penalty.map(Value::from)),
    ];
    put(generation, fields);
}

fn calling(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!({ "mode": "AUTO" }),
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Tool { name } => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    }
}

/// Returns the path segments of the model: `models/...` unless the name has a slash.
pub(super) fn path(model: &str) -> Vec<String> {
    let kind = if model.contains('/') { None } else { Some("models") };
    let mut path: Vec<String> = kind.into_iter().chain(model.split('/')).map(str::to_owned).collect();
    if let Some(name) = path.last_mut() {
        name.push_str(":streamGenerateContent");
    }
    path
}

/// Requests thoughts, so that a model that thinks for minutes is not silent. If thinking is disabled, requesting
/// thoughts is an error.
fn thinking(effort: Option<&str>) -> Value {
    match effort.map(|effort| effort.parse::<i32>().map_err(|_| effort)) {
        None => json!({ "includeThoughts": true }),
        Some(Ok(0)) => json!({ "thinkingBudget": 0 }),
        Some(Ok(budget)) => json!({ "includeThoughts": true, "thinkingBudget": budget }),
        Some(Err(level)) => json!({ "includeThoughts": true, "thinkingLevel": level }),
    }
}

/// Uses standard JSON Schema. The API's own `parameters` field is a dialect that rejects most of it.
fn declaration(spec: &ToolSpec) -> Value {
    let mut declaration = json!({ "name": spec.name, "description": spec.description });
    if !spec.parameters.is_null() {
        declaration["parametersJsonSchema"] = spec.parameters.clone();
    }
    declaration
}

#[cfg(test)]
mod tests;
