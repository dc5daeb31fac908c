//! The scripted provider, and requests that must never be made.

use std::collections::BTreeSet;

use everturn_sim::{Loopback, Reply, Request, chat, fault};
use serde_json::{Value, json};

/// The text of the first turn.
pub(crate) const TEXT: &str = "Let me roll. The dice were rolled.";
/// The earlier message that exceeds the context, and its summary.
pub(crate) const BEFORE: &str = "hello";
pub(crate) const SUMMARY: &str = "They greeted each other.";
/// The user's second message, and the answer.
pub(crate) const AGAIN: &str = "and again";
pub(crate) const TEXT_AGAIN: &str = "Once more.";

/// The tool for the report.
pub(crate) const REPORT: &str = "final_report";

/// A tool call of the first turn.
pub(crate) struct Call {
    pub(crate) id: &'static str,
    pub(crate) tool: &'static str,
}

/// Fails once, calls these tools, answers, and answers the second turn. Rejects the earlier history as too long, unless
/// the request has nothing else; the first call for a summary fails, too. Gives a report once asked.
pub(crate) async fn provider(calls: &'static [Call]) -> Loopback {
    let (mut requests, mut summaries) = (0, 0);
    Loopback::with(move |request: &Request| {
        requests += 1;
        let messages = messages(request);
        let said = |text: &str| messages.iter().any(|message| message["content"] == text);
        if messages[0]["role"] == "system" {
            summaries += 1;
            return if summaries == 1 { fault::overloaded() } else { chat::text([SUMMARY]).reply() };
        }
        if said(BEFORE) {
            let too_long =
                json!({"error": {"code": "context_length_exceeded", "message": "Too many tokens."}});
            return if messages.len() == 1 {
                chat::text(["Hi."]).reply()
            } else {
                Reply::json(400, &too_long)
            };
        }
        if requests == 1 {
            return fault::overloaded();
        }
        let is_guidance = |message: &Value| {
            message["content"].as_str().is_some_and(|text| text.starts_with("TURN-FAILED: "))
        };
        if said(AGAIN) {
            chat::text(["Once ", "more."]).reply()
        } else if messages.iter().any(is_guidance) {
            chat::tool("report_1", REPORT, ["{\"status\": ", "\"done\"}"]).reply()
        } else if messages.iter().any(|message| message["role"] == "tool") {
            chat::text(["The ", "dice ", "were ", "rolled."]).reply()
        } else {
            let answer = chat::Answer::new().role().text("Let ").text("me ").text("roll. ");
            let call = |answer: chat::Answer, (at, call): (usize, &Call)| {
                answer.tool(at, call.id, call.tool, ["{}"])
            };
            let tools = calls.iter().filter(|call| call.tool != REPORT);
            tools.enumerate().fold(answer, call).finish("tool_calls").done().reply()
        }
    })
    .await
}

fn messages(request: &Request) -> Vec<Value> {
    request.json().unwrap()["messages"].as_array().unwrap().clone()
}

/// Returns what strict providers would reject in a request.
pub(crate) fn flaw(request: &Request) -> Option<String> {
    let messages = messages(request);
    let mut open = BTreeSet::new();
    for message in &messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                return Some(format!("a result without its call: {messages:#?}"));
            }
            continue;
        }
        if !open.is_empty() {
            return Some(format!("a call without its result: {messages:#?}"));
        }
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let is_empty = message["content"].as_str().unwrap_or_default().is_empty();
        if is_empty && calls.is_empty() {
            return Some(format!("an empty message: {messages:#?}"));
        }
        open.extend(calls.iter().filter_map(|call| call["id"].as_str().map(str::to_owned)));
    }
    let last = messages.last().map(|message| message["role"].clone());
    let ends_well = open.is_empty() && last.is_some_and(|role| role == "user" || role == "tool");
    (!ends_well).then(|| format!("it ends with what the model has to answer itself: {messages:#?}"))
}
