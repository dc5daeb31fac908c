//! Tool calls reviewed by a model of a separate provider, whose requests are counted.

use everturn_sim::{Gate, Loopback, Reply, chat, fault};
use serde_json::{Value, json};

use crate::{
    client::{Socket, get, post},
    home::{Home, Server},
};

const ALLOW: &str = r#"{"outcome":"allow","risk_level":"low"}"#;
const DENY: &str = r#"{"outcome":"deny","rationale":"nobody asked for dice"}"#;

/// A model that calls a tool and then reports the result.
async fn caller() -> Loopback {
    Loopback::with(|request| {
        let messages = request.json().unwrap()["messages"].take();
        match messages.as_array().unwrap().last().unwrap()["role"] == "tool" {
            true => chat::text(["Done."]).reply(),
            false => chat::tool("call_1", "roll_dice", ["{}"]).reply(),
        }
    })
    .await
}

/// Returns a home whose dice are reviewed by this judge; `more`: further settings of reviews.
fn home(caller: &Loopback, judge: &Loopback, more: &str) -> Home {
    let provider = |name: &str, provider: &Loopback| {
        format!(
            "[[provider]]\nname = \"{name}\"\nbase_url = \"{}/v1\"\napi_key = \"k\"\nmodels = [\"m\"]\n",
            provider.base_url()
        )
    };
    let [caller, judge] = [provider("a", caller), provider("judge", judge)];
    Home::with(&format!(
        "[tools]\ndice = true\n[tools.policy]\n\"roll_*\" = \"review\"\n[tools.review]\nmodel = \"judge/m\"\n{more}\n\
         {caller}{judge}"
    ))
}

fn says(text: &str) -> Reply {
    chat::text([text]).reply()
}

async fn watch(server: &Server) -> Socket {
    let mut socket = Socket::open(server, "/ws").await;
    let subscribe =
        json!({ "type": "chat.subscribe", "conversationId": "c1", "cursor": "0", "extensions": true });
    socket.say(&subscribe).await;
    socket
}

async fn turn(server: &Server) -> Vec<Value> {
    post(server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await;
    watch(server).await.events("turn-sealed").await
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[tokio::test]
async fn the_number_of_requests_follows_from_the_responses() {
    let cases: [(&str, Vec<Reply>, usize, &str); 7] = [
        ("an answer", vec![says(ALLOW)], 1, "allowed"),
        ("HTTP 529, then an answer", vec![fault::overloaded(), says(ALLOW)], 2, "allowed"),
        ("HTTP 502, then no assessment", vec![fault::bad_gateway(), says("yes"), says(ALLOW)], 3, "allowed"),
        ("no assessment", vec![says("yes"), says("no"), says("{}")], 3, "failed"),
        ("a denial", vec![says(DENY)], 1, "denied"),
        ("HTTP 401", vec![fault::unauthorized()], 1, "failed"),
        ("a usage limit", vec![fault::insufficient_quota()], 1, "failed"),
    ];
    for (name, replies, requests, verdict) in cases {
        let (caller, judge) = (caller().await, Loopback::start(replies).await);
        let server = home(&caller, &judge, "without_decision = \"deny\"").serve().await;
        let events = turn(&server).await;
        let [completed] = of_type(&events, "review-completed")[..] else { panic!("{name}: {events:#?}") };
        assert_eq!(completed["verdict"], verdict, "{name}");
        assert_eq!(completed["attemptCount"], requests, "{name}");
        assert_eq!(judge.counts().requests, requests, "{name}");
        let result = of_type(&events, "tool-result")[0];
        assert_eq!(result["isError"], verdict != "allowed", "{name}: {result}");
        assert_eq!(get(&server, "/conversations").await.json().await.as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn reviews_are_counted_by_themselves_and_not_as_turns() {
    let (caller, judge) = (caller().await, Loopback::start([fault::unauthorized()]).await);
    let server = home(&caller, &judge, "without_decision = \"deny\"").serve().await;
    turn(&server).await;
    let metrics = get(&server, "/metrics").await.text().await;
    for line in [
        r#"everturn_reviews_total{verdict="failed"} 1"#,
        r#"everturn_review_attempts_total{verdict="failed"} 1"#,
        r#"everturn_review_seconds_count{verdict="failed"} 1"#,
        "everturn_turns_started_total 1",
        r#"everturn_turns_sealed_total{reason="stop"} 1"#,
        "everturn_turns_active 0",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in {metrics}");
    }
    assert!(!metrics.contains(r#"everturn_turns_sealed_total{reason="error"}"#), "{metrics}");
}

#[tokio::test]
async fn a_review_continues_after_its_process_was_killed() {
    let caller = caller().await;
    let gate = Gate::new();
    let judge = Loopback::start([says(ALLOW).stall_before(0, &gate), says(ALLOW)]).await;
    let home = home(&caller, &judge, "");
    let mut server = home.serve().await;
    post(&server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await;
    judge.arrived(1).await;
    server.child.kill().await.unwrap();
    let server = home.serve().await;
    let events = watch(&server).await.events("turn-sealed").await;
    let completed = of_type(&events, "review-completed");
    assert_eq!((completed.len(), &completed[0]["verdict"]), (1, &json!("allowed")), "{events:#?}");
    assert_eq!(completed[0]["attemptCount"], 1, "it is the same attempt");
    assert_eq!(of_type(&events, "review-started").len(), 1);
    assert_eq!(judge.counts().requests, 2);
}
