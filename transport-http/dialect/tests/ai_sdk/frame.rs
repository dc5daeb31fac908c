//! Frames of `WebSocketChatTransport`, and the answers to them.

use everturn_dialect::{
    Event, Translator as _,
    ai_sdk::{Ask, ChatRequest, Chunks, Frame, FrameAsk, FrameError, Reply, Version},
};
use everturn_wire::{EventBody, Value};
use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::{any_event::any_event, events::events, reader::read, streamed};

fn send(more: Value) -> Value {
    let user = json!({ "id": "u", "role": "user", "parts": [{ "type": "text", "text": "hi" }] });
    let mut frame = json!({
        "type": "send", "requestId": "r", "id": "c", "trigger": "submit-message", "messages": [user],
        "headers": {}, "body": {}, "metadata": null,
    });
    let Value::Object(more) = more else { panic!("{more}") };
    frame.as_object_mut().unwrap().extend(more);
    frame
}

fn sent(frame: &Value) -> Result<Box<ChatRequest>, FrameError> {
    let FrameAsk::Send { request, .. } = Frame::read(&frame.to_string())?.ask else { panic!("{frame}") };
    Ok(request)
}

/// Returns why the request "r" is rejected.
fn refused(frame: &Value) -> String {
    match Frame::read(&frame.to_string()) {
        Err(FrameError::Request { request_id, why }) if request_id == "r" => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_means_the_same_as_over_http() {
    let body = json!({ "model": "small", "everturn": { "reasoningEffort": "high" }, "id": "not this one" });
    let frame = send(json!({ "body": body, "trigger": "regenerate-message", "messageId": "t" }));
    let mut over_http = frame.clone();
    for name in ["model", "everturn"] {
        over_http[name] = body[name].clone();
    }
    let over_http = ChatRequest::read(over_http.to_string().as_bytes()).unwrap();
    assert!(matches!(over_http.ask, Ask::Again { .. }));
    assert_eq!(*sent(&frame).unwrap(), over_http);
    assert_eq!(over_http.conversation_id.as_str(), "c");
}

#[test]
fn an_app_may_send_only_the_last_message() {
    let message = json!({ "id": "u", "role": "user", "parts": [{ "type": "text", "text": "alone" }] });
    let alone = |more: Value| {
        let mut frame = send(json!({ "messages": [], "body": { "message": message } }));
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        frame
    };
    let asked = sent(&alone(json!({}))).unwrap();
    assert_eq!(asked.ask, Ask::Message { text: "alone".into(), images: Vec::new() });
    let again = sent(&alone(json!({ "trigger": "regenerate-message" }))).unwrap();
    let body = json!({ "id": "c", "message": message, "trigger": "regenerate-message" });
    assert_eq!(*again, ChatRequest::read(body.to_string().as_bytes()).unwrap());
    let Ask::Again { place, .. } = &again.ask else { panic!("{again:?}") };
    assert_eq!(place.find(&[], &[1, 5, 9]), Some(9), "the last message, not the first");
    assert!(refused(&alone(json!({ "messageId": "u" }))).contains("send messages, not message alone"));
}

#[test]
fn headers_name_the_trace_and_the_key() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers =
        json!({ "authorization": "Bearer x", "idempotency-key": "k", "traceparent": parent, "x": "y" });
    let FrameAsk::Send { idempotency_key, trace, .. } =
        Frame::read(&send(json!({ "headers": headers })).to_string()).unwrap().ask
    else {
        panic!()
    };
    assert_eq!((idempotency_key.as_deref(), trace.is_some()), (Some("k"), true));
}

#[test]
fn a_turn_is_resumed_or_aborted() {
    let resume = json!({ "type": "resume", "requestId": "r", "id": "a b", "headers": {}, "body": {} });
    let FrameAsk::Resume(id) = Frame::read(&resume.to_string()).unwrap().ask else { panic!() };
    assert!(id.as_str().starts_with("chat:"));
    let abort = Frame::read(r#"{"type":"abort","requestId":"r"}"#).unwrap();
    assert_eq!(abort, Frame { request_id: "r".into(), ask: FrameAsk::Abort });
    let mut later = resume;
    later["lastSequence"] = 7.into();
    assert!(refused(&later).contains("lastSequence"));
}

#[test]
fn an_invalid_request_is_rejected_by_its_id() {
    assert!(refused(&json!({ "type": "stop", "requestId": "r" })).contains("\"stop\": expected send"));
    assert!(refused(&send(json!({ "messages": [] }))).contains("messages is empty"));
    assert!(refused(&send(json!({ "messages": 7 }))).contains("a list of messages"));
    assert!(refused(&send(json!({ "body": { "everturn": { "x": 1 } } }))).contains("unknown field"));
    assert!(refused(&send(json!({ "id": null }))).contains("null"));
    let long = "x".repeat(129);
    for frame in [
        "",
        "7",
        "[]",
        r#"{"type":"abort"}"#,
        r#"{"type":"abort","requestId":""}"#,
        &format!(r#"{{"requestId":"{long}"}}"#),
    ] {
        assert!(matches!(Frame::read(frame), Err(FrameError::Nameless(_))), "{frame}");
    }
    let FrameError::Nameless(why) = Frame::read("?").unwrap_err() else { panic!() };
    assert!(why.starts_with("not a frame of WebSocketChatTransport"), "{why}");
}

/// Returns the frames of a whole stream that arrived in these pieces.
fn frames<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<Value> {
    let mut reply = Reply::new("a \"quoted\" id");
    let mut frames: Vec<Value> = vec![serde_json::from_str(&reply.start()).unwrap()];
    for mut piece in pieces {
        while let Some(frame) = reply.next(&mut piece) {
            frames.push(serde_json::from_str(&frame.text).unwrap());
            assert_eq!(frame.is_last, frames.last().unwrap()["type"] == "end");
        }
    }
    frames
}

#[test]
fn a_stream_is_numbered_chunks_between_a_start_and_an_end() {
    let turn = events(json!([
        { "type": "text-delta", "delta": "one\n\ndata: [DONE]\n\ntwo" },
        { "type": "done", "reason": "stop" },
        { "type": "turn-sealed" },
    ]));
    let told = frames([streamed(&turn, Version::Seven).as_str()]);
    let kinds: Vec<_> = told.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("start", "end"));
    assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == "chunk"));
    assert!(told.iter().all(|frame| frame["requestId"] == "a \"quoted\" id"));
    assert_eq!(told[4]["chunk"]["delta"], "one\n\ndata: [DONE]\n\ntwo");
    let reply = Reply::new("r");
    assert_eq!(reply.no_active(), r#"{"type":"no-active","requestId":"r"}"#);
    assert_eq!(reply.error("no \"x\""), r#"{"type":"error","requestId":"r","errorText":"no \"x\""}"#);
}

proptest! {
    #[test]
    fn frames_hold_the_stream(written in vec(any_event(), 0..24), silences in vec(any::<bool>(), 24)) {
        let events = events(Value::Array(written));
        let (mut pieces, mut piece) = (Vec::new(), Vec::new());
        let mut chunks = Chunks::new(Version::Seven, &"c".into(), &"t".into(), &mut piece);
        pieces.push(String::from_utf8(std::mem::take(&mut piece)).unwrap());
        for (event, is_silent) in events.iter().zip(silences) {
            chunks.push(&Event::Other(event), &mut piece);
            if is_silent && !chunks.is_over() {
                chunks.keep_alive(&mut piece);
            }
            pieces.push(String::from_utf8(std::mem::take(&mut piece)).unwrap());
        }
        let frames = frames(pieces.iter().map(String::as_str));
        let mut stream = String::new();
        for (at, frame) in frames.iter().skip(1).enumerate() {
            if frame["type"] == "end" {
                stream.push_str("data: [DONE]\n\n");
            } else {
                prop_assert_eq!(frame["sequence"].as_u64(), Some(at as u64));
                stream.push_str(&format!("data: {}\n\n", frame["chunk"]));
            }
        }
        let told = read(&stream, Version::Seven, &[]).map_err(TestCaseError::fail)?;
        let is_sealed = events.iter().any(|event| matches!(event, EventBody::TurnSealed));
        prop_assert_eq!(told.is_done, is_sealed);
        let whole = read(&pieces.concat(), Version::Seven, &[]).map_err(TestCaseError::fail)?;
        prop_assert_eq!(told.text(), whole.text());
    }
}
