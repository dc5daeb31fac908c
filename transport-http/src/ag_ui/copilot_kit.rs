//! The routes of CopilotKit's runtime, and its single endpoint.

use axum::{
    Json, Router,
    extract::{RawPathParams, Request},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use everturn_dialect::{
    ag_ui::{Envelope, Method, RunRequest},
    conversation_of,
};
use everturn_wire::Value;
use serde_json::json;

use super::{Call, parameter, start};
use crate::{
    api::{Api, Doors},
    body::Unread,
    call::chat::Sent,
    chat_client::{Plain, end_turn},
    refusal::Refusal,
};

/// The only agent: every thread is a conversation with the default model.
const AGENT: &str = "default";

/// The version of CopilotKit's runtime that these routes implement.
const RUNTIME: &str = "1.75.0";

pub(super) fn routes() -> Router<Doors> {
    Router::new()
        .route("/copilotkit", post(single))
        .route("/copilotkit/info", get(async || info()))
        .route("/copilotkit/agent/{agentId}/run", post(run_agent))
        .route("/copilotkit/agent/{agentId}/connect", post(connect_agent))
        .route("/copilotkit/agent/{agentId}/stop/{threadId}", post(stop_agent))
}

/// `POST /copilotkit`: the method named in the body.
async fn single(api: Api, request: Request) -> Result<Response, Plain> {
    let sent = Sent::of(request.headers())?;
    let body = Unread::of(request, &api).await?;
    let Envelope { method, agent_id, thread_id, body: inner } =
        Envelope::read(&body.bytes).map_err(Refusal::bad)?;
    if method == Method::Info {
        return Ok(info().into_response());
    }
    check_agent(&agent_id)?;
    if method == Method::Stop {
        drop(body);
        return Ok(stop(&api, &thread_id).await?.into_response());
    }
    let asked = RunRequest::read(inner).map_err(Refusal::bad)?;
    drop(body);
    if method == Method::Connect { connect(&api, asked).await } else { start(&api, asked, sent).await }
}

/// `GET /copilotkit/info`
fn info() -> Json<Value> {
    let agent = json!({ "name": AGENT, "description": "Answers, whatever its provider does." });
    Json(json!({
        "version": RUNTIME, "mode": "sse", "agents": { AGENT: agent }, "audioFileTranscriptionEnabled": false,
    }))
}

/// `POST /copilotkit/agent/{agentId}/run`
async fn run_agent(api: Api, path: RawPathParams, request: Request) -> Result<Response, Plain> {
    check_agent(parameter(&path, "agentId"))?;
    super::run(api, request).await
}

/// `POST /copilotkit/agent/{agentId}/connect`
async fn connect_agent(api: Api, path: RawPathParams, request: Request) -> Result<Response, Plain> {
    check_agent(parameter(&path, "agentId"))?;
    let body = Unread::of(request, &api).await?;
    let asked = RunRequest::read(&body.bytes).map_err(Refusal::bad)?;
    drop(body);
    connect(&api, asked).await
}

/// `POST /copilotkit/agent/{agentId}/stop/{threadId}`
async fn stop_agent(api: Api, path: RawPathParams) -> Result<Json<Value>, Plain> {
    check_agent(parameter(&path, "agentId"))?;
    stop(&api, parameter(&path, "threadId")).await
}

/// Streams the conversation so far, and the running turn from its start.
async fn connect(api: &Api, asked: RunRequest) -> Result<Response, Plain> {
    let place = api.stream_place()?;
    Ok(Call { api, place }.connect(asked.head, &asked.conversation_id).await?)
}

/// Stops the running turn.
async fn stop(api: &Api, thread_id: &str) -> Result<Json<Value>, Plain> {
    Ok(Json(match end_turn(&api.orchestrator, &conversation_of(thread_id)).await? {
        true => json!({ "stopped": true }),
        false => json!({ "stopped": false, "message": "no turn is running" }),
    }))
}

fn check_agent(name: &str) -> Result<(), Refusal> {
    if name == AGENT {
        return Ok(());
    }
    let why = format!("there is no agent {name:?}: the only one is {AGENT:?}");
    Err(Refusal::new(StatusCode::NOT_FOUND, why))
}
