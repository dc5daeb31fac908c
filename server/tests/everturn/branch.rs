//! Answering a message again, editing it, and moving a waiting turn: in a terminal, and across a restart.

use everturn_sim::{Loopback, Reply, chat, fault};
use serde_json::{Value, json};

use crate::{
    client::{Socket, post},
    home::{Home, LONG, SHORT},
    terminal::{CTRL_D, Terminal},
};

fn said(text: &str) -> Reply {
    chat::text([text]).reply()
}

/// Returns the texts of each request.
fn asked(provider: &Loopback) -> Vec<Vec<String>> {
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    let texts = |body: Value| body["messages"].as_array().unwrap().iter().map(text).collect();
    provider.requests().iter().map(|request| texts(request.json().unwrap())).collect()
}

fn models(provider: &Loopback) -> Vec<String> {
    let model = |body: Value| body["model"].as_str().unwrap().to_owned();
    provider.requests().iter().map(|request| model(request.json().unwrap())).collect()
}

/// Returns a home with two models of one provider, and waits that only end by hand.
fn two_models(provider: &Loopback, more: &str) -> Home {
    Home::with(&format!(
        "[retry]\n{LONG}\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"one\", \"two\"]\n{more}",
        provider.base_url()
    ))
}

#[tokio::test]
async fn the_last_message_is_answered_again_and_edited() {
    let provider = Loopback::start(["One.", "Two.", "Three.", "Four.", "Five."].map(said)).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, SHORT), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/edit nothing", "Nothing to edit: nothing was asked yet.\n\n>").await;
    for (line, answer) in [
        ("first", "One."),
        ("/retry", "Two."),
        ("/edit second", "Three."),
        ("/retry", "Four."),
        ("more", "Five."),
    ] {
        terminal.enter(line, &format!("{answer}\n\n>")).await;
    }
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let expected =
        [vec!["first"], vec!["first"], vec!["second"], vec!["second"], vec!["second", "Four.", "more"]];
    assert_eq!(asked(&provider), expected);
}

#[tokio::test]
async fn a_turn_that_waits_is_moved_to_another_model_and_the_conversation_stays_there() {
    let provider = Loopback::start([fault::overloaded(), said("Hello."), said("Again.")]).await;
    let mut terminal = Terminal::new(&two_models(&provider, ""), &["chat", "--model", "sim/one"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Retrying (1/3) in 45s").await;
    terminal.enter("/retry sim/two", "Moved to another model.").await;
    terminal.until("Hello.\n\nAnswered after 1 retry").await;
    terminal.until_ends("\n\n>").await;
    terminal.enter("second", "Again.\n\n>").await;
    assert_eq!(models(&provider), ["one", "two", "two"]);
    assert_eq!(asked(&provider)[2], ["first", "Hello.", "second"]);
}

#[tokio::test]
async fn a_turn_on_a_route_is_moved_to_a_target_of_it() {
    let replies = [fault::overloaded(), fault::overloaded(), said("Hello.")];
    let provider = Loopback::start(replies).await;
    let route = "[[route]]\nname = \"r\"\ntargets = [\"sim/one\", \"sim/two\"]\n";
    let home = two_models(&provider, route);
    let mut terminal = Terminal::new(&home, &["chat", "--model", "route/r"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Retrying (2/").await;
    terminal.enter("/retry sim/two", "Hello.").await;
    let asked = models(&provider);
    assert_eq!((asked.len(), asked[2].as_str()), (3, "two"), "{asked:?}");
}

#[tokio::test]
async fn a_turn_moved_by_another_viewer_continues_here() {
    let provider = Loopback::start([fault::overloaded(), said("Hello.")]).await;
    let server = two_models(&provider, "").serve().await;
    let words = ["chat", "--server", &server.url, "--new-conversation", "shared", "hi"];
    let mut terminal = Terminal::new(&Home::empty(), &words);
    terminal.until("Retrying (1/3) in 45s").await;
    let moved = post(&server, "/conversations/shared/retry/now", &json!({ "model": "sim/two" })).await;
    assert_eq!(moved.json().await["wasRetrying"], true);
    terminal.until("Moved to another model.").await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(terminal.shown().contains("Hello."), "{}", terminal.shown());
}

#[tokio::test]
async fn a_branch_outlives_its_server() {
    let replies = ["A1", "A2"].map(said).into_iter().chain([fault::overloaded(), said("B1"), said("B3")]);
    let provider = Loopback::start(replies).await;
    let home = Home::with_provider(&provider, LONG);
    let mut first = home.serve().await;
    for question in ["Q1", "Q2"] {
        post(&first, "/chat", &json!({ "conversationId": "c", "message": question })).await.text().await;
    }
    let begun = post(&first, "/conversations/c/retry", &json!({ "seq": 1 })).await;
    assert_eq!(begun.status, 200);
    provider.arrived(3).await;
    let mut socket = Socket::open(&first, "/ws").await;
    socket.say(&json!({ "type": "chat.subscribe", "conversationId": "c" })).await;
    socket.events("provider-retry").await;
    drop(socket);
    // Until it is gone, it holds the file.
    first.child.kill().await.unwrap();
    let second = home.serve().await;
    let mut socket = Socket::open(&second, "/ws").await;
    socket.say(&json!({ "type": "chat.subscribe", "conversationId": "c" })).await;
    socket.say(&json!({ "type": "retry.now", "conversationId": "c" })).await;
    socket.events("turn-sealed").await;
    post(&second, "/chat", &json!({ "conversationId": "c", "message": "Q3" })).await.text().await;
    let asked = asked(&provider);
    assert_eq!(asked[2..4], [vec!["Q1"], vec!["Q1"]], "before and after");
    assert_eq!(asked[4], ["Q1", "B1", "Q3"]);
}
