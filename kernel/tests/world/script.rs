//! Stories as data: what the model says, what tools do, what people outside say, and when.

use everturn_kernel::{Arguments, FinishReason, Input, Settings, StreamEvent, ToolAnswer, ToolCall};
use everturn_wire::{Category, Echo, Failure, Image, Usage, Value};

use super::Nap;

/// A story.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) settings: Settings,
    pub(crate) prompt: &'static str,
    pub(crate) images: Vec<Image>,
    /// For each step, for each retry of it, what the model does. The last one of a step is repeated.
    pub(crate) steps: Vec<Vec<Vec<Beat>>>,
    pub(crate) tools: Vec<Tool>,
    /// What is said from outside, at that many milliseconds after the start.
    pub(crate) outside: Vec<(u64, Input)>,
    /// Whether a strategy is injected.
    pub(crate) retries: bool,
    /// Whether the strategy always answers "give up".
    pub(crate) silent: bool,
    pub(crate) nap: Nap,
    /// Whether the host leaves a turn that waits.
    pub(crate) parks: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            prompt: "Hi",
            images: Vec::new(),
            steps: vec![vec![says("Hello")]],
            tools: vec![Tool::new("read", 10, ToolAnswer::ok("42"))],
            outside: Vec::new(),
            retries: true,
            silent: false,
            nap: Nap::Whole,
            parks: false,
        }
    }
}

/// What a stream does next. After the last beat it ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Beat {
    Say(StreamEvent),
    /// Silence of that many milliseconds.
    Wait(u64),
    /// Silence for ever.
    Hang,
}

/// A tool: for how many milliseconds it runs, what it prints half-way and what it answers.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) takes: u64,
    pub(crate) prints: Option<&'static str>,
    pub(crate) answer: ToolAnswer,
    /// Never answers.
    pub(crate) hangs: bool,
}

impl Tool {
    pub(crate) fn new(name: &'static str, takes: u64, answer: ToolAnswer) -> Self {
        Self { name, takes, prints: None, answer, hangs: false }
    }
}

pub(crate) fn text(delta: &str) -> Beat {
    Beat::Say(StreamEvent::Text(delta.into()))
}

pub(crate) fn thought(delta: &str) -> Beat {
    Beat::Say(StreamEvent::Reasoning(delta.into()))
}

pub(crate) fn echoes(data: &str) -> Beat {
    Beat::Say(StreamEvent::Echo(echo(data)))
}

/// What a provider wants back.
pub(crate) fn echo(data: &str) -> Echo {
    Echo { origin: "api host".into(), data: data.into() }
}

pub(crate) fn call(id: &str, name: &str) -> Beat {
    let arguments = Arguments::Parsed(Value::Object([("n".into(), 1.into())].into_iter().collect()));
    Beat::Say(StreamEvent::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, echo: None }))
}

pub(crate) fn malformed(id: &str, name: &str) -> Beat {
    let arguments = Arguments::Malformed { raw: "{\"n\":".into(), reason: "it ends early".into() };
    Beat::Say(StreamEvent::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, echo: None }))
}

pub(crate) fn usage(input_tokens: u64, output_tokens: u64) -> Beat {
    Beat::Say(StreamEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }))
}

pub(crate) fn finish(reason: FinishReason) -> Beat {
    Beat::Say(StreamEvent::Finished(reason))
}

pub(crate) fn failed(failure: Failure) -> Beat {
    Beat::Say(StreamEvent::Failed(failure))
}

pub(crate) fn failure(message: &str) -> Failure {
    Failure::new(Category::Network, true, message)
}

/// A whole answer.
pub(crate) fn says(what: &str) -> Vec<Beat> {
    vec![text(what), finish(FinishReason::Stop)]
}

/// A refusal because of too much load.
pub(crate) fn overloaded() -> Vec<Beat> {
    let failure =
        Failure { code: Some("429".into()), ..Failure::new(Category::Overloaded, true, "HTTP 429: busy") };
    vec![failed(failure)]
}
