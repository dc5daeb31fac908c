//! Conversations of `everturn chat` and `everturn run` that are kept without a server.

use std::fs;

use everturn_sim::{Loopback, Reply, chat, fault};
use serde_json::{Value, json};

use crate::{
    client::{get, post},
    home::{Home, LONG, SHORT, stderr, stdout},
    terminal::{CTRL_D, Terminal},
};

fn said(text: &str) -> Reply {
    chat::text([text]).reply()
}

/// The messages of each request.
fn asked(provider: &Loopback) -> Vec<Vec<String>> {
    let all = |body: Value| {
        let messages = body["messages"].as_array().unwrap().clone();
        messages.iter().map(|message| message["content"].as_str().unwrap().to_owned()).collect()
    };
    provider.requests().iter().map(|request| all(request.json().unwrap())).collect()
}

/// The conversations in the file of this home.
async fn listed(home: &Home) -> Value {
    let output = home.run(&["conversations", "list", "--json"]).await;
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

#[tokio::test]
async fn a_conversation_goes_on_after_its_program_ended() {
    let provider = Loopback::start(["One.", "Two.", "Three.", "Four."].map(said)).await;
    let home = Home::with_provider(&provider, SHORT);
    let mut terminal = Terminal::new(&home, &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "One.\n\n>").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));

    let output = home.run(&["chat", "--continue", "second"]).await;
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("Two.\n", ""));
    let list = listed(&home).await;
    assert_eq!((list[0]["title"].as_str(), list.as_array().unwrap().len()), (Some("first"), 1));

    let mut terminal = Terminal::new(&home, &["chat", "--continue"]);
    terminal.until("> second\nTwo.\n\n>").await;
    terminal.enter("third", "Three.\n\n>").await;
    terminal.press("/exit\r").await;
    assert_eq!(terminal.end().await.code(), Some(0));

    let id = list[0]["id"].as_str().unwrap();
    let output = home.run(&["run", "--conversation", &id[..20], "fourth"]).await;
    assert_eq!(stdout(&output), "Four.\n", "{}", stderr(&output));
    let all = ["first", "One.", "second", "Two.", "third", "Three.", "fourth"];
    assert_eq!(asked(&provider).pop().unwrap(), all);
}

#[tokio::test]
async fn a_turn_that_waits_goes_on_after_kill_9() {
    let provider = Loopback::start([fault::overloaded(), said("At last.")]).await;
    let home = Home::with_provider(&provider, LONG);
    let mut terminal = Terminal::new(&home, &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Retrying (1/3) in 44s").await;
    terminal.kill().await;

    let mut terminal = Terminal::new(&home, &["chat", "--continue"]);
    terminal.until("> first\n! HTTP 529: Overloaded\nRetrying (1/3) in 4").await;
    // The line is complete, so its seconds are.
    terminal.until("(esc to cancel").await;
    assert!(!terminal.shown().contains("in 45s"), "the wait does not start over: {}", terminal.shown());
    terminal.press("r").await;
    terminal.until("At last.\n\nAnswered after 1 retry").await;
    terminal.until_ends("\n>").await;
    assert_eq!(asked(&provider), [["first"], ["first"]]);
}

#[tokio::test]
async fn a_turn_that_is_left_goes_on_before_the_next_message() {
    let provider = Loopback::start([fault::overloaded(), said("One."), said("Two.")]).await;
    let home = Home::with_provider(&provider, "schedule = \"exponential\"\nbase_ms = 8000\njitter = 0.0");
    let mut terminal = Terminal::new(&home, &["chat", "first"]);
    terminal.until("Retrying (1/").await;
    terminal.press("/exit\r").await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(terminal.shown().contains("Continue with: everturn chat --continue"), "{}", terminal.shown());
    assert_eq!(listed(&home).await[0]["status"], "active");

    let output = home.run(&["run", "--continue", "second"]).await;
    assert_eq!(stdout(&output), "One.\nTwo.\n", "{}", stderr(&output));
    assert_eq!(asked(&provider), [vec!["first"], vec!["first"], vec!["first", "One.", "second"]]);
}

#[tokio::test]
async fn a_turn_that_is_left_goes_on_without_a_message() {
    let provider = Loopback::start([fault::overloaded(), said("One.")]).await;
    let home = Home::with_provider(&provider, "schedule = \"exponential\"\nbase_ms = 8000\njitter = 0.0");
    let mut terminal = Terminal::new(&home, &["chat", "first"]);
    terminal.until("Retrying (1/").await;
    terminal.press("/exit\r").await;
    assert_eq!(terminal.end().await.code(), Some(0));

    let output = home.run(&["run", "--continue"]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("One.\n", Some(0)), "{}", stderr(&output));
    let again = home.run(&["run", "--continue"]).await;
    assert_eq!((stdout(&again).as_str(), again.status.code()), ("", Some(1)));
    assert!(stderr(&again).contains("has no unfinished turn"), "{}", stderr(&again));
    assert_eq!(asked(&provider), [["first"], ["first"]]);
}

#[tokio::test]
async fn turns_of_other_conversations_are_left_alone() {
    let provider = Loopback::start([fault::overloaded(), said("Mine.")]).await;
    let home = Home::with_provider(&provider, "schedule = \"exponential\"\nbase_ms = 1\njitter = 0.0");
    let other = Loopback::start([fault::overloaded()]).await;
    let waits = Home::with_provider(&other, LONG);
    let mut server = waits.serve().await;
    post(&server, "/chat", &json!({ "conversationId": "other", "message": "hello" })).await;
    other.arrived(1).await;
    server.child.kill().await.unwrap();
    fs::create_dir_all(home.journal().parent().unwrap()).unwrap();
    for end in ["", "-wal"] {
        let path = |home: &Home| format!("{}{end}", home.journal().display());
        fs::copy(path(&waits), path(&home)).unwrap();
    }
    let output = home.run(&["chat", "mine"]).await;
    assert_eq!(stdout(&output), "Mine.\n", "{}", stderr(&output));
    let list = listed(&home).await;
    let statuses: Vec<_> = list.as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["idle", "active"]);
    assert!(asked(&provider).iter().all(|messages| messages == &["mine"]));
}

#[tokio::test]
async fn the_way_on_names_the_files_that_were_given() {
    let provider = Loopback::start([said("One."), said("Two.")]).await;
    let home = Home::with_provider(&provider, SHORT);
    let config = home.place("other config.toml");
    fs::rename(home.path().join("everturn/config.toml"), &config).unwrap();
    let (config, data) = (config.display().to_string(), home.place("data.db").display().to_string());
    let mut terminal = Terminal::of_size(&home, 24, 400, &["chat", "--config", &config, "--data", &data]);
    terminal.until("\n>").await;
    terminal.enter("first", "One.\n\n>").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let shown = terminal.shown();
    let (_, again) = shown.rsplit_once("Continue with: ").unwrap();
    assert_eq!(again, format!("everturn chat --config '{config}' --data {data} --continue"));

    // A shell runs it as it stands.
    let mut shell = tokio::process::Command::new("sh");
    let binary = env!("CARGO_BIN_EXE_everturn");
    shell.args(["-c", &format!("{} second", again.replacen("everturn", binary, 1))]);
    let output = shell.env_clear().envs(home.variables()).output().await.unwrap();
    assert_eq!(stdout(&output), "Two.\n", "{}", stderr(&output));
    assert_eq!(asked(&provider).pop().unwrap(), ["first", "One.", "second"]);
}

#[tokio::test]
async fn nothing_is_kept_where_nobody_wants_it() {
    let provider = Loopback::start([said("One.")]).await;
    let home = Home::with_provider(&provider, SHORT);
    for flag in ["--ephemeral", "--no-save"] {
        for command in ["chat", "run"] {
            let output = home.run(&[command, flag, "first"]).await;
            assert_eq!(stdout(&output), "One.\n", "{}", stderr(&output));
        }
    }
    assert!(!home.journal().exists());
    let mut terminal = Terminal::new(&home, &["chat", "--ephemeral"]);
    terminal.until("\n>").await;
    terminal.enter("first", "One.\n\n>").await;
    terminal.press("/exit\r").await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(!terminal.shown().contains("Continue with"), "{}", terminal.shown());
    for other in [["--continue", ""], ["--conversation", "a"], ["--data", "a.db"]] {
        let words: Vec<&str> =
            ["chat", "--ephemeral"].into_iter().chain(other).filter(|word| !word.is_empty()).collect();
        assert_eq!(home.run(&words).await.status.code(), Some(2), "{words:?}");
    }
}

#[tokio::test]
async fn a_file_can_be_named() {
    let provider = Loopback::start(["One.", "Two."].map(said)).await;
    let home = Home::with_provider(&provider, SHORT);
    let file = home.place("my.db").display().to_string();
    assert_eq!(stdout(&home.run(&["chat", "--data", &file, "first"]).await), "One.\n");
    assert!(!home.journal().exists());
    assert_eq!(stdout(&home.run(&["chat", "--data", &file, "--continue", "second"]).await), "Two.\n");
    let mut terminal = Terminal::new(&home, &["chat", "--data", &file, "--continue"]);
    terminal.until("Two.\n\n>").await;
    terminal.enter("third", "> third\nTwo.\n\n>").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let shown = terminal.shown().replace('\n', "");
    assert!(shown.ends_with(&format!("everturn chat --data {file} --continue")), "{shown}");
}

#[tokio::test]
async fn without_a_home_a_chat_goes_on_without_a_file_and_says_so() {
    let provider = Loopback::start([said("One.")]).await;
    let home = Home::with_provider(&provider, SHORT);
    let chat = async |words: &[&str]| home.command(words).env_remove("HOME").output().await.unwrap();
    let output = chat(&["chat", "first"]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("One.\n", Some(0)));
    assert!(stderr(&output).starts_with("Not kept: there is no home directory"), "{}", stderr(&output));
    let output = chat(&["chat", "--ephemeral", "first"]).await;
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("One.\n", ""));
    let output = chat(&["chat", "--continue", "first"]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(1)));
}

#[tokio::test]
async fn with_the_file_in_use_a_chat_goes_on_without_and_says_so() {
    let provider = Loopback::start([said("One."), said("One.")]).await;
    let home = Home::with_provider(&provider, SHORT);
    let server = home.serve().await;
    let output = home.run(&["chat", "first"]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("One.\n", Some(0)));
    let expected = format!(
        "Not kept: another everturn has {} open. If it is a server, talk through it with --server",
        home.journal().display()
    );
    assert!(stderr(&output).starts_with(&expected), "{}", stderr(&output));
    let output = home.run(&["run", "--json", "first"]).await;
    assert!(
        stderr(&output).starts_with(&expected),
        "also where only events are printed: {}",
        stderr(&output)
    );
    let file = home.journal().display().to_string();
    for words in [&["--continue"][..], &["--conversation", "a"], &["--data", &file]] {
        let output = home.run(&[&["run"], words, &["first"]].concat()).await;
        assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(1)));
        assert!(stderr(&output).starts_with("everturn: another everturn has "), "{}", stderr(&output));
    }
    let list: Value = get(&server, "/conversations").await.json().await;
    assert_eq!(list, json!([]));
}

#[tokio::test]
async fn the_latest_conversation_of_a_server_is_continued_and_its_turn_watched() {
    let provider = Loopback::start([said("One."), fault::overloaded(), said("Two."), said("Three.")]).await;
    let server = Home::with_provider(&provider, LONG).serve().await;
    let home = Home::empty();
    assert_eq!(stdout(&home.run(&["chat", "--server", &server.url, "first"]).await), "One.\n");
    let mut terminal = Terminal::new(&home, &["chat", "--server", &server.url, "--continue", "second"]);
    terminal.until("Retrying (1/3) in 45s").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let mut terminal = Terminal::new(&home, &["chat", "--server", &server.url, "--continue"]);
    terminal.until("> second\n! HTTP 529: Overloaded\nRetrying (1/3) in 4").await;
    terminal.enter("third", "Queued: third").await;
    terminal.press("r").await;
    terminal.until("Two.").await;
    terminal.until("> third\nThree.\n\n>").await;
}
