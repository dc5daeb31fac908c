//! Calls that are passed through, as people see and control them.

use axum::{Json as Answer, extract::Path, http::StatusCode};
use everturn_wire::{CallOrdered, Calls};

use crate::{api::Api, refusal::Refusal};

/// `GET /calls`
pub(crate) async fn list(api: Api) -> Answer<Calls> {
    Answer(Calls { calls: api.orchestrator.calls() })
}

/// `POST /calls/{id}/retry-now`
pub(crate) async fn retry_now(api: Api, Path(id): Path<String>) -> Result<Answer<CallOrdered>, Refusal> {
    ordered(api.orchestrator.retry_call_now(&id), id)
}

/// `POST /calls/{id}/give-up`
pub(crate) async fn give_up(api: Api, Path(id): Path<String>) -> Result<Answer<CallOrdered>, Refusal> {
    ordered(api.orchestrator.give_up_call(&id), id)
}

fn ordered(is_known: bool, call_id: String) -> Result<Answer<CallOrdered>, Refusal> {
    match is_known {
        true => Ok(Answer(CallOrdered { call_id })),
        false => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no such call: it may have ended")),
    }
}
