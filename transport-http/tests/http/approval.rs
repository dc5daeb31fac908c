//! Requests for approval over HTTP.

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, Policy, Tool,
    kernel::{Arguments, FinishReason, StreamEvent, ToolAnswer, ToolCall, ToolSpec},
};
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::Value;
use hyper::StatusCode;
use serde_json::json;

use crate::{
    client::{Answer, delete, get, post},
    peer::Peer,
    puppet::Call,
    world::World,
};

struct Shell;

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "my shell".to_owned(), description: String::new(), parameters }
    }

    fn policy(&self) -> Policy {
        Policy::Ask
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        ToolAnswer::ok(format!("ran {}", call.input["command"]))
    }
}

async fn world() -> World {
    World::serve_built(
        |builder| builder.tool(Shell).review_with("test/large"),
        |orchestrator, _| {
            let sockets = everturn_transport_ws::router(orchestrator.clone(), Default::default());
            router(orchestrator, CallLimits::default(), Metrics::none()).merge(sockets)
        },
    )
    .await
}

fn calls(call: &Call, ids: &[&str]) {
    for id in ids {
        let arguments = Arguments::Parsed(json!({ "command": "ls" }));
        let call_of = ToolCall { id: (*id).to_owned(), name: "my shell".to_owned(), arguments, echo: None };
        call.tell(StreamEvent::ToolCall(call_of));
    }
    call.tell(StreamEvent::Finished(FinishReason::ToolCalls));
}

/// Creates a turn of conversation `c` that waits for a person, and returns the stream of its events.
async fn asked(world: &mut World, message: Value) -> Answer {
    let mut stream = post(world.address, "/chat", message).await;
    calls(&world.call().await, &["a"]);
    while !stream.line().await.unwrap().contains("approval-requested") {}
    stream
}

async fn read(world: &World, path: &str) -> Value {
    get(world.address, path).await.json().await
}

const OF_C: &str = "/conversations/c/approvals";

fn message() -> Value {
    json!({ "conversationId": "c", "message": "Hi", "extensions": true })
}

#[tokio::test]
async fn a_request_is_read_answered_once_and_revoked() {
    let mut world = world().await;
    let stream = asked(&mut world, message()).await;
    let pending = &read(&world, OF_C).await["pending"];
    let request = &pending[0];
    assert_eq!((&request["toolName"], &request["input"]), (&json!("my shell"), &json!({ "command": "ls" })));
    let state = read(&world, "/conversations/c/status").await;
    assert_eq!((&state["status"], &state["isActive"]), (&json!("queued"), &json!(true)));
    assert_eq!(&state["approvals"], pending);
    assert_eq!(read(&world, "/conversations").await[0]["status"], "queued");
    let answer = json!({
        "turnId": request["turnId"], "stepId": request["stepId"], "toolCallId": "a",
        "verdict": "allowed", "scope": "conversation",
    });
    for answered in [true, false] {
        let told = post(world.address, OF_C, answer.clone()).await;
        assert_eq!(told.status, StatusCode::OK);
        assert_eq!(told.json().await, json!({ "conversationId": "c", "answered": answered }));
    }
    // The next call of the tool needs no approval.
    calls(&world.call().await, &["b"]);
    world.call().await.answer("Done");
    let events = stream.text().await;
    assert!(
        events.contains(r#""content":"ran \"ls\"""#) && !events.contains("approval-requested"),
        "{events}"
    );
    assert_eq!(
        read(&world, OF_C).await,
        json!({ "conversationId": "c", "pending": [], "allowedTools": ["my shell"] })
    );
    for revoked in [true, false] {
        let told = delete(world.address, &format!("{OF_C}/tools/my%20shell")).await.json().await;
        assert_eq!(told, json!({ "conversationId": "c", "revoked": revoked }));
    }
    assert_eq!(read(&world, OF_C).await["allowedTools"], json!([]));
}

#[tokio::test]
async fn a_socket_answers_and_is_told() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": true }))
        .await;
    calls(&world.call().await, &["a"]);
    let events = peer.events_until("approval-requested").await;
    let request = events.last().unwrap();
    let answer = json!({
        "type": "approval.answer", "conversationId": "c", "turnId": request["turnId"],
        "stepId": request["stepId"], "toolCallId": "a", "verdict": "denied", "reason": "not now",
    });
    peer.say(answer).await;
    let resolved = peer.events_until("approval-resolved").await;
    assert_eq!(resolved.last().unwrap()["reason"], "not now");
    world.call().await.answer("Well then");
    peer.events_until("turn-sealed").await;
}

#[tokio::test]
async fn a_message_that_nobody_attends_denies() {
    let mut world = world().await;
    let mut message = message();
    message["approvals"] = json!("deny");
    let stream = post(world.address, "/chat", message.clone()).await;
    calls(&world.call().await, &["a"]);
    world.call().await.answer("Done");
    let events = stream.text().await;
    assert!(
        events.contains("nobody is there to give it") && !events.contains("approval-requested"),
        "{events}"
    );
    message["approvals"] = json!("maybe");
    let refused = post(world.address, "/chat", message).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(refused.text().await.contains(r#"approvals must be \"ask\" or \"deny\""#));
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_refused_with_what_to_do() {
    let mut world = world().await;
    let _stream = asked(&mut world, message()).await;
    let request = &read(&world, OF_C).await["pending"][0];
    let mut answer = json!({ "turnId": request["turnId"], "stepId": request["stepId"], "toolCallId": "a", "verdict": "yes" });
    let refused = post(world.address, OF_C, answer.clone()).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    let why = r#"{"error":"the answer cannot be used: the verdict must be \"allowed\" or \"denied\""}"#;
    assert_eq!(refused.text().await, why);
    answer["verdict"] = json!("denied");
    answer["scope"] = json!("world");
    assert_eq!(post(world.address, OF_C, answer.clone()).await.status, StatusCode::BAD_REQUEST);
    let nowhere = post(world.address, "/conversations/nowhere/approvals", answer).await;
    assert_eq!(nowhere.status, StatusCode::BAD_REQUEST);
    assert_eq!(get(world.address, "/conversations/nowhere/approvals").await.status, StatusCode::NOT_FOUND);
    assert_eq!(read(&world, OF_C).await["pending"].as_array().map(Vec::len), Some(1), "it still waits");
}
