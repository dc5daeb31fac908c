//! Questions of tools.

use everturn_wire::{
    Command, EventBody, FieldKind, FieldOption, Question, QuestionAction, QuestionAnswer, QuestionField,
    QuestionKind, QuestionOutcome, SettledQuestion, StepId,
};
use serde_json::json;

use super::Family;

/// A question of each kind; a form with every field.
pub(super) fn questions() -> Vec<Question> {
    let bare = Question {
        question_id: "q1".into(),
        step_id: StepId::new(&"t1".into(), 0),
        tool_call_id: "call_1".into(),
        tool_name: "hotel__book".into(),
        asker: "hotel".into(),
        kind: QuestionKind::Login,
        message: "Which room?".into(),
        fields: Vec::new(),
        url: None,
    };
    let field = |kind| QuestionField {
        name: "a".into(),
        kind,
        title: None,
        description: None,
        required: None,
        format: None,
        minimum: None,
        maximum: None,
        options: Vec::new(),
        default: None,
    };
    let full = QuestionField {
        title: Some("A".into()),
        description: Some("The first".into()),
        required: Some(true),
        format: Some("email".into()),
        minimum: Some(1.into()),
        maximum: Some(5.into()),
        options: vec![
            FieldOption { value: "a".into(), title: None },
            FieldOption { value: "b".into(), title: Some("B".into()) },
        ],
        default: Some(json!(["a"])),
        ..field(FieldKind::Choices)
    };
    let kinds =
        [FieldKind::Text, FieldKind::Number, FieldKind::Integer, FieldKind::Boolean, FieldKind::Choice];
    let fields = kinds.map(field).into_iter().chain([full]).collect();
    vec![
        // More than a real one has, to cover every field.
        Question {
            kind: QuestionKind::Form,
            fields,
            url: Some("https://pay.example/".into()),
            ..bare.clone()
        },
        Question { kind: QuestionKind::Url, ..bare.clone() },
        bare,
    ]
}

pub(super) fn settled() -> Vec<SettledQuestion> {
    let bare = SettledQuestion {
        question_id: "q1".into(),
        asker: "hotel".into(),
        kind: QuestionKind::Form,
        outcome: QuestionOutcome::Withdrawn,
        name: None,
        via: None,
    };
    let (outcome, name, via) = (QuestionOutcome::Accepted, Some("Ada".into()), Some("page".into()));
    vec![SettledQuestion { outcome, name, via, ..bare.clone() }, bare]
}

pub(super) fn commands() -> [Command; 2] {
    let answer = |content, name, via| Command::QuestionAnswer {
        conversation_id: "c1".into(),
        question_id: "q1".into(),
        action: QuestionAction::Accept,
        content,
        name,
        via,
    };
    [answer(None, None, None), answer(Some(json!({ "a": ["b"] })), Some("Ada".into()), Some("page".into()))]
}

pub(super) fn events() -> Vec<EventBody> {
    let settled = |outcome, by: Option<&str>| EventBody::QuestionSettled {
        question_id: "q1".into(),
        step_id: StepId::new(&"t1".into(), 0),
        tool_call_id: "call_1".into(),
        outcome,
        asker: by.map(|_| "hotel".into()),
        kind: by.map(|_| QuestionKind::Form),
        name: by.map(Into::into),
        via: by.map(|_| "page".into()),
    };
    let outcomes = [
        QuestionOutcome::Accepted,
        QuestionOutcome::Declined,
        QuestionOutcome::Cancelled,
        QuestionOutcome::Withdrawn,
    ];
    let asked = questions().into_iter().map(|question| EventBody::QuestionAsked(Box::new(question)));
    // The last is from an older version.
    let told = outcomes.map(|outcome| settled(outcome, Some("Ada")));
    asked.chain(told).chain([settled(QuestionOutcome::Withdrawn, None)]).collect()
}

pub(super) fn families() -> Vec<Family> {
    let answer =
        |action, content| QuestionAnswer { question_id: "q1".into(), action, content, name: None, via: None };
    let answers = [
        QuestionAnswer {
            name: Some("Ada".into()),
            via: Some("page".into()),
            ..answer(QuestionAction::Accept, Some(json!({ "a": ["b"] })))
        },
        answer(QuestionAction::Decline, None),
        answer(QuestionAction::Cancel, None),
    ];
    vec![Family::new("QuestionAnswer", &answers)]
}
