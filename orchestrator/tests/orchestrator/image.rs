//! Images that a provider rejects, against a server that refuses every request with one.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, MemoryJournal, Orchestrator, RetryTurn, Tool,
    kernel::{Provider, ToolAnswer, ToolSpec},
};
use everturn_provider::{Anthropic, AnthropicConfig, EndpointConfig, HttpClient, HttpConfig, Scripted};
use everturn_sim::{Loopback, Reply, Request};
use everturn_wire::{Chunk, ConversationId, Image, Value};
use serde_json::json;

use crate::support::{World, answer, ask, builder};

/// A Messages server that cannot read images. It calls a tool if it is told to look.
async fn server() -> Loopback {
    let server = Loopback::with(|request: &Request| {
        let body = request.json().expect("JSON");
        let messages = body["messages"].to_string();
        if messages.contains(r#""type":"image""#) {
            let message = "messages.0.content.0.image.source.base64.data: Could not process image";
            let error = json!({"type": "invalid_request_error", "message": message});
            return Reply::json(400, &json!({"type": "error", "error": error}));
        }
        if messages.contains(r#""type":"document""#) {
            let message = "'model' does not support PDF input.";
            let error = json!({"type": "invalid_request_error", "message": message});
            return Reply::json(400, &json!({"type": "error", "error": error}));
        }
        let last = body["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
        match last["content"].to_string() {
            said if said.contains("tool_result") => said_by_model("I cannot see it."),
            said if said.contains("look") => called("look"),
            _ => said_by_model("Fine."),
        }
    });
    server.await
}

fn said_by_model(text: &str) -> Reply {
    let begin =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "text_delta", "text": text});
    stream(&[begin, json!({"type": "content_block_delta", "index": 0, "delta": delta})], "end_turn")
}

fn called(name: &str) -> Reply {
    let block = json!({"type": "tool_use", "id": "a", "name": name, "input": {}});
    let begin = json!({"type": "content_block_start", "index": 0, "content_block": block});
    stream(&[begin, json!({"type": "content_block_stop", "index": 0})], "tool_use")
}

pub(crate) fn stream(blocks: &[Value], reason: &str) -> Reply {
    let begin = json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}});
    let end = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
    let stop = json!({"type": "message_stop"});
    let events = [&begin].into_iter().chain(blocks).chain([&end, &stop]);
    Reply::sse(events.map(|event| format!("data: {event}\n\n")))
}

pub(crate) fn provider(server: &Loopback) -> impl Provider {
    let http = HttpClient::new(HttpConfig::default()).unwrap();
    let endpoint = EndpointConfig::new(format!("{}/v1", server.base_url()));
    Anthropic::new(http, AnthropicConfig::new(endpoint)).unwrap()
}

fn image() -> Image {
    Image { url: "data:image/png;base64,AAAA".into(), mime_type: Some("image/png".into()) }
}

/// Answers with an image.
struct Look;

#[async_trait]
impl Tool for Look {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "look".to_owned(), description: "Looks.".to_owned(), parameters }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer { images: vec![image()], ..ToolAnswer::ok("a screenshot") }
    }
}

/// What the server was sent last.
fn last(server: &Loopback) -> Value {
    server.requests().last().unwrap().json().unwrap()["messages"].take()
}

/// What a rejected turn says.
fn assert_says_so(lines: &[String]) {
    assert!(lines.iter().any(|line| line.contains("Could not process image")), "{lines:?}");
    assert!(lines.contains(&"done error".to_owned()), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_image_is_left_out_of_later_requests_also_after_a_restart() {
    let (server, journal) = (server().await, Arc::new(MemoryJournal::new()));
    let world = World::of(builder(provider(&server)).journal(journal.clone()));
    world.say("Hello").await.turn().await;
    let start = world.message("What is this?").images(vec![image()]);
    let started = world.orchestrator.start(start).await.unwrap();
    assert_says_so(&world.watch(Some(started.from)).await.turn().await);
    let chunks = world.chunks().await;
    let Chunk::Error(report) = &*chunks.last().unwrap().chunk else { panic!("{chunks:?}") };
    assert_eq!(report.rejected_image.as_ref().unwrap().model.as_deref(), Some("key/model"));
    assert!(report.advice.as_ref().unwrap().contains("a note in place of the latest images"), "{report:?}");

    let lines = world.say("Never mind.").await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    world.orchestrator.shutdown(std::time::Duration::ZERO).await;
    let again = World { id: world.id.clone(), ..World::of(builder(provider(&server)).journal(journal)) };
    let lines = again.say("And now?").await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    let sent = last(&server);
    let note = "[an image was here, but the provider rejected it, so you cannot see it]";
    assert_eq!(sent[2]["content"][0]["text"], note, "{sent}");
    assert_eq!(sent[2]["content"][1]["text"], "What is this?", "{sent}");
    let kept =
        again.chunks().await.iter().filter(|stored| matches!(*stored.chunk, Chunk::Image { .. })).count();
    assert_eq!(kept, 1, "people still see it");
}

#[tokio::test(start_paused = true)]
async fn a_pdf_that_the_model_does_not_take_is_told_and_left_out_afterwards() {
    let server = server().await;
    let world = World::of(builder(provider(&server)));
    let pdf = Image { url: "data:application/pdf;base64,AAAA".into(), mime_type: Some(Image::PDF.into()) };
    let start = world.message("What is this?").images(vec![pdf]);
    let started = world.orchestrator.start(start).await.unwrap();
    world.watch(Some(started.from)).await.turn().await;
    let chunks = world.chunks().await;
    let Chunk::Error(report) = &*chunks.last().unwrap().chunk else { panic!("{chunks:?}") };
    assert!(report.advice.as_ref().unwrap().contains("choose a model that reads PDFs"), "{report:?}");
    let lines = world.say("Never mind.").await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    let sent = last(&server);
    let note = "[a PDF was here, but the provider rejected it, so you cannot read it]";
    assert_eq!(sent[0]["content"][0]["text"], note, "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_tool_showed_a_rejected_image_can_be_tried_again() {
    let server = server().await;
    let world = World::of(builder(provider(&server)).tool(Look));
    let lines = world.say("Take a look.").await.turn().await;
    assert_says_so(&lines);
    let failed = world.orchestrator.metrics(&world.id).await.unwrap().pop().unwrap().turn_id;
    let started = world.orchestrator.retry_with(&world.id, RetryTurn::last(failed)).await.unwrap();
    let lines = world.watch(Some(started.from)).await.turn().await;
    assert!(lines.contains(&"text-delta I cannot see it.".to_owned()), "{lines:?}");
    let sent = last(&server).to_string();
    assert!(sent.contains("a screenshot\\n[an image was here"), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn another_model_gets_the_image() {
    let (server, seeing) = (server().await, Scripted::new([answer("A cat.")]));
    let builder = Orchestrator::builder().model("key", "blind", Arc::new(provider(&server))).model(
        "key",
        "seeing",
        Arc::new(seeing.clone()),
    );
    let world = World { orchestrator: builder.build(), id: ConversationId::from("c") };
    let start = world.message("What is this?").images(vec![image()]);
    let started = world.orchestrator.start(start).await.unwrap();
    assert_says_so(&world.watch(Some(started.from)).await.turn().await);
    let again = RetryTurn::last(started.turn_id).model("key/seeing");
    let started = world.orchestrator.retry_with(&world.id, again).await.unwrap();
    world.watch(Some(started.from)).await.turn().await;
    let request = seeing.requests().pop().unwrap();
    assert!(matches!(*request.messages[0].chunks[0], Chunk::Image { .. }), "{request:?}");
}

/// Answers with more images than are kept, and one that no API takes.
struct Gallery;

#[async_trait]
impl Tool for Gallery {
    fn spec(&self) -> ToolSpec {
        ToolSpec { parameters: Value::Null, ..Look.spec() }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        let plain = Image { url: "http://127.0.0.1/cat.png".into(), mime_type: None };
        let images = std::iter::once(plain).chain((0..17).map(|_| image())).collect();
        ToolAnswer { images, ..ToolAnswer::ok("screenshots") }
    }
}

#[tokio::test(start_paused = true)]
async fn of_too_many_images_of_a_tool_some_are_kept_and_the_rest_is_counted() {
    let world = World::of(builder(Scripted::new([ask("look", &["t"]), answer("done")])).tool(Gallery));
    world.say("Look.").await.turn().await;
    let chunks = world.chunks().await;
    let result = chunks.iter().find_map(|stored| match &*stored.chunk {
        Chunk::ToolResult { content, images, .. } => Some((content.clone(), images.len())),
        _ => None,
    });
    let (content, images) = result.unwrap();
    assert_eq!(images, 16);
    assert!(
        content.starts_with("screenshots\n(2 of 18 images were left out: at most 16 are kept"),
        "{content}"
    );
}
