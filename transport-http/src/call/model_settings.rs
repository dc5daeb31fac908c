//! Calls that read and set a conversation's system prompt and parameters.

use axum::Json as Answer;
use everturn_wire::ModelSettings;

use crate::{api::Api, body::Json, path::Conversation, refusal::Refusal};

/// `GET /conversations/{id}/model-settings`
pub(crate) async fn read(api: Api, Conversation(id): Conversation) -> Result<Answer<ModelSettings>, Refusal> {
    Ok(Answer(api.orchestrator.model_settings(&id).await?))
}

/// `POST /conversations/{id}/model-settings`
pub(crate) async fn set(
    api: Api,
    Conversation(id): Conversation,
    Json(settings): Json<ModelSettings>,
) -> Result<Answer<ModelSettings>, Refusal> {
    Ok(Answer(api.orchestrator.set_model_settings(&id, settings).await?))
}
