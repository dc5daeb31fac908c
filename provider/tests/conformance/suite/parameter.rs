//! Parameters that are passed on to the API.

use everturn_kernel::{Request, ToolSpec};
use everturn_sim::{Loopback, Reply};
use everturn_wire::{Parameters, ResponseFormat, ToolChoice, Value};
use serde_json::json;

use crate::dialect::{Dialect, Setup, request, told};

fn all() -> Parameters {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    Parameters {
        temperature: Some(0.5),
        top_p: Some(0.25),
        stop: vec!["END".into(), "STOP".into()],
        tool_choice: Some(ToolChoice::Tool { name: "f".into() }),
        response_format: Some(ResponseFormat::JsonSchema {
            name: "answer".into(),
            schema,
            strict: Some(true),
        }),
        max_output_tokens: None,
        parallel_tool_calls: Some(false),
        seed: Some(7),
        presence_penalty: Some(0.125),
        frequency_penalty: Some(-0.5),
    }
}

/// Returns what a server receives for these parameters.
async fn arrived<D: Dialect>(parameters: Parameters) -> Value {
    let server = Loopback::start([Reply::sse(D::sample().parts)]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let tool = ToolSpec {
        name: "f".into(),
        description: "It does.".into(),
        parameters: json!({ "type": "object" }),
    };
    let asked = Request { parameters: parameters.into(), tools: [tool].into(), ..request() };
    told(&provider, asked).await;
    server.requests()[0].json().unwrap()
}

/// Removes what both values have, at any depth of objects.
fn beyond(body: Value, plain: &Value) -> Value {
    let (Value::Object(body), Value::Object(plain)) = (body, plain) else { return Value::Null };
    let differs = body.into_iter().filter(|(name, value)| plain.get(name) != Some(value));
    let differs = differs.map(|(name, value)| match plain.get(&name) {
        Some(known @ Value::Object(_)) => (name, beyond(value, known)),
        _ => (name, value),
    });
    differs.collect()
}

/// Each supported parameter is sent, and the others are reported before anything is sent.
pub(crate) async fn every_parameter<D: Dialect>() {
    let provider = D::provider(Setup::at("http://127.0.0.1:9"));
    assert_eq!(provider.refuses(&all()), D::LACKS);
    assert_eq!(provider.refuses(&Parameters::default()), [""; 0]);
    let plain = arrived::<D>(Parameters::default()).await;
    assert_eq!(beyond(arrived::<D>(all()).await, &plain), D::parameters());
}

/// Every tool choice is sent, and all are different.
pub(crate) async fn every_choice<D: Dialect>() {
    let plain = arrived::<D>(Parameters::default()).await;
    let mut seen = vec![Value::Object(Default::default())];
    for choice in
        [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, ToolChoice::Tool { name: "f".into() }]
    {
        let parameters = Parameters { tool_choice: Some(choice), ..Parameters::default() };
        let fields = beyond(arrived::<D>(parameters).await, &plain);
        assert!(!seen.contains(&fields), "{fields}");
        seen.push(fields);
    }
}

/// An unsupported format is refused, and a supported one is sent unless it is the default.
pub(crate) async fn every_format<D: Dialect>() {
    let plain = arrived::<D>(Parameters::default()).await;
    let provider = D::provider(Setup::at("http://127.0.0.1:9"));
    let schema = ResponseFormat::JsonSchema { name: "a".into(), schema: json!({}), strict: None };
    for format in [ResponseFormat::JsonObject, schema] {
        let parameters = Parameters { response_format: Some(format), ..Parameters::default() };
        let refused = !provider.refuses(&parameters).is_empty();
        let fields = beyond(arrived::<D>(parameters).await, &plain);
        assert_eq!(refused, fields == json!({}), "{fields}");
    }
}
