//! Questions of tools, answered over the socket.

use async_trait::async_trait;
use everturn_orchestrator::{
    Ask, Invocation, Reply, Tool,
    kernel::{Arguments, FinishReason, StreamEvent, ToolAnswer, ToolCall, ToolSpec},
};
use everturn_transport_ws::{SocketLimits, router};
use everturn_wire::{QuestionField, Value};
use serde_json::json;

use crate::{peer::Peer, world::World};

/// Asks for a number of guests.
struct Hotel;

#[async_trait]
impl Tool for Hotel {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "book".to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        let guests: QuestionField =
            serde_json::from_value(json!({ "name": "guests", "kind": "integer", "required": true })).unwrap();
        match call.people.ask("hotel", "How many?", Ask::Form(vec![guests])).await {
            Reply::Accepted(values) => ToolAnswer::ok(format!("booked for {}", values["guests"])),
            other => ToolAnswer::ok(format!("{other:?}")),
        }
    }
}

#[tokio::test]
async fn an_answer_that_fits_reaches_the_tool_and_others_are_refused() {
    let app = |orchestrator, _| router(orchestrator, SocketLimits::default());
    let mut world = World::serve_built(|builder| builder.tool(Hotel), app).await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Go", "extensions": true }))
        .await;
    let call = world.call().await;
    let (id, name, arguments) = ("1".into(), "book".into(), Arguments::Parsed(json!({})));
    call.tell(StreamEvent::ToolCall(ToolCall { id, name, arguments, echo: None }));
    call.tell(StreamEvent::Finished(FinishReason::ToolCalls));
    let asked = peer.events_until("question-asked").await.pop().unwrap();
    let answer = |action: &str, content: &Value| {
        json!({ "type": "question.answer", "conversationId": "c", "questionId": asked["questionId"],
            "action": action, "content": content, "name": "Ada" })
    };
    for (action, content, why) in [
        ("accept", json!({ "guests": "two" }), "guests"),
        ("shrug", Value::Null, "the action must be"),
        ("accept", json!("x".repeat(70_000)), "more than 65536 bytes"),
    ] {
        let refused = peer.answer_to(answer(action, &content)).await;
        assert_eq!(refused["type"], "chat.error");
        assert!(refused.to_string().contains(why), "{refused}");
    }
    peer.say(answer("accept", &json!({ "guests": 2 }))).await;
    let settled = peer.events_until("question-settled").await.pop().unwrap();
    assert_eq!([&settled["outcome"], &settled["name"], &settled["via"]], ["accepted", "Ada", "websocket"]);
    assert!(!settled.to_string().contains("guests"), "{settled}");
    let result = peer.events_until("tool-result").await.pop().unwrap();
    assert_eq!(
        (&result["content"], &result["questions"][0]["via"]),
        (&json!("booked for 2"), &json!("websocket"))
    );
}
