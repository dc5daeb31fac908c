//! A model that signs its thinking, and requires it with the results of the tools that it led to.

use everturn_sim::{Loopback, Reply, fault};
use serde_json::{Value, json};

use crate::{
    client::{Socket, get, post},
    home::{Home, LONG},
};

/// Returns an answer of the Messages API with complete blocks and a stop reason.
fn answer(blocks: &[(Value, Vec<Value>)], reason: &str) -> Reply {
    let event = |payload: Value| format!("event: {}\ndata: {payload}\n\n", payload["type"].as_str().unwrap());
    let mut events = vec![event(json!({"type": "message_start", "message": {"usage": {"input_tokens": 3}}}))];
    for (index, (block, deltas)) in blocks.iter().enumerate() {
        events.push(event(json!({"type": "content_block_start", "index": index, "content_block": block})));
        let delta = |delta| event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.extend(deltas.iter().map(delta));
        events.push(event(json!({"type": "content_block_stop", "index": index})));
    }
    events.push(event(json!({"type": "message_delta", "delta": {"stop_reason": reason}})));
    events.push(event(json!({"type": "message_stop"})));
    Reply::sse(events)
}

/// Thinks, visibly and not, and calls a tool.
fn rolls() -> Reply {
    let delta = |kind: &str, field: &str, value: &str| json!({"type": kind, field: value});
    let thinking = vec![
        delta("thinking_delta", "thinking", "Dice, "),
        delta("thinking_delta", "thinking", "then."),
        delta("signature_delta", "signature", "c2lnbmVk"),
    ];
    let call = vec![
        delta("input_json_delta", "partial_json", "{\"di"),
        delta("input_json_delta", "partial_json", "ce\": \"1d6\"}"),
    ];
    let blocks = [
        (json!({"type": "thinking", "thinking": "", "signature": ""}), thinking),
        (json!({"type": "redacted_thinking", "data": "aGlkZGVu"}), vec![]),
        (json!({"type": "text", "text": ""}), vec![delta("text_delta", "text", "Rolling.")]),
        (json!({"type": "tool_use", "id": "t1", "name": "roll_dice", "input": {}}), call),
    ];
    answer(&blocks, "tool_use")
}

fn home(provider: &Loopback) -> Home {
    Home::with(&format!(
        "[tools]\ndice = true\n[retry]\n{LONG}\n[[provider]]\nname = \"sim\"\nkind = \"anthropic\"\n\
         base_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    ))
}

#[tokio::test]
async fn it_is_returned_with_the_results_also_from_another_process() {
    for killed in [false, true] {
        let text = [(json!({"type": "text", "text": "A six."}), vec![])];
        let provider = Loopback::start([rolls(), fault::overloaded(), answer(&text, "end_turn")]).await;
        let home = home(&provider);
        let mut server = home.serve().await;
        let prompt = json!({"conversationId": "c1", "message": "roll", "reasoningEffort": "2000"});
        post(&server, "/chat", &prompt).await;
        let mut socket = Socket::open(&server, "/ws").await;
        let subscribe = json!({"type": "chat.subscribe", "conversationId": "c1", "cursor": "0"});
        socket.say(&subscribe).await;
        let mut events = socket.events("provider-retry").await;
        if killed {
            server.child.kill().await.unwrap();
            server = home.serve().await;
            socket = Socket::open(&server, "/ws").await;
            socket.say(&subscribe).await;
        }
        socket.say(&json!({"type": "retry.now", "conversationId": "c1"})).await;
        events.extend(socket.events("turn-sealed").await);

        let asked: Vec<Value> = provider.requests().iter().map(|request| request.json().unwrap()).collect();
        assert_eq!(asked.len(), 3);
        let budget = json!({"type": "enabled", "budget_tokens": 2000});
        assert!(asked.iter().all(|body| body["thinking"] == budget), "{asked:#?}");
        let said = json!([
            {"type": "thinking", "thinking": "Dice, then.", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "aGlkZGVu"},
            {"type": "text", "text": "Rolling."},
            {"type": "tool_use", "id": "t1", "name": "roll_dice", "input": {"dice": "1d6"}},
        ]);
        assert_eq!(asked[1]["messages"][1], json!({"role": "assistant", "content": said}));
        assert_eq!(asked[2]["messages"], asked[1]["messages"], "the same again, killed: {killed}");

        let told = json!(events).to_string();
        assert!(
            told.contains("Dice, ") && !told.contains("c2lnbmVk") && !told.contains("aGlkZGVu"),
            "{told}"
        );
        let history = get(&server, "/conversations/c1").await.json().await;
        let kept = history["chunks"].as_array().unwrap().iter();
        let thoughts: Vec<_> = kept.filter(|stored| stored["chunk"]["type"] == "thinking").collect();
        assert_eq!(thoughts.len(), 2, "{history:#}");
        assert_eq!(thoughts[1]["chunk"]["text"], "", "nothing to show");
    }
}
