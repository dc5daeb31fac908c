//! AG-UI at `/ag-ui`, and CopilotKit's routes below `/copilotkit`.

use std::time::Duration;

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, Policy, Tool,
    kernel::{Arguments, FinishReason, StreamEvent, ToolAnswer, ToolCall, ToolSpec},
};
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::{Chunk, Message, Value};
use hyper::StatusCode;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    client::{Answer, get, post, post_keyed},
    puppet::Call,
    world,
    world::World,
};

const RUN: &str = "/ag-ui";
/// Where CopilotKit sends everything if it is told to use one endpoint.
const SINGLE: &str = "/copilotkit";

fn user(text: &str) -> Value {
    json!({ "id": text, "role": "user", "content": text })
}

fn input(messages: &Value) -> Value {
    json!({ "threadId": "my thread", "runId": "r", "protocolVersion": "1.0", "messages": messages, "tools": [], "context": [] })
}

/// Sends a request in its own task, because the answer may wait for the test.
fn ask(world: &World, path: &'static str, body: Value) -> JoinHandle<Answer> {
    let address = world.address;
    tokio::spawn(async move { post(address, path, body).await })
}

/// Returns the events of a whole run.
async fn events(answer: Answer) -> Vec<Value> {
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "text/event-stream");
    let stream = answer.text().await;
    let data = stream.split_terminator("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn text(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas.filter_map(|event| event["delta"].as_str()).collect()
}

async fn refused(answer: Answer) -> (u16, String) {
    assert!(answer.header("content-type").starts_with("text/plain"));
    (answer.status.as_u16(), answer.text().await)
}

#[tokio::test]
async fn a_message_is_answered_and_kept_under_the_clients_own_id() {
    let mut world = world().await;
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    let asked = world.call().await;
    assert_eq!(asked.said(), ["User hi"]);
    asked.reasoning("Hm");
    asked.answer("Hello");
    let told = events(asking.await.unwrap()).await;
    let wanted = [
        "RUN_STARTED",
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ];
    assert_eq!(types(&told), wanted);
    let answer = json!({ "id": told[6]["messageId"], "role": "assistant", "content": "I never said this." });
    let asking = ask(&world, RUN, input(&json!([user("hi"), answer, user("more")])));
    let asked = world.call().await;
    assert_eq!(asked.said(), ["User hi", "Assistant Hello", "User more"]);
    asked.answer("More.");
    assert_eq!(text(&events(asking.await.unwrap()).await), "More.");
    // The message after that answer is known, so it is answered again.
    let asking = ask(&world, RUN, input(&json!([user("hi"), answer, user("more")])));
    let asked = world.call().await;
    assert_eq!(asked.said(), ["User hi", "Assistant Hello", "User more"]);
    asked.answer("Even more.");
    assert_eq!(text(&events(asking.await.unwrap()).await), "Even more.");
    // Another one in its place replaces it only if the client says so.
    let mut edited = input(&json!([user("hi"), answer, user("less")]));
    edited["forwardedProps"] = json!({ "everturn": { "edit": true } });
    let asking = ask(&world, RUN, edited);
    let asked = world.call().await;
    assert_eq!(asked.said(), ["User hi", "Assistant Hello", "User less"]);
    asked.answer("Less.");
    assert_eq!(text(&events(asking.await.unwrap()).await), "Less.");
    // A client that sends only its last message adds to the conversation.
    let asking = ask(&world, RUN, input(&json!([user("alone")])));
    let asked = world.call().await;
    assert_eq!(asked.said().len(), 5);
    asked.answer("Yes.");
    events(asking.await.unwrap()).await;
    // Also if it is equal to the first one.
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    let asked = world.call().await;
    assert_eq!(asked.said().len(), 7);
    asked.answer("Again.");
    events(asking.await.unwrap()).await;
}

#[tokio::test]
async fn a_message_of_a_client_whose_list_is_out_of_date_is_added() {
    let mut world = world().await;
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    world.call().await.answer("Hello");
    let told = events(asking.await.unwrap()).await;
    let answer = json!({ "id": told[1]["messageId"], "role": "assistant", "content": "Hello" });
    let mut all = vec!["User hi", "Assistant Hello"];
    let image = json!({ "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" } });
    let shown =
        json!({ "id": "u", "role": "user", "content": [{ "type": "text", "text": "more" }, image.clone()] });
    let greeting = json!({ "id": "hello", "role": "assistant", "content": "How can I help?" });
    // The second tab has not seen the first one's message.
    for (list, said) in [
        (json!([user("hi"), answer, user("more")]), "User more"),
        (json!([user("hi"), answer, user("other")]), "User other"),
        (json!([user("hi"), answer, shown]), "User more"),
        (json!([greeting, user("new here")]), "User new here"),
    ] {
        let asking = ask(&world, RUN, input(&list));
        let asked = world.call().await;
        all.push(said);
        assert_eq!(asked.said(), all);
        asked.answer("Yes.");
        all.push("Assistant Yes.");
        events(asking.await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_message_with_a_key_is_answered_once() {
    let mut world = world().await;
    let body = input(&json!([user("hi")]));
    let (address, first) = (world.address, body.clone());
    let asking = tokio::spawn(async move { post_keyed(address, RUN, "k", first).await });
    let asked = world.call().await;
    let (status, _) = refused(post_keyed(address, RUN, "other", body.clone()).await).await;
    assert_eq!(status, 409, "a queued message has no key");
    asked.answer("Hello");
    let told = events(asking.await.unwrap()).await;
    assert_eq!(events(post_keyed(address, RUN, "k", body.clone()).await).await, told);
    let mut edit = body;
    edit["forwardedProps"] = json!({ "everturn": { "edit": true } });
    let (status, why) = refused(post_keyed(address, RUN, "k2", edit).await).await;
    assert!(status == 400 && why.contains("Idempotency-Key"), "{why}");
    assert!(world.has_no_call());
}

#[tokio::test]
async fn a_wait_is_told_and_leaving_is_no_stop() {
    let mut world = world().await;
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    world.call().await.overloaded();
    let mut stream = asking.await.unwrap();
    while !stream.until("\n\n").await.unwrap().contains("everturn.provider-retry") {}
    drop(stream);
    let queued = events(post(world.address, RUN, input(&json!([user("hi"), user("more")]))).await).await;
    assert_eq!(types(&queued), ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]);
    assert_eq!(queued[1]["value"]["queue"][0]["text"], "more");
    let connected = ask(&world, "/copilotkit/agent/default/connect", input(&json!([])));
    let mut connected = connected.await.unwrap();
    while !connected.until("\n\n").await.unwrap().contains("everturn.provider-retry") {}
    world.clock.advance(Duration::from_secs(5));
    let asked = world.call().await;
    let stop = "/copilotkit/agent/default/stop/my%20thread";
    assert_eq!(post(world.address, stop, Value::Null).await.json().await, json!({ "stopped": true }));
    asked.is_dropped().await;
    let rest = connected.text().await;
    assert!(rest.contains(r#"{"type":"cancelled"}"#), "{rest}");
    // The queued message begins the next turn.
    world.call().await;
    assert_eq!(
        post(world.address, "/ag-ui/my%20thread/stop", Value::Null).await.json().await["abortedTurn"],
        true
    );
    let none = post(world.address, "/copilotkit/agent/default/stop/none", Value::Null).await.json().await;
    assert_eq!(none["stopped"], false);
}

/// A call of CopilotKit's with one endpoint.
fn called(method: &str, agent: &str, body: &Value) -> Value {
    json!({ "method": method, "params": { "agentId": agent, "threadId": "my thread" }, "body": body })
}

#[tokio::test]
async fn the_single_endpoint_does_the_same_as_the_four_routes() {
    let mut world = world().await;
    let info = post(world.address, SINGLE, json!({ "method": "info" })).await.json().await;
    assert_eq!(info, get(world.address, "/copilotkit/info").await.json().await);
    let run = called("agent/run", "default", &input(&json!([user("hi")])));
    let asking = ask(&world, SINGLE, run);
    let asked = world.call().await;
    let connect = called("agent/connect", "default", &input(&json!([])));
    let connected = ask(&world, SINGLE, connect).await.unwrap();
    asked.answer("Hello");
    let told = events(asking.await.unwrap()).await;
    assert_eq!(text(&told), "Hello");
    assert!(text(&events(connected).await).ends_with("Hello"));
    let running = ask(&world, RUN, input(&json!([user("alone")])));
    let asked = world.call().await;
    let stop = || post(world.address, SINGLE, called("agent/stop", "default", &json!({ "runId": "r" })));
    assert_eq!(stop().await.json().await, json!({ "stopped": true }));
    asked.is_dropped().await;
    events(running.await.unwrap()).await;
    assert_eq!(stop().await.json().await["stopped"], false);
}

#[tokio::test]
async fn a_client_that_connects_is_told_all() {
    let mut world = world().await;
    let connect = "/copilotkit/agent/default/connect";
    let empty = events(post(world.address, connect, input(&json!([]))).await).await;
    assert_eq!(types(&empty), ["RUN_STARTED", "RUN_FINISHED"]);
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    world.call().await.answer("Hello");
    let first = events(asking.await.unwrap()).await;
    let idle = events(post(world.address, connect, input(&json!([]))).await).await;
    assert_eq!(types(&idle), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    assert_eq!(idle[1]["messages"][1]["id"], first[1]["messageId"]);
    let asking = ask(&world, RUN, input(&json!([user("hi"), idle[1]["messages"][1], user("more")])));
    let asked = world.call().await;
    let connected = ask(&world, connect, input(&json!([]))).await.unwrap();
    asked.answer("More.");
    let told = events(connected).await;
    assert_eq!(told[1]["messages"], idle[1]["messages"], "what the turn adds is streamed");
    let users: Vec<_> = told.iter().filter(|event| event["role"] == "user").collect();
    assert_eq!((users.len(), text(&told)), (1, "moreMore.".to_owned()));
    let run = events(asking.await.unwrap()).await;
    assert_eq!(run.last().unwrap()["usage"], told.last().unwrap()["usage"]);
}

#[tokio::test]
async fn a_client_that_connects_is_not_told_of_what_the_running_turn_supersedes() {
    let mut world = world().await;
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    world.call().await.answer("Hello");
    events(asking.await.unwrap()).await;
    for (message, edit, standing) in [("hi", false, 1), ("hey", true, 0)] {
        let mut again = input(&json!([user(message)]));
        again["forwardedProps"] = json!({ "everturn": { "edit": edit } });
        let asking = ask(&world, RUN, again);
        let asked = world.call().await;
        let connect = ask(&world, "/copilotkit/agent/default/connect", input(&json!([])));
        let connected = connect.await.unwrap();
        asked.answer("Once more.");
        let told = events(connected).await;
        let before = told[1]["messages"].as_array().unwrap();
        assert_eq!(before.len(), standing, "{before:?}");
        assert!(before.iter().all(|message| message["role"] == "user"));
        assert_eq!(text(&told).strip_prefix(if edit { "hey" } else { "" }), Some("Once more."));
        events(asking.await.unwrap()).await;
    }
}

struct Shell;

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "sh".to_owned(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
        }
    }

    fn policy(&self) -> Policy {
        Policy::Ask
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        ToolAnswer::ok(format!("ran {}", call.input["command"]))
    }
}

async fn with_shell() -> World {
    let routes = |orchestrator, _| router(orchestrator, CallLimits::default(), Metrics::none());
    World::serve_built(|builder| builder.tool(Shell), routes).await
}

/// Answers with these calls of the shell, each of its id.
fn call_shell(asked: &Call, ids: &[&str]) {
    for id in ids {
        let arguments = Arguments::Parsed(json!({ "command": id }));
        let call = ToolCall { id: (*id).to_owned(), name: "sh".to_owned(), arguments, echo: None };
        asked.tell(StreamEvent::ToolCall(call));
    }
    asked.tell(StreamEvent::Finished(FinishReason::ToolCalls));
}

#[tokio::test]
async fn interrupts_are_answered_by_another_run() {
    let mut world = with_shell().await;
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    let asked = world.call().await;
    call_shell(&asked, &["a", "b"]);
    let told = events(asking.await.unwrap()).await;
    let outcome = &told.last().unwrap()["outcome"];
    let ids: Vec<&Value> =
        outcome["interrupts"].as_array().unwrap().iter().map(|asked| &asked["id"]).collect();
    let resume = |answers: &[(&Value, bool)]| {
        let entry = |(id, approved): &(&Value, bool)| json!({ "interruptId": id, "status": "resolved", "payload": { "approved": approved } });
        let mut body = input(&json!([user("hi"), { "id": "m", "role": "assistant", "content": "" }]));
        body["resume"] = answers.iter().map(entry).collect();
        body
    };
    // One is denied. The turn still waits for the other, and an unknown one changes nothing. Nor is the turn's own message
    // said again.
    let mut denied = resume(&[(ids[0], false), (&json!("none"), true)]);
    denied["messages"] = json!([user("hi")]);
    let told = events(post(world.address, RUN, denied).await).await;
    let results: Vec<_> = told.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").collect();
    assert_eq!((results.len(), &results[0]["toolCallId"]), (1, ids[0]));
    assert_eq!(told.last().unwrap()["outcome"]["interrupts"][0]["id"], *ids[1]);
    // A message can come only with the answer, because clients start no other run meanwhile.
    let mut steered = resume(&[(ids[0], true), (ids[1], true)]);
    let messages = steered["messages"].as_array_mut().unwrap();
    let image = json!({ "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" } });
    messages.push(json!({ "id": "s", "role": "user", "content": [image] }));
    let (status, why) = refused(post(world.address, RUN, steered.clone()).await).await;
    assert!(status == 400 && why.contains("images"), "{why}");
    steered["messages"][2] = user("and then stop");
    let asking = ask(&world, RUN, steered);
    let asked = world.call().await;
    assert_eq!(asked.said(), ["User hi", "User and then stop"]);
    asked.answer("Done.");
    let told = events(asking.await.unwrap()).await;
    let result = told.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    assert_eq!((&result["content"], text(&told)), (&json!("ran \"b\""), "Done.".to_owned()));
    let late = events(post(world.address, RUN, resume(&[(ids[1], true)])).await).await;
    assert_eq!(types(&late), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    assert_eq!(late[1]["messages"].as_array().unwrap().last().unwrap()["content"], "Done.");
}

#[tokio::test]
async fn an_image_of_the_message_stays_when_it_is_edited_or_sent_with_an_answer() {
    let mut world = with_shell().await;
    let image = json!({ "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" } });
    let shown = json!({ "id": "u", "role": "user", "content": [{ "type": "text", "text": "hi" }, image] });
    let asking = ask(&world, RUN, input(&json!([shown])));
    let asked = world.call().await;
    call_shell(&asked, &["a"]);
    let interrupt = &events(asking.await.unwrap()).await.pop().unwrap()["outcome"]["interrupts"][0];
    let mut resume = input(&json!([shown]));
    resume["resume"] =
        json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": { "approved": true } }]);
    let asking = ask(&world, RUN, resume);
    world.call().await.answer("Done.");
    assert_eq!(text(&events(asking.await.unwrap()).await), "Done.");
    // A client that connected knows only the text.
    let mut edited = input(&json!([user("hello")]));
    edited["forwardedProps"] = json!({ "everturn": { "edit": true } });
    let asking = ask(&world, RUN, edited);
    let asked = world.call().await;
    let chunks: Vec<_> = asked.request.messages.iter().flat_map(Message::iter).collect();
    assert!(
        matches!(chunks[..], [Chunk::Image { .. }, Chunk::Text { text }] if text == "hello"),
        "{chunks:?}"
    );
    asked.answer("Hello.");
    assert_eq!(text(&events(asking.await.unwrap()).await), "Hello.");
}

#[tokio::test]
async fn an_answer_that_comes_late_is_followed_by_all_that_was_missed() {
    let mut world = with_shell().await;
    let asking = ask(&world, RUN, input(&json!([user("hi")])));
    let asked = world.call().await;
    call_shell(&asked, &["a"]);
    let answer = asking.await.unwrap();
    let id = answer.header("x-conversation-id").to_owned();
    let interrupt = &events(answer).await.pop().unwrap()["outcome"]["interrupts"][0];
    // The first tab approves, and the answer has begun.
    let mut resume = input(&json!([user("hi"), { "id": "m", "role": "assistant", "content": "" }]));
    resume["resume"] =
        json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": { "approved": true } }]);
    let first = ask(&world, RUN, resume.clone());
    let asked = world.call().await;
    asked.text("Half");
    let mut first = first.await.unwrap();
    while !first.until("\n\n").await.unwrap().contains("Half") {}
    let late = post(world.address, RUN, resume).await;
    asked.answer(" done.");
    let late = events(late).await;
    let turns = get(world.address, &format!("/conversations/{id}/metrics")).await.json().await;
    let of_answer = format!("{}#1:m", turns["turns"][0]["turnId"].as_str().unwrap());
    assert_eq!(text(&late), "hiHalf done.");
    assert!(late.iter().any(|event| event["messageId"] == of_answer), "{late:?}");
    assert!(late.iter().any(|event| event["content"] == r#"ran "a""#), "{late:?}");
}

#[tokio::test]
async fn what_cannot_be_done_is_said_in_words() {
    let world = world().await;
    let mut unclear = input(&json!([user("hi")]));
    unclear["resume"] = json!([{ "interruptId": "i", "status": "resolved" }]);
    let mut unknown = input(&json!([user("hi")]));
    unknown["forwardedProps"] = json!({ "everturn": { "model": "gpt-9" } });
    let answered = json!({ "id": "m", "role": "assistant", "content": "Hello" });
    for (path, body, status, why) in [
        (RUN, json!({}), 400, "RunAgentInput"),
        (RUN, input(&json!([user(" ")])), 400, "empty"),
        (RUN, input(&json!([user("hi"), answered])), 400, "user's"),
        (RUN, unclear, 400, "approved"),
        (RUN, unknown, 400, "test/small"),
        ("/copilotkit/agent/other/run", input(&json!([user("hi")])), 404, "default"),
        (SINGLE, called("agent/run", "other", &input(&json!([user("hi")]))), 404, "default"),
        (SINGLE, called("transcribe", "default", &Value::Null), 400, "agent/run"),
        (SINGLE, called("agent/run", "default", &json!({})), 400, "RunAgentInput"),
        ("/copilotkit/threads", Value::Null, 404, "/openapi.json"),
    ] {
        let (found, told) = refused(post(world.address, path, body).await).await;
        assert!(found == status && told.contains(why), "{found} {told}");
    }
    let info = get(world.address, "/copilotkit/info").await.json().await;
    assert_eq!((&info["mode"], &info["agents"]["default"]["name"]), (&json!("sse"), &json!("default")));
}
