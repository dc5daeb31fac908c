//! A current client can read what a newer server sends.

use std::fmt::Debug;

use everturn_wire::{
    AgentEvent, ApprovalMode, ApprovalScope, Because, CallPhase, Category, Chunk, CompactionCause,
    CompactionOutcome, ConversationList, ConversationStatus, DoneReason, EventBody, HistoryWindow,
    OutputStream, RetryOutcome, RetryPhase, RetryPreset, RetrySettings, Role, ServerMessage, Verdict,
    json_schema,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

#[test]
fn a_future_event_is_unknown_and_says_where_it_happened() {
    let sent = json!({ "type": "tea-served", "cups": [{ "type": "green" }], "conversationId": "c1", "turnId": "t1" });
    let event: AgentEvent = from_value(sent.clone()).unwrap();
    assert_eq!(event.body, EventBody::Unknown);
    assert_eq!((event.conversation_id.as_str(), event.turn_id.unwrap().as_str()), ("c1", "t1"));
    let frame = from_value(json!({ "type": "chat.delta", "event": sent, "cursor": "7" })).unwrap();
    let ServerMessage::ChatDelta { event, cursor } = frame else { panic!("{frame:?}") };
    assert_eq!((event.body, cursor.as_deref()), (EventBody::Unknown, Some("7")));
}

/// Clients that know only the base events must not receive events that they cannot read.
#[test]
fn an_unknown_event_is_an_extension() {
    assert!(EventBody::Unknown.is_extension());
}

#[test]
fn a_known_event_with_a_broken_field_is_an_error_and_not_unknown() {
    let broken = json!({ "type": "text-delta", "delta": 7, "conversationId": "c1", "turnId": "t1" });
    assert!(from_value::<AgentEvent>(broken).is_err());
    assert!(from_value::<Chunk>(json!({ "type": "text" })).is_err());
    assert!(from_value::<Chunk>(json!({ "text": "no type" })).is_err());
}

#[test]
fn a_future_frame_is_unknown() {
    let frame = json!({ "type": "conversation.renamed", "conversationId": "c1", "title": "Tea" });
    assert_eq!(from_value::<ServerMessage>(frame).unwrap(), ServerMessage::Unknown);
}

#[test]
fn a_future_chunk_does_not_hide_the_rest_of_the_history() {
    let history: HistoryWindow = from_value(json!({
        "chunks": [
            { "seq": 1, "role": "user", "chunk": { "type": "video", "url": "https://example.com/a.mp4" } },
            { "seq": 2, "role": "narrator", "chunk": { "type": "text", "text": "Hello" } },
        ],
        "latestSeq": 2,
    }))
    .unwrap();
    let chunks: Vec<(Role, Chunk)> =
        history.chunks.iter().map(|stored| (stored.role, Chunk::clone(&stored.chunk))).collect();
    let hello = Chunk::Text { text: "Hello".into() };
    assert_eq!(chunks, [(Role::User, Chunk::Unknown), (Role::Unknown, hello)]);
}

#[test]
fn a_future_status_does_not_hide_the_rest_of_the_list() {
    let summary = |status: &str| json!({ "id": "c1", "createdAt": 1, "lastActivityAt": 2, "title": "Tea", "status": status, "workspaceId": "w" });
    let list: ConversationList = from_value(json!([summary("paused"), summary("idle")])).unwrap();
    let statuses: Vec<ConversationStatus> = list.iter().map(|summary| summary.status).collect();
    assert_eq!(statuses, [ConversationStatus::Unknown, ConversationStatus::Idle]);
}

#[test]
fn every_enum_that_clients_read_accepts_unknown_values() {
    fn read<T: DeserializeOwned + PartialEq + Debug>(unknown: &T) {
        assert_eq!(from_value::<T>(json!("from-the-future")).as_ref().unwrap(), unknown);
        assert!(from_value::<T>(json!(7)).is_err());
    }
    read(&CallPhase::Unknown);
    read(&Category::Unknown);
    read(&ConversationStatus::Unknown);
    read(&DoneReason::Other("from-the-future".into()));
    read(&OutputStream::Unknown);
    read(&RetryOutcome::Unknown);
    read(&Because::Unknown);
    read(&RetryPhase::Unknown);
    read(&Role::Unknown);
    read(&Verdict::Unknown);
    read(&ApprovalMode::Unknown);
    read(&ApprovalScope::Unknown);
    read(&CompactionCause::Unknown);
    read(&CompactionOutcome::Unknown);
}

#[test]
fn an_unknown_setting_value_can_be_read_but_not_set() {
    let settings: RetrySettings =
        from_value(json!({ "preset": "lunar", "maxRetries": 7, "phase": "full" })).unwrap();
    let preset = Some(RetryPreset::Unknown);
    assert_eq!(settings, RetrySettings { preset, max_retries: Some(7), ..RetrySettings::default() });
    assert!(settings.check().is_err());
}

/// A definition of an enum must allow other values. Commands are exempt because only servers read them.
#[test]
fn no_enum_or_union_that_clients_read_is_closed_in_the_schema() {
    let document = json_schema();
    for (name, definition) in document["$defs"].as_object().unwrap() {
        let words =
            definition["oneOf"].as_array().into_iter().flatten().any(|member| member["const"].is_string());
        assert!(!words, "{name} is closed");
    }
    for (name, future) in [
        ("AgentEvent", json!({ "type": "tea-served", "conversationId": "c1", "cups": 2 })),
        ("Chunk", json!({ "type": "video" })),
        ("ServerMessage", json!({ "type": "conversation.renamed" })),
        ("RetryOutcome", json!("from-the-future")),
    ] {
        assert!(validator(&document, name).is_valid(&future), "{name}");
    }
    let closed = json!({ "type": "chat.shout", "conversationId": "c1" });
    assert!(!validator(&document, "Command").is_valid(&closed));
    let broken = json!({ "type": "text-delta", "conversationId": "c1", "turnId": "t1" });
    assert!(!validator(&document, "AgentEvent").is_valid(&broken));
}

fn validator(document: &Value, name: &str) -> jsonschema::Validator {
    let mut document = document.clone();
    document["$ref"] = format!("#/$defs/{name}").into();
    jsonschema::draft202012::new(&document).unwrap()
}
