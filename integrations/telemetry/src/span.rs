//! Builds spans from events.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use everturn_kernel::{Millis, Turn};
use everturn_orchestrator::{CallEnd, ProviderCall, TurnEnd};
use everturn_wire::{Category, EventBody, Usage};
use opentelemetry::{
    KeyValue, Value,
    trace::{Event, SpanKind, Status},
};

use crate::{
    content::{Answer, Content, History},
    name,
};

/// Maximum number of waits recorded in the span of a step. Later ones are only counted.
const MAX_EVENTS: usize = 64;

/// A span without its ids.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) begun: SystemTime,
    pub(crate) ended: SystemTime,
    pub(crate) attributes: Vec<KeyValue>,
    pub(crate) events: Vec<Event>,
    pub(crate) dropped_events: u32,
    pub(crate) status: Status,
}

impl Span {
    fn new(name: String, kind: SpanKind, begun: SystemTime, ended: SystemTime) -> Self {
        let (attributes, events) = (Vec::new(), Vec::new());
        // A clock that was set back must not make a span end before it begins.
        let ended = ended.max(begun);
        Self { name, kind, begun, ended, attributes, events, dropped_events: 0, status: Status::Unset }
    }

    fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        self.attributes.push(KeyValue::new(name, value));
    }

    fn set_if(&mut self, name: &'static str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    fn fail(&mut self, kind: impl Into<Value>) {
        self.set(name::ERROR_TYPE, kind);
        // A provider's message may quote the conversation, so only the error type is exported.
        self.status = Status::error("");
    }

    fn count(&mut self, usage: &Usage) {
        self.set(name::INPUT_TOKENS, int(usage.input_tokens));
        self.set(name::OUTPUT_TOKENS, int(usage.output_tokens));
        self.set_if(name::CACHE_READ_TOKENS, usage.cache_read_tokens.map(int));
        self.set_if(name::CACHE_CREATION_TOKENS, usage.cache_write_tokens.map(int));
    }
}

/// A step in progress.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) number: u32,
    /// The start of its first call in this process.
    begun: Millis,
    /// The latest call.
    call: ProviderCall,
    first_content: Option<Millis>,
    usage: Option<Usage>,
    failure: Option<Category>,
    waits: Vec<Event>,
    more_waits: u32,
    /// The content of the latest call, if asked for.
    asked: Option<History>,
    answer: Option<Answer>,
}

impl Step {
    pub(crate) fn new(call: &ProviderCall) -> Self {
        Self {
            number: call.op.step,
            begun: call.begun_at,
            call: call.clone(),
            first_content: None,
            usage: None,
            failure: None,
            waits: Vec::new(),
            more_waits: 0,
            asked: None,
            answer: None,
        }
    }

    /// Records the start of another attempt.
    pub(crate) fn again(&mut self, call: &ProviderCall) {
        (self.call, self.failure) = (call.clone(), None);
        self.forget();
    }

    /// Records the request of the latest call.
    pub(crate) fn asks(&mut self, history: History) {
        (self.asked, self.answer) = (Some(history), Some(Answer::default()));
    }

    /// Returns the answer to the latest call, if its content is recorded.
    pub(crate) fn answer(&mut self) -> Option<&mut Answer> {
        self.answer.as_mut()
    }

    /// Drops the content: during a wait, it would take memory, and the next call has it again.
    fn forget(&mut self) {
        (self.asked, self.answer) = (None, None);
    }

    pub(crate) fn answers(&mut self, at: Millis) {
        self.first_content.get_or_insert(at);
    }

    pub(crate) fn fails(&mut self, category: Category) {
        self.failure = Some(category);
    }

    pub(crate) fn uses(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Records a scheduled wait.
    pub(crate) fn waits(&mut self, at: SystemTime, event: &EventBody) {
        let EventBody::ProviderRetry { attempt, delay_ms, category, target, failed_target, shared, .. } =
            event
        else {
            return;
        };
        self.forget();
        if self.waits.len() == MAX_EVENTS {
            self.more_waits += 1;
            return;
        }
        let mut attributes = vec![
            KeyValue::new(name::RETRY_ATTEMPT, i64::from(*attempt)),
            KeyValue::new(name::RETRY_DELAY, int(*delay_ms)),
        ];
        let texts = [
            (name::RETRY_CATEGORY, category.map(|category| category.as_str().to_owned())),
            (name::RETRY_TARGET, target.clone()),
            (name::RETRY_FAILED_TARGET, failed_target.clone()),
        ];
        attributes.extend(texts.into_iter().filter_map(|(name, text)| Some(KeyValue::new(name, text?))));
        attributes.extend(shared.map(|shared| KeyValue::new(name::RETRY_SHARED, shared)));
        self.waits.push(Event::new(name::RETRY_EVENT, at, attributes, 0));
    }

    /// Ends the step: with the failure of its last attempt, if it failed, or because its turn was stopped.
    pub(crate) fn end(self, at: SystemTime, is_stopped: bool, content: Option<&Content>) -> Span {
        let call = &self.call;
        let mut span = Span::new(format!("chat {}", call.model_name), SpanKind::Client, time(self.begun), at);
        span.set(name::OPERATION, "chat");
        asked(&mut span, call);
        span.set(name::REQUEST_STREAM, true);
        let first = self.first_content.map(|first| first.since(self.begun));
        span.set_if(name::FIRST_CHUNK, first.map(|ms| Duration::from_millis(ms).as_secs_f64()));
        if let Some(usage) = &self.usage {
            span.count(usage);
        }
        if let (Some(asked), Some(content)) = (self.asked, content) {
            span.set_if(name::SYSTEM_INSTRUCTIONS, asked.instructions);
            span.set(name::INPUT_MESSAGES, asked.messages);
            span.set_if(name::OUTPUT_MESSAGES, self.answer.and_then(|answer| answer.written(content)));
        }
        match self.failure {
            Some(category) => span.fail(category.as_str()),
            None if is_stopped => span.fail("cancelled"),
            None => {}
        }
        (span.events, span.dropped_events) = (self.waits, self.more_waits);
        span
    }
}

/// Adds the attributes that attempts and steps share.
fn asked(span: &mut Span, call: &ProviderCall) {
    span.set(name::PROVIDER, call.provider.name.unwrap_or("unknown"));
    span.set(name::REQUEST_MODEL, call.model_name.clone());
    span.set(name::CONVERSATION, call.conversation_id.to_string());
    span.set(name::TARGET, call.model.clone());
    let Some(url) = call.provider.url.as_deref().and_then(|url| reqwest::Url::parse(url).ok()) else {
        return;
    };
    span.set_if(name::SERVER_ADDRESS, url.host_str().map(str::to_owned));
    span.set_if(name::SERVER_PORT, url.port_or_known_default().map(i64::from));
}

/// Returns the span of an attempt, which is a request to the provider. HTTP attributes are omitted for other
/// transports.
pub(crate) fn attempt(call: &ProviderCall, at: Millis, end: &CallEnd<'_>) -> Span {
    let url = call.provider.url.as_deref();
    let name = if url.is_some() { "POST" } else { "attempt" };
    let mut span = Span::new(name.to_owned(), SpanKind::Client, time(call.begun_at), time(at));
    asked(&mut span, call);
    if let Some(url) = url {
        span.set(name::METHOD, "POST");
        span.set(name::URL, url.to_owned());
    }
    if call.op.attempt > 0 {
        span.set(name::RESEND_COUNT, i64::from(call.op.attempt));
    }
    match end {
        // Adapters do not report which success status it was.
        CallEnd::Answered => {}
        CallEnd::Failed(failure) => {
            let code = failure.code.as_deref().and_then(|code| code.parse::<i64>().ok());
            span.set_if(name::STATUS_CODE, code);
            let is_refusal = code.is_some_and(|code| code >= 400);
            match failure.code.clone().filter(|_| is_refusal) {
                Some(code) => span.fail(code),
                None => span.fail(failure.category.as_str()),
            }
        }
        _ => span.fail("cancelled"),
    }
    span
}

/// A tool call that has its result.
#[derive(Debug)]
pub(crate) struct ToolCall<'a> {
    pub(crate) name: &'a str,
    pub(crate) id: &'a str,
    pub(crate) is_error: bool,
    pub(crate) ran_ms: u64,
    /// Its arguments and its result, if asked for.
    pub(crate) arguments: Option<String>,
    pub(crate) result: Option<String>,
}

/// Returns the span of a tool call.
pub(crate) fn tool(at: SystemTime, call: ToolCall<'_>) -> Span {
    let begun = at.checked_sub(Duration::from_millis(call.ran_ms)).unwrap_or(at);
    let mut span = Span::new(format!("execute_tool {}", call.name), SpanKind::Internal, begun, at);
    span.set(name::OPERATION, "execute_tool");
    span.set(name::TOOL_NAME, call.name.to_owned());
    span.set(name::TOOL_CALL, call.id.to_owned());
    span.set(name::TOOL_TYPE, "function");
    span.set_if(name::TOOL_ARGUMENTS, call.arguments);
    span.set_if(name::TOOL_RESULT, call.result);
    if call.is_error {
        span.fail("tool_error");
    }
    span
}

/// Returns the span of a turn.
pub(crate) fn turn(end: &TurnEnd<'_>, provider: Option<&'static str>) -> Span {
    let turn: &Turn = end.turn;
    let mut span =
        Span::new("invoke_agent".to_owned(), SpanKind::Internal, time(turn.started_at()), time(end.at));
    span.set(name::OPERATION, "invoke_agent");
    span.set(name::PROVIDER, provider.unwrap_or("unknown"));
    span.set(name::CONVERSATION, end.conversation_id.to_string());
    span.set(name::REQUEST_MODEL, end.model.to_owned());
    span.set(name::TURN, turn.id().to_string());
    span.set(name::TURN_STEPS, i64::from(turn.steps()));
    span.set(name::TURN_RETRIES, i64::from(turn.retries()));
    span.set(name::TURN_WAITED, int(turn.waited_ms()));
    if let Some(usage) = turn.usage() {
        span.count(&usage);
    }
    if let Some(outcome) = turn.outcome() {
        let reasons = vec![outcome.reason.as_str().to_owned().into()];
        span.set(name::FINISH_REASONS, Value::Array(opentelemetry::Array::String(reasons)));
        if let Some(failure) = &outcome.failure {
            span.fail(failure.category.as_str());
        }
    }
    span
}

/// Converts a time of a turn, in epoch milliseconds.
fn time(at: Millis) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.0)
}

fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
