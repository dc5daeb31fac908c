//! Calls that read and change retry settings.

use axum::Json as Answer;
use everturn_wire::{RetryPatch, RetrySettingsState};

use crate::{api::Api, body::Json, path::Conversation, refusal::Refusal};

/// `GET /retry`
pub(crate) async fn read(api: Api) -> Result<Answer<RetrySettingsState>, Refusal> {
    Ok(Answer(api.orchestrator.retry_settings(None).await?))
}

/// `PATCH /retry`
pub(crate) async fn change(
    api: Api,
    Json(patch): Json<RetryPatch>,
) -> Result<Answer<RetrySettingsState>, Refusal> {
    Ok(Answer(api.orchestrator.change_retry_settings(None, &patch).await?))
}

/// `GET /conversations/{id}/retry`
pub(crate) async fn read_of_conversation(
    api: Api,
    Conversation(id): Conversation,
) -> Result<Answer<RetrySettingsState>, Refusal> {
    Ok(Answer(api.orchestrator.retry_settings(Some(&id)).await?))
}

/// `PATCH /conversations/{id}/retry`
pub(crate) async fn change_of_conversation(
    api: Api,
    Conversation(id): Conversation,
    Json(patch): Json<RetryPatch>,
) -> Result<Answer<RetrySettingsState>, Refusal> {
    Ok(Answer(api.orchestrator.change_retry_settings(Some(&id), &patch).await?))
}
