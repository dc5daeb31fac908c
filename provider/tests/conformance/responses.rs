//! The Responses API, for the suite.

use std::sync::Arc;

use everturn_kernel::{Arguments, FinishReason, Provider, StreamEvent, ToolCall};
use everturn_provider::{EndpointConfig, Responses, ResponsesConfig};
use everturn_sim::{Loopback, Reply};
use everturn_wire::{Category, Chunk, Echo, Message, Reported, Role, Usage, Value};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::dialect::{Asked, Dialect, Sample, Setup, echo, in_turns, letters, request};

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
    const SEEING_MODEL: Option<&'static str> = Some("model-1");
    const LACKS: &'static [&'static str] = &["stop", "seed", "presencePenalty", "frequencyPenalty"];
    const AUTHORIZATION: (&'static str, &'static str) =
        ("authorization", "Bearer correct horse battery staple");

    fn provider(setup: Setup) -> Arc<dyn Provider> {
        let http = setup.http();
        let mut config = ResponsesConfig::new(EndpointConfig {
            base_url: setup.base_url,
            api_key: Some(setup.key),
            headers: setup.headers,
        });
        config.limits = setup.limits;
        Arc::new(Responses::new(http, config).unwrap())
    }

    fn parameters() -> Value {
        json!({
            "temperature": 0.5, "top_p": 0.25, "parallel_tool_calls": false,
            "tool_choice": { "type": "function", "name": "f" },
            "text": { "format": {
                "type": "json_schema", "name": "answer", "strict": true,
                "schema": { "type": "object", "properties": { "n": { "type": "integer" } } },
            } },
        })
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
            end(
                &json!({"status": "completed", "error": null, "usage": usage, "model": "model-1", "service_tier": "flex"}),
            ),
        ];
        let arguments = Arguments::Parsed(json!({"x": "1"}));
        let facts = letters(vec![
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
            StreamEvent::Reported(Box::new(Reported {
                model: Some("model-1".into()),
                service_tier: Some("flex".into()),
                ..Reported::default()
            })),
            StreamEvent::Finished(FinishReason::ToolCalls),
        ]);
        Sample { sufficient: parts.len(), parts, facts }
    }

    fn text(text: &str) -> String {
        delta("output_text", 1, "m1", text)
    }

    fn pings() -> String {
        event(&json!({"type": "response.in_progress", "response": {"status": "in_progress"}}))
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

/// Returns the items of the requests made for `history`, one after the other, and how each call ended.
async fn asked(replies: Vec<Reply>, history: &[(&str, &str)]) -> Vec<(Vec<Value>, StreamEvent)> {
    let server = Loopback::start(replies).await;
    let provider = ResponsesApi::provider(Setup::at(&server.base_url()));
    let mut asked = Vec::new();
    for (at, (model, content)) in history.iter().enumerate() {
        let origin = format!("openai-responses {} first", server.address());
        let data = json!([{"type": "reasoning", "id": "r", "summary": [], "encrypted_content": content}]);
        let thought = Chunk::Thinking { text: "hm".into(), echo: Some(Echo { origin, data }) };
        let chunks = vec![thought, Chunk::Text { text: "a".into() }];
        let mut request = request();
        request.model = (*model).to_owned();
        request.messages = vec![Message::new(Role::Assistant, chunks)];
        let facts: Vec<_> = provider.stream(request).collect().await;
        let items = server.requests()[at].json().unwrap()["input"].as_array().unwrap().clone();
        asked.push((items, facts.last().unwrap().clone()));
    }
    asked
}

#[tokio::test]
async fn reasoning_is_returned_only_to_its_model() {
    let asked =
        asked(vec![Reply::sse(ResponsesApi::sample().parts)], &[("first", "A"), ("second", "A")]).await;
    assert_eq!(asked[0].0.len(), 2);
    assert_eq!(asked[1].0.len(), 1);
}

#[tokio::test]
async fn rejected_reasoning_is_left_out_from_then_on() {
    let error = |code: &str| {
        Reply::json(
            400,
            &json!({"error": {"message": "The encrypted content for item r could not be verified.", "type": "invalid_request_error", "code": code}}),
        )
    };
    let fine = Reply::sse(ResponsesApi::sample().parts);
    let refused = "invalid_encrypted_content";
    let replies = vec![error(refused), fine.clone(), fine.clone(), error(refused), error("other"), fine];
    let history =
        [("first", "A"), ("first", "A"), ("first", "B"), ("first", "A"), ("first", "B"), ("first", "B")];
    let asked = asked(replies, &history).await;
    let sent: Vec<usize> = asked.iter().map(|(items, _)| items.len()).collect();
    assert_eq!(sent, [2, 1, 2, 1, 2, 2], "A was refused, B never was");
    let retryable: Vec<_> = asked
        .iter()
        .map(|(_, last)| match last {
            StreamEvent::Failed(failure) => {
                assert_eq!(failure.category, Category::InvalidRequest);
                Some(failure.retryable)
            }
            _ => None,
        })
        .collect();
    let expected = [Some(true), None, None, Some(false), Some(false), None];
    assert_eq!(retryable, expected, "worth another attempt only if that is without it");
}

#[tokio::test]
async fn a_rejected_reasoning_summary_is_not_requested_again() {
    let refusal = json!({"error": {
        "message": "Your organization must be verified to generate reasoning summaries.",
        "type": "invalid_request_error", "param": "reasoning.summary", "code": "unsupported_value",
    }});
    let other = json!({"error": {
        "message": "Unsupported value: 'x' is not supported with this model.",
        "type": "invalid_request_error", "param": "reasoning.effort", "code": "unsupported_value",
    }});
    let fine = Reply::sse(ResponsesApi::sample().parts);
    let replies =
        vec![Reply::json(400, &other), Reply::json(400, &refusal), fine, Reply::json(400, &refusal)];
    let server = Loopback::start(replies).await;
    let provider = ResponsesApi::provider(Setup::at(&server.base_url()));
    let mut retryable = Vec::new();
    for _ in 0..4 {
        let mut request = request();
        request.reasoning_effort = Some("high".to_owned());
        let last = provider.stream(request).collect::<Vec<_>>().await.pop().unwrap();
        retryable.push(match last {
            StreamEvent::Failed(failure) => Some(failure.retryable),
            _ => None,
        });
    }
    let asked: Vec<Value> =
        server.requests().iter().map(|request| request.json().unwrap()["reasoning"].clone()).collect();
    let (whole, bare) = (json!({"effort": "high", "summary": "auto"}), json!({"effort": "high"}));
    assert_eq!(asked, [whole.clone(), whole, bare.clone(), bare]);
    assert_eq!(retryable, [Some(false), Some(true), None, Some(false)]);
}
