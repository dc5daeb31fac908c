//! A provider that often fails, and counts its complete answers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use everturn_sim::{Loopback, Reply, Request, chat, fault};
use fastrand::Rng;
use serde_json::json;

/// How often each question was answered to its end.
pub(crate) type Answered = Arc<Mutex<BTreeMap<String, usize>>>;

/// Marks the name of a question in its text.
pub(crate) fn question(name: &str, ask: &str) -> String {
    format!("{ask} #{name}#")
}

pub(crate) fn answer(name: &str) -> String {
    format!("This is the answer to {name}. It has several words.")
}

pub(crate) async fn provider(seed: u64) -> (Loopback, Answered) {
    let answered = Answered::default();
    let (count, mut random) = (Arc::clone(&answered), Rng::with_seed(seed));
    let choose = move |request: &Request| {
        let body = String::from_utf8_lossy(&request.body);
        let name = body.rsplit('#').nth(1).unwrap_or_default().to_owned();
        let (reply, is_end) = reply(request, &body, &name);
        // No limits: others would rightly be held for longer than a client waits here.
        match random.u8(..30) {
            0 => fault::overloaded(),
            1 => fault::bad_gateway(),
            2 => Reply::hang_up(),
            3 => Reply::reset(),
            4 => reply.cut_at(0),
            _ => {
                *count.lock().unwrap().entry(name).or_default() += usize::from(is_end);
                reply
            }
        }
    };
    (Loopback::with(choose).await, answered)
}

/// Returns the undisturbed answer, and whether nothing comes after it.
fn reply(request: &Request, body: &str, name: &str) -> (Reply, bool) {
    let text = answer(name);
    let words: Vec<_> = text.split_inclusive(' ').collect();
    if request.path.ends_with("/messages") {
        return (messages(&words, body.contains("\"stream\":true")), true);
    }
    let last = body.rsplit("\"role\":").next().unwrap_or_default();
    if body.contains(&format!("roll #{name}#")) && !last.starts_with("\"tool\"") {
        return (chat::tool(&format!("call-{name}"), "roll_dice", ["{}"]).reply(), false);
    }
    (chat::text(words).reply(), true)
}

fn messages(words: &[&str], streams: bool) -> Reply {
    let usage = json!({ "input_tokens": 10, "output_tokens": words.len() });
    if !streams {
        let content = json!([{ "type": "text", "text": words.concat() }]);
        return Reply::json(
            200,
            &json!({ "id": "m", "type": "message", "role": "assistant", "model": "claude-a", "content": content,
                "stop_reason": "end_turn", "usage": usage }),
        );
    }
    let frame = |kind: &str, data: serde_json::Value| {
        let mut data = data;
        data["type"] = json!(kind);
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let start = json!({ "message": { "id": "m", "role": "assistant", "content": [], "usage": usage } });
    let block = json!({ "index": 0, "content_block": { "type": "text", "text": "" } });
    let delta = |word: &&str| {
        frame("content_block_delta", json!({ "index": 0, "delta": { "type": "text_delta", "text": word } }))
    };
    let end = json!({ "delta": { "stop_reason": "end_turn" }, "usage": usage });
    let frames = [frame("message_start", start), frame("content_block_start", block)].into_iter();
    let frames = frames.chain(words.iter().map(delta)).chain([
        frame("content_block_stop", json!({ "index": 0 })),
        frame("message_delta", end),
        frame("message_stop", json!({})),
    ]);
    Reply::sse(frames)
}
