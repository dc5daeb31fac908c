//! Approvals.

use everturn_wire::{
    Answered, ApprovalAnswer, ApprovalRequest, ApprovalScope, Approvals, Command, Decider, Decision, Revoked,
    StepId, Verdict,
};
use serde_json::json;

use super::Family;

pub(super) fn requests() -> [ApprovalRequest; 2] {
    let bare = ApprovalRequest {
        turn_id: "t1".into(),
        step_id: StepId::new(&"t1".into(), 0),
        tool_call_id: "call_1".into(),
        tool_name: "shell".into(),
        input: json!({ "command": "ls" }),
        reason: None,
        until: None,
    };
    let reason = Some("the automatic review came to no decision: it timed out".into());
    let full = ApprovalRequest { reason, until: Some(1_700_000_060_000), ..bare.clone() };
    [bare, full]
}

/// A decision with every field, and one with none.
pub(super) fn decisions() -> Vec<Decision> {
    let full = Decision {
        scope: Some(ApprovalScope::Conversation),
        name: Some("Ada".into()),
        via: Some("page".into()),
        reason: Some("it timed out".into()),
        risk_level: Some("low".into()),
        user_authorization: Some("high".into()),
        ..Decision::new(Decider::Person, Verdict::Allowed)
    };
    let brief = [
        (Decider::Review, Verdict::TimedOut),
        (Decider::Rule, Verdict::Denied),
        (Decider::Grant, Verdict::Allowed),
    ];
    let brief = brief.map(|(by, verdict)| Decision::new(by, verdict));
    [full].into_iter().chain(brief).collect()
}

pub(super) fn families() -> Vec<Family> {
    let bare = ApprovalAnswer {
        turn_id: "t1".into(),
        step_id: StepId::new(&"t1".into(), 0),
        tool_call_id: "call_1".into(),
        verdict: Verdict::Denied,
        scope: None,
        reason: None,
        name: None,
        via: None,
    };
    let full = ApprovalAnswer {
        verdict: Verdict::Allowed,
        scope: Some(ApprovalScope::Conversation),
        reason: Some("go on".into()),
        name: Some("Ada".into()),
        via: Some("page".into()),
        ..bare.clone()
    };
    let approvals =
        |pending, allowed_tools| Approvals { conversation_id: "c1".into(), pending, allowed_tools };
    vec![
        Family::new("ApprovalAnswer", &[bare, full]),
        Family::new("Answered", &[Answered { conversation_id: "c1".into(), answered: true }]),
        Family::new(
            "Approvals",
            &[approvals(vec![], vec![]), approvals(requests().to_vec(), vec!["shell".into()])],
        ),
        Family::new("Revoked", &[Revoked { conversation_id: "c1".into(), revoked: false }]),
    ]
}

pub(super) fn commands() -> [Command; 2] {
    let answer = |scope, reason: Option<&str>| Command::ApprovalAnswer {
        conversation_id: "c1".into(),
        turn_id: "t1".into(),
        step_id: StepId::new(&"t1".into(), 0),
        tool_call_id: "call_1".into(),
        verdict: Verdict::Allowed,
        scope,
        reason: reason.map(Into::into),
        name: reason.map(|_| "Ada".into()),
        via: reason.map(|_| "page".into()),
    };
    [answer(None, None), answer(Some(ApprovalScope::Call), Some("go on"))]
}
