//! A tool's question, answered at another node than the one that runs the tool.

use everturn_wire::QuestionAction;
use serde_json::json;

use super::Nodes;
use crate::{
    question::{Curious, reply},
    support::{answer, ask},
};

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_at_another_node() {
    let nodes = Nodes::new();
    let calls = [ask("curious", &["c"]), answer("thanks")];
    let (a, _) = nodes.node_with("a", calls, |builder| builder.tool(Curious)).await;
    let (b, _) = nodes.node("b", [vec![]]).await;
    let started = a.start("hi").await.unwrap();
    let mut at_b = b.watch(Some(started.from)).await;
    at_b.until("question-asked Your PIN?").await;
    let question = b.question().await;
    assert_eq!(question, a.question().await, "every node lists it");
    let give = async |question, action, content| {
        b.orchestrator.answer_question(&b.id, reply(question, action, content)).await
    };
    let refused = give(&question, QuestionAction::Accept, Some(json!({ "pin": "47" }))).await.unwrap_err();
    assert!(refused.to_string().contains("at least 4 characters"), "{refused}");
    assert!(give(&question, QuestionAction::Accept, Some(json!({ "pin": "4711" }))).await.unwrap());
    at_b.until("question-asked Go there").await;
    assert!(give(&b.question().await, QuestionAction::Cancel, None).await.unwrap());
    let told = at_b.turn().await;
    let result = "tool-result c the PIN is known: true; the page: Cancelled".to_owned();
    assert!(told.contains(&result), "{told:?}");
    assert_eq!(b.orchestrator.status(&b.id).await.unwrap().questions, None);
}
