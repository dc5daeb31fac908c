//! Every dialect over two nodes that share a journal: what one begins, the other answers, stops and follows.

use std::sync::Arc;

use everturn_orchestrator::Clock;
use everturn_sim::cluster::SharedLog;
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::Value;
use hyper::{Method, StatusCode};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    ai_sdk::{self, Shell, answers, calls, chunks, submit},
    client::{Answer, call, get, post, request},
    world::{HandClock, World},
};

/// Two nodes. Turns begin at the first one, which drives them.
async fn nodes() -> (World, World) {
    let clock: Arc<dyn Clock> = Arc::new(HandClock::default());
    let log = SharedLog::new(clock);
    let node = async |name| {
        let (journal, cluster) = log.node(name);
        World::serve_node(
            |builder| builder.journal(journal).cluster(cluster).tool(Shell),
            |orchestrator, _| router(orchestrator, CallLimits::default(), Metrics::none()),
        )
        .await
    };
    (node("a").await, node("b").await)
}

/// Sends a request in its own task, because the answer may wait for the test.
fn ask(world: &World, path: &'static str, body: Value) -> JoinHandle<Answer> {
    let address = world.address;
    tokio::spawn(async move { post(address, path, body).await })
}

/// Returns the next event of a stream that contains this.
async fn next(stream: &mut Answer, with: &str) -> String {
    loop {
        let event = stream.until("\n\n").await.unwrap();
        if event.contains(with) {
            return event;
        }
    }
}

#[tokio::test]
async fn the_ai_sdk() {
    let (mut a, b) = nodes().await;
    let asking = ask(&a, ai_sdk::CHAT, submit(&json!([ai_sdk::user("u", "hi")])));
    calls(&a.call().await, &["x"]);
    let told = chunks(asking.await.unwrap()).await;
    let id = told[0]["messageId"].clone();
    // The page is reloaded at the other node, and shows the same request.
    let page = chunks(get(b.address, "/api/chat/my%20chat/stream").await).await;
    assert_eq!(page, told);
    // It is answered there, and what follows is streamed there.
    let asking = ask(&b, ai_sdk::CHAT, answers(&id, &[("x", true)]));
    let asked = a.call().await;
    let mut stream = asking.await.unwrap();
    next(&mut stream, r#"ran \"x\""#).await;
    asked.text("Do");
    next(&mut stream, "Do").await;
    // It is reloaded in the middle, and stopped.
    let mut again = get(b.address, "/api/chat/my%20chat/stream").await;
    next(&mut again, "Do").await;
    assert_eq!(
        post(b.address, "/api/chat/my%20chat/stop", Value::Null).await.json().await["abortedTurn"],
        true
    );
    asked.is_dropped().await;
    for stream in [stream, again] {
        let rest = stream.text().await;
        assert!(rest.contains("\"type\":\"abort\"") && rest.ends_with("data: [DONE]\n\n"), "{rest}");
    }
    assert_eq!(get(b.address, "/api/chat/my%20chat/stream").await.status, StatusCode::NO_CONTENT);
}

fn input(messages: &Value) -> Value {
    json!({ "threadId": "my thread", "runId": "r", "protocolVersion": "1.0", "messages": messages, "tools": [], "context": [] })
}

/// Starts a run at one node; at the other, answers its interrupt, follows the run after a reload, and stops it.
async fn run(path: &'static str, connect: &'static str, stop: &'static str) {
    let (mut a, b) = nodes().await;
    let hi = json!([{ "id": "u", "role": "user", "content": "hi" }]);
    let asking = ask(&a, path, input(&hi));
    calls(&a.call().await, &["x"]);
    let mut stream = asking.await.unwrap();
    let finished = next(&mut stream, "RUN_FINISHED").await;
    let finished: Value = serde_json::from_str(finished.strip_prefix("data: ").unwrap()).unwrap();
    let interrupt = finished["outcome"]["interrupts"][0]["id"].clone();
    let page = post(b.address, connect, input(&json!([]))).await.text().await;
    assert!(page.contains("interrupts") && page.contains(interrupt.as_str().unwrap()), "{page}");
    let mut resume = input(&hi);
    resume["resume"] =
        json!([{ "interruptId": interrupt, "status": "resolved", "payload": { "approved": true } }]);
    let asking = ask(&b, path, resume);
    let asked = a.call().await;
    let mut stream = asking.await.unwrap();
    next(&mut stream, r#"ran \"x\""#).await;
    asked.text("Do");
    next(&mut stream, "Do").await;
    let mut again = post(b.address, connect, input(&json!([]))).await;
    next(&mut again, "Do").await;
    let stopped = post(b.address, stop, Value::Null).await.json().await;
    assert!(stopped["stopped"] == true || stopped["abortedTurn"] == true, "{stopped}");
    asked.is_dropped().await;
    for stream in [stream, again] {
        let rest = stream.text().await;
        assert!(rest.contains("RUN_FINISHED") && rest.contains("cancelled"), "{rest}");
    }
}

#[tokio::test]
async fn ag_ui() {
    run("/ag-ui", "/copilotkit/agent/default/connect", "/ag-ui/my%20thread/stop").await;
}

#[tokio::test]
async fn copilot_kit() {
    run(
        "/copilotkit/agent/default/run",
        "/copilotkit/agent/default/connect",
        "/copilotkit/agent/default/stop/my%20thread",
    )
    .await;
}

/// A client of this API knows neither requests for approval nor a stop: both come through the conversation.
#[tokio::test]
async fn openai() {
    let (mut a, b) = nodes().await;
    let hi =
        json!({ "model": "test/small", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let completions = |world: &World, body: &Value| {
        let request = request(Method::POST, world.address, "/v1/chat/completions")
            .header("content-type", "application/json")
            .header("x-conversation-id", "c");
        call(world.address, request.body(body.to_string().into()).unwrap())
    };
    // Its head comes with the first content.
    let first = tokio::spawn(completions(&a, &hi));
    calls(&a.call().await, &["x"]);
    let mut events = get(b.address, "/conversations/c/events?extensions=true").await;
    next(&mut events, "approval-requested").await;
    let pending = get(b.address, "/conversations/c/approvals").await.json().await["pending"][0].clone();
    let answer = json!({
        "turnId": pending["turnId"], "stepId": pending["stepId"], "toolCallId": "x", "verdict": "allowed",
    });
    let answered = post(b.address, "/conversations/c/approvals", answer).await.json().await;
    assert_eq!(answered["answered"], true);
    let asked = a.call().await;
    asked.text("Do");
    let mut first = first.await.unwrap();
    for stream in [&mut first, &mut events] {
        next(stream, "Do").await;
    }
    // Another message has to wait for the end of the turn, at whichever node it comes.
    assert_eq!(completions(&b, &hi).await.status, StatusCode::CONFLICT);
    let mut again = get(b.address, "/conversations/c/events").await;
    next(&mut again, "Do").await;
    let stopped = post(b.address, "/conversations/c/stop", Value::Null).await.json().await;
    assert_eq!(stopped["abortedTurn"], true);
    asked.is_dropped().await;
    for stream in [&mut events, &mut again] {
        next(stream, "turn-sealed").await;
    }
    let rest = first.text().await;
    assert!(rest.contains("turn_stopped"), "{rest}");
}
