//! Memory after a burst of long answers.

use everturn_sim::{Loopback, Reply};
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::timeout;

use crate::{
    client::{get, post},
    home::{DEADLINE, Home, Server},
};

/// Number of answers at once, and of deltas of a kilobyte in each.
const ANSWERS: usize = 6;
const DELTAS: usize = 12_000;

/// Returns a value of the server's process in MiB: `VmRSS`, or `VmHWM`, the largest so far.
fn memory(server: &Server, field: &str) -> u64 {
    let path = format!("/proc/{}/status", server.child.id().unwrap());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test]
async fn memory_of_a_burst_is_given_back() {
    let delta = json!({"choices": [{"index": 0, "delta": {"content": "lorem ipsum ".repeat(85)}}]});
    let delta = format!("data: {delta}\n\n");
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let answer = || Reply::sse([delta.repeat(DELTAS), end.to_owned()]).unsplit();
    let provider = Loopback::start((0..ANSWERS).map(|_| answer())).await;
    let home = Home::with(&format!(
        "[[provider]]\nname = \"sim\"\nbase_url = \"{}\"\nmodels = [\"model\"]\n",
        provider.base_url()
    ));
    let server = home.serve().await;
    let ask = async |n: usize| {
        let asked = json!({"message": format!("hello {n}")});
        let answer = timeout(DEADLINE * 4, async { post(&server, "/chat", &asked).await.text().await });
        assert!(answer.await.unwrap().contains("\"reason\":\"stop\""));
    };
    join_all((0..ANSWERS).map(ask)).await;
    let most = memory(&server, "VmHWM");
    let given_back = async {
        // A server that does nothing may do nothing about its memory, either.
        while memory(&server, "VmRSS") > most * 45 / 100 {
            get(&server, "/health").await;
        }
    };
    let outcome = timeout(DEADLINE, given_back).await;
    assert!(outcome.is_ok(), "{} MiB are left of {most}", memory(&server, "VmRSS"));
}
