//! The observer that creates spans.

use std::{
    borrow::Cow,
    collections::HashMap,
    env, fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use everturn_kernel::{Millis, Request, StreamEvent};
use everturn_orchestrator::{CallEnd, Observer, ProviderCall, TurnEnd};
use everturn_wire::{AgentEvent, EventBody, StepId, TraceContext, TurnId};
use opentelemetry::{
    Context, InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, TraceContextExt as _, TraceFlags, TraceState},
};
use opentelemetry_sdk::{
    Resource,
    trace::{
        BatchConfig, BatchConfigBuilder, BatchSpanProcessor, Config, SamplingDecision, SpanData, SpanEvents,
        SpanExporter, SpanProcessor,
    },
};

use crate::{
    content::{Arguments, Content, History, MAX_ATTRIBUTE, Redact},
    id::{Part, Trace},
    span::{self, Span, Step, ToolCall},
};

/// Queue and batch with content. A span has up to 48 KiB of it, so that a full queue takes up to 24 MiB, and a batch
/// stays below the request limit of collectors. Without content, the defaults of OpenTelemetry apply.
const QUEUE: usize = 512;
const BATCH: usize = 128;

/// An observer that exports turns as spans.
pub struct Traces {
    processor: BatchSpanProcessor,
    config: Config,
    scope: InstrumentationScope,
    /// Prepares content for export; `None` = it is not exported.
    content: Option<Content>,
    /// Turns with a call made by this process.
    turns: Mutex<HashMap<TurnId, Open>>,
    /// The arguments of tool calls without a result.
    arguments: Mutex<Arguments>,
}

/// A turn in progress.
struct Open {
    trace: Trace,
    is_sampled: bool,
    provider: Option<&'static str>,
    step: Option<Step>,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").finish_non_exhaustive()
    }
}

impl Traces {
    /// Creates an observer that exports to `exporter`, in batches, on its own thread. The standard environment
    /// variables configure the sampler, the resource and the batches.
    pub fn new(exporter: impl SpanExporter + 'static) -> Self {
        Self::build(exporter, None)
    }

    /// Like [`new`](Self::new), but also exports the content of messages and tool calls. `redact` removes secrets from
    /// each text; it should also recognize truncated ones.
    pub fn with_content(exporter: impl SpanExporter + 'static, redact: Redact) -> Self {
        Self::build(exporter, Some(Content::new(redact)))
    }

    fn build(mut exporter: impl SpanExporter + 'static, content: Option<Content>) -> Self {
        let config = Config::default();
        let resource = resource();
        exporter.set_resource(&resource);
        let scope = InstrumentationScope::builder("everturn").with_version(env!("CARGO_PKG_VERSION")).build();
        let batch = if content.is_some() { with_content() } else { BatchConfig::default() };
        let mut processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
        processor.set_resource(&resource);
        let (turns, arguments) = (Mutex::default(), Mutex::default());
        Self { processor, config, scope, content, turns, arguments }
    }

    /// Exports pending spans, and stops. Blocks for up to `within`, so call it only where blocking is allowed.
    pub fn shutdown(&self, within: Duration) {
        if let Err(error) = self.processor.shutdown_with_timeout(within) {
            tracing::warn!(%error, "some spans were not exported");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TurnId, Open>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arguments(&self) -> MutexGuard<'_, Arguments> {
        self.arguments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, call: &ProviderCall) -> Open {
        let trace = Trace::of(&call.conversation_id, &call.turn_id, call.trace.as_ref());
        let is_sampled = self.samples(&trace);
        Open { trace, is_sampled, provider: None, step: None }
    }

    /// Whether the trace is sampled. Decided once per turn from the trace id alone, so that all processes agree.
    fn samples(&self, trace: &Trace) -> bool {
        let parent = trace.caller.clone().map(|caller| Context::new().with_remote_span_context(caller));
        let kind = SpanKind::Internal;
        let sampler = &self.config.sampler;
        let decided = sampler.should_sample(parent.as_ref(), trace.id, "invoke_agent", &kind, &[], &[]);
        decided.decision == SamplingDecision::RecordAndSample
    }

    fn export(&self, trace: &Trace, part: Part<'_>, parent: Option<Part<'_>>, span: Span) {
        let caller = trace.caller.as_ref();
        let state = caller.map_or_else(TraceState::default, |caller| caller.trace_state().clone());
        let context = SpanContext::new(trace.id, trace.span(part), TraceFlags::SAMPLED, false, state);
        let parent_span_id = match parent {
            Some(parent) => trace.span(parent),
            None => caller.map_or(SpanId::INVALID, SpanContext::span_id),
        };
        let mut events = SpanEvents::default();
        (events.events, events.dropped_count) = (span.events, span.dropped_events);
        self.processor.on_end(SpanData {
            span_context: context,
            parent_span_id,
            parent_span_is_remote: parent.is_none() && caller.is_some(),
            span_kind: span.kind,
            name: Cow::Owned(span.name),
            start_time: span.begun,
            end_time: span.ended,
            attributes: span.attributes,
            dropped_attributes_count: 0,
            events,
            links: Default::default(),
            status: span.status,
            instrumentation_scope: self.scope.clone(),
        });
    }
}

impl Observer for Traces {
    fn wants_text(&self) -> bool {
        false
    }

    fn wants_content(&self) -> bool {
        self.content.is_some()
    }

    fn event(&self, event: &AgentEvent) {
        let Some(id) = &event.turn_id else { return };
        let (mut turns, now) = (self.lock(), SystemTime::now());
        let Some(open) = turns.get_mut(id) else { return };
        match (&event.body, &mut open.step) {
            (EventBody::ProviderRetry { .. }, Some(step)) => step.waits(now, &event.body),
            (EventBody::Usage { usage, .. }, Some(step)) => step.uses(*usage),
            (EventBody::StepComplete { .. }, step) => {
                let Some(step) = step.take().filter(|_| open.is_sampled) else { return };
                let part = Part::Step(step.number);
                self.export(&open.trace, part, Some(Part::Turn), step.end(now, false, self.content.as_ref()));
            }
            (EventBody::ToolCall { step_id, tool_call_id, input, .. }, _) if open.is_sampled => {
                if let Some(content) = &self.content {
                    self.arguments()
                        .keep(id, step_id, tool_call_id, || content.written(input, MAX_ATTRIBUTE));
                }
            }
            (
                EventBody::ToolResult {
                    step_id,
                    tool_call_id,
                    tool_name,
                    is_error,
                    duration_ms,
                    content,
                    ..
                },
                _,
            ) if open.is_sampled => {
                let arguments = self.arguments().take(id, step_id, tool_call_id);
                // A call that did not run has no duration.
                let Some(ran_ms) = *duration_ms else { return };
                let result = self.content.as_ref().map(|of_span| of_span.text(content, MAX_ATTRIBUTE));
                let (name, id, is_error) = (tool_name, tool_call_id, *is_error);
                let span = span::tool(now, ToolCall { name, id, is_error, ran_ms, arguments, result });
                let part = Part::Tool(number(step_id), tool_call_id);
                self.export(&open.trace, part, Some(Part::Turn), span);
            }
            _ => {}
        }
    }

    fn call_begins(&self, call: &ProviderCall) {
        let mut turns = self.lock();
        let open = turns.entry(call.turn_id.clone()).or_insert_with(|| self.open(call));
        open.provider = call.provider.name.or(open.provider);
        match &mut open.step {
            Some(step) if step.number == call.op.step => step.again(call),
            step => *step = Some(Step::new(call)),
        }
    }

    fn call_asks(&self, call: &ProviderCall, request: &Request) {
        let Some(content) = &self.content else { return };
        if !self.lock().get(&call.turn_id).is_some_and(|open| open.is_sampled) {
            return;
        }
        // Without the lock, because it takes a while.
        let history = History::new(content, &request.messages);
        if let Some(step) = self.lock().get_mut(&call.turn_id).and_then(|open| open.step.as_mut()) {
            step.asks(history);
        }
    }

    fn call_yields(&self, call: &ProviderCall, event: &StreamEvent) {
        let Some(content) = &self.content else { return };
        let mut turns = self.lock();
        let step = turns.get_mut(&call.turn_id).and_then(|open| open.step.as_mut());
        if let Some(answer) = step.and_then(Step::answer) {
            answer.add(content, event);
        }
    }

    fn trace_of(&self, call: &ProviderCall) -> Option<TraceContext> {
        let (trace, is_sampled) = match self.lock().get(&call.turn_id) {
            Some(open) => (open.trace.clone(), open.is_sampled),
            None => {
                let open = self.open(call);
                (open.trace, open.is_sampled)
            }
        };
        let span = trace.span(Part::Call(call.op));
        let flags = u8::from(is_sampled);
        let state = call.trace.as_ref().and_then(TraceContext::state);
        TraceContext::read(&format!("00-{}-{span}-{flags:02x}", trace.id), state)
    }

    fn call_answers(&self, call: &ProviderCall, at: Millis) {
        if let Some(step) = self.lock().get_mut(&call.turn_id).and_then(|open| open.step.as_mut()) {
            step.answers(at);
        }
    }

    fn call_ended(&self, call: &ProviderCall, at: Millis, end: CallEnd<'_>) {
        let mut turns = self.lock();
        let Some(open) = turns.get_mut(&call.turn_id) else { return };
        if let (CallEnd::Failed(failure), Some(step)) = (end, &mut open.step) {
            step.fails(failure.category);
        }
        if open.is_sampled {
            let (part, parent) = (Part::Call(call.op), Part::Step(call.op.step));
            self.export(&open.trace, part, Some(parent), span::attempt(call, at, &end));
        }
    }

    fn turn_ended(&self, end: &TurnEnd<'_>) {
        if self.content.is_some() {
            self.arguments().forget(end.turn.id());
        }
        let open = self.lock().remove(end.turn.id());
        let (trace, is_sampled, provider, step) = match open {
            Some(Open { trace, is_sampled, provider, step }) => (trace, is_sampled, provider, step),
            // This process made no call.
            None => {
                let trace = Trace::of(end.conversation_id, end.turn.id(), end.trace);
                let is_sampled = self.samples(&trace);
                (trace, is_sampled, None, None)
            }
        };
        if !is_sampled {
            return;
        }
        if let Some(step) = step {
            let part = Part::Step(step.number);
            let span = step.end(SystemTime::now(), true, self.content.as_ref());
            self.export(&trace, part, Some(Part::Turn), span);
        }
        self.export(&trace, Part::Turn, None, span::turn(end, provider));
    }
}

/// Returns the resource that describes this process. The service name is `everturn` unless the environment sets
/// another.
fn resource() -> Resource {
    let named = env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty())
        || env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|all| all.contains("service.name="));
    let builder =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match named {
        true => builder.build(),
        false => builder.with_service_name("everturn").build(),
    }
}

/// Returns the batch settings with content. The environment overrides them.
fn with_content() -> BatchConfig {
    let is_set = |name| env::var(name).is_ok_and(|value: String| !value.is_empty());
    let mut batch = BatchConfigBuilder::default();
    if !is_set("OTEL_BSP_MAX_QUEUE_SIZE") {
        batch = batch.with_max_queue_size(QUEUE);
    }
    if !is_set("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") {
        batch = batch.with_max_export_batch_size(BATCH);
    }
    batch.build()
}

/// Returns the number of a step. Step ids have the form `<turn>#<number>`.
fn number(step: &StepId) -> u32 {
    step.as_str().rsplit('#').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
