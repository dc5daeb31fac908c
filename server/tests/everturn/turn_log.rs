//! What the log tells about waits, moves and ends of turns.

use std::process::Stdio;

use everturn_sim::{Loopback, Request, chat, fault};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::{
    client::{get, post},
    home::Home,
};

/// Runs a turn of each of these conversations, and returns the lines of the log about turns.
async fn log(file: &str, conversations: &[&str]) -> (Vec<String>, Vec<Value>) {
    let home = Home::with(file);
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.stderr(Stdio::piped());
    let mut server = home.launch_piped(command).await;
    let stderr = BufReader::new(server.child.stderr.take().unwrap());
    let mut figures = Vec::new();
    for id in conversations {
        let message = json!({ "conversationId": id, "message": "a s3cret question" });
        post(&server, "/chat", &message).await.text().await;
        figures.push(
            get(&server, &format!("/conversations/{id}/metrics")).await.json().await["turns"][0].clone(),
        );
    }
    server.child.kill().await.unwrap();
    let (mut lines, mut all) = (Vec::new(), stderr.lines());
    while let Some(line) = all.next_line().await.unwrap() {
        assert!(!line.contains("s3cret") && !line.contains("Overloaded"), "{line}");
        if line.contains("a turn ") {
            lines.push(line);
        }
    }
    (lines, figures)
}

fn provider(name: &str, provider: &Loopback) -> String {
    format!("[[provider]]\nname = \"{name}\"\nbase_url = \"{}/v1\"\nmodels = [\"m\"]\n", provider.base_url())
}

/// Checks that a line has all of these words.
fn has(line: &str, words: &[&str]) {
    for word in words {
        assert!(line.contains(word), "{word} is missing in {line}");
    }
}

#[tokio::test]
async fn waits_and_how_they_end_are_logged() {
    let busy = fault::overloaded;
    let answer = || chat::text(["Hello"]).reply();
    let model = Loopback::start([busy(), busy(), answer(), busy(), busy(), busy()]).await;
    let retry = "[retry]\nschedule = \"exponential\"\nbase_ms = 10\nmax_retries = 2\njitter = 0\n";
    let (lines, figures) = log(&format!("{retry}{}", provider("sim", &model)), &["c1", "c2"]).await;
    let [first, second, recovered, _, _, gave_up] = &lines[..] else { panic!("{lines:#?}") };
    let wait = [
        "INFO",
        "a turn waits",
        "conversation=\"c1\"",
        "target=\"sim/m\"",
        "category=\"overloaded\"",
        "until=\"20",
    ];
    has(first, &wait);
    has(first, &["attempt=0"]);
    has(second, &wait);
    has(second, &["attempt=1"]);
    has(recovered, &["INFO", "a turn recovered", "calls=3", "waited=\"0.030s\"", "target=\"sim/m\""]);
    has(
        gave_up,
        &[
            "INFO",
            "a turn gave up",
            "conversation=\"c2\"",
            "category=\"overloaded\"",
            "calls=3",
            "waited=\"0.030s\"",
        ],
    );
    for turn in figures {
        assert_eq!((&turn["providerCalls"], &turn["waitedMs"]), (&json!(3), &json!(30)), "{turn}");
    }
}

#[tokio::test]
async fn a_move_to_another_target_is_logged() {
    let a = Loopback::with(|_: &Request| fault::unauthorized()).await;
    let b = Loopback::start([chat::text(["Hello"]).reply()]).await;
    let route = "[[route]]\nname = \"main\"\ntargets = [\"a/m\", \"b/m\"]\n";
    let file = format!("default_model = \"route/main\"\n{}{}{route}", provider("a", &a), provider("b", &b));
    let (lines, _) = log(&file, &["c1"]).await;
    let [moved, recovered] = &lines[..] else { panic!("{lines:#?}") };
    has(moved, &["INFO", "a turn moves to another target", "from=\"a/m\"", "to=\"b/m\"", "role=\"main\""]);
    has(recovered, &["a turn recovered", "target=\"b/m\"", "calls=2", "waited=\"0.000s\""]);
}
