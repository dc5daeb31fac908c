//! Questions of servers to people: asked in both ways that the protocol has, answered, and not left open.

use std::time::Duration;

use everturn_mcp::{ServerConfig, Setting, Timeouts};
use everturn_orchestrator::{StartTurn, Subscription};
use everturn_wire::{
    ApprovalMode, ConversationId, ConversationStatus, EventBody, FieldKind, Question, QuestionAction,
    QuestionAnswer, QuestionKind, QuestionOutcome, Value,
};
use serde_json::json;

use crate::support::{World, called, config, event, everything, python, script, wait_for};

/// Waits for the next question.
pub(crate) async fn asked(watched: &mut Subscription) -> Question {
    loop {
        match event(watched).await {
            EventBody::QuestionAsked(question) => return *question,
            EventBody::ToolResult { content, .. } => panic!("it has not asked: {content}"),
            _ => {}
        }
    }
}

/// Waits until a question is settled.
pub(crate) async fn settled(watched: &mut Subscription) -> QuestionOutcome {
    loop {
        if let EventBody::QuestionSettled { outcome, .. } = event(watched).await {
            return outcome;
        }
    }
}

impl World {
    pub(crate) async fn answer(
        &self,
        id: &ConversationId,
        question: &Question,
        action: QuestionAction,
        content: Option<Value>,
    ) -> Result<bool, String> {
        let answer = QuestionAnswer {
            question_id: question.question_id.clone(),
            action,
            content,
            name: None,
            via: None,
        };
        self.orchestrator.answer_question(id, answer).await.map_err(|error| error.to_string())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_asked_for_and_its_answer_must_fit() {
    let world = World::up(config(everything("stdio")), &[("trigger-elicitation-request", json!({}))]).await;
    let (started, mut watched) = world.begin().await;
    let id = &started.conversation_id;
    let question = asked(&mut watched).await;
    assert_eq!(
        (question.kind, question.asker.as_str(), question.fields.len()),
        (QuestionKind::Form, "s", 13)
    );
    assert_eq!(question.fields[0].name, "name", "in the server's order");
    assert_eq!(question.fields[0].required, Some(true));
    assert_eq!(question.fields[9].kind, FieldKind::Choices);
    let state = world.orchestrator.status(id).await.unwrap();
    assert_eq!((state.status, state.questions), (ConversationStatus::Queued, Some(vec![question.clone()])));
    let accept = QuestionAction::Accept;
    let refused = world.answer(id, &question, accept, Some(json!({ "integer": 7 }))).await;
    assert_eq!(refused, Err("the answer cannot be used: String is required".to_owned()));
    let content =
        json!({ "name": "Ada", "integer": 7, "check": true, "untitledMultipleSelectEnum": ["Piano"] });
    assert_eq!(world.answer(id, &question, accept, Some(content.clone())).await, Ok(true));
    assert_eq!(world.answer(id, &question, accept, Some(content)).await, Ok(false), "it is answered");
    assert_eq!(settled(&mut watched).await, QuestionOutcome::Accepted);
    let called = called(&mut watched).await;
    assert!(called.content.contains("- Name: Ada") && called.content.contains("Piano"), "{called:?}");
    let state = world.orchestrator.status(id).await.unwrap();
    assert_eq!((state.status, state.questions), (ConversationStatus::Idle, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_can_be_declined_or_dismissed() {
    let calls = [("trigger-elicitation-request", json!({})), ("trigger-elicitation-request", json!({}))];
    let world = World::up(config(everything("stdio")), &calls).await;
    for (action, outcome, told) in [
        (QuestionAction::Decline, QuestionOutcome::Declined, "User declined"),
        (QuestionAction::Cancel, QuestionOutcome::Cancelled, "User cancelled"),
    ] {
        let (started, mut watched) = world.begin().await;
        let question = asked(&mut watched).await;
        assert_eq!(world.answer(&started.conversation_id, &question, action, None).await, Ok(true));
        assert_eq!(settled(&mut watched).await, outcome);
        let called = called(&mut watched).await;
        assert!(called.content.contains(told), "{called:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_offered_and_never_opened() {
    let arguments = json!({ "url": "https://pay.example/bill?nr=7", "message": "Pay first" });
    let world = World::up(config(everything("stdio")), &[("trigger-url-elicitation", arguments)]).await;
    let (started, mut watched) = world.begin().await;
    let question = asked(&mut watched).await;
    assert_eq!((question.kind, question.message.as_str()), (QuestionKind::Url, "Pay first"));
    assert_eq!(question.url.as_deref(), Some("https://pay.example/bill?nr=7"));
    let answered = world.answer(&started.conversation_id, &question, QuestionAction::Accept, None).await;
    assert_eq!(answered, Ok(true));
    assert!(called(&mut watched).await.content.contains("\"action\": \"accept\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_returns_its_questions_is_called_again_with_the_answers() {
    let mut command = python(&[]);
    command.env.insert("KEY".to_owned(), Setting::Secret("s3cret-value".to_owned()));
    let world = World::up(config(command), &[("book", json!({}))]).await;
    let (started, mut watched) = world.begin().await;
    let question = asked(&mut watched).await;
    assert_eq!(question.message, "Which room? [secret]");
    let fields: Vec<_> = question.fields.iter().map(|field| (field.name.as_str(), field.kind)).collect();
    assert_eq!(fields, [("guests", FieldKind::Integer), ("breakfast", FieldKind::Boolean)]);
    let (id, accept) = (&started.conversation_id, QuestionAction::Accept);
    let refused = world.answer(id, &question, accept, Some(json!({ "guests": 9 }))).await;
    assert_eq!(refused, Err("the answer cannot be used: Guests must be at most 4".to_owned()));
    let content = json!({ "guests": 3, "breakfast": true });
    assert_eq!(world.answer(id, &question, accept, Some(content)).await, Ok(true));
    let called = called(&mut watched).await;
    assert_eq!((called.content.as_str(), called.is_error), ("3 guests, breakfast: True", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn time_stands_still_while_a_question_is_open() {
    let timeouts = Timeouts {
        idle: Duration::from_millis(1_500),
        total: Duration::from_millis(3_000),
        ..Timeouts::default()
    };
    let config = ServerConfig { timeouts, ..config(everything("stdio")) };
    let world = World::up(config, &[("trigger-elicitation-request", json!({}))]).await;
    let (started, mut watched) = world.begin().await;
    let question = asked(&mut watched).await;
    // Twice the time that the call may take in all.
    let until = tokio::time::Instant::now() + Duration::from_millis(6_000);
    wait_for(|| (tokio::time::Instant::now() > until).then_some(())).await;
    let answered = world.answer(&started.conversation_id, &question, QuestionAction::Decline, None).await;
    assert_eq!(answered, Ok(true));
    assert!(called(&mut watched).await.content.contains("User declined"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_withdraws_the_question() {
    let world = World::up(config(everything("stdio")), &[("trigger-elicitation-request", json!({}))]).await;
    let (started, mut watched) = world.begin().await;
    let (id, question) = (&started.conversation_id, asked(&mut watched).await);
    assert!(world.orchestrator.stop(id).await.unwrap());
    while event(&mut watched).await != EventBody::TurnSealed {}
    assert_eq!(world.answer(id, &question, QuestionAction::Decline, None).await, Ok(false));
    let state = world.orchestrator.status(id).await.unwrap();
    assert_eq!((state.status, state.questions), (ConversationStatus::Idle, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_where_nobody_is() {
    let world = World::up(config(everything("stdio")), &[("trigger-elicitation-request", json!({}))]).await;
    let mut start = StartTurn::new("hi");
    start.approvals = ApprovalMode::Deny;
    let started = world.orchestrator.start(start).await.unwrap();
    let watched = world.orchestrator.subscribe(&started.conversation_id, Some(started.from), true).await;
    let called = called(&mut watched.unwrap()).await;
    assert!(called.content.contains("User cancelled"), "{called:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_without_extensions_is_told_why_the_call_waits() {
    let world = World::up(config(everything("stdio")), &[("trigger-elicitation-request", json!({}))]).await;
    let (started, mut watched) = world.begin().await;
    let id = &started.conversation_id;
    let mut plain = world.orchestrator.subscribe(id, Some(started.from), false).await.unwrap();
    let question = asked(&mut watched).await;
    assert_eq!(world.answer(id, &question, QuestionAction::Cancel, None).await, Ok(true));
    let called = called(&mut plain).await;
    assert_eq!(called.output, ["This call waits for an answer to a question of its tool.\n"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_questions_at_once_are_not_asked() {
    let world = World::up(config(script("asks.py", &["eleven"])), &[("ask", json!({}))]).await;
    let called = world.call().await;
    assert_eq!(called.content, "(tool failed: the MCP server s asked for input more than 10 times)");
}
