//! What is persisted.

use everturn_wire::{
    Category, Chunk, ConversationStatus, Decision, DoneReason, Echo, ErrorReport, ExportLine, Failure, Image,
    Message, RejectedImage, RetryOutcome, Role, StepId, StoredChunk, Unreached,
};
use serde_json::json;

use super::event::step;

pub(crate) fn chunks() -> Vec<Chunk> {
    let call = |step_id: Option<StepId>| Chunk::ToolCall {
        tool_call_id: "call_1".into(),
        tool_name: "shell".into(),
        input: json!({ "cmd": "ls" }),
        step_id,
        echo: None,
    };
    let shown = Image { url: "data:image/png;base64,AAAA".into(), mime_type: Some("image/png".into()) };
    let result = |step_id: Option<StepId>, images, decisions: Vec<Decision>| Chunk::ToolResult {
        tool_call_id: "call_1".into(),
        tool_name: "shell".into(),
        content: "interrupted".into(),
        is_error: true,
        step_id,
        images,
        questions: if decisions.is_empty() { vec![] } else { super::question::settled() },
        decisions,
    };
    vec![
        text("Hello"),
        Chunk::Thinking { text: "hm".into(), echo: None },
        Chunk::Thinking { text: "hm".into(), echo: Some(echo()) },
        call(None),
        call(Some(step())),
        Chunk::ToolCall {
            tool_call_id: "call_1".into(),
            tool_name: "shell".into(),
            input: json!({}),
            step_id: Some(step()),
            echo: Some(echo()),
        },
        result(None, vec![], vec![]),
        result(Some(step()), vec![], vec![]),
        result(Some(step()), vec![shown], super::approval::decisions()),
        Chunk::error("HTTP 529: busy"),
        Chunk::Error(ErrorReport {
            message: "HTTP 529: busy".into(),
            code: Some("529".into()),
            category: Some(Category::Overloaded),
            advice: Some("Wait.".into()),
            retries: Some(21),
            waited_ms: Some(27_105_000),
            outcome: Some(RetryOutcome::Exhausted),
            detail: Some("the schedule has no more".into()),
            rejected_image: Some(RejectedImage { model: Some("main/small".into()) }),
        }),
        Chunk::System { text: "Be brief.".into(), keeps_from: None },
        Chunk::System { text: "They spoke of the weather.".into(), keeps_from: Some(7) },
        Chunk::Image { url: "https://example.com/a.png".into(), mime_type: None },
        Chunk::Image { url: "data:image/png;base64,AA==".into(), mime_type: Some("image/png".into()) },
    ]
}

pub(crate) fn stored() -> Vec<StoredChunk> {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let bare = |(role, seq)| StoredChunk { seq, role, chunk: text("Hello").into(), supersedes: None };
    let again =
        StoredChunk { seq: 5, role: Role::Assistant, chunk: text("Hello").into(), supersedes: Some(3) };
    roles.into_iter().zip(1..).map(bare).chain([again]).collect()
}

pub(crate) fn export() -> Vec<ExportLine> {
    let conversation = |model: Option<String>, latest_seq| ExportLine::Conversation {
        id: "c1".into(),
        created_at: 1_788_220_800_000,
        last_activity_at: 1_788_220_801_000,
        title: "Hello".into(),
        status: ConversationStatus::Idle,
        end_reason: model.as_ref().map(|_| DoneReason::Stop),
        model,
        latest_seq,
    };
    let chunk = |seq, supersedes| ExportLine::Chunk {
        conversation_id: "c1".into(),
        seq,
        role: Role::User,
        chunk: text("Hello"),
        supersedes,
    };
    let first = conversation(Some("openai/gpt".into()), 2);
    vec![first, chunk(1, None), chunk(2, Some(1)), conversation(None, 0)]
}

pub(crate) fn messages() -> Vec<Message> {
    vec![Message::new(Role::User, []), Message::new(Role::Assistant, [text("a"), text("b")])]
}

pub(crate) fn failures() -> Vec<Failure> {
    let categories = [
        Category::RateLimited,
        Category::Overloaded,
        Category::ServerError,
        Category::Network,
        Category::Timeout,
        Category::InvalidResponse,
        Category::QuotaExhausted,
        Category::ContextOverflow,
        Category::InvalidRequest,
        Category::NotFound,
        Category::ContentPolicy,
        Category::Auth,
        Category::Permission,
        Category::Cancelled,
        Category::Internal,
        Category::Unknown,
    ];
    let full = Failure {
        hint_ms: Some(20_000),
        code: Some("429".into()),
        provider_code: Some("rate_limit_error".into()),
        advice: Some("Wait, or use another key.".into()),
        unreached: Some(Unreached::NoConnection),
        rejects_image: true,
        ..Failure::new(Category::RateLimited, true, "HTTP 429: slow down")
    };
    let bare = |category| Failure::new(category, false, "HTTP 400: no");
    categories.map(bare).into_iter().chain([full]).collect()
}

fn echo() -> Echo {
    Echo { origin: "anthropic api.anthropic.com".into(), data: json!({ "signature": "EqQB" }) }
}

pub(crate) fn text(text: &str) -> Chunk {
    Chunk::Text { text: text.into() }
}
