//! Frames of the WebSocket.

use everturn_wire::{
    ApprovalMode, Command, ConversationStatus, DEFAULT_WORKSPACE, EventBody, Image, ModelSettings, Priority,
    RequiredReport, RetryPatch, ServerMessage,
};
use serde_json::json;

use super::{
    approval,
    event::event,
    http::calls,
    question,
    retry_settings::{all_settings, patches, states},
};

pub(crate) fn images() -> Vec<Image> {
    vec![
        Image { url: "https://example.com/a.png".into(), mime_type: None },
        Image { url: "data:image/png;base64,AA==".into(), mime_type: Some("image/png".into()) },
    ]
}

pub(crate) fn required_report() -> RequiredReport {
    let schema =
        json!({ "type": "object", "required": ["status"], "properties": { "status": { "type": "string" } } });
    RequiredReport { schema, max_attempts: Some(5) }
}

pub(crate) fn model_settings() -> ModelSettings {
    ModelSettings {
        system_prompt: Some("Be brief.".into()),
        temperature: Some(0.5),
        max_output_tokens: Some(900),
        reasoning_effort: Some("low".into()),
    }
}

pub(crate) fn commands() -> Vec<Command> {
    plain_commands().into_iter().chain(approval::commands()).chain(question::commands()).collect()
}

fn plain_commands() -> Vec<Command> {
    let queue = |message_id: Option<&str>| Command::ChatQueue {
        conversation_id: "c1".into(),
        text: "faster".into(),
        message_id: message_id.map(Into::into),
    };
    vec![
        Command::ChatSend {
            conversation_id: None,
            message: "Hi".into(),
            model: None,
            images: None,
            reasoning_effort: None,
            retry: None,
            approvals: None,
            final_report: None,
            model_settings: None,
            priority: None,
            extensions: None,
        },
        Command::ChatSend {
            conversation_id: Some("c1".into()),
            message: "Hi".into(),
            model: Some("main/large".into()),
            images: Some(images()),
            reasoning_effort: Some("high".into()),
            retry: Some(Box::new(all_settings())),
            approvals: Some(ApprovalMode::Deny),
            final_report: Some(Box::new(required_report())),
            model_settings: Some(Box::new(model_settings())),
            priority: Some(Priority::Background),
            extensions: Some(true),
        },
        Command::ChatSubscribe { conversation_id: "c1".into(), cursor: None, extensions: None },
        Command::ChatSubscribe {
            conversation_id: "c1".into(),
            cursor: Some("17.3".into()),
            extensions: Some(true),
        },
        Command::ChatUnsubscribe { conversation_id: "c1".into() },
        queue(None),
        queue(Some("m1")),
        Command::ChatQueueCancel { conversation_id: "c1".into(), message_id: "m1".into() },
        Command::ChatStop { conversation_id: "c1".into() },
        Command::ChatRetry {
            conversation_id: "c1".into(),
            turn_id: Some("t1".into()),
            seq: None,
            message: None,
            model: None,
            retry: None,
            approvals: None,
            extensions: None,
        },
        Command::ChatRetry {
            conversation_id: "c1".into(),
            turn_id: None,
            seq: None,
            message: None,
            model: None,
            retry: None,
            approvals: None,
            extensions: None,
        },
        Command::ChatRetry {
            conversation_id: "c1".into(),
            turn_id: Some("t1".into()),
            seq: Some(3),
            message: Some("Hi again".into()),
            model: Some("a/m".into()),
            retry: Some(Box::new(all_settings())),
            approvals: Some(ApprovalMode::Deny),
            extensions: Some(true),
        },
        Command::RetryAbort { conversation_id: "c1".into() },
        Command::RetryNow { conversation_id: "c1".into(), model: None },
        Command::RetryNow { conversation_id: "c1".into(), model: Some("a/m".into()) },
        Command::RetrySet { conversation_id: None, settings: Box::default() },
        Command::RetrySet { conversation_id: None, settings: Box::new(RetryPatch::enabled(false)) },
        Command::RetrySet { conversation_id: Some("c1".into()), settings: Box::new(patches().remove(1)) },
    ]
}

pub(crate) fn messages() -> Vec<ServerMessage> {
    let delta = |cursor: Option<&str>| ServerMessage::ChatDelta {
        event: event(EventBody::TextDelta { delta: "Hel".into() }),
        cursor: cursor.map(Into::into),
    };
    let changed = states().into_iter().map(ServerMessage::RetrySettingsChanged);
    let calls = calls().into_iter().flat_map(|list| list.calls).map(ServerMessage::CallChanged);
    let others = [
        delta(None),
        delta(Some("17.3")),
        ServerMessage::ChatError {
            conversation_id: None,
            message_id: None,
            message: "chat.send: missing field `message`".into(),
        },
        ServerMessage::ChatError {
            conversation_id: Some("c1".into()),
            message_id: Some("m1".into()),
            message: "the queue is full".into(),
        },
        ServerMessage::StatusChanged {
            conversation_id: "c1".into(),
            status: ConversationStatus::Active,
            workspace_id: DEFAULT_WORKSPACE.into(),
        },
        ServerMessage::Error { message: "the frame is not JSON".into() },
    ];
    others.into_iter().chain(changed).chain(calls).collect()
}
