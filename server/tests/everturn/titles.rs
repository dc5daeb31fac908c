//! Titles by the model, after the first turn.

use everturn_sim::{Gate, Loopback, Reply, Request, chat};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::{Socket, get, ndjson, post},
    home::{DEADLINE, Home, SHORT, Server},
};

fn is_for_title(request: &Request) -> bool {
    String::from_utf8_lossy(&request.body).contains("Write a title for this conversation")
}

async fn serve(home: &Home) -> Server {
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env_remove("EVERTURN_TITLES");
    home.launch(command).await.unwrap()
}

async fn say(server: &Server, text: &str) {
    let events =
        ndjson(post(server, "/chat", &json!({ "message": text, "conversationId": "c" })).await).await;
    assert_eq!(events.last().unwrap()["type"], "turn-sealed");
}

async fn title(server: &Server) -> Value {
    get(server, "/conversations").await.json().await[0]["title"].take()
}

#[tokio::test]
async fn the_model_names_a_conversation_once() {
    let choose = |request: &Request| match is_for_title(request) {
        true => chat::text(["\"Two", " dice.\""]).reply(),
        false => chat::text(["Hello."]).reply(),
    };
    let provider = Loopback::with(choose).await;
    let server = serve(&Home::with_provider(&provider, SHORT)).await;
    let mut socket = Socket::open(&server, "/ws").await;
    say(&server, "hello there").await;
    let named = async {
        while title(&server).await != "Two dice" {
            socket.hear("conversation.statusChanged").await;
        }
    };
    timeout(DEADLINE, named).await.expect("a title in time");
    say(&server, "and again").await;
    say(&server, "and again").await;
    assert_eq!(provider.requests().iter().filter(|request| is_for_title(request)).count(), 1);
    assert_eq!(title(&server).await, "Two dice");
    // It is no turn, but a request that is paid for.
    let total = get(&server, "/usage").await.json().await["total"].take();
    assert_eq!((&total["turns"], &total["requests"], &total["refusals"]), (&json!(3), &json!(4), &json!(0)));
    let [sent, answered] = ["inputTokens", "outputTokens"].map(|of| total[of].as_u64().unwrap());
    assert_eq!((sent, answered), (4 * 10, 3 + 2), "{total}");
}

#[tokio::test]
async fn nothing_waits_for_a_title_and_a_name_by_a_person_stays() {
    let (gate, asked) = (Gate::new(), tokio::sync::Notify::new());
    let (held, asked) = (gate.clone(), std::sync::Arc::new(asked));
    let tell = asked.clone();
    let provider = Loopback::with(move |request| match is_for_title(request) {
        true => {
            tell.notify_one();
            chat::text(["By the model"]).reply().hold(&held)
        }
        false => chat::text(["Hello."]).reply(),
    })
    .await;
    let server = serve(&Home::with_provider(&provider, SHORT)).await;
    say(&server, "hello there").await;
    timeout(DEADLINE, asked.notified()).await.expect("a title is asked for");
    // The next turn does not wait.
    say(&server, "and again").await;
    let headers = [("content-type", "application/json")];
    let body = json!({ "title": "By a person" }).to_string();
    crate::client::send(&server, hyper::Method::PATCH, "/conversations/c", &headers, body).await;
    gate.open();
    provider.until(|counts| counts.requests == 3).await;
    say(&server, "and again").await;
    assert_eq!(title(&server).await, "By a person");
}

#[tokio::test]
async fn a_failure_or_a_setting_leaves_the_beginning_of_the_message() {
    let choose = |request: &Request| match is_for_title(request) {
        true => Reply::json(400, &json!({ "error": "no" })),
        false => chat::text(["Hello."]).reply(),
    };
    let provider = Loopback::with(choose).await;
    let server = serve(&Home::with_provider(&provider, SHORT)).await;
    say(&server, "hello there").await;
    let refusals = async || get(&server, "/usage").await.json().await["total"]["refusals"].take();
    let counted = async { while refusals().await != 1 {} };
    timeout(DEADLINE, counted).await.expect("the title's call is counted");
    say(&server, "and again").await;
    assert_eq!((title(&server).await, provider.counts().requests), (json!("hello there"), 3));

    let quiet = Loopback::with(choose).await;
    let server = serve(&Home::with_provider(&quiet, &format!("{SHORT}\n[titles]\nenabled = false"))).await;
    say(&server, "hello there").await;
    say(&server, "and again").await;
    assert_eq!(quiet.counts().requests, 2);
}
