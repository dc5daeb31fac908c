//! The Gemini API, for the suite.

use std::sync::Arc;

use everturn_kernel::{Arguments, FinishReason, Provider, Request, StreamEvent, ToolCall};
use everturn_provider::{EndpointConfig, Gemini, GeminiConfig};
use everturn_sim::{Loopback, Reply};
use everturn_wire::{Reported, Usage, Value};
use futures_util::StreamExt as _;
use serde_json::{Map, json};

use crate::dialect::{Asked, Dialect, KEY, Sample, Setup, echo, letters, request};

pub(crate) struct GenerateContent;

fn event(payload: &Value) -> String {
    format!("data: {payload}\n\n")
}

fn parts(parts: &Value) -> String {
    event(&json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]}))
}

/// Returns the end of an answer. The API uses the same reason with and without tool calls.
fn stop() -> String {
    event(
        &json!({"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]}),
    )
}

impl Dialect for GenerateContent {
    const PATH: &'static str = "/v1/models/model-1:streamGenerateContent";
    const QUERY: Option<&'static str> = Some("alt=sse");
    const HAS_LAST_EVENT: bool = false;
    const SEEING_MODEL: Option<&'static str> = Some("gemini-3-pro-preview");
    const LACKS: &'static [&'static str] = &["parallelToolCalls"];
    const AUTHORIZATION: (&'static str, &'static str) = ("x-goog-api-key", KEY);

    fn provider(setup: Setup) -> Arc<dyn Provider> {
        let http = setup.http();
        let mut config = GeminiConfig::new(EndpointConfig {
            base_url: setup.base_url,
            api_key: Some(setup.key),
            headers: setup.headers,
        });
        config.limits = setup.limits;
        Arc::new(Gemini::new(http, config).unwrap())
    }

    fn parameters() -> Value {
        json!({
            "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["f"] } },
            "generationConfig": {
                "temperature": 0.5, "topP": 0.25, "stopSequences": ["END", "STOP"], "seed": 7,
                "responseMimeType": "application/json",
                "responseJsonSchema": { "type": "object", "properties": { "n": { "type": "integer" } } },
                "presencePenalty": 0.125, "frequencyPenalty": -0.5,
            },
        })
    }

    fn sample() -> Sample {
        let finish = json!({
            "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 3},
        });
        let parts = vec![
            parts(&json!([{"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"}])),
            parts(&json!([{"text": "Grüße, "}])),
            parts(&json!([{"text": "\u{1F600}\u{2028}!"}])),
            parts(&json!([
                {"functionCall": {"id": "c0", "name": "f", "args": {"x": "1"}}, "thoughtSignature": "bmF0"},
                {"functionCall": {"id": "c1", "name": "g", "args": {"y": [2]}}},
            ])),
            event(&finish),
            event(&json!({"usageMetadata": {"candidatesTokenCount": 5}, "modelVersion": "model-1"})),
        ];
        let call = |id: &str, name: &str, arguments, data| {
            let (arguments, echo) = (Arguments::Parsed(arguments), Some(echo("gemini", data)));
            StreamEvent::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, echo })
        };
        let facts = letters(vec![
            StreamEvent::Reasoning("Hm.".into()),
            StreamEvent::Echo(echo("gemini", json!({"thought": true, "thoughtSignature": "c2ln"}))),
            StreamEvent::Text("Grüße, ".into()),
            StreamEvent::Text("\u{1F600}\u{2028}!".into()),
            call("c0", "f", json!({"x": "1"}), json!({"id": "c0", "thoughtSignature": "bmF0"})),
            call("c1", "g", json!({"y": [2]}), json!({"id": "c1"})),
            StreamEvent::Usage(Usage {
                input_tokens: 9,
                output_tokens: 8,
                reasoning_tokens: Some(3),
                ..Usage::default()
            }),
            StreamEvent::Reported(Box::new(Reported {
                model: Some("model-1".into()),
                ..Reported::default()
            })),
            StreamEvent::Finished(FinishReason::ToolCalls),
        ]);
        Sample { sufficient: parts.len() - 1, parts, facts }
    }

    fn text(text: &str) -> String {
        parts(&json!([{"text": text}]))
    }

    fn pings() -> String {
        event(&json!({"candidates": []})) + &parts(&json!([{"text": ""}]))
    }

    fn error(message: &str) -> String {
        event(&json!({"error": {"code": 503, "message": message, "status": "UNAVAILABLE"}}))
    }

    fn nothing() -> Vec<Vec<String>> {
        let bare = event(&json!({"candidates": [{"finishReason": "STOP", "index": 0}]}));
        let counted = event(&json!({"usageMetadata": {"promptTokenCount": 9}}));
        let thought = parts(&json!([{"text": "", "thought": true}]));
        vec![vec![bare], vec![stop(), counted], vec![thought, stop()]]
    }

    fn calls(calls: &[Asked<'_>]) -> Option<Vec<String>> {
        let call = |(id, name, pieces): &Asked<'_>| {
            let args: Map<String, Value> = serde_json::from_str(&pieces.concat()).ok()?;
            Some(json!({"functionCall": {"id": id, "name": name, "args": args}}))
        };
        let calls: Option<Vec<Value>> = calls.iter().map(call).collect();
        Some(vec![parts(&json!(calls?)), stop()])
    }
}

#[tokio::test]
async fn a_model_without_thinking_is_not_asked_for_thoughts_again() {
    let refusal = |message: &str| {
        Reply::json(400, &json!({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}))
    };
    let unthinking = "Thinking is not enabled for models/model-1";
    let fine = Reply::sse(GenerateContent::sample().parts);
    let replies =
        vec![refusal("No such field"), refusal(unthinking), fine.clone(), refusal(unthinking), fine];
    let server = Loopback::start(replies).await;
    let provider = GenerateContent::provider(Setup::at(&server.base_url()));
    let mut retryable = Vec::new();
    for model in ["model-1", "model-1", "model-1", "model-1", "model-2"] {
        let request = Request { model: model.to_owned(), ..request() };
        let last = provider.stream(request).collect::<Vec<_>>().await.pop().unwrap();
        retryable.push(match last {
            StreamEvent::Failed(failure) => Some(failure.retryable),
            _ => None,
        });
    }
    let asked = server.requests();
    let asked: Vec<bool> = asked
        .iter()
        .map(|request| !request.json().unwrap()["generationConfig"]["thinkingConfig"].is_null())
        .collect();
    assert_eq!(asked, [true, true, false, false, true]);
    assert_eq!(retryable, [Some(false), Some(true), None, Some(false), None]);
}
