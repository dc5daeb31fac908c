//! Tool calls, as models and gateways send them.

use std::collections::HashSet;

use everturn_kernel::{Arguments, FinishReason, Request, StreamEvent, ToolCall};
use everturn_sim::{Gate, Loopback, Reply};
use everturn_wire::{Chunk, Image, Message, Role};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::dialect::{Asked, Dialect, Setup, call, failed, request, told};

/// Returns the calls of an answer with these calls. `None` if the API cannot carry them.
async fn asked<D: Dialect>(calls: &[Asked<'_>]) -> Option<Vec<ToolCall>> {
    let server = Loopback::start([Reply::sse(D::calls(calls)?)]).await;
    let mut facts = call(&D::provider(Setup::at(&server.base_url()))).await;
    assert_eq!(facts.pop(), Some(StreamEvent::Finished(FinishReason::ToolCalls)), "{facts:?}");
    let told = facts.into_iter().filter_map(|fact| match fact {
        StreamEvent::ToolCall(call) => Some(call),
        _ => None,
    });
    Some(told.collect())
}

pub(crate) async fn calls_take_turns<D: Dialect>() {
    let calls: [Asked<'_>; 3] =
        [("c0", "f", &["{\"a\":", "[1,", "2]}"]), ("c1", "g", &["{\"b\"", ":\"}{\"}"]), ("c2", "f", &["{}"])];
    let told = asked::<D>(&calls).await.expect("every API can carry whole arguments");
    let expected = [("f", json!({"a": [1, 2]})), ("g", json!({"b": "}{"})), ("f", json!({}))];
    let expected: Vec<_> = expected.map(|(name, value)| (name, Arguments::Parsed(value))).into();
    let told: Vec<_> = told.iter().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
    assert_eq!(told, expected);
}

/// A result is matched to its call by id, so two calls with the same id could not both be answered.
pub(crate) async fn calls_share_an_id<D: Dialect>() {
    for id in ["same", ""] {
        let calls: [Asked<'_>; 3] =
            [(id, "f", &["{\"a\":1}"]), (id, "g", &["{\"b\":2}"]), (id, "f", &["{\"c\":3}"])];
        let told = asked::<D>(&calls).await.expect("every API can carry whole arguments");
        let ids: HashSet<_> = told.iter().map(|call| &call.id).collect();
        assert_eq!((told.len(), ids.len()), (3, 3), "{told:?}");
        assert!(told.iter().all(|call| !call.id.is_empty()), "{told:?}");
    }
}

/// The finish reason is tool calls, but the arguments are truncated: nothing may run.
pub(crate) async fn arguments_that_are_cut_off<D: Dialect>() {
    for cut in ["{\"path\": \"/tmp/a", "{\"n\": 1", "{", "{\"a\": [1, 2", "[]", "null", "{} {}"] {
        let calls: [Asked<'_>; 2] = [("c0", "f", &["{\"whole\":true}"]), ("c1", "g", &[cut])];
        let Some(told) = asked::<D>(&calls).await else { return };
        assert_eq!(told[0].arguments, Arguments::Parsed(json!({"whole": true})));
        let malformed = matches!(&told[1].arguments, Arguments::Malformed { raw, .. } if raw == cut);
        assert!(malformed && told.len() == 2, "{cut} became {told:?}");
    }
}

/// Images are sent once, if the model accepts them. The text that describes them is always sent.
pub(crate) async fn images_in_results<D: Dialect>() {
    const DATA: &str = "QUJDREVGR0hJSktM";
    const WORDS: &str = "[image: image/png, 12 bytes]";
    let asking = Chunk::ToolCall {
        tool_call_id: "c0".into(),
        tool_name: "look".into(),
        input: json!({}),
        step_id: None,
        echo: None,
    };
    let seen = Chunk::ToolResult {
        tool_call_id: "c0".into(),
        tool_name: "look".into(),
        content: WORDS.into(),
        is_error: false,
        step_id: None,
        images: vec![Image {
            url: format!("data:image/png;base64,{DATA}"),
            mime_type: Some("image/png".into()),
        }],
        decisions: vec![],
        questions: vec![],
    };
    let said = [Message::new(Role::Assistant, [asking]), Message::new(Role::Tool, [seen])];
    let messages = request().messages.into_iter().chain(said).collect();
    let model = D::SEEING_MODEL.unwrap_or("model-1").to_owned();
    let server = Loopback::start([Reply::sse(D::sample().parts)]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    told(&provider, Request { model, messages, ..request() }).await;
    let sent = server.requests()[0].json().unwrap().to_string();
    let count = |text: &str| sent.matches(text).count();
    assert_eq!(count(DATA), usize::from(D::SEEING_MODEL.is_some()), "{sent}");
    assert_eq!(count(WORDS), 1, "{sent}");
}

const TWO: [Asked<'static>; 2] = [("c0", "f", &["{\"a\":1}"]), ("c1", "g", &["{\"b\":2}"])];

fn eager() -> Request {
    Request { eager_calls: true, ..request() }
}

fn names(facts: &[StreamEvent]) -> Vec<&str> {
    let calls = facts.iter().filter_map(|fact| match fact {
        StreamEvent::ToolCall(call) => Some(call.name.as_str()),
        _ => None,
    });
    calls.collect()
}

/// The server holds its last event back. A complete eager call is yielded before.
pub(crate) async fn a_whole_call_is_told_before_the_end<D: Dialect>() {
    let parts = D::calls(&TWO).expect("every API can carry whole arguments");
    let gate = Gate::new();
    let held = parts.len() - 1;
    let server = Loopback::start([Reply::sse(parts).stall_before(held, &gate)]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let mut stream = provider.stream(eager());
    let first = stream.next().await;
    assert!(matches!(&first, Some(StreamEvent::ToolCall(call)) if call.name == "f"), "{first:?}");
    gate.open();
    let rest: Vec<_> = stream.collect().await;
    assert_eq!(names(&rest), ["g"], "each is told once");
    assert_eq!(rest.last(), Some(&StreamEvent::Finished(FinishReason::ToolCalls)));
}

/// No call of a truncated answer runs, except eager calls that were complete.
pub(crate) async fn calls_of_an_answer_that_breaks_off<D: Dialect>() {
    let parts = D::calls(&TWO).expect("every API can carry whole arguments");
    let sizes = parts.iter().map(String::len);
    let before_the_end: usize = sizes.take(parts.len() - 1).sum();
    let cut = || Reply::sse(&parts).cut_at(before_the_end);
    let server = Loopback::start([cut(), cut()]).await;
    let provider = D::provider(Setup::at(&server.base_url()));
    let (said, _) = failed(told(&provider, request()).await);
    assert_eq!(names(&said), [""; 0]);
    let (said, _) = failed(told(&provider, eager()).await);
    assert_eq!(names(&said).first(), Some(&"f"), "{said:?}");
}

/// Incomplete arguments wait for the end, whatever the API says about their call.
pub(crate) async fn cut_arguments_never_come_early<D: Dialect>() {
    for cut in ["{\"path\": \"/tmp/a", "{\"n\": {}", "", "[]"] {
        let calls: [Asked<'_>; 2] = [("c0", "f", &[cut]), ("c1", "g", &["{\"b\":2}"])];
        let Some(parts) = D::calls(&calls) else { return };
        let sizes = parts.iter().map(String::len);
        let before_the_end: usize = sizes.take(parts.len() - 1).sum();
        let server = Loopback::start([Reply::sse(&parts).cut_at(before_the_end)]).await;
        let (said, _) = failed(told(&D::provider(Setup::at(&server.base_url())), eager()).await);
        assert!(!names(&said).contains(&"f"), "{cut:?}: {said:?}");
    }
}

/// Interleaved fragments: the start of another call does not make a call complete.
pub(crate) async fn calls_that_take_turns_come_whole<D: Dialect>() {
    let calls: [Asked<'_>; 2] =
        [("c0", "f", &["{\"a\":", "[1,", "2]}"]), ("c1", "g", &["{\"b\"", ":\"}{\"}"])];
    let parts = D::calls(&calls).expect("every API can carry whole arguments");
    let server = Loopback::start([Reply::sse(parts)]).await;
    let facts = told(&D::provider(Setup::at(&server.base_url())), eager()).await;
    let arguments = facts.iter().filter_map(|fact| match fact {
        StreamEvent::ToolCall(call) => Some((call.name.as_str(), call.arguments.clone())),
        _ => None,
    });
    let mut arguments: Vec<_> = arguments.collect();
    arguments.sort_by_key(|(name, _)| *name);
    let whole = [("f", json!({"a": [1, 2]})), ("g", json!({"b": "}{"}))];
    assert_eq!(arguments, whole.map(|(name, value)| (name, Arguments::Parsed(value))));
}
