//! Your own model: anything that turns a request into a stream of events.

use everturn_orchestrator::kernel::{Arguments, FinishReason, Provider, Request, StreamEvent, ToolCall};
use everturn_wire::{Category, Chunk, Failure, Message};
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use serde_json::json;

/// Is overloaded twice, then calls the thermometer, then answers.
pub(crate) struct Weather;

impl Provider for Weather {
    // Make one attempt per call. Waiting and retrying is up to the turn.
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let facts = match (request.op.step, request.op.attempt) {
            (0, 0 | 1) => vec![StreamEvent::Failed(overloaded())],
            (0, _) => vec![StreamEvent::ToolCall(look()), StreamEvent::Finished(FinishReason::ToolCalls)],
            _ => {
                let words = ["The thermometer ", "says ", read(&request)];
                let told = words.into_iter().map(|word| StreamEvent::Text(word.to_owned()));
                told.chain([StreamEvent::Finished(FinishReason::Stop)]).collect()
            }
        };
        stream::iter(facts).boxed()
    }
}

/// The turn retries this failure because it is marked retryable, and shows the message unchanged.
fn overloaded() -> Failure {
    Failure {
        code: Some("529".to_owned()),
        ..Failure::new(Category::Overloaded, true, "HTTP 529: try later")
    }
}

fn look() -> ToolCall {
    let arguments = Arguments::Parsed(json!({ "place": "lake" }));
    ToolCall { id: "look-1".to_owned(), name: "thermometer".to_owned(), arguments, echo: None }
}

/// Returns the last result of the thermometer.
fn read(request: &Request) -> &str {
    let chunks = request.messages.iter().rev().flat_map(Message::iter);
    let mut results = chunks.filter_map(|chunk| match chunk {
        Chunk::ToolResult { content, .. } => Some(content.as_str()),
        _ => None,
    });
    results.next().unwrap_or("nothing")
}
