//! Signed thinking goes back to its provider in the order in which it came.

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, Tool,
    kernel::{ToolAnswer, ToolSpec},
};
use everturn_sim::{Loopback, Request};
use everturn_wire::Value;
use serde_json::json;

use crate::{
    image::{provider, stream},
    support::{World, builder},
};

fn answer() -> Vec<Value> {
    let thought =
        |text: &str| json!({"type": "thinking", "thinking": text, "signature": format!("of {text}")});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "read", "input": {"n": 1}});
    vec![thought("first"), call("a"), thought("then"), call("b")]
}

struct Read;

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "read".to_owned(), description: "Reads.".to_owned(), parameters }
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::ok("text")
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_between_two_calls_goes_back_between_them() {
    let server = Loopback::with(|request: &Request| {
        if request.json().expect("JSON")["messages"].to_string().contains("tool_result") {
            let begin = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Done."}});
            return stream(&[begin], "end_turn");
        }
        let block = |(index, content): (u64, Value)| {
            let begin = json!({"type": "content_block_start", "index": index, "content_block": content});
            [begin, json!({"type": "content_block_stop", "index": index})]
        };
        stream(&(0..).zip(answer()).flat_map(block).collect::<Vec<_>>(), "tool_use")
    })
    .await;
    let world = World::of(builder(provider(&server)).tool(Read));
    let lines = world.say("Read both.").await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    let sent = server.requests().last().unwrap().json().unwrap();
    assert_eq!(sent["messages"][1]["content"], json!(answer()));
}
