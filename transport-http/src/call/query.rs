//! Calls that read.

use axum::{Json as Answer, extract::State};
use everturn_orchestrator::Window;
use everturn_wire::{ConversationList, ConversationState, Health, HistoryWindow, Models, TurnMetricsList};

use crate::{api::Api, path::Conversation, query::Parameters, refusal::Refusal};

/// `GET /conversations`
pub(crate) async fn conversations(State(api): State<Api>) -> Result<Answer<ConversationList>, Refusal> {
    Ok(Answer(api.orchestrator.conversations().await?))
}

/// `GET /conversations/{id}`
pub(crate) async fn history(
    State(api): State<Api>,
    Conversation(id): Conversation,
    parameters: Parameters,
) -> Result<Answer<HistoryWindow>, Refusal> {
    let window = Window {
        since_seq: parameters.number("sinceSeq")?,
        before_seq: parameters.number("beforeSeq")?,
        limit: parameters.number("limit")?,
    };
    Ok(Answer(api.orchestrator.history(&id, window).await?))
}

/// `GET /conversations/{id}/status`
pub(crate) async fn status(
    State(api): State<Api>,
    Conversation(id): Conversation,
) -> Result<Answer<ConversationState>, Refusal> {
    Ok(Answer(api.orchestrator.status(&id).await?))
}

/// `GET /conversations/{id}/metrics`
pub(crate) async fn metrics(
    State(api): State<Api>,
    Conversation(id): Conversation,
) -> Result<Answer<TurnMetricsList>, Refusal> {
    Ok(Answer(TurnMetricsList { turns: api.orchestrator.metrics(&id).await? }))
}

/// `GET /models`
pub(crate) async fn models(State(api): State<Api>) -> Answer<Models> {
    Answer(Models { models: api.orchestrator.models(), model_info: None })
}

/// `GET /health`
pub(crate) async fn health() -> Answer<Health> {
    Answer(Health { ok: true })
}
