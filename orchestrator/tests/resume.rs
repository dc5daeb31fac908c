//! A turn goes on in the next process. Each process is a runtime of its own with its own paused time; all that they
//! share is the journal.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::{FinishReason, Millis, Provider, Request, StreamEvent, ToolAnswer, ToolSpec};
use everturn_orchestrator::{
    Clock, Cursor, Exponential, Invocation, MemoryJournal, Orchestrator, Page, StartTurn, Subscription,
    SystemClock, Tool,
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{AgentEvent, Category, ConversationId, DoneReason, EventBody, Failure, Value};
use futures_util::stream::BoxStream;
use tokio::{runtime::Runtime, time::Instant};

/// A clock that begins where the test says and moves with the runtime's time.
struct From(Millis, Instant);

#[async_trait]
impl Clock for From {
    fn now(&self) -> Millis {
        self.0.plus(self.1.elapsed().as_millis() as u64)
    }

    async fn sleep(&self, delay: Duration) {
        SystemClock::new().sleep(delay).await;
    }
}

const BEGIN: Millis = Millis(1_800_000_000_000);

fn process() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

fn orchestrator(journal: &Arc<MemoryJournal>, provider: &Scripted, now: Millis) -> Orchestrator {
    Orchestrator::builder()
        .model("test", "m", Arc::new(provider.clone()))
        .journal(journal.clone())
        .clock(Arc::new(From(now, Instant::now())))
        .schedule(Exponential { base: Duration::from_secs(30), ..Exponential::default() })
        .build()
}

fn overloaded() -> Vec<Cue> {
    vec![StreamEvent::Failed(Failure::new(Category::Overloaded, true, "HTTP 529: overloaded")).into()]
}

fn answer(text: &str) -> Vec<Cue> {
    vec![StreamEvent::Text(text.into()).into(), StreamEvent::Finished(FinishReason::Stop).into()]
}

async fn begin(orchestrator: &Orchestrator) -> Subscription {
    let start = StartTurn::new("hello");
    let turn = orchestrator.start(start).await.unwrap();
    orchestrator.subscribe(&turn.conversation_id, Some(turn.from), true).await.unwrap()
}

/// The next event; the conversation that it is of.
async fn event(events: &mut Subscription) -> (ConversationId, EventBody) {
    let event: AgentEvent = serde_json::from_slice(&events.next().await.unwrap().event()).unwrap();
    (event.conversation_id, event.body)
}

/// All events up to the one that is looked for.
async fn until(events: &mut Subscription, wanted: impl Fn(&EventBody) -> bool) -> Vec<EventBody> {
    let mut all = Vec::new();
    while all.last().is_none_or(|event| !wanted(event)) {
        all.push(event(events).await.1);
    }
    all
}

/// What a client shows that drops what was taken back.
fn shown(events: &[EventBody]) -> String {
    let mut text = String::new();
    for event in events {
        match event {
            EventBody::TextDelta { delta } => text.push_str(delta),
            EventBody::StepRewound { .. } => text.clear(),
            _ => {}
        }
    }
    text
}

#[test]
fn a_wait_keeps_what_is_left_of_it() {
    let (journal, provider) = (Arc::default(), Scripted::new([overloaded(), answer("done")]));
    let (id, cursor) = process().block_on(async {
        let mut events = begin(&orchestrator(&journal, &provider, BEGIN)).await;
        let (id, _) = event(&mut events).await;
        until(&mut events, |event| matches!(event, EventBody::ProviderRetry { .. })).await;
        tokio::time::advance(Duration::from_secs(10)).await;
        (id, events.cursor())
    });
    assert_eq!(provider.calls(), 1, "nothing was asked before the process ended");
    process().block_on(async {
        let next = orchestrator(&journal, &provider, BEGIN.plus(10_000));
        assert_eq!(next.resume().await.unwrap(), 1);
        // Known without reading the conversation.
        let (listed, _) = next.conversations(Page::default()).await.unwrap();
        let until_then = listed[0].waits_until.unwrap() - BEGIN.0;
        assert!((30_000..=31_000).contains(&until_then), "{until_then}");
        let started = Instant::now();
        let mut events = next.subscribe(&id, Some(cursor), true).await.unwrap();
        let rest = until(&mut events, |event| *event == EventBody::TurnSealed).await;
        let waited = started.elapsed();
        assert!((Duration::from_secs(20)..=Duration::from_secs(21)).contains(&waited), "{waited:?}");
        assert_eq!(shown(&rest), "done");
        assert!(!rest.iter().any(|event| matches!(event, EventBody::UserMessage { .. })), "told twice");
        assert_eq!(provider.calls(), 2);
    });
}

#[test]
fn text_that_was_cut_off_is_taken_back_and_streamed_again() {
    let half = vec![StreamEvent::Text("half an ans".into()).into(), Cue::Hang];
    let (journal, provider) = (Arc::default(), Scripted::new([half, answer("a whole answer")]));
    let (id, seen) = process().block_on(async {
        let mut events = begin(&orchestrator(&journal, &provider, BEGIN)).await;
        let mut seen = Vec::new();
        loop {
            let (id, body) = event(&mut events).await;
            seen.push((events.cursor(), body.clone()));
            if matches!(body, EventBody::TextDelta { .. }) {
                break (id, seen);
            }
        }
    });
    process().block_on(async {
        let next = orchestrator(&journal, &provider, BEGIN);
        next.resume().await.unwrap();
        for at in 0..seen.len() {
            let mut events = next.subscribe(&id, Some(seen[at].0), true).await.unwrap();
            let mut all: Vec<_> = seen[..=at].iter().map(|(_, body)| body.clone()).collect();
            all.extend(until(&mut events, |event| *event == EventBody::TurnSealed).await);
            assert_eq!(shown(&all), "a whole answer", "from cursor {:?}", seen[at].0);
        }
        let history = next.history(&id, everturn_orchestrator::Window::default()).await.unwrap();
        assert_eq!(history.chunks.iter().map(|chunk| chunk.seq).collect::<Vec<_>>(), [1, 2]);
    });
}

#[test]
fn a_cursor_from_before_and_one_beyond_lead_to_the_rest() {
    let (journal, provider) = (Arc::default(), Scripted::new([overloaded(), answer("done")]));
    let id = process().block_on(async {
        let mut events = begin(&orchestrator(&journal, &provider, BEGIN)).await;
        let (id, _) = event(&mut events).await;
        until(&mut events, |event| matches!(event, EventBody::ProviderRetry { .. })).await;
        id
    });
    process().block_on(async {
        let next = orchestrator(&journal, &provider, BEGIN.plus(3_600_000));
        next.resume().await.unwrap();
        let mut events = next.subscribe(&id, Some(Cursor::default()), false).await.unwrap();
        let all = until(&mut events, |event| *event == EventBody::TurnSealed).await;
        assert_eq!(all.iter().filter(|event| matches!(event, EventBody::ProviderRetry { .. })).count(), 1);
        assert!(matches!(all[1], EventBody::UserMessage { .. }), "{:?}", all[1]);
        assert!(next.subscribe(&id, Some("99999999999".parse().unwrap()), false).await.is_ok());
    });
}

#[test]
fn a_turn_whose_model_is_gone_ends_with_a_clear_error() {
    let (journal, provider) = (Arc::default(), Scripted::new([overloaded(), answer("done")]));
    let id = process().block_on(async {
        let mut events = begin(&orchestrator(&journal, &provider, BEGIN)).await;
        let (id, _) = event(&mut events).await;
        until(&mut events, |event| matches!(event, EventBody::ProviderRetry { .. })).await;
        id
    });
    process().block_on(async {
        let next = Orchestrator::builder()
            .model("other", "m", Arc::new(provider.clone()))
            .journal(journal.clone())
            .build();
        next.resume().await.unwrap();
        let mut events = next.subscribe(&id, Some(Cursor::default()), false).await.unwrap();
        let all = until(&mut events, |event| *event == EventBody::TurnSealed).await;
        let told = |event: &EventBody| matches!(event, EventBody::Error(report) if report.message.contains("test/m"));
        assert!(all.iter().any(told), "{all:?}");
        assert!(all.iter().any(|event| matches!(event, EventBody::Done { reason: DoneReason::Error, .. })));
        assert_eq!(provider.calls(), 1);
    });
}

/// Notes what it is asked with.
#[derive(Clone)]
struct Noting(Scripted, Arc<Mutex<Vec<Request>>>);

impl Provider for Noting {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        self.1.lock().unwrap().push(request.clone());
        self.0.stream(request)
    }
}

/// A tool that only has a name.
struct Named(&'static str);

#[async_trait]
impl Tool for Named {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.0.to_owned(), description: String::new(), parameters: Value::Null }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok("done")
    }
}

#[test]
fn a_restart_with_another_configuration_changes_nothing_about_a_turn_that_waits() {
    let journal = Arc::new(MemoryJournal::new());
    let provider = Scripted::new([overloaded(), overloaded(), answer("hello"), answer("again")]);
    let asked = Arc::default();
    let provider = Noting(provider, Arc::clone(&asked));
    let configured = |prompt: &str, tool, base| {
        let base = Duration::from_secs(base);
        Orchestrator::builder()
            .model("test", "m", Arc::new(provider.clone()))
            .tool(Named(tool))
            .tool(Named("kept"))
            .system_prompt(prompt)
            .max_output_tokens(base.as_secs() as u32)
            .journal(journal.clone())
            .schedule(Exponential { base, ..Exponential::default() })
    };
    let told = |request: &Request| {
        let tools: Vec<_> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        (format!("{:?}", request.messages[0]), tools, request.max_output_tokens)
    };
    let id = process().block_on(async {
        let clock = Arc::new(From(BEGIN, Instant::now()));
        let first = configured("Be brief.", "old", 40).clock(clock).build();
        let mut events = begin(&first).await;
        loop {
            if let (id, EventBody::ProviderRetry { .. }) = event(&mut events).await {
                break id;
            }
        }
    });
    process().block_on(async {
        let clock = Arc::new(From(BEGIN.plus(1_000), Instant::now()));
        let second = configured("Be verbose.", "new", 7).clock(clock).build();
        assert_eq!(second.resume().await.unwrap(), 1);
        let mut events = second.subscribe(&id, None, false).await.unwrap();
        let all = until(&mut events, |event| *event == EventBody::TurnSealed).await;
        // The second wait is by the schedule that the turn began with.
        let waits: Vec<u64> = all
            .iter()
            .filter_map(|event| match event {
                EventBody::ProviderRetry { delay_ms, .. } => Some(*delay_ms),
                _ => None,
            })
            .collect();
        assert_eq!(waits, [40_000, 80_000]);
        let seen: Vec<_> = asked.lock().unwrap().iter().map(told).collect();
        assert_eq!(seen.len(), 3);
        assert!(seen[0].0.contains("Be brief."), "{seen:?}");
        // A tool that is gone is no longer offered, and none is added.
        let still = (seen[0].0.clone(), vec!["kept".to_owned()], Some(40));
        assert_eq!((&seen[1], &seen[2]), (&still, &still));
        // The next turn has what is configured now.
        let start = StartTurn::new("more").conversation(id);
        second.start(start).await.unwrap();
        until(&mut events, |event| *event == EventBody::TurnSealed).await;
        let (prompt, tools, most) = told(&asked.lock().unwrap()[3]);
        assert!(prompt.contains("Be verbose.") && tools == ["kept", "new"] && most == Some(7), "{prompt}");
    });
}

#[test]
fn a_turn_on_a_route_keeps_its_targets_in_a_process_that_has_no_such_route() {
    let (journal, first, second) =
        (Arc::default(), Scripted::new([overloaded()]), Scripted::new([overloaded(), answer("done")]));
    let id = process().block_on(async {
        let orchestrator = Orchestrator::builder()
            .model("a", "m", Arc::new(first.clone()))
            .model("b", "m", Arc::new(second.clone()))
            .route("r", ["a/m", "b/m"], Exponential::interactive())
            .journal(Arc::<MemoryJournal>::clone(&journal))
            .clock(Arc::new(From(BEGIN, Instant::now())))
            .build();
        let start = StartTurn::new("hello").model("route/r");
        let turn = orchestrator.start(start).await.unwrap();
        let mut events = orchestrator.subscribe(&turn.conversation_id, Some(turn.from), true).await.unwrap();
        let waits = |event: &EventBody| matches!(event, EventBody::ProviderRetry { delay_ms: 4_000, .. });
        until(&mut events, waits).await;
        turn.conversation_id
    });
    assert_eq!((first.calls(), second.calls()), (1, 1));
    process().block_on(async {
        // The target that the turn waits for is there; the first one is not, nor is the route.
        let next = Orchestrator::builder()
            .model("b", "m", Arc::new(second.clone()))
            .journal(journal.clone())
            .clock(Arc::new(From(BEGIN.plus(1_000), Instant::now())))
            .build();
        next.resume().await.unwrap();
        let begun = Instant::now();
        let mut events = next.subscribe(&id, Some(Cursor::default()), true).await.unwrap();
        let all = until(&mut events, |event| *event == EventBody::TurnSealed).await;
        assert_eq!(shown(&all), "done");
        assert_eq!(begun.elapsed(), Duration::from_secs(3), "what is left of the wait");
        assert_eq!((first.calls(), second.calls()), (1, 2));
        let recovered = |event: &EventBody| {
            matches!(event, EventBody::RetryEnded { target: Some(target), .. } if target == "b/m")
        };
        assert!(all.iter().any(recovered), "{all:?}");
    });
}

#[test]
fn a_turn_on_a_route_keeps_its_schedule_in_a_process_that_has_another_one() {
    let overloads = (0..4).map(|_| overloaded());
    let (journal, script) = (Arc::default(), Scripted::new(overloads.chain([answer("done")])));
    let orchestrator = |max_retries, now| {
        Orchestrator::builder()
            .model("a", "m", Arc::new(script.clone()))
            .route("r", ["a/m"], Exponential { max_retries, ..Exponential::interactive() })
            .journal(Arc::<MemoryJournal>::clone(&journal))
            .clock(Arc::new(From(now, Instant::now())))
            .build()
    };
    let id = process().block_on(async {
        let first = orchestrator(9, BEGIN);
        let turn = first.start(StartTurn::new("hello").model("route/r")).await.unwrap();
        let mut events = first.subscribe(&turn.conversation_id, Some(turn.from), true).await.unwrap();
        let waits = |event: &EventBody| matches!(event, EventBody::ProviderRetry { delay_ms: 8_000, .. });
        until(&mut events, waits).await;
        turn.conversation_id
    });
    assert_eq!(script.calls(), 3);
    process().block_on(async {
        // By its figures, the next failure would end the turn.
        let next = orchestrator(1, BEGIN.plus(7_000));
        next.resume().await.unwrap();
        let mut events = next.subscribe(&id, Some(Cursor::default()), true).await.unwrap();
        let all = until(&mut events, |event| *event == EventBody::TurnSealed).await;
        assert_eq!(shown(&all), "done");
    });
}
