//! Calls that control a conversation.

use axum::Json as Answer;
use everturn_orchestrator::RetryTurn;
use everturn_wire::{
    Answered, ApprovalAnswer, Approvals, QuestionAnswer, QueueCancelled, QueueRequest, Queued, RenameRequest,
    Renamed, Retried, RetryControl, RetryNowRequest, RetryRequest, Revoked, Stopped,
};

use crate::{
    api::Api,
    body::{Json, MaybeJson},
    path::{Conversation, MessageId, Tool},
    refusal::Refusal,
};

/// `PATCH /conversations/{id}`
pub(crate) async fn rename(
    api: Api,
    Conversation(id): Conversation,
    Json(request): Json<RenameRequest>,
) -> Result<Answer<Renamed>, Refusal> {
    let title = api.orchestrator.rename(&id, &request.title).await?;
    Ok(Answer(Renamed { conversation_id: id, title }))
}

/// `DELETE /conversations/{id}`
pub(crate) async fn remove(api: Api, Conversation(id): Conversation) -> Result<Answer<Stopped>, Refusal> {
    let aborted_turn = api.orchestrator.delete(&id).await?;
    Ok(Answer(Stopped { conversation_id: id, aborted_turn }))
}

/// `POST /conversations/{id}/stop`
pub(crate) async fn stop(api: Api, Conversation(id): Conversation) -> Result<Answer<Stopped>, Refusal> {
    let aborted_turn = api.orchestrator.stop(&id).await?;
    Ok(Answer(Stopped { conversation_id: id, aborted_turn }))
}

/// `POST /conversations/{id}/close`
pub(crate) async fn close(api: Api, Conversation(id): Conversation) -> Result<Answer<Stopped>, Refusal> {
    let aborted_turn = api.orchestrator.close(&id).await?;
    Ok(Answer(Stopped { conversation_id: id, aborted_turn }))
}

/// `POST /conversations/{id}/compact`
pub(crate) async fn compact(api: Api, Conversation(id): Conversation) -> Result<Answer<Retried>, Refusal> {
    let started = api.orchestrator.compact(&id).await?;
    let (turn_id, cursor) = (started.turn_id, started.from.to_string());
    Ok(Answer(Retried { conversation_id: id, turn_id, cursor }))
}

/// `GET /conversations/{id}/approvals`
pub(crate) async fn approvals(
    api: Api,
    Conversation(id): Conversation,
) -> Result<Answer<Approvals>, Refusal> {
    Ok(Answer(api.orchestrator.approvals(&id).await?))
}

/// `POST /conversations/{id}/approvals`
pub(crate) async fn answer_approval(
    api: Api,
    Conversation(id): Conversation,
    Json(answer): Json<ApprovalAnswer>,
) -> Result<Answer<Answered>, Refusal> {
    let via = answer.via.or_else(|| Some("http".to_owned()));
    let answered = api.orchestrator.answer_approval(&id, ApprovalAnswer { via, ..answer }).await?;
    Ok(Answer(Answered { conversation_id: id, answered }))
}

/// `POST /conversations/{id}/questions`
pub(crate) async fn answer_question(
    api: Api,
    Conversation(id): Conversation,
    Json(answer): Json<QuestionAnswer>,
) -> Result<Answer<Answered>, Refusal> {
    let via = answer.via.or_else(|| Some("http".to_owned()));
    let answered = api.orchestrator.answer_question(&id, QuestionAnswer { via, ..answer }).await?;
    Ok(Answer(Answered { conversation_id: id, answered }))
}

/// `DELETE /conversations/{id}/approvals/tools/{tool}`
pub(crate) async fn revoke_tool(
    api: Api,
    Conversation(id): Conversation,
    Tool(tool): Tool,
) -> Result<Answer<Revoked>, Refusal> {
    let revoked = api.orchestrator.revoke_tool(&id, &tool).await?;
    Ok(Answer(Revoked { conversation_id: id, revoked }))
}

/// `POST /conversations/{id}/retry`
pub(crate) async fn retry(
    api: Api,
    Conversation(id): Conversation,
    Json(request): Json<RetryRequest>,
) -> Result<Answer<Retried>, Refusal> {
    let mut what = RetryTurn::default();
    (what.turn_id, what.seq, what.text, what.model) =
        (request.turn_id, request.seq, request.message, request.model);
    (what.retry, what.approvals) = (request.retry.map(|settings| *settings), request.approvals);
    let started = api.orchestrator.retry_with(&id, what).await?;
    let (turn_id, cursor) = (started.turn_id, started.from.to_string());
    Ok(Answer(Retried { conversation_id: id, turn_id, cursor }))
}

/// `POST /conversations/{id}/retry/abort`
pub(crate) async fn abort_retry(
    api: Api,
    Conversation(id): Conversation,
) -> Result<Answer<RetryControl>, Refusal> {
    let was_retrying = api.orchestrator.abort_retry(&id).await?;
    Ok(Answer(RetryControl { conversation_id: id, was_retrying }))
}

/// `POST /conversations/{id}/retry/now`
pub(crate) async fn retry_now(
    api: Api,
    Conversation(id): Conversation,
    MaybeJson(request): MaybeJson<RetryNowRequest>,
) -> Result<Answer<RetryControl>, Refusal> {
    let was_retrying = match request.model {
        Some(model) => api.orchestrator.retry_now_with(&id, &model).await?,
        None => api.orchestrator.retry_now(&id).await?,
    };
    Ok(Answer(RetryControl { conversation_id: id, was_retrying }))
}

/// `POST /conversations/{id}/queue`
pub(crate) async fn enqueue(
    api: Api,
    Conversation(id): Conversation,
    Json(request): Json<QueueRequest>,
) -> Result<Answer<Queued>, Refusal> {
    Ok(Answer(api.orchestrator.enqueue(&id, request.text, request.message_id).await?))
}

/// `DELETE /conversations/{id}/queue/{messageId}`
pub(crate) async fn cancel_queued(
    api: Api,
    Conversation(id): Conversation,
    MessageId(message_id): MessageId,
) -> Result<Answer<QueueCancelled>, Refusal> {
    Ok(Answer(api.orchestrator.cancel_queued(&id, &message_id).await?))
}
