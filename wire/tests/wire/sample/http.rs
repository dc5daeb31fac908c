//! Bodies of the HTTP calls.

use std::collections::BTreeSet;

use everturn_wire::{
    ApprovalMode, Attempts, Because, CallInfo, CallOrdered, CallPhase, CallerCall, CallerTool, Calls,
    Category, Chunk, ClusterNode, ClusterState, ConversationState, ConversationStatus, ConversationSummary,
    DoneReason, FailedAttempt, FinalReport, FoundPassage, HistoryWindow, Message, ModelInfo, ModelSettings,
    Models, Priority, QueueCancelled, QueueRequest, Queued, QueuedMessage, RenameRequest, Renamed,
    RequiredReport, ResponseFormat, Retried, RetryControl, RetryNowRequest, RetryRequest, Role, SendRequest,
    Stopped, StoredChunk, TargetState, Targets, ToolAnnotations, ToolChoice, ToolInfo, ToolPolicy,
    ToolSourceInfo, ToolSourceLogin, ToolSourceStatus, Tools, TurnMetrics, TurnMetricsList, Value,
};
use serde_json::json;

use super::{
    Family, approval,
    chunk::text,
    event::{bare_usage, full_usage, retries},
    frame::{images, model_settings, required_report},
    question,
    retry_settings::all_settings,
};

pub(crate) fn models() -> Vec<Models> {
    let names = || vec!["main/large".into(), "demo/flaky".into()];
    let known = ModelInfo { context_window: Some(200_000), max_output_tokens: Some(8192) };
    let info = [("main/large".into(), known), ("demo/flaky".into(), ModelInfo::default())].into();
    vec![Models { models: names(), model_info: None }, Models { models: names(), model_info: Some(info) }]
}

pub(crate) fn targets() -> Vec<Targets> {
    let free = TargetState { target: "main/large".into(), until: None, category: None };
    let limited = TargetState {
        target: "spare/large".into(),
        until: Some(1_790_000_000_000),
        category: Some(Category::RateLimited),
    };
    vec![Targets { targets: vec![] }, Targets { targets: vec![free, limited] }]
}

pub(crate) fn cluster() -> Vec<ClusterState> {
    let node = ClusterNode {
        id: "a1".into(),
        name: "127.0.0.1:4777".into(),
        version: "0.1.0".into(),
        started_at: 1_790_000_000_000,
        turns: 3,
        models: vec!["main/large".into(), "route/best".into()],
        tool_sources: vec!["github".into()],
    };
    let bare = ClusterNode { id: "b2".into(), models: Vec::new(), tool_sources: Vec::new(), ..node.clone() };
    vec![ClusterState::default(), ClusterState { node: Some("a1".into()), nodes: vec![node, bare] }]
}

pub(crate) fn calls() -> Vec<Calls> {
    let waiting = CallInfo {
        id: "call-1".into(),
        caller: Some("ann".into()),
        program: Some("claude-cli/2.1".into()),
        session: Some("s1".into()),
        model: "claude-opus-5-5".into(),
        target: "main/claude-opus-5-5".into(),
        phase: CallPhase::Waiting,
        started_at: 1_790_000_000_000,
        next_at: Some(1_790_000_060_000),
        retries: 4,
        waited_ms: 105_000,
        because: Some("HTTP 529: Overloaded".into()),
        category: Some(Category::Overloaded),
        shared: Some(true),
        listeners: 1,
    };
    let of = |phase| CallInfo {
        caller: None,
        program: None,
        session: None,
        phase,
        next_at: None,
        because: None,
        category: None,
        shared: None,
        ..waiting.clone()
    };
    let others = [CallPhase::Asking, CallPhase::Answering, CallPhase::Kept, CallPhase::Ended].map(of);
    vec![Calls::default(), Calls { calls: [waiting].into_iter().chain(others).collect() }]
}

pub(crate) fn call_ordered() -> Vec<CallOrdered> {
    vec![CallOrdered { call_id: "call-1".into() }]
}

pub(crate) fn tools() -> Vec<Tools> {
    let schema = serde_json::json!({ "type": "object" });
    let own = ToolInfo {
        name: "roll_dice".into(),
        description: "Rolls dice.".into(),
        input_schema: schema,
        ..ToolInfo::default()
    };
    let annotations = ToolAnnotations {
        title: Some("Echo".into()),
        read_only: Some(true),
        destructive: Some(false),
        idempotent: Some(true),
        open_world: Some(false),
    };
    let claimed = ToolInfo { policy: ToolPolicy::Ask, annotations: Some(annotations), ..own.clone() };
    let bare =
        ToolInfo { policy: ToolPolicy::Deny, annotations: Some(ToolAnnotations::default()), ..own.clone() };
    let up = ToolSourceInfo {
        name: "everything".into(),
        status: ToolSourceStatus::Up,
        message: None,
        login: Some(ToolSourceLogin::Done),
        tools: vec![claimed, bare],
    };
    let down = ToolSourceInfo {
        name: "files".into(),
        status: ToolSourceStatus::Down,
        message: Some("it ended with exit code 1; restarting in 4 s".into()),
        login: None,
        tools: vec![],
    };
    let starting = ToolSourceInfo { status: ToolSourceStatus::Starting, message: None, ..down.clone() };
    let locked = ToolSourceInfo { login: Some(ToolSourceLogin::Needed), ..down.clone() };
    vec![Tools::default(), Tools { tools: vec![own], sources: vec![up, down, starting, locked] }]
}

/// Responses about conversations.
pub(crate) fn conversation() -> [Family; 5] {
    let summary = ConversationSummary {
        id: "c1".into(),
        created_at: 1_790_000_000_000,
        last_activity_at: 1_790_000_005_000,
        title: "Hi".into(),
        status: ConversationStatus::Idle,
        workspace_id: "default".into(),
        model: None,
        waits_until: None,
        end_reason: None,
        passage: None,
    };
    let waiting = ConversationSummary {
        model: Some("route/main".into()),
        waits_until: Some(1_790_000_060_000),
        status: ConversationStatus::Active,
        // In practice, only one of them is present.
        end_reason: Some(DoneReason::Stop),
        ..summary.clone()
    };
    let failed = ConversationSummary { end_reason: Some(DoneReason::Error), ..summary.clone() };
    let passage = FoundPassage { seq: 7, role: Role::Assistant, text: "…the harvest is in.".into() };
    let found = ConversationSummary { passage: Some(passage), ..waiting.clone() };
    let chunk = StoredChunk { seq: 9, role: Role::Assistant, chunk: text("Hello").into(), supersedes: None };
    let windows = [
        HistoryWindow { chunks: vec![], latest_seq: 8, more: None, turns: None },
        HistoryWindow { chunks: vec![chunk], latest_seq: 9, more: Some(true), turns: Some(turns()) },
    ];
    [
        Family::new("ConversationList", &[vec![], vec![summary, waiting, failed, found]]),
        Family::new("HistoryWindow", &windows),
        Family::new("ConversationState", &states()),
        Family::new(
            "TurnMetricsList",
            &[TurnMetricsList { turns: vec![] }, TurnMetricsList { turns: turns() }],
        ),
        Family::new(
            "Attempts",
            &[Attempts::default(), Attempts { attempts: attempts().to_vec(), more: Some(true) }],
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
        approvals: None,
        questions: None,
        queue: None,
    };
    let waiting = ConversationState {
        is_active: true,
        status: ConversationStatus::Active,
        auto_retry: Some(true),
        turn_seq: Some(7),
        retry: Some(retries()[0].clone()),
        approvals: Some(approval::requests().to_vec()),
        questions: Some(question::questions()),
        queue: Some(vec![QueuedMessage { message_id: "m1".into(), text: "faster".into() }]),
        ..idle.clone()
    };
    [idle, waiting]
}

fn turns() -> Vec<TurnMetrics> {
    let bare = TurnMetrics { usage: bare_usage(), steps: 1, ..TurnMetrics::new("t1".into()) };
    let full = TurnMetrics {
        turn_id: "t1".into(),
        usage: full_usage(),
        duration_ms: Some(2000),
        steps: 1,
        context_size: Some(12),
        reason: Some(DoneReason::Error),
        category: Some(Category::Overloaded),
        model: Some("main/large".into()),
        first_seq: Some(3),
        last_seq: Some(4),
        first_token_ms: Some(5_300),
        retries: Some(2),
        waited_ms: Some(15_000),
        provider_calls: Some(3),
        retry_of: Some("t0".into()),
        failed_attempts: Some(attempts().to_vec()),
        final_report: Some(Box::new(FinalReport {
            success: true,
            report: Some(json!({ "status": "done" })),
            reason: Some("its reason".into()),
            context: Some("2 steps".into()),
        })),
        approvals: Some(ApprovalMode::Deny),
        calls: vec![CallerCall {
            tool_call_id: "call_1".into(),
            tool_name: "weather".into(),
            input: json!({ "city": "Oslo" }),
        }],
        // Never sent.
        request: None,
    };
    let none = FinalReport { success: false, report: None, reason: None, context: None };
    let failed = TurnMetrics { final_report: Some(Box::new(none)), ..bare.clone() };
    vec![bare, full, failed]
}

fn attempts() -> [FailedAttempt; 2] {
    let bare = FailedAttempt {
        turn_id: "t1".into(),
        step: 0,
        attempt: 0,
        target: None,
        category: None,
        code: None,
        message: "connection refused".into(),
        failed_at: 1_790_000_000_000,
        latency_ms: None,
        wait_ms: None,
        because: None,
    };
    let full = FailedAttempt {
        attempt: 1,
        target: Some("main/large".into()),
        category: Some(Category::Overloaded),
        code: Some("529".into()),
        message: "HTTP 529: overloaded".into(),
        latency_ms: Some(340),
        wait_ms: Some(5_000),
        because: Some(Because::Hint),
        ..bare.clone()
    };
    [bare, full]
}

/// Requests to conversations and their responses.
pub(crate) fn control() -> [Family; 12] {
    let queue = || vec![QueuedMessage { message_id: "m1".into(), text: "faster".into() }];
    let id = || "c1".into();
    let again = Retried { conversation_id: id(), turn_id: "t2".into(), cursor: "17".into() };
    let queued = Queued { conversation_id: id(), started_turn: false, queue: queue() };
    let cancelled = QueueCancelled { conversation_id: id(), cancelled: true, queue: vec![] };
    let requests =
        [None, Some("m1".into())].map(|message_id| QueueRequest { text: "faster".into(), message_id });
    [
        Family::new("SendRequest", &sends()),
        Family::new("ModelSettings", &[ModelSettings::default(), model_settings()]),
        Family::new("RenameRequest", &[RenameRequest { title: "The storm".into() }]),
        Family::new("Renamed", &[Renamed { conversation_id: id(), title: "The storm".into() }]),
        Family::new("Stopped", &[Stopped { conversation_id: id(), aborted_turn: true }]),
        Family::new("RetryControl", &[RetryControl { conversation_id: id(), was_retrying: false }]),
        Family::new(
            "RetryRequest",
            &[
                RetryRequest::default(),
                RetryRequest { turn_id: Some("t1".into()), ..RetryRequest::default() },
                RetryRequest {
                    turn_id: Some("t1".into()),
                    seq: Some(3),
                    message: Some("Hi again".into()),
                    model: Some("a/m".into()),
                    retry: Some(Box::new(all_settings())),
                    approvals: Some(ApprovalMode::Deny),
                },
            ],
        ),
        Family::new(
            "RetryNowRequest",
            &[RetryNowRequest::default(), RetryNowRequest { model: Some("a/m".into()) }],
        ),
        Family::new("Retried", &[again]),
        Family::new("QueueRequest", &requests),
        Family::new("Queued", &[queued]),
        Family::new("QueueCancelled", &[cancelled]),
    ]
}

fn sends() -> Vec<SendRequest> {
    let bare = SendRequest { message: "Hi".into(), ..SendRequest::default() };
    let full = SendRequest {
        conversation_id: Some("c1".into()),
        message: "Hi".into(),
        model: Some("main/large".into()),
        images: Some(images()),
        reasoning_effort: Some("high".into()),
        retry: Some(Box::new(all_settings())),
        approvals: Some(ApprovalMode::Ask),
        final_report: Some(Box::new(required_report())),
        model_settings: Some(Box::new(model_settings())),
        priority: Some(Priority::Background),
        extensions: Some(true),
        ..SendRequest::default()
    };
    let formats = [
        ResponseFormat::Text,
        ResponseFormat::JsonObject,
        ResponseFormat::JsonSchema { name: "answer".into(), schema: json!({}), strict: None },
    ];
    let formats = formats.map(|format| SendRequest { response_format: Some(format), ..bare.clone() });
    let choices = [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required];
    let choices = choices.map(|choice| SendRequest { tool_choice: Some(choice), ..bare.clone() });
    let scoped = scoped();
    let whole = SendRequest {
        conversation_id: full.conversation_id.clone(),
        message: full.message.clone(),
        model: full.model.clone(),
        images: full.images.clone(),
        reasoning_effort: full.reasoning_effort.clone(),
        retry: full.retry.clone(),
        approvals: full.approvals,
        final_report: Some(Box::new(RequiredReport::new(json!({ "type": "object" })))),
        model_settings: full.model_settings.clone(),
        priority: full.priority,
        extensions: full.extensions,
        ..scoped.clone()
    };
    let none = SendRequest::default();
    [none, bare, full, scoped, whole].into_iter().chain(formats).chain(choices).collect()
}

/// A request with the whole history, its own tools and every parameter.
fn scoped() -> SendRequest {
    let said = |role, text: &str| Message::new(role, [Chunk::Text { text: text.into() }]);
    let instructions =
        Message::new(Role::System, [Chunk::System { text: "Be brief.".into(), keeps_from: None }]);
    SendRequest {
        messages: Some(vec![instructions, said(Role::User, "Hi")]),
        ephemeral: Some(true),
        tools: Some(vec![
            CallerTool {
                name: "weather".into(),
                description: "The weather of a city.".into(),
                input_schema: json!({ "type": "object" }),
            },
            CallerTool { name: "time".into(), description: String::new(), input_schema: Value::Null },
        ]),
        temperature: Some(0.5),
        top_p: Some(0.9),
        stop: Some(vec!["END".into()]),
        tool_choice: Some(ToolChoice::Tool { name: "weather".into() }),
        response_format: Some(ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema: json!({ "type": "object" }),
            strict: Some(true),
        }),
        max_output_tokens: Some(100),
        parallel_tool_calls: Some(false),
        seed: Some(7),
        presence_penalty: Some(0.1),
        frequency_penalty: Some(0.2),
        ..SendRequest::default()
    }
}

#[test]
fn every_field_of_a_send_request_is_listed() {
    let fields: Vec<_> = sends().iter().map(|request| serde_json::to_value(request).unwrap()).collect();
    let used: BTreeSet<&str> =
        fields.iter().flat_map(|request| request.as_object().unwrap().keys()).map(String::as_str).collect();
    let listed = SendRequest::PLAIN.into_iter().chain(SendRequest::SCOPED).collect();
    assert_eq!(used, listed);
}
