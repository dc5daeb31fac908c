//! The observer that creates spans.

use std::{
    borrow::Cow,
    collections::HashMap,
    env, fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use everturn_kernel::Millis;
use everturn_orchestrator::{CallEnd, Observer, ProviderCall, TurnEnd};
use everturn_wire::{AgentEvent, EventBody, StepId, TraceContext, TurnId};
use opentelemetry::{
    Context, InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, TraceContextExt as _, TraceFlags, TraceState},
};
use opentelemetry_sdk::{
    Resource,
    trace::{
        BatchSpanProcessor, Config, SamplingDecision, SpanData, SpanEvents, SpanExporter, SpanProcessor,
    },
};

use crate::{
    id::{Part, Trace},
    span::{self, Span, Step},
};

/// An observer that exports turns as spans.
pub struct Traces {
    processor: BatchSpanProcessor,
    config: Config,
    scope: InstrumentationScope,
    /// Turns with a call made by this process.
    turns: Mutex<HashMap<TurnId, Open>>,
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
    pub fn new(mut exporter: impl SpanExporter + 'static) -> Self {
        let config = Config::default();
        let resource = resource();
        exporter.set_resource(&resource);
        let scope = InstrumentationScope::builder("everturn").with_version(env!("CARGO_PKG_VERSION")).build();
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource);
        Self { processor, config, scope, turns: Mutex::default() }
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
                self.export(&open.trace, part, Some(Part::Turn), step.end(now, false));
            }
            (
                EventBody::ToolResult {
                    step_id,
                    tool_call_id,
                    tool_name,
                    is_error,
                    duration_ms: Some(ran_ms),
                    ..
                },
                _,
            ) if open.is_sampled => {
                let span = span::tool(now, tool_name, tool_call_id, *is_error, *ran_ms);
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
            self.export(&trace, part, Some(Part::Turn), step.end(SystemTime::now(), true));
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

/// Returns the number of a step. Step ids have the form `<turn>#<number>`.
fn number(step: &StepId) -> u32 {
    step.as_str().rsplit('#').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
