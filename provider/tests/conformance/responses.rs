//! The Responses API, for the suite.

use std::sync::Arc;

use everturn_kernel::{Arguments, FinishReason, Provider, StreamEvent, ToolCall};
use everturn_provider::{EndpointConfig, HttpClient, HttpConfig, Responses, ResponsesConfig};
use everturn_wire::{Usage, Value};
use serde_json::json;

use crate::dialect::{Asked, Dialect, Sample, Setup, echo, in_turns};

pub(crate) struct ResponsesApi;

fn event(payload: &Value) -> String {
    let name = payload["type"].as_str().unwrap();
    format!("event: {name}\ndata: {payload}\n\n")
}

fn item(what: &str, place: u64, item: &Value) -> String {
    event(&json!({"type": format!("response.output_item.{what}"), "output_index": place, "item": item}))
}

fn delta(kind: &str, place: u64, id: &str, text: &str) -> String {
    let kind = format!("response.{kind}.delta");
    event(&json!({"type": kind, "output_index": place, "item_id": id, "delta": text}))
}

fn call(place: u64, call_id: &str, name: &str, arguments: &str) -> Value {
    let id = format!("f{place}");
    json!({"type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments})
}

fn end(response: &Value) -> String {
    event(&json!({"type": "response.completed", "response": response}))
}

impl Dialect for ResponsesApi {
    const PATH: &'static str = "/v1/responses";
    const AUTHORIZATION: (&'static str, &'static str) =
        ("authorization", "Bearer correct horse battery staple");

    fn provider(setup: Setup) -> Arc<dyn Provider> {
        let http = HttpConfig { timeouts: setup.timeouts, system_proxy: false };
        let mut config = ResponsesConfig::new(EndpointConfig {
            base_url: setup.base_url,
            api_key: Some(setup.key),
            headers: setup.headers,
        });
        config.limits = setup.limits;
        Arc::new(Responses::new(HttpClient::new(http).unwrap(), config).unwrap())
    }

    fn sample() -> Sample {
        let thought = |encrypted: &str| json!({"type": "reasoning", "id": "r0", "summary": [], "encrypted_content": encrypted});
        let usage =
            json!({"input_tokens": 9, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 2}});
        let parts = vec![
            event(&json!({"type": "response.created", "response": {"status": "in_progress"}})),
            item("added", 0, &thought("gA")),
            delta("reasoning_summary_text", 0, "r0", "Hm."),
            item("done", 0, &thought("gAAA")),
            item("added", 1, &json!({"type": "message", "id": "m1", "content": []})),
            delta("output_text", 1, "m1", "Grüße, "),
            delta("output_text", 1, "m1", "\u{1F600}\u{2028}!"),
            item("added", 2, &call(2, "c2", "f", "")),
            delta("function_call_arguments", 2, "f2", "{\"x\":"),
            delta("function_call_arguments", 2, "f2", "\"1\"}"),
            item("done", 2, &call(2, "c2", "f", "{\"x\":\"1\"}")),
            end(&json!({"status": "completed", "error": null, "usage": usage})),
        ];
        let arguments = Arguments::Parsed(json!({"x": "1"}));
        let facts = vec![
            StreamEvent::Reasoning("Hm.".into()),
            StreamEvent::Echo(echo("openai-responses", json!([thought("gAAA")]))),
            StreamEvent::Text("Grüße, ".into()),
            StreamEvent::Text("\u{1F600}\u{2028}!".into()),
            StreamEvent::ToolCall(ToolCall { id: "c2".into(), name: "f".into(), arguments, echo: None }),
            StreamEvent::Usage(Usage {
                input_tokens: 9,
                output_tokens: 7,
                cache_read_tokens: Some(2),
                ..Usage::default()
            }),
            StreamEvent::Finished(FinishReason::ToolCalls),
        ];
        Sample { sufficient: parts.len(), parts, facts }
    }

    fn text(text: &str) -> String {
        delta("output_text", 1, "m1", text)
    }

    fn error(message: &str) -> String {
        let error = json!({"code": "server_error", "message": message});
        event(&json!({"type": "response.failed", "response": {"status": "failed", "error": error}}))
    }

    fn nothing() -> Vec<Vec<String>> {
        let secret = json!({"type": "reasoning", "id": "r0", "summary": [], "encrypted_content": "gAAA"});
        let empty = json!({"type": "message", "id": "m1", "content": [{"type": "output_text", "text": ""}]});
        let answers = [
            vec![],
            vec![item("added", 0, &empty), delta("output_text", 0, "m1", ""), item("done", 0, &empty)],
            vec![item("done", 0, &secret)],
        ];
        answers
            .into_iter()
            .map(|answer| [answer, vec![end(&json!({"status": "completed"}))]].concat())
            .collect()
    }

    fn calls(calls: &[Asked<'_>]) -> Option<Vec<String>> {
        let places = || 0u64..;
        let begun = calls.iter().zip(places());
        let begun = begun.map(|((id, name, _), place)| item("added", place, &call(place, id, name, "")));
        let said = in_turns(calls).into_iter().map(|(place, piece)| {
            delta("function_call_arguments", place as u64, &format!("f{place}"), piece)
        });
        let ended = calls.iter().zip(places());
        let ended = ended
            .map(|((id, name, pieces), place)| item("done", place, &call(place, id, name, &pieces.concat())));
        Some(begun.chain(said).chain(ended).chain([end(&json!({"status": "completed"}))]).collect())
    }
}
