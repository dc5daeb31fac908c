//! Exporting conversations as files.

use std::sync::Arc;

use axum::body::Body;
use everturn_orchestrator::{Commit, Cursor, Head, Journal as _, MemoryJournal, Version, kernel::Millis};
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::{Chunk, ConversationStatus, ErrorReport, ExportLine, Role, StoredChunk, Value};
use hyper::Method;
use serde_json::json;

use crate::{
    client::{Answer, call, delete, get, post, request},
    guarded, world,
    world::World,
    world_with,
};

fn text(text: &str) -> Chunk {
    Chunk::Text { text: text.to_owned() }
}

fn chunk(seq: u64, role: Role, chunk: Chunk) -> StoredChunk {
    StoredChunk { seq, role, chunk: Arc::new(chunk), supersedes: None }
}

/// A server whose journal has the conversation `c` of these chunks.
async fn stored(title: &str, chunks: Vec<StoredChunk>) -> World {
    let journal = Arc::new(MemoryJournal::new());
    let head = Head {
        created_at: Millis(1),
        last_activity_at: Millis(2),
        title: title.to_owned(),
        status: ConversationStatus::Idle,
        end_reason: None,
        model: None,
        end: Cursor::default(),
        last_seq: chunks.len() as u64,
    };
    let commit = Commit { chunks: chunks.into_iter().map(Arc::new).collect(), ..Commit::new(head) };
    journal.append(&"c".into(), Version(0), commit).await.unwrap();
    let app = |orchestrator, _| router(orchestrator, CallLimits::default(), Metrics::none());
    World::serve_from(journal, app).await
}

async fn export(world: &World, query: &str) -> Answer {
    get(world.address, &format!("/conversations/c/export{query}")).await
}

fn lines(text: &str) -> Vec<ExportLine> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn every_chunk_is_exported_once_over_many_windows() {
    let mut chunks: Vec<_> = (1..=1000).map(|n| chunk(n, Role::User, text(&n.to_string()))).collect();
    // Larger than a window.
    chunks[500].chunk = text(&"long ".repeat(200_000)).into();
    chunks[999].supersedes = Some(999);
    let world = stored("Many", chunks.clone()).await;
    let answer = export(&world, "").await;
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"Many.jsonl\"");
    assert_eq!(answer.header("cache-control"), "no-store");
    let lines = lines(&answer.text().await);
    let conversation = json!({
        "type": "conversation", "id": "c", "createdAt": 1, "lastActivityAt": 2, "title": "Many", "status": "idle",
        "latestSeq": 1000,
    });
    assert_eq!(serde_json::to_value(&lines[0]).unwrap(), conversation);
    let expected: Vec<_> = chunks
        .into_iter()
        .map(|stored| ExportLine::Chunk {
            conversation_id: "c".into(),
            seq: stored.seq,
            role: stored.role,
            chunk: Chunk::clone(&stored.chunk),
            supersedes: stored.supersedes,
        })
        .collect();
    assert!(lines[1..] == expected);
    let text = export(&world, "?format=markdown").await.text().await;
    assert!(text.ends_with("\n\n998\n\n1000\n"), "{}", &text[text.len() - 40..]);
    assert_eq!(text.lines().filter(|line| line.starts_with(char::is_numeric)).count(), 998);
}

#[tokio::test]
async fn markdown_has_what_people_read_of_the_last_branch() {
    let call = Chunk::ToolCall {
        tool_call_id: "a".to_owned(),
        tool_name: "shell".to_owned(),
        input: json!({ "command": "ls" }),
        step_id: None,
        echo: None,
    };
    let result = Chunk::ToolResult {
        tool_call_id: "a".to_owned(),
        tool_name: "shell".to_owned(),
        content: "```".to_owned(),
        is_error: false,
        step_id: None,
        images: Vec::new(),
        decisions: Vec::new(),
        questions: Vec::new(),
    };
    let image = |url: &str| Chunk::Image { url: url.to_owned(), mime_type: None };
    let mut chunks = vec![
        chunk(1, Role::System, text("Be brief.")),
        chunk(2, Role::User, text("One\n")),
        chunk(3, Role::Assistant, text("Wrong")),
        chunk(4, Role::Assistant, Chunk::Thinking { text: "Hm".to_owned(), echo: None }),
        chunk(5, Role::Assistant, call),
        chunk(6, Role::Tool, result),
        chunk(7, Role::User, image("https://example.com/a.png")),
        chunk(8, Role::User, image("data:image/png;base64,AA==")),
        chunk(9, Role::Assistant, Chunk::Error(ErrorReport::new("HTTP 529"))),
    ];
    chunks[3].supersedes = Some(3);
    let world = stored("", chunks).await;
    let answer = export(&world, "?format=markdown").await;
    assert_eq!(answer.header("content-type"), "text/markdown; charset=utf-8");
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"conversation.md\"");
    let expected = "# Conversation\n\n## You\n\nOne\n\n## Assistant\n\n**shell**\n\n```json\n{\n  \"command\": \"ls\"\n}\n\
                    ```\n\n````\n```\n````\n\n## You\n\n![image](https://example.com/a.png)\n\n*(image)*\n\n## Assistant\n\n\
                    ```\nHTTP 529\n```\n";
    assert_eq!(answer.text().await, expected);
}

#[tokio::test]
async fn a_running_turn_is_not_waited_for_and_mentioned() {
    let mut world = world().await;
    let _stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    let lines = lines(&export(&world, "").await.text().await);
    let ExportLine::Conversation { status, end_reason, latest_seq, .. } = &lines[0] else { panic!() };
    assert_eq!((*status, end_reason, *latest_seq), (ConversationStatus::Active, &None, 1));
    assert_eq!(lines.len(), 2);
    let note = "# Hi\n\n## You\n\nHi\n\n---\n\n*A turn was still running when this was exported.*\n";
    assert_eq!(export(&world, "?format=markdown").await.text().await, note);
    call.answer("Hello");
    let settled = "# Hi\n\n## You\n\nHi\n\n## Assistant\n\nHello\n";
    while export(&world, "?format=markdown").await.text().await != settled {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_export_of_a_conversation_that_is_deleted_meanwhile_is_cut_off() {
    // More than sockets buffer, so that the server has not read its end when it is deleted.
    let large = || text(&"x".repeat(1 << 20));
    for format in ["jsonl", "markdown"] {
        let all = (1..=32).map(|n| chunk(n, Role::User, large())).collect();
        let world = stored("Large", all).await;
        let answer = export(&world, &format!("?format={format}")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(delete(world.address, "/conversations/c").await.status, 200);
        let (text, is_cut_off) = answer.rest().await;
        assert!(is_cut_off && text.len() < 28 << 20, "{format}: {}", text.len());
        assert_eq!(export(&world, "").await.status, 404);
    }
}

#[tokio::test]
async fn an_export_that_cannot_be_is_refused() {
    let world = stored("Hi", vec![chunk(1, Role::User, text("Hi"))]).await;
    let answer = export(&world, "?format=pdf").await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.error().await, "format must be jsonl or markdown, not \"pdf\"");
    assert_eq!(get(world.address, "/conversations/none/export").await.status, 404);

    let busy = world_with(CallLimits { streams: 0, ..CallLimits::default() }).await;
    assert_eq!(export(&busy, "").await.status, 503);
    let app = |orchestrator| router(orchestrator, CallLimits::default(), Metrics::none());
    let guarded = guarded(app).await;
    assert_eq!(export(&guarded, "").await.status, 401);
    let allowed = request(Method::GET, guarded.address, "/conversations/c/export")
        .header("authorization", "Bearer secret")
        .body(Body::empty());
    let answer = call(guarded.address, allowed.unwrap()).await;
    assert_eq!(answer.status, 404);
    let _: Value = answer.json().await;
}
