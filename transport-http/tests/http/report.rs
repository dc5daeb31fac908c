//! Turns that must end with a report.

use everturn_orchestrator::kernel::{Arguments, FINAL_REPORT, FinishReason, StreamEvent, ToolCall};
use everturn_wire::Value;
use hyper::StatusCode;
use serde_json::json;

use crate::{
    client::{get, post},
    puppet::Call,
    world,
};

fn schema() -> Value {
    json!({ "type": "object", "required": ["status"], "properties": { "status": { "type": "string" } } })
}

fn report(call: &Call, value: Value) {
    call.tell(StreamEvent::ToolCall(ToolCall {
        id: "r".into(),
        name: FINAL_REPORT.into(),
        arguments: Arguments::Parsed(value),
        echo: None,
    }));
    call.tell(StreamEvent::Finished(FinishReason::ToolCalls));
}

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["type"].as_str()).collect()
}

#[tokio::test]
async fn a_turn_ends_with_the_report_that_its_message_asks_for() {
    let mut world = world().await;
    let body = json!({ "message": "Go", "extensions": true, "finalReport": { "schema": schema() } });
    let stream = post(world.address, "/chat", body).await;
    let id = stream.header("x-conversation-id").to_owned();
    let asked = world.call().await;
    let offered = asked.request.tools.iter().find(|tool| tool.name == FINAL_REPORT).unwrap();
    assert_eq!(offered.parameters, schema());
    let rejected = json!({ "status": 7 });
    report(&asked, rejected);
    report(&world.call().await, json!({ "status": "done" }));
    let told = events(&stream.text().await);
    let final_report = told.iter().find(|event| event["type"] == "final-report").unwrap();
    assert_eq!(
        (&final_report["success"], &final_report["report"]),
        (&json!(true), &json!({ "status": "done" }))
    );
    let results: Vec<_> = told.iter().filter(|event| event["type"] == "tool-result").collect();
    assert_eq!((&results[0]["isError"], &results[1]["isError"]), (&json!(true), &json!(false)));
    let turn = final_report["turnId"].as_str().unwrap();
    let path = format!("/conversations/{id}/turns/{turn}");
    let read = get(world.address, &path).await.json().await;
    assert_eq!(read["finalReport"], json!({ "success": true, "report": { "status": "done" } }));
    assert_eq!((&read["turnId"], &read["steps"], &read["reason"]), (&json!(turn), &json!(2), &json!("stop")));
    // A page of history only says that there is a report.
    let history = get(world.address, &format!("/conversations/{id}")).await.json().await;
    assert_eq!(history["turns"][0]["finalReport"], json!({ "success": true }));
}

#[tokio::test]
async fn a_base_client_sees_a_call_and_its_result_and_a_failure_says_why() {
    let mut world = world().await;
    let body = json!({ "conversationId": "c", "message": "Go", "finalReport": { "schema": schema(), "maxAttempts": 1 } });
    let stream = post(world.address, "/chat", body).await;
    let call = world.call().await;
    let running = get(world.address, "/conversations/c/status").await.json().await;
    assert_eq!(running["isActive"], true);
    report(&call, json!({}));
    // The last step, which has only the report on offer.
    report(&world.call().await, json!({}));
    let told = events(&stream.text().await);
    let step = ["tool-call", "step-complete", "tool-result"];
    let expected =
        [&["user-message", "turn-start"][..], &step, &step, &["error", "done", "turn-sealed"]].concat();
    let seen: Vec<_> = kinds(&told).into_iter().filter(|kind| *kind != "status").collect();
    assert_eq!(seen, expected);
    let turn = told[0]["turnId"].as_str().or(told[1]["turnId"].as_str()).unwrap();
    let read = get(world.address, &format!("/conversations/c/turns/{turn}")).await.json().await;
    let failure = &read["finalReport"];
    assert_eq!(failure["success"], false);
    let why = failure["reason"].as_str().unwrap();
    assert!(why.contains("no acceptable final report in 2 attempts"), "{why}");
    assert!(failure["context"].as_str().unwrap().contains("2 steps"), "{failure}");
}

#[tokio::test]
async fn a_report_that_cannot_be_required_is_refused() {
    let world = world().await;
    let deep = json!({ "type": "object", "properties": { "a": { "enum": vec!["x".repeat(1000); 70] } } });
    for (report, status, why) in [
        (
            json!({ "schema": { "type": "no-such" } }),
            400,
            "the final report cannot be required: its schema cannot be used",
        ),
        (json!({ "schema": true }), 400, "its schema must be a JSON object"),
        (json!({ "schema": {}, "maxAttempts": 0 }), 400, "maxAttempts must be 1 to 100"),
        (json!({ "schema": {}, "maxAttempts": 101 }), 400, "maxAttempts must be 1 to 100"),
        (json!({ "maxAttempts": 3 }), 422, "missing field `schema`"),
        (json!({ "schema": deep }), 422, "the schema of the report has more than 65536 bytes"),
        (json!("schema.json"), 422, "expected an object with the schema of a report, got a string"),
    ] {
        let body = json!({ "message": "Go", "finalReport": report });
        let refused = post(world.address, "/chat", body).await;
        assert_eq!(refused.status, StatusCode::from_u16(status).unwrap(), "{why}");
        let error = refused.error().await;
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(get(world.address, "/conversations").await.json().await, json!([]));
}
