//! Events.

use everturn_wire::{
    AgentEvent, ApprovalScope, Because, CallerCall, Category, CompactionCause, CompactionOutcome,
    ConversationStatus, DoneReason, ErrorReport, EventBody, FinalReport, ForcedBy, OutputStream,
    QueuedMessage, RejectedImage, Reported, RetryOutcome, RetryPhase, RetryState, StepId, TargetRole, Usage,
    Verdict,
};
use serde_json::{Number, json};

pub(crate) fn bare_usage() -> Usage {
    Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() }
}

pub(crate) fn full_usage() -> Usage {
    Usage {
        input_tokens: 10,
        output_tokens: 2,
        cache_read_tokens: Some(7),
        cache_write_tokens: Some(0),
        reasoning_tokens: Some(1),
    }
}

pub(crate) fn step() -> StepId {
    StepId::new(&"t1".into(), 0)
}

/// An event of the sample turn.
pub(crate) fn event(body: EventBody) -> AgentEvent {
    AgentEvent { body, conversation_id: "c1".into(), turn_id: Some("t1".into()) }
}

/// Stand-ins for the events of a newer version.
pub(crate) fn unknown() -> Vec<AgentEvent> {
    let of = |turn: Option<&str>| AgentEvent {
        body: EventBody::Unknown,
        conversation_id: "c1".into(),
        turn_id: turn.map(Into::into),
    };
    vec![of(None), of(Some("t1"))]
}

fn status(status: ConversationStatus, turn: Option<&str>) -> AgentEvent {
    AgentEvent {
        body: EventBody::Status { status, retry: None },
        conversation_id: "c1".into(),
        turn_id: turn.map(Into::into),
    }
}

/// A series of retries with every optional field, and one with none.
pub(crate) fn retries() -> [RetryState; 2] {
    let waiting = RetryState {
        phase: RetryPhase::Waiting,
        attempt: 2,
        delay_ms: 30_000,
        next_at: Some(1_790_000_030_000),
        max_attempts: Some(21),
        category: Some(Category::Overloaded),
        message: Some("HTTP 529: busy".into()),
        code: Some("529".into()),
        target: Some("sim/model".into()),
        shared: Some(true),
        because: Some(Because::Hint),
    };
    let asking = RetryState {
        phase: RetryPhase::Asking,
        next_at: None,
        max_attempts: None,
        category: None,
        message: None,
        code: None,
        target: None,
        shared: None,
        because: None,
        ..waiting.clone()
    };
    [waiting, asking]
}

fn done(reason: DoneReason) -> EventBody {
    EventBody::Done {
        reason,
        duration_ms: None,
        usage: None,
        context_size: None,
        first_token_ms: None,
        model: None,
        calls: Vec::new(),
    }
}

/// The fifteen base events.
pub(crate) fn base() -> Vec<AgentEvent> {
    let statuses = [
        status(ConversationStatus::Active, Some("t1")),
        status(ConversationStatus::Queued, None),
        status(ConversationStatus::Idle, None),
        status(ConversationStatus::Closed, None),
    ];
    let calm = [
        EventBody::UserMessage { text: "Hi \"you\"\n😀".into() },
        EventBody::TurnStart { retry_of: None, message_seq: None, supersedes: None },
        EventBody::TurnStart { retry_of: Some("t0".into()), message_seq: Some(9), supersedes: Some(3) },
        EventBody::TurnStart { retry_of: Some("t0".into()), message_seq: None, supersedes: Some(4) },
        EventBody::TextDelta { delta: "Hel".into() },
        EventBody::ReasoningDelta { delta: "hm".into() },
        EventBody::Steering { text: "faster".into() },
        EventBody::TurnSealed,
    ];
    let bodies = calm.into_iter().chain(tool()).chain(figures()).chain(trouble()).chain(ends());
    let asking = retries().map(|retry| {
        let status = ConversationStatus::Active;
        event(EventBody::Status { status, retry: Some(Box::new(retry)) })
    });
    statuses.into_iter().chain(asking).chain(bodies.map(event)).collect()
}

fn tool() -> Vec<EventBody> {
    let result = |duration_ms, again| EventBody::ToolResult {
        step_id: step(),
        tool_call_id: "call_1".into(),
        tool_name: "shell".into(),
        content: "ok".into(),
        is_error: false,
        duration_ms,
        decisions: duration_ms.map(|_| super::approval::decisions()).unwrap_or_default(),
        questions: duration_ms.map(|_| super::question::settled()).unwrap_or_default(),
        again,
    };
    let output = |stream, step_id| EventBody::ToolOutput {
        step_id,
        tool_call_id: "call_1".into(),
        data: "a\n".into(),
        stream,
    };
    let call = |again| EventBody::ToolCall {
        step_id: step(),
        tool_call_id: "call_1".into(),
        tool_name: "shell".into(),
        input: json!({ "cmd": ["ls", null, 1.5] }),
        again,
    };
    vec![
        call(None),
        call(Some(true)),
        output(OutputStream::Stdout, None),
        output(OutputStream::Stderr, Some(step())),
        result(None, None),
        result(Some(12), None),
        result(Some(12), Some(true)),
    ]
}

fn figures() -> Vec<EventBody> {
    vec![
        EventBody::Usage { step_id: None, usage: bare_usage() },
        EventBody::Usage { step_id: Some(step()), usage: full_usage() },
        EventBody::StepComplete {
            step_id: step(),
            ttft_ms: None,
            decode_ms: None,
            gen_total_ms: None,
            reported: None,
        },
        EventBody::StepComplete {
            step_id: step(),
            ttft_ms: None,
            decode_ms: None,
            gen_total_ms: None,
            reported: Some(Box::default()),
        },
        EventBody::StepComplete {
            step_id: step(),
            ttft_ms: Some(300),
            decode_ms: Some(1200),
            gen_total_ms: Some(1500),
            reported: Some(Box::new(Reported {
                model: Some("model-2026-01-01".into()),
                system_fingerprint: Some("fp_1".into()),
                service_tier: Some("priority".into()),
                cost: Number::from_f64(0.0012),
            })),
        },
    ]
}

fn trouble() -> Vec<EventBody> {
    let overloaded = r#"HTTP 429: {"error":{"type":"overloaded_error"}}"#;
    vec![
        EventBody::ProviderRetry {
            attempt: 0,
            delay_ms: 5000,
            message: overloaded.into(),
            code: None,
            next_at: None,
            category: None,
            max_attempts: None,
            budget_left_ms: None,
            target: None,
            hinted: None,
            clamped: None,
            shared: None,
            because: None,
            failed_target: None,
            latency_ms: None,
        },
        EventBody::ProviderRetry {
            attempt: 20,
            delay_ms: 1_800_000,
            message: overloaded.into(),
            code: Some("429".into()),
            next_at: Some(1_790_000_000_000),
            category: Some(Category::Overloaded),
            max_attempts: Some(21),
            budget_left_ms: Some(1_695_000),
            target: Some("main/large".into()),
            hinted: Some(true),
            clamped: Some(true),
            shared: Some(true),
            because: Some(Because::Tokens),
            failed_target: Some("main/small".into()),
            latency_ms: Some(340),
        },
        EventBody::error("connection refused"),
        EventBody::Error(ErrorReport {
            message: "HTTP 401: no".into(),
            code: Some("401".into()),
            category: Some(Category::Auth),
            advice: Some("Check the API key.".into()),
            retries: Some(1),
            waited_ms: Some(5_000),
            outcome: Some(RetryOutcome::TooLong),
            detail: Some("the next attempt would be in 61 s, the budget leaves 60 s".into()),
            rejected_image: Some(RejectedImage::default()),
        }),
    ]
}

fn ends() -> Vec<EventBody> {
    let full = EventBody::Done {
        reason: DoneReason::Stop,
        duration_ms: Some(2000),
        usage: Some(full_usage()),
        context_size: Some(12),
        first_token_ms: Some(5_300),
        model: Some("main/large".into()),
        calls: Vec::new(),
    };
    let handed = EventBody::Done {
        reason: DoneReason::ToolCalls,
        duration_ms: Some(2000),
        usage: Some(full_usage()),
        context_size: Some(12),
        first_token_ms: Some(5_300),
        model: Some("main/large".into()),
        calls: vec![CallerCall {
            tool_call_id: "call_1".into(),
            tool_name: "weather".into(),
            input: json!({ "city": "Oslo" }),
        }],
    };
    let bare = [
        DoneReason::Stop,
        DoneReason::ToolCalls,
        DoneReason::Length,
        DoneReason::ContentFilter,
        DoneReason::MaxSteps,
        DoneReason::Error,
        DoneReason::Aborted,
        DoneReason::Other("pause_turn".into()),
    ];
    bare.into_iter().map(done).chain([full, handed]).collect()
}

/// The extension events.
pub(crate) fn extension() -> Vec<AgentEvent> {
    let queued = QueuedMessage { message_id: "m1".into(), text: "faster".into() };
    let rest = [
        EventBody::StepRewound { step_id: step(), reason: "the server restarted".into() },
        silent(None, true),
        silent(Some(1_790_000_300_000), false),
        EventBody::QueueChanged { queue: vec![] },
        EventBody::QueueChanged { queue: vec![queued] },
        EventBody::TargetSwitched {
            from: "main/large".into(),
            to: "spare/large".into(),
            role: TargetRole::Main,
            reason: "main/large is overloaded".into(),
        },
        EventBody::TargetRestored { to: "main/large".into(), role: TargetRole::Compactor },
    ];
    let told = retries_ended().into_iter().chain(rest).chain(permission()).chain(super::question::events());
    told.chain(compaction()).chain(report()).map(event).collect()
}

fn silent(gives_up_at: Option<u64>, alive: bool) -> EventBody {
    EventBody::ProviderSilent { step_id: step(), silent_ms: 20_000, gives_up_at, alive }
}

fn retries_ended() -> Vec<EventBody> {
    let ended = |outcome, message: Option<&str>| EventBody::RetryEnded {
        attempts: 3,
        outcome,
        message: message.map(Into::into),
        target: None,
    };
    vec![
        EventBody::RetryEnded {
            attempts: 1,
            outcome: RetryOutcome::Recovered,
            message: Some("answered by spare/large".into()),
            target: Some("spare/large".into()),
        },
        ended(RetryOutcome::Recovered, None),
        ended(RetryOutcome::Exhausted, Some("HTTP 529")),
        ended(RetryOutcome::Cancelled, None),
        ended(RetryOutcome::TooLong, None),
        ended(RetryOutcome::NotRetryable, None),
    ]
}

fn permission() -> Vec<EventBody> {
    let requested = |reason: Option<&str>| EventBody::ApprovalRequested {
        step_id: step(),
        tool_call_id: "call_1".into(),
        tool_name: "shell".into(),
        input: json!({}),
        reason: reason.map(Into::into),
        until: reason.map(|_| 1_700_000_060_000),
    };
    let resolved = |verdict| EventBody::ApprovalResolved {
        step_id: step(),
        tool_call_id: "call_1".into(),
        verdict,
        reason: matches!(verdict, Verdict::Allowed | Verdict::Denied).then(|| "not on Fridays".into()),
        scope: (verdict == Verdict::Allowed).then_some(ApprovalScope::Conversation),
        name: (verdict == Verdict::Allowed).then(|| "Ada".into()),
        via: (verdict == Verdict::Allowed).then(|| "page".into()),
    };
    let reviewed = |word: Option<&str>| EventBody::ReviewCompleted {
        step_id: step(),
        tool_call_id: "call_1".into(),
        verdict: Verdict::Denied,
        attempt_count: 1,
        duration_ms: word.map(|_| 2_150),
        risk_level: word.map(Into::into),
        user_authorization: word.map(Into::into),
        rationale: word.map(Into::into),
    };
    let verdicts =
        [Verdict::Allowed, Verdict::Denied, Verdict::Failed, Verdict::TimedOut, Verdict::Cancelled]
            .map(resolved);
    let rest = [
        requested(None),
        requested(Some("writes outside the project")),
        EventBody::ReviewStarted {
            step_id: step(),
            tool_call_id: "call_1".into(),
            tool_name: "shell".into(),
        },
        reviewed(None),
        reviewed(Some("high")),
    ];
    rest.into_iter().chain(verdicts).collect()
}

fn report() -> Vec<EventBody> {
    let forced = |by| EventBody::ReportForced { step_id: step(), by };
    // More than one real report has, to cover every field.
    let full = FinalReport {
        success: true,
        report: Some(json!({ "status": "done" })),
        reason: Some("its reason".into()),
        context: Some("2 steps".into()),
    };
    let bare = FinalReport { success: false, report: None, reason: None, context: None };
    let synthesized = FinalReport {
        success: false,
        report: None,
        reason: Some("the turn was stopped".into()),
        context: Some("1 steps, 0 retries, 0 replies without an acceptable report".into()),
    };
    vec![
        EventBody::ReportMissing {
            step_id: step(),
            reason: "the reply was empty".into(),
            attempt: 1,
            max_attempts: 3,
        },
        forced(ForcedBy::MaxSteps),
        forced(ForcedBy::Overflow),
        forced(ForcedBy::Exhausted),
        EventBody::StepsCollapsed { step_id: step(), from: 10, to: 3 },
        EventBody::FinalReport(Box::new(full)),
        EventBody::FinalReport(Box::new(bare)),
        EventBody::FinalReport(Box::new(synthesized)),
    ]
}

fn compaction() -> Vec<EventBody> {
    let started = |cause| {
        let message = (cause == CompactionCause::Overflow).then(|| "HTTP 400: 9 tokens are too many".into());
        let is_refused = cause == CompactionCause::Overflow;
        EventBody::CompactionStarted {
            step_id: step(),
            cause,
            message,
            code: is_refused.then(|| "400".into()),
            failed_target: is_refused.then(|| "key/model".into()),
            failed_at: is_refused.then_some(1_700_000_000_000),
            latency_ms: is_refused.then_some(140),
        }
    };
    let completed = |outcome, message: Option<&str>| EventBody::CompactionCompleted {
        step_id: step(),
        outcome,
        summary: None,
        keeps_from: None,
        message: message.map(Into::into),
    };
    vec![
        started(CompactionCause::Overflow),
        started(CompactionCause::Ahead),
        started(CompactionCause::Requested),
        EventBody::CompactionCompleted {
            step_id: step(),
            outcome: CompactionOutcome::Summarized,
            summary: Some("They spoke of the weather.".into()),
            keeps_from: Some(7),
            message: Some("in two parts".into()),
        },
        completed(CompactionOutcome::Failed, Some("HTTP 401: no")),
        completed(CompactionOutcome::Cancelled, None),
    ]
}
