//! Turns that nobody waits for give way to those that somebody waits for.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_orchestrator::{
    Orchestrator, StartTurn,
    kernel::{FinishReason, Provider, Request, StreamEvent},
};
use everturn_wire::{Category, Chunk, Failure, Priority};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use tokio::time::sleep;

/// Refuses the first call for ten seconds, then answers. Keeps the messages that it was asked.
#[derive(Default)]
struct Model(Mutex<Vec<String>>);

struct Asked(Arc<Model>);

impl Provider for Asked {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let Chunk::Text { text } = &*request.messages[0].chunks[0] else { panic!("{:?}", request.messages) };
        let mut asked = self.0.0.lock().unwrap();
        asked.push(text.clone());
        if asked.len() == 1 {
            let refusal = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
            let refusal = Failure { hint_ms: Some(10_000), ..refusal };
            return stream::iter([StreamEvent::Failed(refusal)]).boxed();
        }
        stream::iter([StreamEvent::Text("hello".to_owned()), StreamEvent::Finished(FinishReason::Stop)])
            .boxed()
    }
}

async fn start(orchestrator: &Orchestrator, text: &str, priority: Priority) {
    let start = StartTurn::new(text).conversation(text).priority(priority);
    orchestrator.start(start).await.unwrap();
    sleep(Duration::from_millis(10)).await;
}

#[tokio::test(start_paused = true)]
async fn an_interactive_turn_goes_before_those_in_the_background() {
    let model = Arc::<Model>::default();
    let orchestrator = Orchestrator::builder().model("key", "model", Arc::new(Asked(model.clone()))).build();
    start(&orchestrator, "first", Priority::Interactive).await;
    for n in 0..39 {
        start(&orchestrator, &format!("job-{n}"), Priority::Background).await;
    }
    start(&orchestrator, "somebody-waits", Priority::Interactive).await;
    sleep(Duration::from_secs(60)).await;
    let asked = model.0.lock().unwrap();
    assert_eq!((asked.len(), &*asked[0]), (42, "first"));
    let place = asked.iter().rposition(|text| text == "somebody-waits").unwrap();
    assert!(place <= 3, "{asked:?}");
}
