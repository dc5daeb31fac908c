//! Many turns on a limited target, with a server that is killed meanwhile.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use everturn_sim::{Loopback, Request, chat, fault};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    client::{get, post},
    home::{Home, Server},
};

const TURNS: usize = 1_000;
/// Length of the provider's limit, in seconds: longer than it takes to begin all turns and to restart twice.
const LIMITED: u64 = 60;

async fn say(server: &Server, turn: usize) {
    let message = json!({ "conversationId": format!("c{turn}"), "message": "hi" });
    post(server, "/chat", &message).await;
}

/// Waits until the turn waits, and returns its retry.
async fn waiting(server: &Server, turn: usize) -> Value {
    loop {
        let status = get(server, &format!("/conversations/c{turn}/status")).await.json().await;
        if status["retry"]["nextAt"].is_number() {
            return status["retry"].clone();
        }
    }
}

/// Real time: the limit of 60 s, and the time to let a thousand turns continue after it.
#[tokio::test]
async fn after_a_kill_a_thousand_turns_probe_a_limited_target_once_and_resume_gradually() {
    let arrived = Arc::<Mutex<Vec<Instant>>>::default();
    let arrivals = arrived.clone();
    let provider = Loopback::with(move |_: &Request| {
        let mut arrivals = arrivals.lock().unwrap();
        arrivals.push(Instant::now());
        if arrivals.len() == 1 { fault::rate_limited(Some(LIMITED)) } else { chat::text(["Hello."]).reply() }
    })
    .await;
    let home = Home::with_provider(&provider, "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 1");
    let mut server = home.serve().await;
    say(&server, 0).await;
    waiting(&server, 0).await;
    let limited_at = arrived.lock().unwrap()[0];
    for turn in 1..TURNS {
        say(&server, turn).await;
    }
    waiting(&server, TURNS - 1).await;
    server.child.kill().await.unwrap();

    // While the target is limited, the next process makes no call, not even for a new turn.
    let mut server = home.serve().await;
    say(&server, TURNS).await;
    assert_eq!(waiting(&server, TURNS).await["shared"], true);
    assert!(limited_at.elapsed().as_secs() < LIMITED, "the machine is too slow for this test");
    assert_eq!(provider.counts().requests, 1, "requests while it is limited");
    server.child.kill().await.unwrap();

    // All waits end while there is no process. One turn calls; once it is answered, the others follow.
    sleep(Duration::from_secs(LIMITED + 15).saturating_sub(limited_at.elapsed())).await;
    assert_eq!(provider.counts().requests, 1);
    let server = home.serve().await;
    timeout(Duration::from_secs(180), provider.arrived(TURNS + 2)).await.expect("all turns ask");
    let arrived = arrived.lock().unwrap().clone();
    let after = |at: &Instant| at.duration_since(arrived[1]);
    // The first call of a process, from which this counts, may take a second longer to arrive than those after it.
    for second in 0..10 {
        let count = arrived[2..].iter().filter(|at| after(at) < Duration::from_secs(second)).count();
        assert!(count <= 16 << second, "{count} turns followed within {second} s");
    }
    for turn in [0, 1, TURNS / 2, TURNS] {
        while get(&server, &format!("/conversations/c{turn}/status")).await.json().await["isActive"] == true {
        }
        let history = get(&server, &format!("/conversations/c{turn}")).await.text().await;
        assert!(history.contains("Hello."), "{history}");
    }
    assert_eq!(provider.counts().requests, TURNS + 2);
}
