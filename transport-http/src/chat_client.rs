//! Features that all chat protocols need, beside messages.

mod plain;

use everturn_dialect::{ai_sdk::Place, call_key, openai::resolve};
use everturn_orchestrator::{Error, View};
use everturn_wire::{ApprovalAnswer, ApprovalRequest, ConversationId, Verdict};

use crate::refusal::Refusal;
pub(crate) use plain::Plain;

/// Why a key is refused.
pub(crate) const NO_KEY: &str =
    "only a new message can have an Idempotency-Key: leave it out to answer or edit a message again";

/// A client's answer to a request for approval.
pub(crate) struct Answered<'a> {
    /// The key of the call.
    pub(crate) call: &'a str,
    pub(crate) approved: bool,
    pub(crate) reason: Option<&'a str>,
    /// The protocol, recorded with the decision.
    pub(crate) via: &'static str,
}

/// Answers one of these open requests. Returns whether the answer counted; `None` if there is no such request.
pub(crate) async fn answer_approval(
    orchestrator: &View,
    id: &ConversationId,
    pending: &[ApprovalRequest],
    answered: Answered<'_>,
) -> Result<Option<bool>, Error> {
    let is_it = |open: &&ApprovalRequest| call_key(&open.step_id, &open.tool_call_id) == answered.call;
    let Some(open) = pending.iter().find(is_it) else { return Ok(None) };
    let answer = ApprovalAnswer {
        turn_id: open.turn_id.clone(),
        step_id: open.step_id.clone(),
        tool_call_id: open.tool_call_id.clone(),
        verdict: if answered.approved { Verdict::Allowed } else { Verdict::Denied },
        scope: None,
        reason: answered.reason.map(str::to_owned),
        name: None,
        via: Some(answered.via.to_owned()),
    };
    orchestrator.answer_approval(id, answer).await.map(Some)
}

/// Returns the `seq` of the message at this position. A conversation that does not exist yet has none.
pub(crate) async fn find_message(
    orchestrator: &View,
    id: &ConversationId,
    place: &Place,
) -> Result<Option<u64>, Error> {
    let turns = match orchestrator.metrics(id).await {
        Err(Error::UnknownConversation { .. }) => return Ok(None),
        turns => turns?,
    };
    Ok(place.find(&turns, &orchestrator.user_messages(id).await?))
}

/// Ends the running turn, if there is one. A conversation that does not exist yet has none.
pub(crate) async fn end_turn(orchestrator: &View, id: &ConversationId) -> Result<bool, Error> {
    match orchestrator.stop(id).await {
        Err(Error::UnknownConversation { .. }) => Ok(false),
        stopped => stopped,
    }
}

/// Returns the id of the requested model.
pub(crate) fn model(orchestrator: &View, asked: Option<String>) -> Result<Option<String>, Refusal> {
    let Some(asked) = asked else { return Ok(None) };
    let models = orchestrator.models();
    match resolve(&asked, &models) {
        Some(model) => Ok(Some(model.to_owned())),
        None => Err(Error::UnknownModel { model: asked, known: models }.into()),
    }
}
