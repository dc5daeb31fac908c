//! OpenAI's API below `/v1`.

use std::time::Duration;

use axum::body::Body;
use everturn_orchestrator::kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::{Category, Failure, Value};
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::{
    client::{Answer, call, get, post, request},
    guarded, world,
    world::World,
    world::still_time,
    world_with,
};

const CHAT: &str = "/v1/chat/completions";

fn hi() -> Value {
    json!({ "model": "test/small", "messages": [{ "role": "user", "content": "hi" }] })
}

/// Returns a request with these additional fields.
fn with(fields: Value) -> Value {
    let mut body = hi();
    let Value::Object(fields) = fields else { panic!("{fields}") };
    body.as_object_mut().unwrap().extend(fields);
    body
}

async fn ask(world: &World, headers: &[(&str, &str)], body: Value) -> Answer {
    let mut request = request(Method::POST, world.address, CHAT).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    call(world.address, request.body(Body::from(body.to_string())).unwrap()).await
}

/// Returns the error of a response, which must tell clients not to retry.
async fn refused(answer: Answer) -> (u16, Value) {
    assert_eq!(answer.header("x-should-retry"), "false");
    let status = answer.status.as_u16();
    let error = answer.json().await["error"].clone();
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    (status, error)
}

/// Returns the text of a complete stream.
fn text(stream: &str) -> String {
    assert!(stream.ends_with("data: [DONE]\n\n"), "{stream}");
    let data = stream.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
    let data = data.map(|data| serde_json::from_str::<Value>(&format!("{{{data}")).unwrap());
    data.filter_map(|data| data["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn an_answer_comes_in_one_piece_and_nothing_is_listed() {
    let mut world = world().await;
    let asking = tokio::spawn({
        let address = world.address;
        async move { post(address, CHAT, hi()).await }
    });
    let asked = world.call().await;
    assert_eq!(asked.said(), ["User hi"]);
    asked.answer("Hello \"you\"");
    let answer = asking.await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.header("x-conversation-id").starts_with("ephemeral:"));
    let id = format!("chatcmpl-{}", answer.header("x-request-id"));
    let told = answer.json().await;
    assert_eq!((told["id"].as_str(), &told["model"]), (Some(id.as_str()), &json!("test/small")));
    let message = json!({ "role": "assistant", "content": "Hello \"you\"", "refusal": null });
    assert_eq!(told["choices"][0]["message"], message);
    assert_eq!(told["usage"], json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 }));
    assert_eq!(get(world.address, "/conversations").await.json().await, json!([]));
}

#[tokio::test]
async fn a_wait_is_a_comment_and_the_answer_comes_after_it() {
    let mut world = world().await;
    let asking = tokio::spawn({
        let address = world.address;
        async move { post(address, CHAT, with(json!({ "stream": true, "model": "small" }))).await }
    });
    world.call().await.overloaded();
    let mut stream = asking.await.unwrap();
    assert_eq!(stream.header("content-type"), "text/event-stream");
    assert_eq!(stream.until("\n\n").await.unwrap(), ": retry 1 in 5000 ms: HTTP 529: Overloaded");
    world.clock.advance(Duration::from_secs(5));
    let asked = world.call().await;
    asked.text("Hel");
    while !stream.until("\n\n").await.unwrap().contains("Hel") {}
    asked.answer("lo");
    assert_eq!(text(&stream.text().await), "lo");
}

#[tokio::test]
async fn silence_is_broken_by_comments() {
    let limits = CallLimits { heartbeat: Duration::from_secs(15), ..CallLimits::default() };
    let mut world = world_with(limits).await;
    let asking = tokio::spawn({
        let address = world.address;
        async move { post(address, CHAT, with(json!({ "stream": true }))).await }
    });
    let asked = world.call().await;
    still_time();
    tokio::time::advance(Duration::from_secs(16)).await;
    let mut stream = asking.await.unwrap();
    assert_eq!(stream.until("\n\n").await.unwrap(), ": ");
    asked.answer("Hello");
    assert_eq!(text(&stream.text().await), "Hello");
}

#[tokio::test]
async fn a_failure_has_a_status_until_something_is_shown() {
    let mut world = world().await;
    for stream in [false, true] {
        let asking = tokio::spawn({
            let address = world.address;
            async move { post(address, CHAT, with(json!({ "stream": stream }))).await }
        });
        let failure = Failure::new(Category::ContextOverflow, false, "HTTP 400: too long");
        world.call().await.tell(StreamEvent::Failed(failure));
        let (status, error) = refused(asking.await.unwrap()).await;
        assert_eq!((status, &error["code"]), (400, &json!("context_length_exceeded")));
    }
    let asking = tokio::spawn({
        let address = world.address;
        async move { post(address, CHAT, with(json!({ "stream": true }))).await }
    });
    let asked = world.call().await;
    asked.text("Onc");
    let mut stream = asking.await.unwrap();
    while !stream.until("\n\n").await.unwrap().contains("Onc") {}
    asked.tell(StreamEvent::Failed(Failure::new(Category::ServerError, false, "HTTP 500: oops")));
    let last = stream.text().await;
    assert_eq!(
        last,
        "data: {\"error\":{\"message\":\"service unavailable: the answer was cut off, send the request again: \
         HTTP 500: oops\",\"type\":\"server_error\",\"param\":null,\"code\":\"service_unavailable\"}}\n\n"
    );
}

#[tokio::test]
async fn what_cannot_be_done_is_an_error_that_clients_read() {
    let world = world().await;
    for (body, status, param, code) in [
        (with(json!({ "model": "gpt-9" })), 404, "model", "model_not_found"),
        (with(json!({ "seed": 7 })), 400, "seed", "unsupported_parameter"),
        (with(json!({ "n": 3 })), 400, "n", "unsupported_parameter"),
        (with(json!({ "top_p": "x" })), 400, "top_p", "invalid_value"),
        (with(json!({ "everturn": { "retry": { "maxRetries": 9999 } } })), 400, "everturn", "invalid_value"),
    ] {
        let (found, error) = refused(post(world.address, CHAT, body).await).await;
        assert_eq!(
            (found, &error["param"], &error["code"]),
            (status, &json!(param), &json!(code)),
            "{error}"
        );
    }
    let plain = request(Method::POST, world.address, CHAT).body(Body::from(hi().to_string())).unwrap();
    for (answer, status) in [
        (call(world.address, plain).await, 415),
        (get(world.address, CHAT).await, 405),
        (get(world.address, "/v1/embeddings").await, 405),
        (get(world.address, "/v1/models/none").await, 404),
        (post(world.address, CHAT, json!({ "messages": [] })).await, 400),
    ] {
        let (found, error) = refused(answer).await;
        assert_eq!((found, &error["type"]), (status, &json!("invalid_request_error")), "{error}");
    }
}

#[tokio::test]
async fn who_has_no_token_is_told_as_clients_read_it() {
    let world = guarded(|orchestrator| router(orchestrator, CallLimits::default(), Metrics::none())).await;
    let (status, error) = refused(ask(&world, &[], hi()).await).await;
    assert_eq!((status, &error["code"]), (401, &json!("invalid_api_key")));
    let models = request(Method::GET, world.address, "/v1/models").header("authorization", "Bearer secret");
    let models = call(world.address, models.body(Body::empty()).unwrap()).await.json().await;
    let ids: Vec<_> =
        models["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!((models["object"].as_str(), ids), (Some("list"), vec!["test/small", "test/large"]));
    let one =
        request(Method::GET, world.address, "/v1/models/test/large").header("authorization", "Bearer secret");
    let one = call(world.address, one.body(Body::empty()).unwrap()).await.json().await;
    assert_eq!(one["id"], "test/large");
    // Other calls keep their own error format.
    assert!(get(world.address, "/models").await.error().await.contains("token"));
}

#[tokio::test]
async fn a_call_is_handed_back_and_its_result_goes_on() {
    let mut world = world().await;
    let tools = json!([{ "type": "function", "function": { "name": "weather", "parameters": { "type": "object" } } }]);
    let asking = tokio::spawn({
        let (address, body) = (world.address, with(json!({ "tools": tools, "tool_choice": "required" })));
        async move { post(address, CHAT, body).await }
    });
    let asked = world.call().await;
    let arguments = Arguments::Parsed(json!({ "city": "Oslo" }));
    asked.tell(StreamEvent::ToolCall(ToolCall {
        id: "w".into(),
        name: "weather".into(),
        arguments,
        echo: None,
    }));
    asked.tell(StreamEvent::Finished(FinishReason::ToolCalls));
    let told = asking.await.unwrap().json().await;
    let choice = &told["choices"][0];
    assert_eq!(
        (choice["finish_reason"].as_str(), &choice["message"]["content"]),
        (Some("tool_calls"), &Value::Null)
    );
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"city\":\"Oslo\"}");
    let result = json!({ "role": "tool", "tool_call_id": "w", "content": "sunny" });
    let messages = json!([hi()["messages"][0], choice["message"], result]);
    let asking = tokio::spawn({
        let (address, body) = (world.address, with(json!({ "tools": tools, "messages": messages })));
        async move { post(address, CHAT, body).await }
    });
    let asked = world.call().await;
    assert_eq!(asked.request.messages.len(), 3);
    asked.answer("It is sunny.");
    assert_eq!(asking.await.unwrap().json().await["choices"][0]["message"]["content"], "It is sunny.");
}

#[tokio::test]
async fn a_request_that_is_sent_again_is_paid_once() {
    let mut world = world().await;
    let asking = tokio::spawn({
        let request = request(Method::POST, world.address, CHAT)
            .header("content-type", "application/json")
            .header("idempotency-key", "k");
        let (address, body) = (world.address, Body::from(with(json!({ "stream": true })).to_string()));
        async move { call(address, request.body(body).unwrap()).await }
    });
    let asked = world.call().await;
    asked.text("Hel");
    let mut first = asking.await.unwrap();
    while !first.until("\n\n").await.unwrap().contains("Hel") {}
    // The client is disconnected. The turn continues, because the client can come back.
    drop(first);
    asked.answer("lo");
    for stream in [true, false] {
        let again = ask(&world, &[("idempotency-key", "k")], with(json!({ "stream": stream }))).await;
        match stream {
            true => assert_eq!(text(&again.text().await), "Hello"),
            false => assert_eq!(again.json().await["choices"][0]["message"]["content"], "Hello"),
        }
    }
    let other = with(json!({ "temperature": 1 }));
    let (status, error) = refused(ask(&world, &[("idempotency-key", "k")], other).await).await;
    assert_eq!((status, &error["code"]), (409, &json!("idempotency_key_used")));
    assert!(world.has_no_call(), "one request was made");
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_turn_with_it() {
    let mut world = world().await;
    for stream in [true, false] {
        let asking = tokio::spawn({
            let address = world.address;
            async move { post(address, CHAT, with(json!({ "stream": stream }))).await.text().await }
        });
        let asked = world.call().await;
        asked.text("Onc");
        asking.abort();
        asked.is_dropped().await;
    }
}

#[tokio::test]
async fn a_named_conversation_is_kept_and_goes_on_without_its_client() {
    let mut world = world().await;
    let asking = tokio::spawn({
        let address = world.address;
        let body = with(json!({ "stream": true, "metadata": { "conversation_id": "c" } }));
        async move { post(address, CHAT, body).await }
    });
    let asked = world.call().await;
    asked.text("Hel");
    let mut stream = asking.await.unwrap();
    while !stream.until("\n\n").await.unwrap().contains("Hel") {}
    let (status, error) = refused(ask(&world, &[("x-conversation-id", "c")], hi()).await).await;
    assert_eq!((status, &error["code"]), (409, &json!("conversation_busy")));
    drop(stream);
    let mut events = get(world.address, "/conversations/c/events").await;
    asked.answer("lo");
    while !events.event().await.1.contains("turn-sealed") {}
    let history = get(world.address, "/conversations/c").await.json().await;
    assert_eq!(history["chunks"][1]["chunk"]["text"], "Hello");
    // What the conversation already has is not added again.
    let said = json!([hi()["messages"][0], { "role": "assistant", "content": "Hello" }, { "role": "user", "content": "more" }]);
    let asking = tokio::spawn({
        let address = world.address;
        let body = with(json!({ "messages": said, "metadata": { "conversation_id": "c" } }));
        async move { post(address, CHAT, body).await }
    });
    world.call().await.answer("More.");
    assert_eq!(asking.await.unwrap().status, StatusCode::OK);
    let history = get(world.address, "/conversations/c").await.json().await;
    assert_eq!(history["latestSeq"], 4);
}

#[tokio::test]
async fn a_shutdown_is_told_and_the_turn_is_left_as_it_is() {
    let mut orchestrator = None;
    let mut world = World::serve(|shared, _| {
        orchestrator = Some(shared.clone());
        router(shared, CallLimits::default(), Metrics::none())
    })
    .await;
    let orchestrator = orchestrator.unwrap();
    let asking = tokio::spawn({
        let address = world.address;
        async move { post(address, CHAT, with(json!({ "stream": true }))).await }
    });
    world.call().await.overloaded();
    let mut stream = asking.await.unwrap();
    stream.until("\n\n").await.unwrap();
    let id = stream.header("x-conversation-id").to_owned().into();
    orchestrator.shutdown(Duration::ZERO).await;
    let last = stream.text().await;
    assert!(last.starts_with("data: {\"error\":{") && last.contains("\"code\":\"shutting_down\""), "{last}");
    let (status, error) = refused(post(world.address, CHAT, hi()).await).await;
    assert_eq!((status, &error["code"]), (503, &json!("shutting_down")));
    assert!(orchestrator.metrics(&id).await.unwrap().is_empty(), "the turn was not sealed");
}

#[tokio::test]
async fn a_cut_that_nobody_has_seen_is_waited_out() {
    let mut world = world().await;
    for fields in [json!({}), json!({ "stream": true, "everturn": { "text": "hold" } })] {
        let asking = tokio::spawn({
            let (address, body) = (world.address, with(fields.clone()));
            async move { post(address, CHAT, body).await }
        });
        let asked = world.call().await;
        asked.text("Onc");
        asked.tell(StreamEvent::Failed(Failure::new(Category::Network, true, "connection reset")));
        let clock = world.clock.clone();
        let again = loop {
            tokio::select! {
                biased;
                call = world.call() => break call,
                () = tokio::task::yield_now() => clock.advance(Duration::from_secs(1)),
            }
        };
        again.answer("Once upon a time");
        let answer = asking.await.unwrap();
        assert_eq!(answer.status, StatusCode::OK);
        match fields["stream"].as_bool() {
            Some(true) => assert_eq!(text(&answer.text().await), "Once upon a time"),
            _ => assert_eq!(answer.json().await["choices"][0]["message"]["content"], "Once upon a time"),
        }
    }
}

#[tokio::test]
async fn calls_are_handed_back_as_the_model_made_them() {
    let mut world = world().await;
    let tools = json!([{ "type": "function", "function": { "name": "weather", "strict": true } }]);
    let asking = tokio::spawn({
        let (address, body) = (world.address, with(json!({ "tools": tools, "user": "ada" })));
        async move { post(address, CHAT, body).await }
    });
    let asked = world.call().await;
    let malformed = |raw: &str| Arguments::Malformed { raw: raw.into(), reason: "cut".into() };
    let ordered = serde_json::from_str(r#"{"why":1,"answer":2}"#).unwrap();
    for (id, name, arguments) in
        [("1", "weather", malformed(r#"{"city": "Os"#)), ("2", "invented", Arguments::Parsed(ordered))]
    {
        let call = ToolCall { id: id.into(), name: name.into(), arguments, echo: None };
        asked.tell(StreamEvent::ToolCall(call));
    }
    asked.tell(StreamEvent::Finished(FinishReason::ToolCalls));
    let answer = asking.await.unwrap();
    assert_eq!(answer.header("everturn-ignored"), "tools[].function.strict, user");
    let told = answer.json().await;
    let calls = told["choices"][0]["message"]["tool_calls"].as_array().unwrap();
    let arguments: Vec<_> =
        calls.iter().map(|call| call["function"]["arguments"].as_str().unwrap()).collect();
    assert_eq!(arguments, [r#"{"city": "Os"#, r#"{"why":1,"answer":2}"#]);
    assert!(world.has_no_call());
}

#[tokio::test]
async fn a_refusal_is_the_providers_own() {
    let mut world = world().await;
    let asking = tokio::spawn({
        let address = world.address;
        async move { post(address, CHAT, hi()).await }
    });
    let said =
        r#"HTTP 401: {"error":{"message":"Incorrect API key","type":"x_error","param":"p","code":"c"}}"#;
    let failure = Failure { code: Some("401".into()), ..Failure::new(Category::Auth, false, said) };
    world.call().await.tell(StreamEvent::Failed(failure));
    let (status, error) = refused(asking.await.unwrap()).await;
    let told = json!({ "message": "Incorrect API key", "type": "x_error", "param": "p", "code": "c" });
    assert_eq!((status, error), (401, told));
}
