//! Who observes all conversations in the process.

use std::sync::{Arc, Mutex};

use everturn_orchestrator::{
    CallEnd, Observer, Orchestrator, ProviderCall, TurnEnd,
    kernel::{Millis, Provider, ProviderInfo, Request, StreamEvent},
};
use everturn_provider::Scripted;
use everturn_wire::{AgentEvent, EventBody, TraceContext};

use futures_util::stream::BoxStream;

use crate::support::{World, answer, builder, lines, refused_with_hint};

/// Notes all that it is told, and may panic at each event.
#[derive(Default)]
struct Notes {
    events: Mutex<Vec<AgentEvent>>,
    calls: Mutex<Vec<String>>,
    panics: bool,
}

impl Observer for Notes {
    fn event(&self, event: &AgentEvent) {
        self.events.lock().unwrap().push(event.clone());
        assert!(!self.panics, "an observer that breaks");
    }

    fn call_begins(&self, call: &ProviderCall) {
        self.calls.lock().unwrap().push(format!("{} {} begins", call.model, call.op));
    }

    fn call_ended(&self, call: &ProviderCall, at: Millis, end: CallEnd<'_>) {
        let took = at.since(call.begun_at);
        let end = match end {
            CallEnd::Failed(failure) => format!("failed: {}", failure.message),
            other => format!("{other:?}"),
        };
        self.calls.lock().unwrap().push(format!("{} {} {end} after {took} ms", call.model, call.op));
    }
}

#[tokio::test(start_paused = true)]
async fn every_event_and_every_call_is_observed_whatever_becomes_of_the_observer() {
    for panics in [false, true] {
        let notes = Arc::new(Notes { panics, ..Notes::default() });
        let script = Scripted::new([refused_with_hint(20_000), answer("hello")]);
        let builder = Orchestrator::builder().model("a", "m", Arc::new(script)).observer(notes.clone());
        let world = World::of(builder);
        let mut watcher = world.say("hi").await;
        let frames = watcher.frames().await;
        let seen = notes.events.lock().unwrap().clone();
        let of_turn: Vec<_> = seen.iter().filter(|event| event.turn_id.is_some()).collect();
        // The watcher is not sent extension events.
        let base = of_turn.iter().filter(|event| !event.body.is_extension()).count();
        assert_eq!(base, lines(&frames).iter().filter(|line| !line.starts_with("status")).count());
        assert!(base < of_turn.len());
        assert!(matches!(of_turn.last().unwrap().body, EventBody::TurnSealed));
        assert!(seen.iter().any(|event| matches!(event.body, EventBody::ProviderRetry { .. })));
        assert!(seen.iter().any(|event| matches!(event.body, EventBody::TextDelta { .. })));
        assert_eq!(
            *notes.calls.lock().unwrap(),
            [
                "a/m 0.0 begins",
                "a/m 0.0 failed: HTTP 429: busy after 0 ms",
                "a/m 0.1 begins",
                "a/m 0.1 Answered after 0 ms"
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_stopped_is_dropped() {
    let notes = Arc::<Notes>::default();
    let script = Scripted::new([vec![everturn_provider::Cue::Hang]]);
    let builder = Orchestrator::builder().model("a", "m", Arc::new(script)).observer(notes.clone());
    let world = World::of(builder);
    let mut watcher = world.say("hi").await;
    watcher.until("turn-start").await;
    assert!(world.stop().await);
    watcher.until("turn-sealed").await;
    assert_eq!(*notes.calls.lock().unwrap(), ["a/m 0.0 begins", "a/m 0.0 Dropped after 0 ms"]);
}

/// Panics when asked what it wants.
struct Undecided(Notes);

impl Observer for Undecided {
    fn wants_text(&self) -> bool {
        panic!("what text?")
    }

    fn wants_content(&self) -> bool {
        panic!("what content?")
    }

    fn event(&self, event: &AgentEvent) {
        self.0.event(event);
    }
}

/// A provider that panics when asked about its API.
struct Nameless(Scripted);

impl Provider for Nameless {
    fn about(&self) -> ProviderInfo {
        panic!("no name")
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        self.0.stream(request)
    }
}

#[tokio::test(start_paused = true)]
async fn questions_about_observing_that_panic_harm_no_turn() {
    let observer = Arc::new(Undecided(Notes::default()));
    let provider = Nameless(Scripted::new([answer("hello")]));
    let world = World::of(builder(provider).observer(observer.clone()));
    let told = world.say("hi").await.turn().await;
    assert!(told.contains(&"done stop".to_owned()), "{told:?}");
    let seen = observer.0.events.lock().unwrap();
    assert!(seen.iter().any(|event| matches!(event.body, EventBody::TextDelta { .. })));
}

/// Takes part in traces, and has no use for text.
#[derive(Default)]
struct Tracer(Mutex<Vec<String>>);

impl Observer for Tracer {
    fn wants_text(&self) -> bool {
        false
    }

    fn event(&self, event: &AgentEvent) {
        assert!(event.body.delta().is_none());
    }

    fn trace_of(&self, call: &ProviderCall) -> Option<TraceContext> {
        let caller = call.trace.as_ref()?;
        let own = caller.parent().replace("00f067aa0ba902b7", "000000000000000a");
        TraceContext::read(&own, caller.state())
    }

    fn call_answers(&self, call: &ProviderCall, at: Millis) {
        self.0.lock().unwrap().push(format!("{} answers after {} ms", call.op, at.since(call.begun_at)));
    }

    fn turn_ended(&self, end: &TurnEnd<'_>) {
        let reason = &end.turn.outcome().unwrap().reason;
        let trace = end.trace.map_or("none", TraceContext::parent);
        self.0.lock().unwrap().push(format!("{} of {} in {trace}", reason.as_str(), end.model));
    }
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_request_reaches_the_provider_and_observers_may_add_to_it() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = TraceContext::read(parent, Some("vendor=1"));
    for is_observed in [false, true] {
        let script = Scripted::new([refused_with_hint(20_000), answer("hello"), answer("and")]);
        let tracer = Arc::<Tracer>::default();
        let mut builder = Orchestrator::builder().model("a", "m", Arc::new(script.clone()));
        if is_observed {
            builder = builder.observer(tracer.clone());
        }
        let world = World::of(builder);
        let begun = world.orchestrator.start(world.message("hi").trace(trace.clone())).await.unwrap();
        let mut watcher = world.watch(Some(begun.from)).await;
        watcher.until("provider-retry").await;
        // A message that comes later is not part of that request.
        world.enqueue("more").await;
        watcher.turn().await;
        watcher.turn().await;
        let asked: Vec<_> = script.requests().into_iter().map(|request| request.trace).collect();
        let sent = match is_observed {
            false => trace.clone(),
            true => {
                TraceContext::read(&parent.replace("00f067aa0ba902b7", "000000000000000a"), Some("vendor=1"))
            }
        };
        assert_eq!(asked, [sent.clone(), sent, None]);
        let noted = [
            "0.1 answers after 0 ms".to_owned(),
            format!("stop of a/m in {parent}"),
            "0.0 answers after 0 ms".to_owned(),
            "stop of a/m in none".to_owned(),
        ];
        assert_eq!(*tracer.0.lock().unwrap(), if is_observed { &noted[..] } else { &[] });
    }
}

/// Notes the content of calls, if it wants any.
#[derive(Default)]
struct Reader {
    wants_content: bool,
    seen: Mutex<Vec<String>>,
}

impl Observer for Reader {
    fn wants_content(&self) -> bool {
        self.wants_content
    }

    fn call_begins(&self, call: &ProviderCall) {
        self.seen.lock().unwrap().push(format!("{} begins", call.op));
    }

    fn call_asks(&self, call: &ProviderCall, request: &Request) {
        self.seen.lock().unwrap().push(format!("{} asks with {} messages", call.op, request.messages.len()));
    }

    fn call_yields(&self, call: &ProviderCall, event: &StreamEvent) {
        let event = match event {
            StreamEvent::Text(text) => text.clone(),
            StreamEvent::Failed(failure) => failure.message.clone(),
            StreamEvent::Finished(_) => "the end".to_owned(),
            other => format!("{other:?}"),
        };
        self.seen.lock().unwrap().push(format!("{} yields {event}", call.op));
    }

    fn call_ended(&self, call: &ProviderCall, _: Millis, _: CallEnd<'_>) {
        self.seen.lock().unwrap().push(format!("{} ends", call.op));
    }
}

#[tokio::test(start_paused = true)]
async fn the_content_of_calls_is_observed_only_if_it_is_wanted() {
    for wants_content in [false, true] {
        let reader = Arc::new(Reader { wants_content, ..Reader::default() });
        let script = Scripted::new([refused_with_hint(20_000), answer("hello")]);
        let builder = Orchestrator::builder().model("a", "m", Arc::new(script)).observer(reader.clone());
        World::of(builder).say("hi").await.turn().await;
        let content = [
            "0.0 begins",
            "0.0 asks with 1 messages",
            "0.0 yields HTTP 429: busy",
            "0.0 ends",
            "0.1 begins",
            "0.1 asks with 1 messages",
            "0.1 yields hello",
            "0.1 yields the end",
            "0.1 ends",
        ];
        let is_wanted = |line: &&str| wants_content || !line.contains(" asks ") && !line.contains(" yields ");
        let expected: Vec<_> = content.into_iter().filter(is_wanted).collect();
        assert_eq!(*reader.seen.lock().unwrap(), expected);
    }
}
