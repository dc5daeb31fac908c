//! Histories that are too long, against a server that counts tokens and refuses what does not fit.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    CompactionRequest, Compactor, Error, Invocation, MemoryJournal, Orchestrator, Tool,
    kernel::{Provider, StreamEvent, ToolAnswer, ToolSpec},
};
use everturn_provider::{ChatCompletions, ChatConfig, Cue, EndpointConfig, HttpClient, HttpConfig, Scripted};
use everturn_sim::{Loopback, Reply, Request, chat};
use everturn_wire::{Category, Chunk, ConversationId, FailedAttempt, Failure, Role, StoredChunk, Value};
use serde_json::json;

use crate::support::{World, answer, builder, refused};

/// What a model behind the server can read, in tokens of four bytes.
const WINDOW: u64 = 2_000;

/// What the server was asked.
#[derive(Clone, Debug, PartialEq)]
enum Asked {
    /// For an answer or a summary, over so many tokens.
    Answer(u64),
    Summary(u64),
    Refused(u64),
}

type Book = Arc<Mutex<Vec<Asked>>>;

/// A chat server whose model has a small context. Its answers are 100 tokens long, its summaries say how many there were.
async fn server(refusal: Reply) -> (Loopback, Book) {
    let book = Book::default();
    let notes = book.clone();
    let server = Loopback::with(move |request: &Request| {
        let messages = request.json().expect("JSON")["messages"].as_array().cloned().unwrap_or_default();
        let tokens = messages.iter().map(|message| message.to_string().len() as u64).sum::<u64>() / 4;
        let is_summary = messages[0]["content"].to_string().contains("You write a summary");
        let mut notes = notes.lock().unwrap();
        if tokens > WINDOW {
            notes.push(Asked::Refused(tokens));
            return refusal.clone();
        }
        notes.push(if is_summary { Asked::Summary(tokens) } else { Asked::Answer(tokens) });
        let summaries = notes.iter().filter(|asked| matches!(asked, Asked::Summary(_))).count();
        let text = if is_summary { format!("Summary {summaries}.") } else { "word ".repeat(80) };
        chat::text([text]).reply()
    });
    (server.await, book)
}

fn too_long() -> Reply {
    Reply::json(400, &json!({"error": {"code": "context_length_exceeded", "message": "Too many tokens."}}))
}

fn provider(server: &Loopback) -> impl Provider {
    let endpoint = EndpointConfig::new(format!("{}/v1", server.base_url()));
    let http = HttpClient::new(HttpConfig::default()).unwrap();
    ChatCompletions::new(http, ChatConfig::new(endpoint)).unwrap()
}

fn summaries(chunks: &[StoredChunk]) -> Vec<(u64, u64, String)> {
    let summary = |stored: &StoredChunk| match &*stored.chunk {
        Chunk::System { text, keeps_from: Some(from) } => {
            assert_eq!(stored.role, Role::System);
            Some((stored.seq, *from, text.clone()))
        }
        _ => None,
    };
    chunks.iter().filter_map(summary).collect()
}

#[tokio::test(start_paused = true)]
async fn a_conversation_of_two_hundred_turns_lives_on_and_its_log_is_whole() {
    let (server, book) = server(too_long()).await;
    let world = World::of(builder(provider(&server)).compact());
    for turn in 0..200 {
        let lines = world.say(&format!("question {turn}")).await.turn().await;
        assert!(lines.contains(&"done stop".to_owned()), "turn {turn}: {lines:?}");
    }
    let chunks = world.chunks().await;
    let said = chunks.iter().filter(|stored| stored.role != Role::System);
    assert_eq!(said.count(), 400, "every question and answer is there");
    assert!(chunks.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq), "no gap");
    let made = summaries(&chunks);
    assert!(made.iter().all(|(seq, from, _)| from < seq && chunks[*from as usize - 1].role == Role::User));
    let book = book.lock().unwrap();
    let count = |is: fn(&Asked) -> bool| book.iter().filter(|asked| is(asked)).count();
    let refused = count(|asked| matches!(asked, Asked::Refused(_)));
    assert_eq!(count(|asked| matches!(asked, Asked::Summary(_))), made.len());
    assert_eq!(
        (refused, count(|asked| matches!(asked, Asked::Answer(_)))),
        (made.len(), 200),
        "one refusal each"
    );
    assert!((10..40).contains(&made.len()), "{} summaries", made.len());
}

#[tokio::test(start_paused = true)]
async fn ahead_of_an_overflow_nothing_is_refused() {
    let (server, book) = server(too_long()).await;
    let builder = builder(provider(&server)).compact().compact_ahead(0.8).context_window("key/model", WINDOW);
    let world = World::of(builder);
    for turn in 0..100 {
        let lines = world.say(&format!("question {turn}")).await.turn().await;
        assert!(lines.contains(&"done stop".to_owned()), "turn {turn}: {lines:?}");
    }
    let book = book.lock().unwrap();
    assert!(!book.iter().any(|asked| matches!(asked, Asked::Refused(_))), "{book:?}");
    assert!(book.iter().filter(|asked| matches!(asked, Asked::Summary(_))).count() > 5);
}

#[tokio::test(start_paused = true)]
async fn a_person_may_ask_for_a_summary_at_any_time() {
    let (server, book) = server(too_long()).await;
    // Whether or not histories are summarized by themselves.
    let world = World::of(builder(provider(&server)));
    world.say("question 0").await.turn().await;
    let refused = world.orchestrator.compact(&world.id).await.unwrap_err();
    assert_eq!(refused, Error::NothingToSummarize { id: world.id.clone() });
    world.say("question 1").await.turn().await;
    let started = world.orchestrator.compact(&world.id).await.unwrap();
    let lines = world.watch(Some(started.from)).await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    let chunks = world.chunks().await;
    let [(seq, from, text)] = &summaries(&chunks)[..] else { panic!("{chunks:?}") };
    assert_eq!((*seq, *from, text.starts_with("Summary 1.")), (5, 3, true), "{text}");
    world.say("question 2").await.turn().await;
    let asked = book.lock().unwrap().clone();
    assert!(
        matches!(asked[..], [Asked::Answer(_), Asked::Answer(_), Asked::Summary(_), Asked::Answer(_)]),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_a_person_asked_for_is_made_again_and_by_another_model() {
    let failed = || vec![StreamEvent::Failed(Failure::new(Category::Permission, false, "no")).into()];
    let replies = [answer("one"), answer("two"), failed(), failed(), refused(), answer("not this")];
    let (first, other) =
        (Scripted::new(replies), Scripted::new([failed(), answer("Short."), answer("three")]));
    let builder =
        Orchestrator::builder().model("a", "m", Arc::new(first)).model("b", "m", Arc::new(other.clone()));
    let world = World::of(builder);
    let (orchestrator, id) = (&world.orchestrator, &world.id);
    world.say("question 1").await.turn().await;
    world.say("question 2").await.turn().await;
    let mut started = orchestrator.compact(id).await.unwrap();
    for _ in 0..2 {
        let lines = world.watch(Some(started.from)).await.turn().await;
        assert!(lines.contains(&"done error".to_owned()), "{lines:?}");
        started = orchestrator.retry(id, &started.turn_id).await.unwrap();
    }
    let mut watcher = world.watch(Some(started.from)).await;
    watcher.until("provider-retry").await;
    assert!(orchestrator.retry_now_with(id, "b/m").await.unwrap());
    watcher.until("done error").await;
    let moved = orchestrator.metrics(id).await.unwrap().pop().unwrap();
    assert_eq!(moved.retry_of, Some(started.turn_id));
    let again = orchestrator.retry(id, &moved.turn_id).await.unwrap();
    let lines = world.watch(Some(again.from)).await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    let made = summaries(&world.chunks().await);
    assert!(matches!(&made[..], [(_, 3, text)] if text == "Short."), "{made:?}");
    // What comes next is answered.
    let lines = world.say("question 3").await.turn().await;
    assert!(lines.contains(&"text-delta three".to_owned()), "{lines:?}");
    let asked = other.requests().pop().unwrap().messages;
    assert_eq!(asked[1].role, Role::Assistant, "what was said before is not superseded: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn every_form_of_an_overflow_is_recognized() {
    let corpus = include_str!("../../../provider/diagnosis/tests/corpus/errors.jsonl");
    let rows = corpus.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // Some say so only to those who know the provider.
    let is_overflow = |row: &Value| {
        let is_plain = row["stage"] == "http" && row["needs_context"].is_null();
        is_plain && row["category"] == "context_overflow"
    };
    let mut forms = 0;
    for row in rows.filter(is_overflow) {
        let status = row["status"].as_u64().unwrap() as u16;
        let body = row["body"].as_str().unwrap().to_owned();
        let refusal = Reply::status(status).body(body).header("content-type", "application/json");
        let (server, book) = server(refusal).await;
        let world = World::of(builder(provider(&server)).compact());
        for turn in 0..12 {
            let lines = world.say(&format!("{turn} {}", "x".repeat(800))).await.turn().await;
            assert!(lines.contains(&"done stop".to_owned()), "{}: {lines:?}", row["id"]);
        }
        let refused = book.lock().unwrap().iter().any(|asked| matches!(asked, Asked::Refused(_)));
        assert!(refused, "{}: nothing overflowed", row["id"]);
        forms += 1;
    }
    assert!(forms > 10, "{forms} forms");
}

#[tokio::test(start_paused = true)]
async fn a_limit_on_bytes_is_no_overflow() {
    let refusal =
        Reply::status(413).body("Request Entity Too Large: the request is larger than 1048576 bytes");
    let (server, book) = server(refusal).await;
    let world = World::of(builder(provider(&server)).compact());
    world.say("short").await.turn().await;
    let lines = world.say(&"x".repeat(9_000)).await.turn().await;
    assert!(lines.contains(&"done error".to_owned()), "{lines:?}");
    assert!(summaries(&world.chunks().await).is_empty());
    assert_eq!(book.lock().unwrap().len(), 2, "and nothing is asked again");
}

#[tokio::test(start_paused = true)]
async fn one_message_that_is_too_long_alone_ends_the_turn_with_what_to_do() {
    let (server, book) = server(too_long()).await;
    let world = World::of(builder(provider(&server)).compact());
    let lines = world.say(&"x".repeat(9_000)).await.turn().await;
    let error = lines.iter().find(|line| line.starts_with("error")).unwrap();
    assert!(error.contains("the newest message alone does not fit the model's context"), "{error}");
    assert!(error.contains("send less, or choose a model with a larger context"), "{error}");
    assert_eq!(book.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_fills_the_context_with_its_own_steps_goes_on() {
    let (server, _) = agent_server(40).await;
    let world = World::of(builder(provider(&server)).compact().tool(Read));
    let mut watcher = world.say("Read forty files.").await;
    let lines = watcher.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    let chunks = world.chunks().await;
    let made = summaries(&chunks);
    assert!(made.len() > 5, "{made:?}");
    assert!(
        made.iter().all(|(_, _, text)| text.ends_with("verbatim:\nRead forty files.")),
        "the task stays: {made:?}"
    );
    let results = chunks.iter().filter(|stored| stored.role == Role::Tool).count();
    assert_eq!(results, 40, "no tool ran twice, none is missing");
}

/// A model that calls `read` so often, then is done; it refuses what does not fit.
async fn agent_server(steps: usize) -> (Loopback, Book) {
    let book = Book::default();
    let mut left = steps;
    let server = Loopback::with(move |request: &Request| {
        let messages = request.json().expect("JSON")["messages"].as_array().cloned().unwrap_or_default();
        let tokens = messages.iter().map(|message| message.to_string().len() as u64).sum::<u64>() / 4;
        match messages[0]["content"].to_string() {
            _ if tokens > 3_000 => too_long(),
            text if text.contains("You write a summary") => chat::text(["They read."]).reply(),
            _ if left > 0 => {
                left -= 1;
                chat::tool(&format!("call-{left}"), "read", ["{}"]).reply()
            }
            _ => chat::text(["All read."]).reply(),
        }
    });
    (server.await, book)
}

/// A tool with one result that is far too long for the model.
struct Dump;

#[async_trait]
impl Tool for Dump {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok(format!("begin {} end", "r".repeat(60_000)))
    }
}

/// Whether the history has the whole result, and what the model was sent of it last.
async fn results(world: &World, server: &Loopback) -> (bool, String) {
    let chunks = world.chunks().await;
    let is_whole = |stored: &StoredChunk| match &*stored.chunk {
        Chunk::ToolResult { content, .. } => content.len() == 60_010,
        _ => false,
    };
    let sent = server.requests().last().unwrap().json().unwrap()["messages"].to_string();
    (chunks.iter().any(is_whole), sent)
}

#[tokio::test(start_paused = true)]
async fn a_result_that_fills_the_context_is_shortened_for_the_model_alone() {
    for is_known in [false, true] {
        let (server, book) = agent_server(1).await;
        let builder = builder(provider(&server)).compact().tool(Dump);
        let builder =
            if is_known { builder.compact_ahead(0.8).context_window("key/model", 3_000) } else { builder };
        let journal = Arc::new(MemoryJournal::new());
        let world = World::of(builder.journal(journal.clone()));
        let lines = world.say("Read it.").await.turn().await;
        assert!(lines.contains(&"text-delta All read.".to_owned()), "{lines:?}");
        let (is_whole, sent) = results(&world, &server).await;
        assert!(is_whole, "people see all of it");
        assert!(sent.contains("begin rrr") && sent.contains("rrr end"), "{sent}");
        assert!(sent.contains("bytes of this result were left out here"), "{sent}");
        let requests = server.requests().len();
        assert_eq!(
            requests,
            if is_known { 2 } else { 3 },
            "one refusal, unless the context is known: {book:?}"
        );

        let after = World::of(self::builder(provider(&server)).compact().tool(Dump).journal(journal));
        let lines = after.say("Thanks.").await.turn().await;
        assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
        assert_eq!(server.requests().len(), requests + 1, "it stays short");
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_fills_the_context_after_others_is_shortened_beside_the_summary() {
    let (server, _) = agent_server(2).await;
    let world = World::of(builder(provider(&server)).compact().tool(Dump));
    let lines = world.say("Read both.").await.turn().await;
    assert!(lines.contains(&"text-delta All read.".to_owned()), "{lines:?}");
    let made = summaries(&world.chunks().await);
    assert!(made[0].2.starts_with("Long results of tools were shortened"), "{made:?}");
    assert!(made[1].2.starts_with("They read."), "{made:?}");
    assert!(results(&world, &server).await.1.contains("bytes of this result were left out here"));
}

/// A tool with long results.
struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok("r".repeat(3_000))
    }
}

/// Notes what it is given.
#[derive(Clone, Default)]
struct Hook {
    given: Arc<Mutex<Vec<String>>>,
    fails: Arc<Mutex<Vec<Option<Failure>>>>,
}

#[async_trait]
impl Compactor for Hook {
    async fn compact(&self, request: CompactionRequest) -> Result<String, Failure> {
        self.given.lock().unwrap().push(request.transcript);
        let mut fails = self.fails.lock().unwrap();
        match fails.pop() {
            None => Ok("They greeted each other.".into()),
            Some(Some(failure)) => Err(failure),
            Some(None) => {
                drop(fails);
                panic!("out of paper")
            }
        }
    }
}

fn overflow() -> Vec<Cue> {
    vec![StreamEvent::Failed(Failure::new(Category::ContextOverflow, false, "too long")).into()]
}

#[tokio::test(start_paused = true)]
async fn an_embedder_summarizes_and_its_failures_are_retried() {
    let hook = Hook::default();
    *hook.fails.lock().unwrap() = vec![Some(Failure::new(Category::Network, true, "the index is down"))];
    let script = Scripted::new([answer("hello"), overflow(), answer("fine")]);
    let world = World::of(builder(script.clone()).compactor(Arc::new(hook.clone())));
    world.say("hi").await.turn().await;
    let mut watcher = world.say("how are you?").await;
    let lines = watcher.until("turn-sealed").await;
    let told: Vec<&str> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    let expected = [
        "compaction-started",
        "provider-retry",
        "status",
        "retry-ended",
        "compaction-completed",
        "text-delta",
    ];
    let told: Vec<&str> = told.into_iter().filter(|line| expected.contains(line)).collect();
    assert_eq!(told, expected);
    assert_eq!(*hook.given.lock().unwrap(), vec!["[user]\nhi\n\n[assistant]\nhello\n\n"; 2]);
    assert_eq!(script.calls(), 3, "the model is not asked for summaries");
    let asked = script.requests().pop().unwrap();
    assert_eq!(asked.messages.len(), 1, "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn an_embedder_that_panics_ends_the_turn_and_no_other() {
    let hook = Hook::default();
    *hook.fails.lock().unwrap() = vec![None];
    let script = Scripted::new([answer("hello"), overflow(), answer("fine")]);
    let world = World::of(builder(script).compactor(Arc::new(hook)));
    world.say("hi").await.turn().await;
    let lines = world.say("how are you?").await.turn().await;
    assert!(lines.iter().any(|line| line.contains("the compactor panicked: out of paper")), "{lines:?}");
    assert!(world.say("and now?").await.turn().await.contains(&"done stop".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_model_of_its_own_summarizes_and_waits_like_any_other() {
    let small = Scripted::new([refused(), answer("Short.")]);
    let large = Scripted::new([answer("hello"), overflow(), answer("fine")]);
    let world = World::of(
        Orchestrator::builder()
            .model("key", "large", Arc::new(large.clone()))
            .model("key", "small", Arc::new(small.clone()))
            .compact_with("key/small"),
    );
    world.say("hi").await.turn().await;
    let lines = world.say("how are you?").await.turn().await;
    assert!(lines.iter().any(|line| line.starts_with("provider-retry 0 5000")), "{lines:?}");
    assert_eq!((large.calls(), small.calls()), (3, 2));
    let attempts = world.orchestrator.attempts(&world.id, None, 10).await.unwrap().attempts;
    let targets: Vec<_> = attempts.iter().map(|attempt| attempt.target.as_deref()).collect();
    assert_eq!(targets, [Some("key/large"), Some("key/small")], "each names who was asked");
}

#[tokio::test(start_paused = true)]
async fn a_restart_while_the_history_is_summarized_asks_for_the_summary_again() {
    let journal = Arc::new(MemoryJournal::new());
    let id = ConversationId::from("c");
    let first = Scripted::new([answer("hello"), overflow(), refused()]);
    let before = World::of(builder(first.clone()).compact().journal(journal.clone()));
    before.say("hi").await.turn().await;
    before.say("how are you?").await.until("provider-retry").await;
    before.orchestrator.shutdown(Duration::ZERO).await;
    let second = Scripted::new([answer("Short."), answer("fine")]);
    let after = World::of(builder(second.clone()).compact().journal(journal));
    after.orchestrator.resume().await.unwrap();
    let mut watcher = World { orchestrator: after.orchestrator.clone(), id }.watch(None).await;
    watcher.until("turn-sealed").await;
    assert_eq!(after.history().await[2..], ["text how are you?", "system Short.", "text fine"]);
    assert_eq!(second.requests()[0].tools.len(), 0);
}

/// What is known of the last turn: calls for its answer, retries, failed attempts.
async fn figures(world: &World) -> (Option<u32>, Option<u32>, Vec<String>) {
    let last = world.orchestrator.metrics(&world.id).await.unwrap().pop().unwrap();
    let attempts = world.orchestrator.attempts(&world.id, Some(&last.turn_id), 10).await.unwrap().attempts;
    assert_eq!(last.failed_attempts.unwrap_or_default(), attempts);
    let line = |it: &FailedAttempt| {
        assert_eq!(it.latency_ms, Some(0), "it answers at once");
        let (target, category) = (it.target.as_deref().unwrap_or("?"), it.category.unwrap().as_str());
        format!("{}.{} {target} {category} {:?} {:?}", it.step, it.attempt, it.code, it.wait_ms)
    };
    (last.provider_calls, last.retries, attempts.iter().map(line).collect())
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_long_is_a_failed_attempt_and_a_call_for_a_summary_is_none_for_the_answer() {
    let too_long = || {
        let failure = Failure::new(Category::ContextOverflow, false, "too long");
        vec![StreamEvent::Failed(Failure { code: Some("400".into()), ..failure }).into()]
    };
    let refusal = r#"0.0 key/model context_overflow Some("400") Some(0)"#.to_owned();
    let retry = r#"0.0 key/model rate_limited Some("429") Some(5000)"#.to_owned();
    let begun = |calls: Vec<Vec<Cue>>| async move {
        let first = [answer("hello"), too_long()];
        let world = World::of(builder(Scripted::new(first.into_iter().chain(calls))).compact());
        world.say("hi").await.turn().await;
        let watcher = world.say("how are you?").await;
        (world, watcher)
    };
    let (world, mut watcher) = begun(vec![answer("Short."), answer("fine")]).await;
    watcher.turn().await;
    assert_eq!(figures(&world).await, (Some(2), None, vec![refusal.clone()]));

    let (world, mut watcher) = begun(vec![refused(), answer("Short."), refused(), answer("fine")]).await;
    watcher.turn().await;
    let expected = vec![refusal.clone(), retry.clone(), retry.clone()];
    assert_eq!(figures(&world).await, (Some(3), Some(2), expected));

    // Stopped while a summary is waited for or made.
    let (world, mut watcher) = begun(vec![refused()]).await;
    watcher.until("provider-retry").await;
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    assert_eq!(figures(&world).await, (Some(1), None, vec![refusal.clone(), retry.clone()]));
    let (world, mut watcher) = begun(vec![vec![Cue::Hang]]).await;
    watcher.until("compaction-started").await;
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    assert_eq!(figures(&world).await, (Some(1), None, vec![refusal]));

    // A turn that only summarizes asks for no answer.
    let replies = [answer("one"), answer("two"), refused(), answer("Short.")];
    let world = World::of(builder(Scripted::new(replies)));
    world.say("question 1").await.turn().await;
    world.say("question 2").await.turn().await;
    let started = world.orchestrator.compact(&world.id).await.unwrap();
    world.watch(Some(started.from)).await.turn().await;
    assert_eq!(figures(&world).await, (Some(0), Some(1), vec![retry]));
}
