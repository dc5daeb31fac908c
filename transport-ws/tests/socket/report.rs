//! Turns that must end with a report.

use everturn_orchestrator::kernel::{Arguments, FINAL_REPORT, FinishReason, StreamEvent, ToolCall};
use serde_json::json;

use crate::{
    peer::{Peer, kinds},
    puppet::Call,
    world,
};

fn report(call: &Call) {
    call.tell(StreamEvent::ToolCall(ToolCall {
        id: "r".into(),
        name: FINAL_REPORT.into(),
        arguments: Arguments::Parsed(json!({ "status": "done" })),
        echo: None,
    }));
    call.tell(StreamEvent::Finished(FinishReason::ToolCalls));
}

#[tokio::test]
async fn a_turn_ends_with_the_report_that_its_message_asks_for() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let schema = json!({ "type": "object", "required": ["status"] });
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Go", "extensions": true,
        "finalReport": { "schema": schema } }))
        .await;
    world.call().await.answer("It is done.");
    let call = world.call().await;
    assert_eq!(call.request.tools[0].parameters, schema);
    report(&call);
    let events = peer.events_until("turn-sealed").await;
    let told = kinds(&events);
    let place = |kind: &str| told.iter().position(|told| *told == kind).unwrap();
    assert!(
        place("report-missing") < place("final-report") && place("final-report") < place("done"),
        "{told:?}"
    );
    assert_eq!(events[place("final-report")]["report"], json!({ "status": "done" }));
}

#[tokio::test]
async fn a_turn_that_moves_to_another_model_must_report_there() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Go", "extensions": true,
        "finalReport": { "schema": { "type": "object" } } }))
        .await;
    world.call().await.overloaded();
    peer.events_until("provider-retry").await;
    peer.say(json!({ "type": "retry.now", "conversationId": "c", "model": "test/large" })).await;
    let call = world.call().await;
    assert_eq!((call.request.model.as_str(), call.request.tools[0].name.as_str()), ("large", FINAL_REPORT));
    report(&call);
    // The replaced turn says that it has none.
    for success in [false, true] {
        let events = peer.events_until("final-report").await;
        assert_eq!(events.last().unwrap()["success"], success);
    }
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_is_told() {
    let world = world().await;
    let mut peer = Peer::connect(world.address).await;
    for (report, why) in [
        (
            json!({ "schema": { "type": "no-such" } }),
            "the final report cannot be required: its schema cannot be used",
        ),
        (json!({}), "chat.send: missing field `schema`"),
    ] {
        let command =
            json!({ "type": "chat.send", "conversationId": "c", "message": "Go", "finalReport": report });
        let answer = peer.answer_to(command).await;
        let said = answer["message"].as_str().unwrap();
        assert!(answer["type"] == "chat.error" && said.contains(why), "{said}");
    }
}
