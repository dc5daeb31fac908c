//! Bodies of the HTTP calls.

use everturn_wire::{
    ConversationState, ConversationStatus, ConversationSummary, HistoryWindow, ModelInfo, Models,
    QueueCancelled, QueueRequest, Queued, QueuedMessage, RetryControl, RetryState, Role, SendRequest,
    Stopped, StoredChunk, TurnMetrics, TurnMetricsList,
};

use super::{
    Family,
    chunk::text,
    event::{bare_usage, full_usage},
    frame::images,
};

pub(crate) fn models() -> Vec<Models> {
    let names = || vec!["main/large".into(), "demo/flaky".into()];
    let known = ModelInfo { context_window: Some(200_000), max_output_tokens: Some(8192) };
    let info = [("main/large".into(), known), ("demo/flaky".into(), ModelInfo::default())].into();
    vec![Models { models: names(), model_info: None }, Models { models: names(), model_info: Some(info) }]
}

/// What is read about conversations.
pub(crate) fn conversation() -> [Family; 4] {
    let summary = ConversationSummary {
        id: "c1".into(),
        created_at: 1_790_000_000_000,
        last_activity_at: 1_790_000_005_000,
        title: "Hi".into(),
        status: ConversationStatus::Idle,
        workspace_id: "default".into(),
    };
    let chunk = StoredChunk { seq: 9, role: Role::Assistant, chunk: text("Hello") };
    let windows = [
        HistoryWindow { chunks: vec![], latest_seq: 8 },
        HistoryWindow { chunks: vec![chunk], latest_seq: 9 },
    ];
    [
        Family::new("ConversationList", &[vec![], vec![summary]]),
        Family::new("HistoryWindow", &windows),
        Family::new("ConversationState", &states()),
        Family::new(
            "TurnMetricsList",
            &[TurnMetricsList { turns: vec![] }, TurnMetricsList { turns: turns() }],
        ),
    ]
}

fn states() -> [ConversationState; 2] {
    let idle = ConversationState {
        conversation_id: "c1".into(),
        is_active: false,
        status: ConversationStatus::Idle,
        auto_retry: None,
        turn_seq: None,
        retry: None,
    };
    let waiting = ConversationState {
        is_active: true,
        status: ConversationStatus::Active,
        auto_retry: Some(true),
        turn_seq: Some(7),
        retry: Some(RetryState { attempt: 2, next_at: 1_790_000_030_000 }),
        ..idle.clone()
    };
    [idle, waiting]
}

fn turns() -> Vec<TurnMetrics> {
    let bare = TurnMetrics {
        turn_id: "t1".into(),
        usage: bare_usage(),
        duration_ms: None,
        steps: 1,
        context_size: None,
    };
    let full =
        TurnMetrics { usage: full_usage(), duration_ms: Some(2000), context_size: Some(12), ..bare.clone() };
    vec![bare, full]
}

/// What is asked of conversations, and what is answered.
pub(crate) fn control() -> [Family; 6] {
    let queue = || vec![QueuedMessage { message_id: "m1".into(), text: "faster".into() }];
    let id = || "c1".into();
    let queued = Queued { conversation_id: id(), started_turn: false, queue: queue() };
    let cancelled = QueueCancelled { conversation_id: id(), cancelled: true, queue: vec![] };
    let requests =
        [None, Some("m1".into())].map(|message_id| QueueRequest { text: "faster".into(), message_id });
    [
        Family::new("SendRequest", &sends()),
        Family::new("Stopped", &[Stopped { conversation_id: id(), aborted_turn: true }]),
        Family::new("RetryControl", &[RetryControl { conversation_id: id(), was_retrying: false }]),
        Family::new("QueueRequest", &requests),
        Family::new("Queued", &[queued]),
        Family::new("QueueCancelled", &[cancelled]),
    ]
}

fn sends() -> [SendRequest; 2] {
    let bare = SendRequest {
        conversation_id: None,
        message: "Hi".into(),
        model: None,
        images: None,
        reasoning_effort: None,
        extensions: None,
    };
    let full = SendRequest {
        conversation_id: Some("c1".into()),
        message: "Hi".into(),
        model: Some("main/large".into()),
        images: Some(images()),
        reasoning_effort: Some("high".into()),
        extensions: Some(true),
    };
    [bare, full]
}
