//! Turns whose history, tools and parameters come with the request.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_orchestrator::{
    Error, Exponential, Fault, Invocation, MemoryJournal, MemoryState, Orchestrator, Page, StartTurn,
    Started, StateStore as _, Tool,
    kernel::{Provider, Request, StreamEvent, ToolAnswer, ToolSpec},
};
use everturn_provider::{ChatCompletions, ChatConfig, EndpointConfig, HttpClient, HttpConfig, Scripted};
use everturn_sim::{Gate, Loopback, Reply, chat};
use everturn_wire::{
    AgentEvent, CallerTool, Category, Chunk, ConversationId, EventBody, Failure, Message, ModelSettings,
    Parameters, ResponseFormat, Role, ToolChoice, Value,
};
use futures_util::{future::join_all, stream::BoxStream};
use serde_json::json;
use tokio::time::advance;

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, ask, builder, line, refused_with_hint},
};

fn said(role: Role, text: &str) -> Message {
    Message::new(role, [Chunk::Text { text: text.into() }])
}

fn user(text: &str) -> Message {
    said(Role::User, text)
}

fn call(id: &str) -> Message {
    let (tool_call_id, tool_name) = (id.to_owned(), "weather".to_owned());
    Message::new(
        Role::Assistant,
        [Chunk::ToolCall { tool_call_id, tool_name, input: Value::Null, step_id: None, echo: None }],
    )
}

fn result(id: &str, content: &str) -> Message {
    let chunk = Chunk::ToolResult {
        tool_call_id: id.into(),
        tool_name: "weather".into(),
        content: content.into(),
        is_error: false,
        step_id: None,
        images: Vec::new(),
        decisions: Vec::new(),
        questions: Vec::new(),
    };
    Message::new(Role::Tool, [chunk])
}

fn weather() -> CallerTool {
    let input_schema = json!({ "type": "object" });
    CallerTool { name: "weather".into(), description: "The weather.".into(), input_schema }
}

/// The last request, a line for each chunk.
fn sent(provider: &Scripted) -> Vec<String> {
    let request = provider.requests().pop().unwrap();
    let chunks =
        request.messages.iter().flat_map(|message| message.iter().map(|chunk| (message.role, chunk)));
    let line = |(role, chunk): (Role, &Chunk)| match chunk {
        Chunk::Text { text } | Chunk::System { text, .. } => format!("{role:?} {text}"),
        Chunk::ToolCall { tool_call_id, .. } => format!("{role:?} calls {tool_call_id}"),
        Chunk::ToolResult { content, .. } => format!("{role:?} {content}"),
        other => format!("{role:?} {other:?}"),
    };
    chunks.map(line).collect()
}

/// Starts it and follows it to its end: its events.
async fn run(orchestrator: &Orchestrator, start: StartTurn) -> (Started, Vec<EventBody>) {
    let started = orchestrator.start(start).await.unwrap();
    let events = follow(orchestrator, &started).await;
    (started, events)
}

async fn follow(orchestrator: &Orchestrator, started: &Started) -> Vec<EventBody> {
    let id = &started.conversation_id;
    let mut watcher = orchestrator.subscribe(id, Some(started.from), false).await.unwrap();
    let mut events = Vec::new();
    while events.last() != Some(&EventBody::TurnSealed) {
        let frame = watcher.next().await.unwrap();
        events.push(serde_json::from_slice::<AgentEvent>(&frame.event()).unwrap().body);
    }
    events
}

fn lines(events: &[EventBody]) -> Vec<String> {
    events.iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn a_conversation_becomes_what_is_given() {
    let provider = Scripted::new([answer("hello"), answer("fine"), answer("bye")]);
    let world = World::new(provider.clone());
    let history = |messages: Vec<Message>| StartTurn::over(messages).conversation(world.id.clone());
    run(&world.orchestrator, history(vec![user("hi")])).await;
    // What is there stays.
    let (_, events) =
        run(&world.orchestrator, history(vec![user("hi"), said(Role::Assistant, "hello"), user("how?")]))
            .await;
    assert_eq!(sent(&provider), ["User hi", "Assistant hello", "User how?"]);
    assert_eq!(
        lines(&events),
        ["user-message how?", "turn-start", "text-delta fine", "step-complete", "done stop", "turn-sealed"]
    );
    assert_eq!(world.history().await, ["text hi", "text hello", "text how?", "text fine"]);
    // What differs is superseded, the rest is added.
    let system = Message::new(Role::System, [Chunk::System { text: "Be brief.".into(), keeps_from: None }]);
    let other = vec![system, user("hi"), said(Role::Assistant, "hey"), user("so?")];
    run(&world.orchestrator, history(other)).await;
    assert_eq!(sent(&provider), ["System Be brief.", "User hi", "Assistant hey", "User so?"]);
    let chunks = world.chunks().await;
    let marks: Vec<_> = chunks.iter().map(|chunk| (chunk.seq, chunk.supersedes)).collect();
    let none = |seq| (seq, None);
    assert_eq!(marks, [none(1), none(2), none(3), none(4), (5, Some(2)), none(6), none(7)]);
    // The instructions were for that turn.
    world.say("and?").await.turn().await;
    assert_eq!(sent(&provider)[0], "User hi");
}

#[tokio::test(start_paused = true)]
async fn a_callers_tool_is_handed_out_and_its_result_goes_on() {
    let provider = Scripted::new([ask("weather", &["w"]), answer("It is sunny.")]);
    let world = World::new(provider.clone());
    let over = |messages| StartTurn::over(messages).conversation(world.id.clone()).tools(vec![weather()]);
    let (started, events) = run(&world.orchestrator, over(vec![user("weather?")])).await;
    let names: Vec<_> = provider.requests()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["weather"]);
    let Some(EventBody::Done { reason, calls, .. }) = events.iter().rev().nth(1) else {
        panic!("{events:?}")
    };
    assert_eq!((reason.as_str(), calls.len()), ("tool-calls", 1));
    assert_eq!((calls[0].tool_call_id.as_str(), calls[0].tool_name.as_str()), ("w", "weather"));
    let figures = world.orchestrator.metrics(&world.id).await.unwrap().pop().unwrap();
    assert_eq!((figures.turn_id, &figures.calls), (started.turn_id, calls));

    let (_, events) =
        run(&world.orchestrator, over(vec![user("weather?"), call("w"), result("w", "sunny")])).await;
    assert_eq!(sent(&provider), ["User weather?", "Assistant calls w", "Tool sunny"]);
    assert_eq!(lines(&events)[..2], ["turn-start", "text-delta It is sunny."]);
    let chunks = world.chunks().await;
    assert_eq!((chunks[3].supersedes, chunks.len()), (Some(3), 5));
    let step = |chunk: &Chunk| match chunk {
        Chunk::ToolCall { step_id, .. } | Chunk::ToolResult { step_id, .. } => step_id.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(step(&chunks[1].chunk), step(&chunks[3].chunk), "the result is in the step of its call");
}

#[tokio::test(start_paused = true)]
async fn only_the_callers_tools_are_offered_and_others_are_refused() {
    let provider = Scripted::new([ask("read", &["r"]), answer("Sorry.")]);
    let world = World::of(builder(provider.clone()).tool(Reads));
    let (_, events) = run(&world.orchestrator, StartTurn::new("go").tools(vec![weather()])).await;
    let result = lines(&events).into_iter().find(|line| line.starts_with("tool-result")).unwrap();
    assert!(result.contains("there is no tool \"read\"; there are: weather"), "{result}");
    assert_eq!(provider.calls(), 2);
}

struct Reads;

#[async_trait]
impl Tool for Reads {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "read".to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok("text")
    }
}

/// A model whose adapter says nothing of parameters.
pub(crate) struct Silent(pub(crate) Scripted);

impl Provider for Silent {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        self.0.stream(request)
    }
}

fn warm() -> Parameters {
    Parameters { temperature: Some(0.5), seed: Some(7), max_output_tokens: Some(9), ..Parameters::default() }
}

#[tokio::test(start_paused = true)]
async fn parameters_are_passed_on_or_refused_by_name() {
    let (able, unable) = (Scripted::new([answer("hi")]), Scripted::new([answer("hi")]));
    let orchestrator = Orchestrator::builder()
        .model("a", "able", Arc::new(able.clone()))
        .model("u", "unable", Arc::new(Silent(unable.clone())))
        .route("both", ["a/able", "u/unable"], Exponential::interactive())
        .build();
    let start = |model: &str| StartTurn::new("hi").parameters(warm()).model(model);
    run(&orchestrator, start("a/able")).await;
    let request = able.requests().pop().unwrap();
    assert_eq!((&*request.parameters, request.max_output_tokens), (&warm(), Some(9)));
    for model in ["u/unable", "route/both"] {
        let error = orchestrator.start(start(model)).await.unwrap_err();
        assert_eq!(error.fault(), Fault::Caller);
        let expected =
            "u/unable does not support temperature, seed: leave it out, or choose another model".to_owned();
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!((able.calls(), unable.calls()), (1, 0), "who is refused asks nobody");
    assert_eq!(orchestrator.conversations(Page::default()).await.unwrap().0.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_demanded_once() {
    let provider = Scripted::new([ask("read", &["r"]), answer("done")]);
    let world = World::of(builder(provider.clone()).tool(Reads));
    let parameters = Parameters { tool_choice: Some(ToolChoice::Required), ..Parameters::default() };
    run(&world.orchestrator, StartTurn::new("go").parameters(parameters.clone())).await;
    let choices: Vec<_> =
        provider.requests().iter().map(|asked| asked.parameters.tool_choice.clone()).collect();
    assert_eq!(choices, [Some(ToolChoice::Required), None]);
    let none = StartTurn::new("go").parameters(parameters).tools(Vec::new());
    let refused = world.orchestrator.start(none).await.unwrap_err();
    assert!(refused.to_string().contains("there are no tools"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_used_is_refused() {
    let world = World::new(Scripted::new([answer("never")]));
    let tool = |name: &str| CallerTool { name: name.into(), ..weather() };
    let format = ResponseFormat::JsonSchema {
        name: "a".into(),
        schema: json!({ "description": "x".repeat(600 << 10) }),
        strict: None,
    };
    let with = |parameters| StartTurn::new("hi").parameters(parameters);
    let mut both = StartTurn::over(vec![user("hi")]);
    both.text = "hi".into();
    let choice = Some(ToolChoice::Tool { name: "other".into() });
    let cases = [
        (both, "not both"),
        (StartTurn::new("hi").tools(vec![tool("a b")]), "name of tools[0]"),
        (StartTurn::new("hi").tools(vec![tool("a"), tool("a")]), "more than once"),
        (StartTurn::new("hi").tools((0..129).map(|n| tool(&n.to_string())).collect()), "at most 128"),
        (with(Parameters { stop: vec![String::new()], ..Parameters::default() }), "stop takes"),
        (with(Parameters { temperature: Some(f64::NAN), ..Parameters::default() }), "temperature must be"),
        (with(Parameters { max_output_tokens: Some(0), ..Parameters::default() }), "maxOutputTokens"),
        (with(Parameters { tool_choice: choice, ..Parameters::default() }), "not among the tools"),
        (with(Parameters { response_format: Some(format), ..Parameters::default() }), "responseFormat may"),
        (StartTurn::new("hi").idempotency_key("a b"), "visible ASCII"),
        (StartTurn::new("hi").conversation("c").ephemeral(), "leave conversationId out"),
    ];
    for (start, why) in cases {
        let error = world.orchestrator.start(start).await.unwrap_err();
        assert!(error.fault() == Fault::Caller && error.to_string().contains(why), "{error}");
    }
    assert!(world.orchestrator.conversations(Page::default()).await.unwrap().0.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_conversation_is_in_no_list_and_goes_when_it_was_not_used() {
    let provider = Scripted::new([answer("hi"), refused_with_hint(7_200_000), answer("late")]);
    let world = World::of(builder(provider).keep_ephemeral(Duration::from_secs(60)));
    let orchestrator = &world.orchestrator;
    let (first, _) = run(orchestrator, StartTurn::over(vec![user("hi")]).ephemeral()).await;
    let waiting = orchestrator.start(StartTurn::new("wait").ephemeral()).await.unwrap();
    assert!(first.conversation_id.is_ephemeral());
    assert!(orchestrator.conversations(Page::default()).await.unwrap().0.is_empty());
    assert_eq!(orchestrator.drop_ephemeral().await.unwrap(), 0, "it was just used");
    advance(Duration::from_secs(61)).await;
    assert_eq!(orchestrator.drop_ephemeral().await.unwrap(), 1);
    let gone = orchestrator.metrics(&first.conversation_id).await;
    assert!(matches!(gone, Err(Error::UnknownConversation { .. })), "{gone:?}");
    // One whose turn waits stays, and a stop counts as its end.
    orchestrator.stop(&waiting.conversation_id).await.unwrap();
    follow(orchestrator, &waiting).await;
    assert_eq!(orchestrator.drop_ephemeral().await.unwrap(), 0);
}

/// A later request may have its id.
#[tokio::test(start_paused = true)]
async fn the_settings_of_an_ephemeral_conversation_go_with_it() {
    let (provider, state) = (Scripted::new([answer("hi")]), Arc::new(MemoryState::new()));
    let builder = builder(provider).keep_ephemeral(Duration::from_secs(60)).state(state.clone());
    let world = World::of(builder);
    let orchestrator = &world.orchestrator;
    let start = StartTurn::over(vec![user("hi")]).idempotency_key("k").ephemeral();
    let (first, _) = run(orchestrator, start).await;
    let id = &first.conversation_id;
    orchestrator.set_auto_retry(Some(id), false).await.unwrap();
    let settings = ModelSettings { system_prompt: Some("secret".to_owned()), ..ModelSettings::default() };
    orchestrator.set_model_settings(id, settings).await.unwrap();
    let documents = ["retry-settings", "allowed-tools", "model-settings"];
    let name = |document: &str| format!("conversation/{id}/{document}");
    state.write(&name("allowed-tools"), "[\"clock\"]".to_owned()).await.unwrap();
    for document in documents {
        assert!(state.read(&name(document)).await.unwrap().is_some(), "{document}");
    }
    advance(Duration::from_secs(61)).await;
    assert_eq!(orchestrator.drop_ephemeral().await.unwrap(), 1);
    for document in documents {
        assert_eq!(state.read(&name(document)).await.unwrap(), None, "{document}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_finds_its_turn_while_it_waits_and_when_it_has_ended() {
    let provider = Scripted::new([refused_with_hint(60_000), answer("hello"), answer("other")]);
    let journal = Arc::new(MemoryJournal::new());
    let make = || builder(provider.clone()).journal(journal.clone()).build();
    let orchestrator = make();
    for (start, calls) in [
        (StartTurn::new("hi").idempotency_key("k").conversation("c"), 2),
        (StartTurn::over(vec![user("hi")]).idempotency_key("l").ephemeral(), 3),
    ] {
        let first = orchestrator.start(start.clone()).await.unwrap();
        let again = orchestrator.start(start.clone()).await.unwrap();
        assert!(first.is_new && !again.is_new);
        assert_eq!((&again.turn_id, again.from), (&first.turn_id, first.from));
        let told = follow(&orchestrator, &first).await;
        assert_eq!(follow(&orchestrator, &orchestrator.start(start.clone()).await.unwrap()).await, told);
        // In another process.
        let later = make();
        let again = later.start(start.clone()).await.unwrap();
        assert!(!again.is_new);
        let merged = follow(&later, &again).await;
        assert_eq!(lines(&merged).first(), lines(&told).first());
        assert_eq!(provider.calls(), calls);
        let mut other = start;
        (other.text, other.history) = ("ho".into(), None);
        let refused = orchestrator.start(other).await.unwrap_err();
        assert!(matches!(&refused, Error::KeyUsed { .. }), "{refused}");
        assert_eq!(refused.fault(), Fault::Conflict);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_for_all_requests_that_name_no_conversation() {
    let world = World::new(Scripted::new([answer("hello")]));
    let start = StartTurn::new("hi").idempotency_key("k");
    let (first, _) = run(&world.orchestrator, start.clone()).await;
    let refused = world.orchestrator.start(start.clone().ephemeral()).await.unwrap_err();
    assert!(matches!(&refused, Error::KeyUsed { .. }), "{refused}");
    let named = world.orchestrator.start(start.conversation("c")).await.unwrap_err();
    assert!(matches!(&named, Error::KeyUsed { turn_id, .. } if *turn_id == first.turn_id), "{named}");
}

#[tokio::test(start_paused = true)]
async fn a_key_starts_one_turn_whatever_conversation_is_named() {
    let provider = Scripted::new([answer("hello"), answer("bye")]);
    let journal = Arc::new(MemoryJournal::new());
    let make = || builder(provider.clone()).journal(journal.clone()).build();
    let start = |place: &str| StartTurn::new("hi").idempotency_key("k").conversation(place);
    let orchestrator = make();
    let (first, _) = run(&orchestrator, start("c")).await;
    for later in [orchestrator.clone(), make()] {
        for other in [start("d"), StartTurn::new("hi").idempotency_key("k")] {
            let refused = later.start(other).await.unwrap_err();
            assert!(
                matches!(&refused, Error::KeyUsed { turn_id, .. } if *turn_id == first.turn_id),
                "{refused}"
            );
        }
        assert!(!later.start(start("c")).await.unwrap().is_new);
        later.drop_ephemeral().await.unwrap();
        advance(Duration::from_secs(24 * 60 * 60)).await;
    }
    assert_eq!(
        (provider.calls(), orchestrator.conversations(Page::default()).await.unwrap().0.len()),
        (1, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_turn_did_not_start_is_free() {
    let provider = Scripted::new([refused_with_hint(60_000), answer("hello")]);
    let world = World::new(provider.clone());
    world.start("busy").await.unwrap();
    let start = |place: &str| StartTurn::new("hi").idempotency_key("k").conversation(place);
    let refused = world.orchestrator.start(start("c")).await.unwrap_err();
    assert!(matches!(&refused, Error::Busy { .. }), "{refused}");
    assert!(run(&world.orchestrator, start("d")).await.0.is_new);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_with_one_key_are_one_request() {
    for round in 0..20 {
        let gate = Gate::new();
        let reply = chat::Answer::new().role().text("hello").finish("stop").done();
        let server = Loopback::start([Reply::sse(reply.frames().to_vec()).stall_before(1, &gate)]).await;
        let http = HttpClient::new(HttpConfig { system_proxy: false, ..HttpConfig::default() }).unwrap();
        let base_url = format!("{}/v1", server.base_url());
        let chat = ChatCompletions::new(http, ChatConfig::new(EndpointConfig::new(base_url))).unwrap();
        // Each save takes a while: meanwhile the others look for the turn.
        let orchestrator = builder(chat).journal(Storage::new(|_| Mishap::Slow(200))).build();
        let start = match round % 2 {
            0 => StartTurn::over(vec![user("hi")]).ephemeral(),
            _ => StartTurn::new("hi").conversation(ConversationId::from("c")),
        };
        let sends = (0..16).map(|_| {
            let (orchestrator, start) = (orchestrator.clone(), start.clone().idempotency_key("k"));
            tokio::spawn(async move { orchestrator.start(start).await.unwrap() })
        });
        let started: Vec<_> = join_all(sends).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(started.iter().filter(|started| started.is_new).count(), 1);
        gate.open();
        let told = join_all(started.iter().map(|started| follow(&orchestrator, started))).await;
        assert!(told.iter().all(|events| lines(events).contains(&"text-delta hello".to_owned())));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_bare_request_gets_nothing_added() {
    for bare in [false, true] {
        let provider = Scripted::new([answer("hello")]);
        let world = World::of(builder(provider.clone()).system_prompt("Be kind.").tool(Reads));
        let mut start = StartTurn::over(vec![user("hi")]);
        start.bare = bare;
        run(&world.orchestrator, start).await;
        let request = provider.requests().pop().unwrap();
        let added = if bare { (vec!["User hi"], 0) } else { (vec!["System Be kind.", "User hi"], 1) };
        assert_eq!(
            (sent(&provider), request.tools.len()),
            (added.0.iter().map(ToString::to_string).collect(), added.1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_bare_request_is_not_summarized() {
    let full = || {
        [StreamEvent::Failed(Failure::new(Category::ContextOverflow, false, "too long"))]
            .map(Into::into)
            .to_vec()
    };
    let provider = Scripted::new([full(), answer("summary"), answer("fine")]);
    let world = World::of(builder(provider.clone()).compact());
    let many =
        (0..8).flat_map(|at| [user(&format!("{at}")), said(Role::Assistant, "yes")]).chain([user("so?")]);
    let mut start = StartTurn::over(many.collect());
    start.bare = true;
    let (_, events) = run(&world.orchestrator, start).await;
    assert_eq!(provider.requests().len(), 1);
    assert!(events.iter().any(|event| matches!(event, EventBody::Error(report) if report.category == Some(Category::ContextOverflow))));
}
