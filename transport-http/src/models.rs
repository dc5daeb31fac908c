//! Lists of models, in the form that the caller speaks.
//!
//! A caller that speaks OpenAI's API gets everything that it can ask for, by the ids of the server. Others get what
//! speaks their protocol, by its own name, because their programs know models by it. If nobody has a list of such models,
//! the provider answers itself.

use axum::{
    Json, Router,
    extract::{Path, Request},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
    routing::get,
};
use everturn_dialect::openai;
use everturn_orchestrator::{Dialect, OfferedModel, Scope};
use everturn_wire::Value;
use serde_json::json;

use crate::{
    api::{Api, Doors, caller},
    openai as door, pass,
    refusal::Refusal,
};

/// Sent by all callers that speak the Messages API, and by no others.
const ANTHROPIC_VERSION: &str = "anthropic-version";

/// When a model was made, which is not known.
const LONG_AGO: &str = "1970-01-01T00:00:00Z";

pub(crate) fn routes() -> Router<Doors> {
    Router::new()
        .route("/v1/models", get(models))
        .route("/v1/models/{*id}", get(model))
        .route("/v1beta/models", get(of_gemini))
}

/// `GET /v1/models`
async fn models(api: Api, request: Request) -> Response {
    // codex asks for a catalogue of its vendor's, in a form of its own.
    if request.uri().query().is_some_and(|query| query.contains("client_version="))
        && may_pass(&api, Dialect::Responses, &request)
    {
        return pass::responses(api, request).await;
    }
    if !speaks_messages(request.headers()) {
        return Json(openai::list(&api.orchestrator.models())).into_response();
    }
    let known = api.orchestrator.models_of(Dialect::Messages);
    if known.is_empty() && may_pass(&api, Dialect::Messages, &request) {
        return pass::messages(api, request).await;
    }
    let data: Vec<Value> = known.iter().map(of_messages).collect();
    let id = |model: Option<&OfferedModel>| model.map(|model| model.name.clone());
    let (first, last) = (id(known.first()), id(known.last()));
    Json(json!({ "data": data, "has_more": false, "first_id": first, "last_id": last })).into_response()
}

/// `GET /v1/models/{id}`
async fn model(api: Api, Path(id): Path<String>, request: Request) -> Response {
    let models = api.orchestrator.models();
    if !speaks_messages(request.headers()) {
        return match openai::resolve(&id, &models) {
            Some(model) => Json(openai::one(model)).into_response(),
            None => door::unknown_model(&id, &models),
        };
    }
    let known = api.orchestrator.models_of(Dialect::Messages);
    if known.is_empty() && may_pass(&api, Dialect::Messages, &request) {
        return pass::messages(api, request).await;
    }
    match known.iter().find(|model| model.name == id) {
        Some(model) => Json(of_messages(model)).into_response(),
        None => {
            let shown: String = id.chars().take(128).collect();
            let why = format!("model: {shown}: GET /v1/models lists those that can be asked for");
            pass::refused(Dialect::Messages, Refusal::new(StatusCode::NOT_FOUND, why))
        }
    }
}

/// `GET /v1beta/models`
async fn of_gemini(api: Api, request: Request) -> Response {
    let known = api.orchestrator.models_of(Dialect::Gemini);
    if known.is_empty() && may_pass(&api, Dialect::Gemini, &request) {
        return pass::gemini(api, request).await;
    }
    let model = |model: &OfferedModel| {
        let OfferedModel { name, context_window, .. } = model;
        let mut told = json!({
            "name": format!("models/{name}"),
            "displayName": name,
            "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        });
        if let Some(tokens) = context_window {
            told["inputTokenLimit"] = json!(tokens);
        }
        told
    };
    let models: Vec<Value> = known.iter().map(model).collect();
    Json(json!({ "models": models })).into_response()
}

/// Whether there is a provider to ask, and the caller may make calls.
fn may_pass(api: &Api, dialect: Dialect, request: &Request) -> bool {
    api.orchestrator.has_provider_of(dialect) && caller(request).may(Scope::Calls)
}

fn speaks_messages(headers: &HeaderMap) -> bool {
    headers.contains_key(ANTHROPIC_VERSION)
}

fn of_messages(model: &OfferedModel) -> Value {
    let OfferedModel { name, .. } = model;
    json!({ "type": "model", "id": name, "display_name": name, "created_at": LONG_AGO })
}
