//! Requests as sent by the SDK.

use everturn_dialect::ai_sdk::{Ask, ChatRequest};
use everturn_wire::{TurnMetrics, Value};
use serde_json::json;

fn read(body: &Value) -> Result<ChatRequest, String> {
    ChatRequest::read(body.to_string().as_bytes())
}

fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }], "metadata": { "at": null } })
}

fn assistant(id: &str) -> Value {
    json!({ "id": id, "role": "assistant", "parts": [{ "type": "step-start" }, { "type": "text", "text": "Hi.", "state": "done" }] })
}

fn submit(messages: &Value) -> Value {
    json!({ "id": "c", "messages": messages, "trigger": "submit-message" })
}

#[test]
fn a_new_message_is_the_last_one() {
    let mut body = submit(&json!([user("u1", "hi"), assistant("t1"), user("u2", "more")]));
    body["model"] = "small".into();
    body["everturn"] =
        json!({ "retry": { "maxRetries": 3 }, "approvals": "deny", "reasoningEffort": "high" });
    body["callSettings"] = json!({ "temperature": 1 });
    let asked = read(&body).unwrap();
    assert_eq!(asked.ask, Ask::Message { text: "more".into(), images: Vec::new() });
    assert_eq!((asked.conversation_id.as_str(), asked.model.as_deref()), ("c", Some("small")));
    assert_eq!(asked.reasoning_effort.as_deref(), Some("high"));
    assert!(asked.retry.is_some() && asked.approvals.is_some() && asked.responses.is_empty());
    // The form that the SDK's documentation recommends for servers that keep the history.
    let alone =
        read(&json!({ "id": "a/b c", "message": user("u", "hi"), "model": { "name": "x" } })).unwrap();
    assert_eq!(alone.ask, Ask::Message { text: "hi".into(), images: Vec::new() });
    assert!(alone.conversation_id.as_str().starts_with("chat:") && alone.model.is_none());
}

#[test]
fn images_and_pdfs_come_along_and_other_files_are_refused() {
    let file = |kind: &str| {
        let file = json!({ "type": "file", "mediaType": kind, "url": "data:image/png;base64,AA==", "filename": "a" });
        let parts = json!([{ "type": "text", "text": "a" }, file, { "type": "data-x", "data": 1 }, { "type": "text", "text": "b" }]);
        read(&submit(&json!([{ "id": "u", "role": "user", "parts": parts }])))
    };
    let Ask::Message { text, images } = file("image/png").unwrap().ask else { panic!() };
    assert_eq!((text.as_str(), images[0].mime_type.as_deref()), ("a\n\nb", Some("image/png")));
    let Ask::Message { images, .. } = file("application/pdf").unwrap().ask else { panic!() };
    assert_eq!(images[0].mime_type.as_deref(), Some("application/pdf"));
    assert!(file("audio/wav").unwrap_err().contains("\"audio/wav\""));
}

#[test]
fn what_apps_keep_in_their_messages_is_passed_over() {
    let parts = json!([
        { "type": "data-chart", "data": [1, 2], "text": { "x": [null] }, "url": 7, "state": ["a"], "toolCallId": true },
        { "type": "text", "text": "hi", "state": null },
        { "type": "text", "text": 5 },
    ]);
    let asked = read(&submit(&json!([{ "id": "u", "role": "user", "parts": parts }]))).unwrap();
    assert_eq!(asked.ask, Ask::Message { text: "hi".into(), images: Vec::new() });
}

#[test]
fn what_is_no_request_is_refused_in_words() {
    for (body, why) in [
        (json!({ "messages": [] }), "id"),
        (submit(&json!([])), "empty"),
        (submit(&json!([{ "id": "s", "role": "system", "parts": [] }])), "user"),
        (submit(&json!([user("u", "hi"), assistant("t")])), "approval"),
        (json!({ "id": "c", "messages": [user("u", "hi")], "everturn": { "colour": 1 } }), "colour"),
        (
            json!({ "id": "c", "message": user("u", "hi"), "messageId": "u", "trigger": "submit-message" }),
            "messages",
        ),
        (json!(["x"]), "AI SDK"),
    ] {
        let found = read(&body).unwrap_err();
        assert!(found.contains(why) && found.len() < 2000, "{found}");
    }
}

/// The sealed turns of a conversation in which `t2` answered message 3, and the `seq` of its messages.
fn found(body: &Value) -> (Option<u64>, bool) {
    let turn = |id: &str, first, last| TurnMetrics {
        first_seq: Some(first),
        last_seq: Some(last),
        ..TurnMetrics::new(id.into())
    };
    let turns = [turn("t1", 1, 2), turn("t2", 3, 4), turn("t3", 5, 8)];
    let Ask::Again { place, is_edited, .. } = read(body).unwrap().ask else { panic!("{body}") };
    (place.find(&turns, &[1, 3, 5, 7]), is_edited)
}

#[test]
fn the_message_that_is_answered_again_is_found() {
    let again = |messages: Value, id: Option<&str>| {
        let mut body = json!({ "id": "c", "messages": messages, "trigger": "regenerate-message" });
        if let Some(id) = id {
            body["messageId"] = id.into();
        }
        found(&body)
    };
    let all = json!([user("u1", "a"), assistant("t1"), user("u2", "b")]);
    assert_eq!(again(all.clone(), Some("t2")), (Some(3), false));
    assert_eq!(again(all, None), (Some(3), false));
    assert_eq!(again(json!([user("u1", "a")]), None), (Some(1), false));
    // Only the last messages. The second was queued while the first was answered.
    let last = json!([assistant("t2"), user("u3", "c"), user("u4", "d")]);
    assert_eq!(again(last, None), (Some(7), false));
    let alone = json!({ "id": "c", "message": user("u", "d"), "trigger": "regenerate-message" });
    assert_eq!(found(&alone), (Some(7), false));
}

#[test]
fn the_message_that_was_edited_is_found() {
    let edited = |messages: Value, id: &str| {
        found(&json!({ "id": "c", "messages": messages, "trigger": "submit-message", "messageId": id }))
    };
    assert_eq!(edited(json!([user("u1", "A")]), "u1"), (Some(1), true));
    assert_eq!(edited(json!([user("u1", "a"), assistant("t1"), user("u2", "B")]), "u2"), (Some(3), true));
    // It failed before it arrived, and is sent again with other text.
    assert_eq!(edited(json!([assistant("t3"), user("u9", "B")]), "u9"), (None, true));
}

#[test]
fn answers_to_requests_are_taken_and_nothing_else_of_their_calls() {
    let part = json!({
        "type": "dynamic-tool", "toolName": "sh", "toolCallId": "t#0:a", "state": "approval-responded",
        "input": { "command": "rm -rf /" }, "approval": { "id": "t#0:a", "approved": false, "reason": "no" },
    });
    let open = json!({
        "type": "dynamic-tool", "toolName": "sh", "toolCallId": "t#0:b", "state": "approval-requested",
        "input": {}, "approval": { "id": "t#0:b" },
    });
    let message = json!({ "id": "t", "role": "assistant", "parts": [part, open] });
    let mut body = submit(&json!([user("u", "hi"), message]));
    body["messageId"] = "t".into();
    let asked = read(&body).unwrap();
    assert_eq!(asked.ask, Ask::Continue);
    assert_eq!(asked.known_calls, ["t#0:a", "t#0:b"]);
    let [response] = &asked.responses[..] else { panic!("{:?}", asked.responses) };
    assert_eq!(
        (response.id.as_str(), response.approved, response.reason.as_deref()),
        ("t#0:a", false, Some("no"))
    );
    // If another message follows, both count.
    let both = read(&submit(&json!([message, user("u2", "and then?")]))).unwrap();
    assert_eq!(
        (both.responses.len(), both.ask),
        (1, Ask::Message { text: "and then?".into(), images: Vec::new() })
    );
}
