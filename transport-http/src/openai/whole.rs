//! An answer in one piece.

use axum::{
    http::header::CONTENT_TYPE,
    response::{IntoResponse as _, Response},
};
use everturn_dialect::openai::{Completion, Refusal};
use everturn_orchestrator::Subscription;

use super::{Leaving, answer::ends};
use crate::events::{Events, translate};

/// Waits for the end of the turn, however long that takes.
pub(super) async fn answer(
    events: Subscription,
    mut completion: Completion,
    mut leaving: Leaving,
) -> Result<Response, Refusal> {
    let mut events = Events::of(events);
    while !completion.is_over() {
        match events.next().await {
            Ok(frame) => translate(&frame, |event| completion.push(event)),
            Err(error) => {
                if let Some(why) = ends(error) {
                    completion.fail(why);
                }
            }
        }
    }
    leaving.is_served();
    Ok(([(CONTENT_TYPE, "application/json")], completion.body()?).into_response())
}
