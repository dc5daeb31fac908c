//! Requested and returned thinking.

use everturn_kernel::Request;
use everturn_wire::{Message, Role, Value};
use serde_json::{Map, json};

use crate::{
    EndpointConfig,
    anthropic::{
        AnthropicConfig,
        request::{
            body,
            tests::{ORIGIN, asked},
        },
    },
    history::sample::{asking, call, message, result, text},
};

/// Returns thinking with text, signed by this origin.
fn thought(words: &str, signature: &str, origin: &str) -> Value {
    let echo = json!({"origin": origin, "data": {"type": "thinking", "signature": signature}});
    json!({"type": "thinking", "text": words, "echo": echo})
}

/// Returns redacted thinking.
fn hidden(data: &str) -> Value {
    json!({"type": "thinking", "text": "", "echo": {"origin": ORIGIN, "data": {"type": "redacted_thinking", "data": data}}})
}

fn user() -> Message {
    message(Role::User, &[text("hi")])
}

/// Returns an assistant message and its tool results.
fn step(thoughts: &[Value], id: &str) -> [Message; 2] {
    let said = [thoughts, &[text("Let me see."), call(id, &json!({}))]].concat();
    [message(Role::Assistant, &said), message(Role::Tool, &[result(id, "r", false)])]
}

fn with_effort(effort: &str, messages: Vec<Message>) -> Request {
    Request { reasoning_effort: Some(effort.into()), ..asking(messages) }
}

/// Returns a configuration with this `thinking` field.
fn with_extra(thinking: &Value) -> AnthropicConfig {
    let mut config = AnthropicConfig::new(EndpointConfig::new("http://127.0.0.1/v1"));
    config.extra_body = Map::from_iter([("thinking".to_owned(), thinking.clone())]);
    config
}

/// Returns the block types of each assistant message in the body.
fn sent(body: &Value) -> Vec<Vec<String>> {
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = |message: &Value| message["content"].as_array().unwrap().clone();
    let kinds =
        |message| blocks(message).iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect();
    messages.filter(|message| message["role"] == "assistant").map(kinds).collect()
}

#[test]
fn effort_is_a_word_or_a_budget() {
    let body = asked(&with_effort("high", vec![user()]));
    assert_eq!((&body["output_config"], body.get("thinking")), (&json!({"effort": "high"}), None));
    for (effort, limit, thinking, max_tokens) in [
        ("2000", None, json!({"type": "enabled", "budget_tokens": 2000}), 8192),
        ("2000", Some(100), json!({"type": "enabled", "budget_tokens": 2000}), 2100),
        ("8192", None, json!({"type": "enabled", "budget_tokens": 8192}), 16384),
        ("5", None, json!({"type": "enabled", "budget_tokens": 1024}), 8192),
        ("0", None, json!({"type": "disabled"}), 8192),
    ] {
        let request = Request { max_output_tokens: limit, ..with_effort(effort, vec![user()]) };
        let body = asked(&request);
        assert_eq!((&body["thinking"], &body["max_tokens"]), (&thinking, &json!(max_tokens)), "{effort}");
    }
}

#[test]
fn signed_reasoning_is_returned_unchanged_before_its_output() {
    let thoughts = [thought("hm, \n", "one", ORIGIN), hidden("two"), thought("", "three", ORIGIN)];
    let messages = [vec![user()], step(&thoughts, "t").to_vec()].concat();
    let expected = json!([
        {"type": "thinking", "thinking": "hm, \n", "signature": "one"},
        {"type": "redacted_thinking", "data": "two"},
        {"type": "thinking", "thinking": "", "signature": "three"},
        text("Let me see."),
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ]);
    for effort in [None, Some("high"), Some("2000")] {
        let request = Request { reasoning_effort: effort.map(Into::into), ..asking(messages.clone()) };
        let body = asked(&request);
        assert_eq!(body["messages"][1]["content"], expected, "{effort:?}");
        assert_eq!(body.get("thinking").is_some(), effort == Some("2000"), "{effort:?}");
    }
}

#[test]
fn foreign_and_unsigned_reasoning_is_not_sent() {
    let unsigned = json!({"type": "thinking", "text": "hm"});
    let damaged = json!({"type": "thinking", "text": "hm", "echo": {"origin": ORIGIN, "data": "no block"}});
    for foreign in
        [thought("hm", "s", "anthropic elsewhere"), thought("hm", "s", "openai host"), unsigned, damaged]
    {
        let messages = [vec![user()], step(std::slice::from_ref(&foreign), "t").to_vec()].concat();
        assert_eq!(sent(&asked(&asking(messages))), [["text", "tool_use"]], "{foreign}");
    }
}

/// The API rejects a budget before tool results if the turn does not begin with signed thinking, and rejects thinking
/// if none is requested.
#[test]
fn a_thinking_budget_starts_with_the_next_turn_if_this_one_began_without_thinking() {
    let signed = || step(&[thought("hm", "s", ORIGIN)], "a").to_vec();
    let bare = || step(&[], "b").to_vec();
    let steering = || vec![message(Role::User, &[text("quickly")])];
    let failed = || vec![message(Role::Assistant, &[json!({"type": "error", "message": "HTTP 500"})])];
    let (thinks, plain) = (vec!["thinking", "text", "tool_use"], vec!["text", "tool_use"]);
    for (turn, has_budget, expected) in [
        (vec![], true, vec![]),
        (vec![signed()], true, vec![thinks.clone()]),
        (vec![signed(), bare()], true, vec![thinks.clone(), plain.clone()]),
        (vec![bare()], false, vec![plain.clone()]),
        (vec![bare(), signed()], false, vec![plain.clone(), plain.clone()]),
        (vec![signed(), steering()], true, vec![thinks.clone()]),
        (vec![bare(), steering()], false, vec![plain.clone()]),
        (vec![bare(), failed(), steering()], false, vec![plain.clone()]),
    ] {
        let messages = [vec![user()], turn.concat()].concat();
        let by_effort = asked(&with_effort("2000", messages.clone()));
        assert_eq!(by_effort.get("thinking").is_some(), has_budget, "{messages:?}");
        assert_eq!(sent(&by_effort), expected, "{messages:?}");
        let enabled = json!({"type": "enabled", "budget_tokens": 2000});
        let by_field = body(&with_extra(&enabled), ORIGIN, &asking(messages.clone()));
        assert_eq!(by_field.get("thinking"), has_budget.then_some(&enabled), "{messages:?}");
        assert_eq!(sent(&by_field), expected, "{messages:?}");
        let off = asked(&with_effort("0", messages));
        assert_eq!(sent(&off), vec![plain.clone(); expected.len()]);
    }
}

/// Newer models reject old thinking for ever once the instructions before it have changed.
#[test]
fn thinking_of_earlier_turns_is_not_sent() {
    let answer = message(Role::Assistant, &[thought("b", "b", ORIGIN), text("Done.")]);
    let earlier = [vec![user()], step(&[thought("a", "a", ORIGIN)], "a").to_vec(), vec![answer]].concat();
    let next = [earlier.clone(), vec![user()]].concat();
    let running = [next.clone(), step(&[thought("c", "c", ORIGIN)], "c").to_vec()].concat();
    for effort in ["high", "2000"] {
        let before = asked(&with_effort(effort, next.clone()));
        assert_eq!(sent(&before), [vec!["text", "tool_use"], vec!["text"]]);
        let after = asked(&with_effort(effort, running.clone()));
        let said = |body: &Value| body["messages"].as_array().unwrap().clone();
        assert_eq!(
            said(&after)[..said(&before).len()],
            said(&before)[..],
            "what stands before a thought stays"
        );
        assert_eq!(sent(&after).last().unwrap(), &["thinking", "text", "tool_use"]);
    }
}

#[test]
fn thinking_without_output_is_not_sent() {
    let thoughts = [hidden("a"), thought("b", "b", ORIGIN)];
    let blank = [&thoughts[..], &[text(" \n")]].concat();
    let late = [&[text("a"), call("t", &json!({}))][..], &thoughts].concat();
    let messages = vec![
        user(),
        message(Role::Assistant, &thoughts),
        message(Role::User, &[text("and?")]),
        message(Role::Assistant, &blank),
        message(Role::Assistant, &late),
        message(Role::Tool, &[result("t", "r", false)]),
    ];
    let body = asked(&asking(messages));
    assert_eq!(sent(&body), [["text", "tool_use"]]);
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"], "two parties still take turns");
}

#[test]
fn an_extra_field_overrides_the_effort() {
    let shown = json!({"type": "adaptive", "display": "summarized"});
    let unsigned = [vec![user()], step(&[], "a").to_vec()].concat();
    for messages in [vec![user()], unsigned] {
        let body = body(&with_extra(&shown), ORIGIN, &with_effort("2000", messages));
        assert_eq!(body["thinking"], shown, "such thinking may begin at any step");
    }
}
