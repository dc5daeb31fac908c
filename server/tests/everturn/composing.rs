//! What is typed into `everturn chat` beside the message: instructions, parameters and files.

use std::fs;

use everturn_sim::{Loopback, Reply, chat};
use serde_json::{Value, json};

use crate::{
    home::{Home, LONG},
    terminal::{CTRL_D, Terminal},
};

fn said(text: &str) -> Reply {
    chat::text([text]).reply()
}

fn requests(provider: &Loopback) -> Vec<Value> {
    provider.requests().iter().map(|request| request.json().unwrap()).collect()
}

/// Returns the system prompt of a request and its parameters.
fn settings(request: &Value) -> (&Value, &Value, &Value, &Value) {
    let first = &request["messages"][0];
    let instructions = if first["role"] == "system" { &first["content"] } else { &Value::Null };
    let most = [&request["max_completion_tokens"], &request["max_tokens"]];
    let most = most.into_iter().find(|most| !most.is_null()).unwrap_or(&Value::Null);
    (instructions, &request["temperature"], most, &request["reasoning_effort"])
}

#[tokio::test]
async fn instructions_and_parameters_are_set_before_and_after_the_first_message() {
    let provider = Loopback::start(["One.", "Two.", "Three.", "Four."].map(said)).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/instructions Answer in rhyme.", "instructions    Answer in rhyme.").await;
    terminal.until_ends("\n>").await;
    terminal.enter("/set temperature 3", "temperature must be between 0 and 2").await;
    terminal.until_ends("\n>").await;
    terminal
        .enter("/set temperature 0.25 maxOutputTokens 321 reasoningEffort low", "reasoningEffort low\n\n>")
        .await;
    terminal.enter("first", "One.\n\n>").await;
    // The conversation keeps the others.
    terminal.enter("/set temperature default", "temperature     as configured\n  maxOutputTokens 321").await;
    terminal.until_ends("\n>").await;
    terminal.enter("second", "Two.\n\n>").await;
    terminal.enter("/set maxOutputTokens 0", "maxOutputTokens must be at least 1").await;
    terminal.until_ends("\n>").await;
    terminal.press("/instructions default\r").await;
    terminal.until_ends("reasoningEffort low\n\n>").await;
    terminal.enter("third", "Three.\n\n>").await;
    // Another conversation has none of it.
    terminal.enter("/new", "A new conversation.\n\n>").await;
    terminal.enter("fourth", "Four.\n\n>").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let none = Value::Null;
    let (rhyme, degree, most, low) = (json!("Answer in rhyme."), json!(0.25), json!(321), json!("low"));
    let requests = requests(&provider);
    let of: Vec<_> = requests.iter().map(settings).collect();
    assert_eq!(of[0], (&rhyme, &degree, &most, &low));
    assert_eq!(of[1], (&rhyme, &none, &most, &low));
    assert_eq!(of[2], (&none, &none, &most, &low));
    assert_eq!(of[3].0, &none);
    assert_eq!((of[3].1, of[3].3), (&none, &none));
}

#[tokio::test]
async fn a_refused_first_message_keeps_what_was_set() {
    let provider = Loopback::start([said("One.")]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat", "--model", "sim/none"]);
    terminal.until("\n>").await;
    terminal.press("/instructions Answer in rhyme.\r").await;
    terminal.until_ends("reasoningEffort as configured\n\n>").await;
    terminal.enter("first", "known models: sim/model\n\n>").await;
    terminal.enter("/model sim/model", "sim/model answers your next message.\n\n>").await;
    terminal.enter("second", "One.\n\n>").await;
    assert_eq!(requests(&provider)[0]["messages"][0]["content"], "Answer in rhyme.");
}

#[tokio::test]
async fn a_file_is_sent_with_what_is_said_about_it() {
    let provider = Loopback::start(["One.", "Two."].map(said)).await;
    let home = Home::with_provider(&provider, LONG);
    let put = |name: &str, bytes: &[u8]| {
        let path = home.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let (notes, paper) = (put("my notes.txt", b"buy bread\n"), put("paper.pdf", b"%PDF-1.4"));
    let mut terminal = Terminal::new(&home, &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/file /nowhere/at-all.txt", "Cannot read /nowhere/at-all.txt: ").await;
    terminal.until_ends("\n>").await;
    terminal.press(&format!("/file \"{notes}\" what do I need?\r")).await;
    terminal.until("One.\n\n>").await;
    terminal.press(&format!("/file {paper}\r")).await;
    terminal.until("Two.\n\n>").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let last = |request: &Value| request["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let requests = requests(&provider);
    assert_eq!(requests.len(), 2, "a file that is not there is not sent");
    assert_eq!(last(&requests[0]), "what do I need?\n\n<file name=\"my notes.txt\">\nbuy bread\n</file>");
    let parts = last(&requests[1]).to_string();
    assert!(parts.contains("paper.pdf") && parts.contains("JVBERi0xLjQ="), "{parts}");
}
