//! A small world around an orchestrator: one conversation, scripted models, and watchers that note what they are told.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{
    Builder, Cursor, Error, Frame, Orchestrator, Page, StartTurn, Started, Subscription, Window,
    kernel::{Arguments, FinishReason, Provider, StreamEvent, ToolCall},
};
use everturn_provider::Cue;
use everturn_wire::{
    AgentEvent, Category, Chunk, ConversationId, ConversationStatus, DoneReason, EventBody, Failure,
    StoredChunk, Value,
};
use tokio::time::{Instant, timeout};

/// Longer than any wait of a test, by the paused clock: what is not told by then is never told.
const NEVER: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(crate) struct World {
    pub(crate) orchestrator: Orchestrator,
    pub(crate) id: ConversationId,
}

impl World {
    pub(crate) fn new(provider: impl Provider) -> Self {
        Self::of(builder(provider))
    }

    pub(crate) fn of(builder: Builder) -> Self {
        Self { orchestrator: builder.build(), id: ConversationId::from("c") }
    }

    pub(crate) async fn start(&self, text: &str) -> Result<Started, Error> {
        self.orchestrator.start(self.message(text)).await
    }

    pub(crate) fn message(&self, text: &str) -> StartTurn {
        StartTurn::new(text).conversation(self.id.clone())
    }

    /// Starts a turn and watches it from its start, extensions included.
    pub(crate) async fn say(&self, text: &str) -> Watcher {
        let started = self.start(text).await.unwrap();
        self.watch(Some(started.from)).await
    }

    /// Watches, extensions included.
    pub(crate) async fn watch(&self, cursor: Option<Cursor>) -> Watcher {
        Watcher { subscription: self.orchestrator.subscribe(&self.id, cursor, true).await.unwrap() }
    }

    pub(crate) async fn enqueue(&self, text: &str) -> bool {
        let queued = self.orchestrator.enqueue(&self.id, text.to_owned(), Some(text.to_owned())).await;
        queued.unwrap().started_turn
    }

    pub(crate) async fn stop(&self) -> bool {
        self.orchestrator.stop(&self.id).await.unwrap()
    }

    pub(crate) async fn chunks(&self) -> Vec<StoredChunk> {
        self.orchestrator.history(&self.id, Window::default()).await.unwrap().chunks
    }

    pub(crate) async fn history(&self) -> Vec<String> {
        self.chunks().await.iter().map(|stored| chunk_line(&stored.chunk)).collect()
    }

    /// Why its last turn ended, as the list has it.
    pub(crate) async fn end_reason(&self) -> Option<DoneReason> {
        let (all, _) = self.orchestrator.conversations(Page::default()).await.unwrap();
        all.into_iter().find(|listed| listed.id == self.id).unwrap().end_reason
    }

    pub(crate) async fn status(&self) -> ConversationStatus {
        self.orchestrator.status(&self.id).await.unwrap().status
    }
}

pub(crate) fn builder(provider: impl Provider) -> Builder {
    Orchestrator::builder().model("key", "model", Arc::new(provider))
}

/// Notes what it is told, a line for each event.
pub(crate) struct Watcher {
    pub(crate) subscription: Subscription,
}

impl Watcher {
    /// The lines up to the first one that begins with `start`.
    pub(crate) async fn until(&mut self, start: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line = line(&event(&self.frame().await).body);
            lines.push(line);
            if lines.last().is_some_and(|line| line.starts_with(start)) {
                return lines;
            }
        }
    }

    /// What is left of the turn, extensions left out.
    pub(crate) async fn turn(&mut self) -> Vec<String> {
        let extensions = ["retry-ended", "queue-changed", "step-rewound"];
        let mut lines = self.until("turn-sealed").await;
        lines.retain(|line| !extensions.iter().any(|name| line.starts_with(name)));
        lines
    }

    pub(crate) async fn frame(&mut self) -> Frame {
        timeout(NEVER, self.subscription.next()).await.expect("is told of something").unwrap()
    }

    /// The frames up to the end of the turn.
    pub(crate) async fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            frames.push(self.frame().await);
            if frames.last().is_some_and(Frame::ends_turn) {
                return frames;
            }
        }
    }
}

pub(crate) fn event(frame: &Frame) -> AgentEvent {
    serde_json::from_slice(&frame.event()).unwrap()
}

pub(crate) fn lines<'f>(frames: impl IntoIterator<Item = &'f Frame>) -> Vec<String> {
    frames.into_iter().map(|frame| line(&event(frame).body)).collect()
}

/// Virtual milliseconds since then.
pub(crate) fn ms_since(then: Instant) -> u64 {
    then.elapsed().as_millis() as u64
}

/// An event in one line, without what differs from run to run.
pub(crate) fn line(body: &EventBody) -> String {
    let value = serde_json::to_value(body).unwrap();
    let shown: &[&str] = match body {
        EventBody::ProviderRetry { .. } => &["attempt", "delayMs", "message"],
        EventBody::ToolResult { .. } => &["toolCallId", "content"],
        EventBody::ToolCall { .. } | EventBody::ReviewStarted { .. } => &["toolCallId"],
        EventBody::ApprovalRequested { .. } => &["toolCallId", "reason"],
        EventBody::ApprovalResolved { .. } => &["toolCallId", "verdict", "reason"],
        EventBody::ReviewCompleted { .. } => &["toolCallId", "verdict", "attemptCount"],
        EventBody::ToolOutput { .. } => &["toolCallId", "data"],
        EventBody::RetryEnded { .. } => &["attempts", "outcome"],
        _ => &["status", "text", "delta", "message", "reason"],
    };
    let mut words = vec![word(&value["type"])];
    words.extend(shown.iter().map(|field| &value[*field]).filter(|field| !field.is_null()).map(word));
    words.extend(value["retry"]["phase"].as_str().map(str::to_owned));
    if let EventBody::QueueChanged { queue } = body {
        words.extend(queue.iter().map(|message| message.text.clone()));
    }
    words.join(" ")
}

pub(crate) fn chunk_line(chunk: &Chunk) -> String {
    let value = serde_json::to_value(chunk).unwrap();
    let fields = ["type", "toolCallId", "text", "content", "message"];
    let words = fields.iter().map(|field| &value[*field]).filter(|field| !field.is_null());
    words.map(word).collect::<Vec<_>>().join(" ")
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(crate) fn text(delta: &str) -> Cue {
    StreamEvent::Text(delta.to_owned()).into()
}

pub(crate) fn finish() -> Cue {
    StreamEvent::Finished(FinishReason::Stop).into()
}

/// A call that says this and is done.
pub(crate) fn answer(delta: &str) -> Vec<Cue> {
    vec![text(delta), finish()]
}

pub(crate) fn failure() -> Failure {
    let mut failure = Failure::new(Category::RateLimited, true, "HTTP 429: busy");
    failure.code = Some("429".to_owned());
    failure
}

/// A call that is refused for now.
pub(crate) fn refused() -> Vec<Cue> {
    vec![StreamEvent::Failed(failure()).into()]
}

pub(crate) fn refused_with_hint(hint_ms: u64) -> Vec<Cue> {
    vec![StreamEvent::Failed(Failure { hint_ms: Some(hint_ms), ..failure() }).into()]
}

/// A call that finds its model overloaded: what other turns are not told of.
pub(crate) fn overloaded_with_hint(hint_ms: u64) -> Vec<Cue> {
    let failure = Failure::new(Category::Overloaded, true, "HTTP 529: busy");
    vec![StreamEvent::Failed(Failure { hint_ms: Some(hint_ms), ..failure }).into()]
}

pub(crate) fn tool_call(id: &str, tool: &str) -> Cue {
    let arguments = Arguments::Parsed(Value::Null);
    StreamEvent::ToolCall(ToolCall { id: id.to_owned(), name: tool.to_owned(), arguments, echo: None }).into()
}

/// A call that asks for these calls of one tool.
pub(crate) fn ask(tool: &str, ids: &[&str]) -> Vec<Cue> {
    let calls = ids.iter().map(|id| tool_call(id, tool));
    calls.chain([StreamEvent::Finished(FinishReason::ToolCalls).into()]).collect()
}
