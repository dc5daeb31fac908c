//! The port for observers of all conversations in the process.

use std::sync::Arc;

use everturn_kernel::{Millis, Op, ProviderInfo, Request, StreamEvent, Turn};
use everturn_wire::{AgentEvent, ConversationId, Failure, TraceContext, TurnId};
use futures_util::{Stream, StreamExt as _};

use crate::{Frame, panic::guarded};

/// Observes all conversations of an orchestrator, and all calls that pass through, each as a turn of one step with the id of the call
/// as its conversation. It misses no event: it is called on the threads that run the turns, in order within each conversation. Return
/// quickly and move longer work to another task. Panics are caught and logged.
pub trait Observer: Send + Sync {
    /// Called for each published event. All events except streamed text are durable by then.
    fn event(&self, event: &AgentEvent) {
        let _ = event;
    }

    /// Whether [`event`](Self::event) is also called for streamed text and reasoning. Default: `true`. Return `false`
    /// if not needed, as each delta costs a parse. Read once, when the orchestrator is built.
    fn wants_text(&self) -> bool {
        true
    }

    /// Called when a provider call begins.
    fn call_begins(&self, call: &ProviderCall) {
        let _ = call;
    }

    /// Returns the trace context to send to the provider with this call. Default: the one of the turn's request,
    /// unchanged.
    fn trace_of(&self, call: &ProviderCall) -> Option<TraceContext> {
        call.trace.clone()
    }

    /// Whether [`call_asks`](Self::call_asks) and [`call_yields`](Self::call_yields) are called. Default: `false`,
    /// because most observers do not need the content of messages. Read once, when the orchestrator is built.
    fn wants_content(&self) -> bool {
        false
    }

    /// Called with the request of a call, after [`call_begins`](Self::call_begins). Requests can be large: do not keep
    /// more of them than needed.
    fn call_asks(&self, call: &ProviderCall, request: &Request) {
        let _ = (call, request);
    }

    /// Called with each event of a call, including its last, before [`call_ended`](Self::call_ended).
    fn call_yields(&self, call: &ProviderCall, event: &StreamEvent) {
        let _ = (call, event);
    }

    /// Called when the first content of a call arrives.
    fn call_answers(&self, call: &ProviderCall, at: Millis) {
        let _ = (call, at);
    }

    /// Called when a provider call ends.
    fn call_ended(&self, call: &ProviderCall, at: Millis, end: CallEnd<'_>) {
        let _ = (call, at, end);
    }

    /// Called when a turn is sealed, after its last event. Also when a call that passes through is left unanswered, because nobody
    /// listens or the process ends: without an outcome. If its request is repeated, it goes on as the same turn.
    fn turn_ended(&self, end: &TurnEnd<'_>) {
        let _ = end;
    }
}

/// A turn that is sealed.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TurnEnd<'a> {
    /// The conversation.
    pub conversation_id: &'a ConversationId,
    /// The turn in its final state.
    pub turn: &'a Turn,
    /// Its model or route, as `credential/model`.
    pub model: &'a str,
    /// The trace of the turn's request.
    pub trace: Option<&'a TraceContext>,
    /// When it was sealed.
    pub at: Millis,
}

/// A provider call: one attempt of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderCall {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The turn.
    pub turn_id: TurnId,
    /// The step, and the number of the attempt.
    pub op: Op,
    /// The target, as `credential/model`.
    pub model: String,
    /// The provider's name of the model.
    pub model_name: String,
    /// Information about the API.
    pub provider: ProviderInfo,
    /// The trace of the turn's request.
    pub trace: Option<TraceContext>,
    /// When the call began.
    pub begun_at: Millis,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallEnd<'a> {
    /// The answer is complete.
    Answered,
    /// The call failed.
    Failed(&'a Failure),
    /// The call was dropped, or its stream ended without a terminal event.
    Dropped,
}

/// The observers, if any.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    observer: Option<Arc<dyn Observer>>,
    wants_text: bool,
    wants_content: bool,
}

impl Observers {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Self {
        let mut observers = Self { observer, wants_text: true, wants_content: false };
        let (mut wants_text, mut wants_content) = (true, false);
        observers.tell(|observer| wants_text = observer.wants_text());
        observers.tell(|observer| wants_content = observer.wants_content());
        (observers.wants_text, observers.wants_content) = (wants_text, wants_content);
        observers
    }

    pub(crate) fn is_any(&self) -> bool {
        self.observer.is_some()
    }

    /// Whether this event is reported.
    pub(crate) fn wants(&self, frame: &Frame) -> bool {
        self.is_any() && (self.wants_text || !frame.is_delta())
    }

    /// Reports published events.
    pub(crate) fn published(&self, frames: &[Frame]) {
        for frame in frames.iter().filter(|frame| self.wants(frame)) {
            // Always parses: it was serialized from this type.
            if let Ok(event) = serde_json::from_slice(&frame.event()) {
                self.tell(|observer| observer.event(&event));
            }
        }
    }

    /// Returns the trace context to send to the provider with a call.
    pub(crate) fn trace_of(&self, call: &ProviderCall) -> Option<TraceContext> {
        let mut trace = call.trace.clone();
        self.tell(|observer| trace = observer.trace_of(call));
        trace
    }

    /// Reports a turn that is over for this process.
    pub(crate) fn ended(&self, end: &TurnEnd<'_>) {
        self.tell(|observer| observer.turn_ended(end));
    }

    /// Reports an event of a call that is passed through.
    pub(crate) fn event(&self, event: &AgentEvent) {
        self.tell(|observer| observer.event(event));
    }

    /// Reports the beginning of a call that is passed through.
    pub(crate) fn passes(&self, call: &ProviderCall) {
        self.tell(|observer| observer.call_begins(call));
    }

    /// Reports the beginning of a call, and its request if that is wanted.
    pub(crate) fn begins(&self, call: &ProviderCall, request: &Request) {
        self.tell(|observer| observer.call_begins(call));
        if self.wants_content {
            self.tell(|observer| observer.call_asks(call, request));
        }
    }

    /// Passes on the events of a call that has begun, and reports its end.
    pub(crate) fn watch<S>(
        self,
        events: S,
        call: ProviderCall,
        now: impl Fn() -> Millis + Send + 'static,
    ) -> impl Stream<Item = StreamEvent> + Send
    where
        S: Stream<Item = StreamEvent> + Send + 'static,
    {
        let wants_content = self.wants_content;
        let mut open = OpenCall { observers: self, call, now, has_content: false, is_over: false };
        events.inspect(move |event| {
            if wants_content {
                open.observers.tell(|observer| observer.call_yields(&open.call, event));
            }
            match event {
                StreamEvent::Text(_)
                | StreamEvent::Reasoning(_)
                | StreamEvent::ToolCall(_)
                | StreamEvent::Opaque => open.answers(),
                StreamEvent::Finished(_) => open.end(CallEnd::Answered),
                StreamEvent::Failed(failure) => open.end(CallEnd::Failed(failure)),
                _ => {}
            }
        })
    }

    fn tell(&self, tell: impl FnOnce(&dyn Observer)) {
        let Some(observer) = &self.observer else { return };
        guarded("the observer", || tell(observer.as_ref()));
    }
}

/// A call whose end has not been reported yet.
struct OpenCall<N: Fn() -> Millis> {
    observers: Observers,
    call: ProviderCall,
    now: N,
    has_content: bool,
    is_over: bool,
}

impl<N: Fn() -> Millis> OpenCall<N> {
    fn answers(&mut self) {
        if !std::mem::replace(&mut self.has_content, true) {
            let at = (self.now)();
            self.observers.tell(|observer| observer.call_answers(&self.call, at));
        }
    }

    fn end(&mut self, end: CallEnd<'_>) {
        if !std::mem::replace(&mut self.is_over, true) {
            let at = (self.now)();
            self.observers.tell(|observer| observer.call_ended(&self.call, at, end));
        }
    }
}

impl<N: Fn() -> Millis> Drop for OpenCall<N> {
    fn drop(&mut self) {
        self.end(CallEnd::Dropped);
    }
}
