//! Who observes all conversations in the process.

use std::sync::{Arc, Mutex};

use everturn_orchestrator::{CallEnd, Observer, Orchestrator, ProviderCall, kernel::Millis};
use everturn_provider::Scripted;
use everturn_wire::{AgentEvent, EventBody};

use crate::support::{World, answer, lines, refused_with_hint};

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
