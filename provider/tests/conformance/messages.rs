//! The Messages API, for the suite.

use std::sync::Arc;

use everturn_kernel::{Arguments, FinishReason, Provider, StreamEvent, ToolCall};
use everturn_provider::{Anthropic, AnthropicConfig, EndpointConfig};
use everturn_wire::{Reported, Usage, Value};
use serde_json::json;

use crate::dialect::{Asked, Dialect, KEY, Sample, Setup, echo, in_turns, letters};

pub(crate) struct Messages;

fn event(payload: &Value) -> String {
    let name = payload["type"].as_str().unwrap();
    format!("event: {name}\ndata: {payload}\n\n")
}

fn start(index: u64, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block}))
}

fn delta(index: u64, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop(index: u64) -> String {
    event(&json!({"type": "content_block_stop", "index": index}))
}

/// Returns the end of an answer with this reason.
fn end(reason: &str) -> [String; 2] {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}});
    [event(&delta), event(&json!({"type": "message_stop"}))]
}

impl Dialect for Messages {
    const PATH: &'static str = "/v1/messages";
    const SEEING_MODEL: Option<&'static str> = Some("model-1");
    const LACKS: &'static [&'static str] = &["seed", "presencePenalty", "frequencyPenalty"];
    const AUTHORIZATION: (&'static str, &'static str) = ("x-api-key", KEY);

    fn provider(setup: Setup) -> Arc<dyn Provider> {
        let http = setup.http();
        let mut config = AnthropicConfig::new(EndpointConfig {
            base_url: setup.base_url,
            api_key: Some(setup.key),
            headers: setup.headers,
        });
        config.limits = setup.limits;
        Arc::new(Anthropic::new(http, config).unwrap())
    }

    fn parameters() -> Value {
        json!({
            "temperature": 0.5, "top_p": 0.25, "stop_sequences": ["END", "STOP"],
            "tool_choice": { "type": "tool", "name": "f", "disable_parallel_tool_use": true },
            "output_config": { "format": {
                "type": "json_schema",
                "schema": { "type": "object", "properties": { "n": { "type": "integer" } } },
            } },
        })
    }

    fn sample() -> Sample {
        let parts = vec![
            event(
                &json!({"type": "message_start", "message": {"model": "model-1", "usage": {"input_tokens": 9, "output_tokens": 1}}}),
            ),
            event(&json!({"type": "ping"})),
            start(0, &json!({"type": "thinking", "thinking": ""})),
            delta(0, &json!({"type": "thinking_delta", "thinking": "Hm."})),
            delta(0, &json!({"type": "signature_delta", "signature": "EqQB"})),
            stop(0),
            start(1, &json!({"type": "redacted_thinking", "data": "EmwK"})),
            stop(1),
            start(2, &json!({"type": "text", "text": ""})),
            delta(2, &json!({"type": "text_delta", "text": "Grüße, "})),
            delta(2, &json!({"type": "text_delta", "text": "\u{1F600}\u{2028}!"})),
            stop(2),
            start(3, &json!({"type": "tool_use", "id": "t2", "name": "f", "input": {}})),
            delta(3, &json!({"type": "input_json_delta", "partial_json": "{\"x\":"})),
            delta(3, &json!({"type": "input_json_delta", "partial_json": "\"1\"}"})),
            stop(3),
            event(
                &json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}),
            ),
            event(&json!({"type": "message_stop"})),
        ];
        let arguments = Arguments::Parsed(json!({"x": "1"}));
        let facts = letters(vec![
            StreamEvent::Reasoning("Hm.".into()),
            StreamEvent::Echo(echo("anthropic", json!({"type": "thinking", "signature": "EqQB"}))),
            StreamEvent::Echo(echo("anthropic", json!({"type": "redacted_thinking", "data": "EmwK"}))),
            StreamEvent::Text("Grüße, ".into()),
            StreamEvent::Text("\u{1F600}\u{2028}!".into()),
            StreamEvent::ToolCall(ToolCall { id: "t2".into(), name: "f".into(), arguments, echo: None }),
            StreamEvent::Usage(Usage { input_tokens: 9, output_tokens: 7, ..Usage::default() }),
            StreamEvent::Reported(Box::new(Reported {
                model: Some("model-1".into()),
                ..Reported::default()
            })),
            StreamEvent::Finished(FinishReason::ToolCalls),
        ]);
        Sample { sufficient: parts.len(), parts, facts }
    }

    fn text(text: &str) -> String {
        delta(0, &json!({"type": "text_delta", "text": text}))
    }

    fn pings() -> String {
        event(&json!({"type": "ping"}))
    }

    fn error(message: &str) -> String {
        event(&json!({"type": "error", "error": {"type": "api_error", "message": message}}))
    }

    fn nothing() -> Vec<Vec<String>> {
        let begin = || event(&json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}}));
        let empty = [start(0, &json!({"type": "text", "text": ""})), stop(0)];
        let answers = [vec![], vec![begin()], [vec![begin()], empty.to_vec()].concat()];
        answers.into_iter().map(|answer| [answer, end("end_turn").to_vec()].concat()).collect()
    }

    fn calls(calls: &[Asked<'_>]) -> Option<Vec<String>> {
        let places = || 0u64..;
        let begun = calls.iter().zip(places()).map(|((id, name, _), place)| {
            start(place, &json!({"type": "tool_use", "id": id, "name": name, "input": {}}))
        });
        let said = in_turns(calls).into_iter().map(|(place, piece)| {
            delta(place as u64, &json!({"type": "input_json_delta", "partial_json": piece}))
        });
        let stopped = calls.iter().zip(places()).map(|(_, place)| stop(place));
        Some(begun.chain(said).chain(stopped).chain(end("tool_use")).collect())
    }
}
