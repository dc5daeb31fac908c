//! A provider that refuses each turn twice, has it call a tool, then answers slowly. It counts its calls.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_sim::{Loopback, Reply, Request, chat, fault};
use serde_json::Value;

/// Number of calls of a turn that nothing disturbs: two refusals, one with a tool call, one with the answer.
pub(super) const CALLS: usize = 4;

/// The answer of a turn.
pub(super) const ANSWER: [&str; 6] = ["All ", "is ", "well ", "that ", "ends ", "well."];

/// Calls by turn.
pub(super) type Calls = Arc<Mutex<BTreeMap<String, usize>>>;

pub(super) async fn start() -> (Loopback, Calls) {
    let calls = Calls::default();
    let counted = calls.clone();
    let provider = Loopback::with(move |request: &Request| reply(request, &counted)).await;
    (provider, calls)
}

fn reply(request: &Request, calls: &Calls) -> Reply {
    let json = request.json().unwrap();
    let messages = json["messages"].as_array().unwrap();
    let user = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    let turn = user["content"].as_str().unwrap().to_owned();
    let mut calls = calls.lock().unwrap();
    let count = calls.entry(turn.clone()).or_default();
    *count += 1;
    if turn == "wait" {
        // Every other call is refused for a minute.
        return if *count % 2 == 1 {
            fault::rate_limited(Some(60))
        } else {
            chat::text(["At last."]).reply()
        };
    }
    if turn == "slow" {
        return chat::text(["and "; 400]).reply().paced(Duration::from_millis(50));
    }
    match *count {
        1 => fault::overloaded(),
        2 => fault::bad_gateway(),
        _ if messages.iter().any(|message: &Value| message["role"] == "tool") => {
            chat::text(ANSWER).reply().paced(Duration::from_millis(150))
        }
        _ => {
            let arguments = format!("{{\"turn\":\"{turn}\"}}");
            let answer = chat::Answer::new().role().text("One moment. ");
            let called = answer.tool(0, "call_1", "counting__once", [arguments]);
            called.finish("tool_calls").done().reply().paced(Duration::from_millis(100))
        }
    }
}
