//! A provider controlled by the test.

use everturn_orchestrator::kernel::{FinishReason, Provider, Request, StreamEvent};
use everturn_wire::{Category, Chunk, Failure, Parameters, Usage};
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A provider that hands every call to the test.
pub(crate) struct Puppet {
    calls: UnboundedSender<Call>,
}

/// One provider call, controlled by the test. Dropping it truncates the stream.
pub(crate) struct Call {
    pub(crate) request: Request,
    facts: UnboundedSender<StreamEvent>,
}

impl Puppet {
    pub(crate) fn new() -> (Self, UnboundedReceiver<Call>) {
        let (calls, made) = unbounded_channel();
        (Self { calls }, made)
    }
}

impl Provider for Puppet {
    /// Everything except a seed.
    fn refuses(&self, parameters: &Parameters) -> Vec<&'static str> {
        parameters.names().into_iter().filter(|name| *name == "seed").collect()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let (facts, mut told) = unbounded_channel();
        // The test may be over.
        let _ = self.calls.send(Call { request, facts });
        stream::poll_fn(move |cx| told.poll_recv(cx)).boxed()
    }
}

impl Call {
    pub(crate) fn tell(&self, fact: StreamEvent) {
        // The turn may have been stopped.
        let _ = self.facts.send(fact);
    }

    /// Waits until the stream is dropped because the turn was stopped.
    #[allow(dead_code, reason = "not every transport asks")]
    pub(crate) async fn is_dropped(&self) {
        self.facts.closed().await;
    }

    /// Returns the texts of the request, with their roles.
    pub(crate) fn said(&self) -> Vec<String> {
        let messages = self.request.messages.iter();
        let chunks = messages.flat_map(|message| message.iter().map(|chunk| (message.role, chunk)));
        let texts = chunks.filter_map(|(role, chunk)| match chunk {
            Chunk::Text { text } => Some(format!("{role:?} {text}")),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn text(&self, text: &str) {
        self.tell(StreamEvent::Text(text.to_owned()));
    }

    pub(crate) fn reasoning(&self, text: &str) {
        self.tell(StreamEvent::Reasoning(text.to_owned()));
    }

    /// Completes the answer.
    pub(crate) fn finish(self) {
        self.tell(StreamEvent::Usage(Usage { input_tokens: 3, output_tokens: 2, ..Usage::default() }));
        self.tell(StreamEvent::Finished(FinishReason::Stop));
    }

    pub(crate) fn answer(self, text: &str) {
        self.text(text);
        self.finish();
    }

    /// Fails with a transient overload.
    pub(crate) fn overloaded(self) {
        let mut failure = Failure::new(Category::Overloaded, true, "HTTP 529: Overloaded");
        failure.code = Some("529".to_owned());
        self.tell(StreamEvent::Failed(failure));
    }
}
