//! Requests as sent by `HttpAgent`.

use everturn_dialect::ag_ui::{Resume, RunRequest};
use everturn_wire::{TurnMetrics, Value};
use serde_json::json;

fn read(body: &Value) -> Result<RunRequest, String> {
    RunRequest::read(body.to_string().as_bytes())
}

fn run(messages: &Value) -> Value {
    json!({ "threadId": "th", "runId": "r", "messages": messages, "tools": [], "context": [], "state": {}, "forwardedProps": {} })
}

fn user(text: &str) -> Value {
    json!({ "id": "u", "role": "user", "content": text })
}

#[test]
fn a_message_is_the_last_one() {
    let mut body =
        run(&json!([user("hi"), { "id": "t#0:m", "role": "assistant", "content": "Hello" }, user("more")]));
    body["protocolVersion"] = "1.0".into();
    body["forwardedProps"] = json!({ "theirs": 1, "everturn": { "model": "small", "approvals": "deny" } });
    let asked = read(&body).unwrap();
    assert_eq!(asked.message.unwrap().0, "more");
    assert_eq!((asked.conversation_id.as_str(), asked.model.as_deref()), ("th", Some("small")));
    assert_eq!(asked.head.protocol.as_deref(), Some("1.0"));
    assert!(asked.has_answer_before && asked.resume.is_empty());
    let turn = TurnMetrics { first_seq: Some(1), last_seq: Some(2), ..TurnMetrics::new("t".into()) };
    assert_eq!(asked.place.find(std::slice::from_ref(&turn), &[1, 3]), Some(3), "it was said before");
    assert_eq!(asked.place.find(&[turn], &[1]), None, "it is new");
    assert_eq!(asked.place.find(&[], &[1, 3]), None, "it follows an answer of another conversation");
    let greeting = json!({ "id": "hello", "role": "assistant", "content": "How can I help?" });
    let asked = read(&run(&json!([greeting, user("hi")]))).unwrap();
    assert!(!asked.has_answer_before, "an app's greeting is no answer");
    assert_eq!(asked.place.find(&[], &[1, 3]), Some(1));
}

#[test]
fn parts_are_text_and_images() {
    let of = |part: Value| {
        read(&run(
            &json!([{ "id": "u", "role": "user", "content": [{ "type": "text", "text": "a" }, part] }]),
        ))
    };
    let image = of(
        json!({ "type": "image", "source": { "type": "data", "value": "AA==", "mimeType": "image/png" } }),
    );
    let (text, images) = image.unwrap().message.unwrap();
    assert_eq!((text.as_str(), images[0].url.as_str()), ("a", "data:image/png;base64,AA=="));
    let linked =
        of(json!({ "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" } }));
    assert_eq!(linked.unwrap().message.unwrap().1[0].url, "https://example.com/a.png");
    assert!(
        of(json!({ "type": "audio", "source": { "type": "url", "value": "https://x" } }))
            .unwrap_err()
            .contains("audio")
    );
}

#[test]
fn answers_say_yes_or_no() {
    let of = |entry: Value| {
        let mut body = run(&json!([user("hi"), { "id": "t#0:m", "role": "assistant", "content": "" }]));
        body["resume"] = json!([entry]);
        read(&body).map(|asked| (asked.message.is_none(), asked.resume.into_iter().next().unwrap()))
    };
    let answer = |approved, reason: Option<&str>| Resume {
        id: "i".into(),
        approved,
        reason: reason.map(str::to_owned),
    };
    let resolved = json!({ "interruptId": "i", "status": "resolved", "payload": { "approved": true } });
    assert_eq!(of(resolved), Ok((true, answer(true, None))));
    let denied =
        json!({ "interruptId": "i", "status": "resolved", "payload": { "approved": false, "reason": "no" } });
    assert_eq!(of(denied), Ok((true, answer(false, Some("no")))));
    assert_eq!(of(json!({ "interruptId": "i", "status": "cancelled" })), Ok((true, answer(false, None))));
    for unclear in [json!({ "approved": "yes" }), json!("ok"), Value::Null] {
        let entry = json!({ "interruptId": "i", "status": "resolved", "payload": unclear });
        assert!(of(entry).unwrap_err().contains("approved"));
    }
}

#[test]
fn what_is_no_request_is_refused_in_words() {
    let mut with_props = run(&json!([user("hi")]));
    with_props["forwardedProps"]["everturn"] = json!({ "colour": 1 });
    // Unknown content is ignored, whatever it is.
    let mut odd = run(&json!([{ "id": "a", "role": "activity", "content": { "x": 1 } }, user("hi")]));
    odd["forwardedProps"] = json!(["theirs"]);
    assert!(read(&odd).unwrap().message.is_some());
    for (body, why) in [
        (json!({ "messages": [] }), "threadId"),
        (run(&json!({ "id": 1 })), "list"),
        (with_props, "colour"),
        (json!([]), "RunAgentInput"),
    ] {
        let found = read(&body).unwrap_err();
        assert!(found.contains(why) && found.len() < 2000, "{found}");
    }
}
