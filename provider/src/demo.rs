//! A built-in model that fails before it answers, so that new users see a turn survive a failure.

mod speech;

use std::time::Duration;

use everturn_diagnosis::{Evidence, Stage, diagnose};
use everturn_kernel::{Arguments, FinishReason, Provider, Request, StreamEvent, ToolCall, ToolSpec};
use everturn_wire::{Chunk, Failure, Message, Role, Usage, Value};
use futures_core::stream::BoxStream;
use serde_json::{Map, json};

use crate::{
    clock,
    scripted::{Cue, play},
};

/// The tool that the demo calls if it is offered.
const DICE: &str = "roll_dice";

/// Time per word, and until a failure.
const PER_WORD: Duration = Duration::from_millis(25);
const TO_FAIL: Duration = Duration::from_millis(120);

/// The failures, in order.
const FAILURES: [(u16, &str, &str); 2] = [
    (
        529,
        "application/json",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ),
    (
        502,
        "text/html",
        "<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>",
    ),
];

/// The provider of the model [`Demo::MODEL`]. Needs no network.
///
/// In the first turn of a conversation, the first call fails like an overloaded model and the second like a broken
/// proxy. In later turns, only the first call fails. After that, the demo answers word by word. If asked about dice or
/// tools, it first calls the tool `roll_dice`, if that is offered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demo;

impl Demo {
    /// The only model.
    pub const MODEL: &'static str = "flaky";
}

impl Provider for Demo {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        play(cues(&request).into())
    }
}

fn cues(request: &Request) -> Vec<Cue> {
    if request.model != Demo::MODEL {
        let message =
            format!("there is no model {:?} here; the demo has only {:?}", request.model, Demo::MODEL);
        let body = json!({ "error": { "code": "model_not_found", "message": message } }).to_string();
        return vec![StreamEvent::Failed(failure(404, "application/json", &body)).into()];
    }
    let joined = joined(request);
    let said_by_people = request.messages.iter().filter(|message| message.role == Role::User).count();
    let turn = said_by_people - usize::from(joined.is_some());
    let failures = if turn > 1 { &FAILURES[..1] } else { &FAILURES[..] };
    let attempt = request.op.attempt as usize;
    if request.op.step == 0
        && let Some(&(status, kind, body)) = failures.get(attempt)
    {
        return vec![Cue::Pause(TO_FAIL), StreamEvent::Failed(failure(status, kind, body)).into()];
    }
    let said = last_said(request);
    let rolled = last_rolled(request);
    let dice = request.tools.iter().find(|tool| tool.name == DICE).filter(|_| asks_for_tool(said));
    match (dice, rolled) {
        (Some(dice), None) => {
            let id = format!("roll-{turn}-{}", request.op.step);
            let call =
                ToolCall { id, name: DICE.to_owned(), arguments: Arguments::Parsed(throw(dice)), echo: None };
            let mut cues = paced(speech::BEFORE_ROLLING, StreamEvent::Reasoning);
            cues.push(StreamEvent::ToolCall(call).into());
            ended(cues, request, FinishReason::ToolCalls)
        }
        (_, Some(result)) => {
            let text = speech::on_dice(result, failures.len());
            match joined {
                Some(said) => answer(request, &format!("{text} {}", speech::on_joined(said))),
                None => answer(request, &text),
            }
        }
        (None, None) => answer(request, &speech::on_survival(said, attempt.min(failures.len()))),
    }
}

/// Returns a failure like that of a real endpoint, with its diagnosis.
fn failure(status: u16, kind: &str, body: &str) -> Failure {
    diagnose(&Evidence {
        stage: Stage::Http,
        status: Some(status),
        headers: &[("content-type", kind)],
        body,
        transport: None,
        now: clock::now(),
    })
}

fn answer(request: &Request, text: &str) -> Vec<Cue> {
    let mut cues = paced(speech::BEFORE_ANSWERING, StreamEvent::Reasoning);
    cues.extend(paced(text, StreamEvent::Text));
    ended(cues, request, FinishReason::Stop)
}

/// Splits a text into words with their trailing white space, and delays each.
fn paced(text: &str, fact: fn(String) -> StreamEvent) -> Vec<Cue> {
    text.split_inclusive(' ').flat_map(|word| [Cue::Pause(PER_WORD), fact(word.to_owned()).into()]).collect()
}

fn ended(mut cues: Vec<Cue>, request: &Request, reason: FinishReason) -> Vec<Cue> {
    let said = request.messages.iter().flat_map(Message::iter).filter_map(text);
    let input_tokens = said.flat_map(str::split_whitespace).count() as u64;
    let output_tokens = cues.iter().filter(|cue| matches!(cue, Cue::Tell(_))).count() as u64;
    cues.push(StreamEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }).into());
    cues.push(StreamEvent::Finished(reason).into());
    cues
}

fn last_said(request: &Request) -> &str {
    let said = request.messages.iter().rfind(|message| message.role == Role::User);
    let chunks = said.iter().flat_map(|message| message.iter().rev());
    chunks.filter_map(text).next().unwrap_or_default()
}

fn text(chunk: &Chunk) -> Option<&str> {
    if let Chunk::Text { text } = chunk { Some(text) } else { None }
}

/// Returns the messages of this turn since the model last said something, newest first: results, and what people said
/// meanwhile. None if the turn begins, although an earlier one may have ended with a result.
fn unanswered(request: &Request) -> impl Iterator<Item = &Message> {
    let begins = request.op.step == 0;
    request.messages.iter().rev().take_while(move |message| !begins && message.role != Role::Assistant)
}

/// Returns the result of the dice, if they were just rolled.
fn last_rolled(request: &Request) -> Option<&str> {
    unanswered(request).flat_map(Message::iter).find_map(|chunk| match chunk {
        Chunk::ToolResult { tool_name, content, .. } if tool_name == DICE => Some(content.as_str()),
        _ => None,
    })
}

/// Returns what was said after the dice were rolled: a queued message that joined the turn.
fn joined(request: &Request) -> Option<&str> {
    let last = unanswered(request).next().filter(|last| last.role == Role::User)?;
    last_rolled(request).and_then(|_| last.iter().rev().find_map(text))
}

fn asks_for_tool(said: &str) -> bool {
    let said = said.to_lowercase();
    ["dice", "tool"].iter().any(|word| said.contains(word))
}

/// Returns arguments for the dice, for the properties of their schema that the demo knows.
fn throw(dice: &ToolSpec) -> Value {
    let known = [("sides", 6), ("count", 2)];
    let named =
        known.iter().filter(|(name, _)| dice.parameters.pointer(&format!("/properties/{name}")).is_some());
    Value::Object(named.map(|&(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests;
