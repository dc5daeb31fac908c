//! Usage of several servers, one of which is killed.

use everturn_sim::nats;
use serde_json::{Value, json};
use tokio::{task::yield_now, time::timeout};

use super::world::{Size, World};
use crate::{
    client::{get, post},
    home::{DEADLINE, Server},
};

/// Returns the total once it is as described.
async fn total(server: &Server, is_so: impl Fn(&Value) -> bool) -> Value {
    timeout(DEADLINE, async {
        loop {
            let total = get(server, "/usage").await.json().await["total"].clone();
            if is_so(&total) {
                return total;
            }
            yield_now().await;
        }
    })
    .await
    .expect("the usage becomes so")
}

#[tokio::test]
async fn all_servers_tell_the_usage_of_all_and_none_counts_twice() {
    let Some(program) = nats::program() else { return };
    let mut world = World::start(&program, Size { nats: 1, turns: 0, faults: 0 }, 0).await;
    for number in [0, 1] {
        let id = format!("waits-{number}");
        let message = json!({ "conversationId": id, "message": "wait" });
        let mut asked = post(&world.servers()[number], "/chat", &message).await;
        while !asked.line().await.unwrap().contains("provider-retry") {}
        let refused = total(&world.servers()[2], |total| total["refusals"] == number + 1).await;
        assert_eq!(refused["requests"], 2 * number + 1, "{refused}");
        if number == 1 {
            world.kill(1).await;
        }
        let now = post(&world.servers()[2], &format!("/conversations/{id}/retry/now"), &json!({})).await;
        assert_eq!(now.status, 200);
        for server in [0, 2] {
            total(&world.servers()[server], |total| total["turns"] == number + 1).await;
        }
    }
    for server in [0, 2] {
        let total = total(&world.servers()[server], |_| true).await;
        let names = ["turns", "survived", "failed", "requests", "refusals", "inputTokens", "outputTokens"];
        assert_eq!(names.map(|name| total[name].as_u64().unwrap()), [2, 2, 0, 4, 2, 20, 2], "{total}");
    }
}
