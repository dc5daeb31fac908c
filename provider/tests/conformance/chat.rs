//! The Chat Completions API, for the suite.

use std::sync::Arc;

use everturn_kernel::{Arguments, FinishReason, Provider, StreamEvent, ToolCall};
use everturn_provider::{ChatCompletions, ChatConfig, EndpointConfig};
use everturn_sim::chat::Answer;
use everturn_wire::{Reported, Usage, Value};
use serde_json::json;

use crate::dialect::{Asked, Dialect, Sample, Setup, in_turns, letters};

pub(crate) struct Chat;

impl Dialect for Chat {
    const PATH: &'static str = "/v1/chat/completions";
    const SEEING_MODEL: Option<&'static str> = None;
    const LACKS: &'static [&'static str] = &[];
    const AUTHORIZATION: (&'static str, &'static str) =
        ("authorization", "Bearer correct horse battery staple");

    fn provider(setup: Setup) -> Arc<dyn Provider> {
        let http = setup.http();
        let mut config = ChatConfig::new(EndpointConfig {
            base_url: setup.base_url,
            api_key: Some(setup.key),
            headers: setup.headers,
        });
        config.limits = setup.limits;
        Arc::new(ChatCompletions::new(http, config).unwrap())
    }

    fn parameters() -> Value {
        json!({
            "temperature": 0.5, "top_p": 0.25, "stop": ["END", "STOP"], "seed": 7,
            "tool_choice": { "type": "function", "function": { "name": "f" } },
            "response_format": { "type": "json_schema", "json_schema": {
                "name": "answer", "strict": true,
                "schema": { "type": "object", "properties": { "n": { "type": "integer" } } },
            } },
            "parallel_tool_calls": false, "presence_penalty": 0.125, "frequency_penalty": -0.5,
        })
    }

    fn sample() -> Sample {
        let answer = Answer::new()
            .role()
            .comment("keep-alive")
            .reasoning("Hm.")
            .text("Grüße, ")
            .text("\u{1F600}\u{2028}!")
            .tool_begin(0, "c0", "f")
            .tool_begin(1, "c1", "g")
            .tool_fragment(1, "{\"y\":[")
            .tool_fragment(0, "{\"x\":")
            .tool_fragment(1, "2]}")
            .tool_fragment(0, "\"1\"}")
            .finish("tool_calls")
            .usage(9, 7)
            .done();
        let call = |id: &str, name: &str, arguments| {
            let arguments = Arguments::Parsed(arguments);
            StreamEvent::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments, echo: None })
        };
        let facts = letters(vec![
            StreamEvent::Reasoning("Hm.".into()),
            StreamEvent::Text("Grüße, ".into()),
            StreamEvent::Text("\u{1F600}\u{2028}!".into()),
            call("c0", "f", json!({"x": "1"})),
            call("c1", "g", json!({"y": [2]})),
            StreamEvent::Usage(Usage { input_tokens: 9, output_tokens: 7, ..Usage::default() }),
            StreamEvent::Reported(Box::new(Reported { model: Some("sim".into()), ..Reported::default() })),
            StreamEvent::Finished(FinishReason::ToolCalls),
        ]);
        let parts = answer.frames().to_vec();
        Sample { sufficient: parts.len() - 2, parts, facts }
    }

    fn text(text: &str) -> String {
        Answer::new().text(text).frames().concat()
    }

    fn pings() -> String {
        "data: {\"choices\":[]}\n\n: OPENROUTER PROCESSING\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n"
            .to_owned()
    }

    fn error(message: &str) -> String {
        Answer::new().error(503, message).frames().concat()
    }

    fn nothing() -> Vec<Vec<String>> {
        let answers = [
            Answer::new().done(),
            Answer::new().role().finish("stop").done(),
            Answer::new().role().text("").finish("stop").usage(9, 0).done(),
        ];
        answers.iter().map(|answer| answer.frames().to_vec()).collect()
    }

    fn calls(calls: &[Asked<'_>]) -> Option<Vec<String>> {
        let begun = calls
            .iter()
            .enumerate()
            .fold(Answer::new().role(), |answer, (place, (id, name, _))| answer.tool_begin(place, id, name));
        let said = in_turns(calls)
            .into_iter()
            .fold(begun, |answer, (place, piece)| answer.tool_fragment(place, piece));
        Some(said.finish("tool_calls").done().frames().to_vec())
    }
}
