//! `everturn conversations` with the file of a real server.

use std::{
    collections::BTreeMap,
    fs,
    process::{ExitStatus, Stdio},
};

use everturn_sim::{Loopback, chat, fault};
use everturn_wire::{ExportLine, document::SCHEMA};
use serde_json::{Value, json};

use crate::{
    client::{Socket, ndjson, post},
    home::{Home, LONG, Server, stderr, stdout},
    terminal::Terminal,
};

/// A server with two conversations: a finished one with a tool call, and one that waits for its first retry.
async fn kept() -> (Home, Server, Loopback) {
    let answer = chat::Answer::new().role().text("Let me roll. ");
    let rolls = answer.tool(0, "call_1", "roll_dice", [r#"{"count":1}"#]).finish("tool_calls").done().reply();
    let text = |said| chat::text([said]).reply();
    let replies = [rolls, text("Voilà 日本語."), fault::overloaded(), text("Anew.")];
    let provider = Loopback::start(replies).await;
    let home = Home::with(&format!(
        "[tools]\ndice = true\n[retry]\n{LONG}\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\n\
         models = [\"model\"]\n",
        provider.base_url()
    ));
    let server = home.serve().await;
    let done = json!({ "conversationId": "done-1", "message": "Würfle 日本 für mich" });
    ndjson(post(&server, "/chat", &done).await).await;
    post(&server, "/chat", &json!({ "conversationId": "waits-1", "message": "hello" })).await;
    let mut socket = Socket::open(&server, "/ws").await;
    socket.say(&json!({ "type": "chat.subscribe", "conversationId": "waits-1" })).await;
    socket.events("provider-retry").await;
    (home, server, provider)
}

async fn ask(home: &Home, words: &[&str]) -> (ExitStatus, String, String) {
    let output = home.run(&[&["conversations"], words].concat()).await;
    (output.status, stdout(&output), stderr(&output))
}

/// Returns the output of a successful command.
async fn said(home: &Home, words: &[&str]) -> String {
    let (status, said, error) = ask(home, words).await;
    assert!(status.success() && error.is_empty(), "{words:?}: {error}");
    said
}

/// Returns the error of a failed command.
async fn complaint(home: &Home, words: &[&str]) -> String {
    let (status, said, error) = ask(home, words).await;
    assert!(!status.success() && said.is_empty(), "{words:?}: {said}");
    error
}

#[tokio::test]
async fn they_are_listed_while_a_server_runs_and_after_it_was_killed() {
    let (home, mut server, _provider) = kept().await;
    for is_running in [true, false] {
        let list = said(&home, &["list"]).await;
        let lines: Vec<&str> = list.lines().collect();
        assert!(lines[0].starts_with("ID       WHEN   STATUS "), "{list}");
        assert!(lines[1].starts_with("waits-1  ") && lines[1].contains("  waits until "), "{list}");
        assert!(lines[1].contains(", 1st retry  hello"), "{list}");
        assert!(lines[2].starts_with("done-1   ") && lines[2].ends_with("  Würfle 日本 für mich"), "{list}");
        let listed: Value = serde_json::from_str(&said(&home, &["list", "--json"]).await).unwrap();
        assert_eq!(listed[0]["retry"]["attempt"], 0);
        assert_eq!((&listed[0]["status"], &listed[1]["status"]), (&json!("active"), &json!("idle")));
        assert_eq!((&listed[1]["latestSeq"], &listed[1]["model"]), (&json!(5), &json!("sim/model")));
        if is_running {
            server.child.kill().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_conversation_is_printed_as_it_is_read() {
    let (home, server, _provider) = kept().await;
    let shown = said(&home, &["show", "do"]).await;
    let (head, rest) = shown.split_once("\n\n").unwrap();
    assert!(
        head.starts_with("Würfle 日本 für mich\ndone-1 · ") && head.ends_with(" · sim/model · 5 chunks"),
        "{head}"
    );
    let (before, after) = rest.split_once("\n    ").unwrap();
    assert_eq!(before, "You\n  Würfle 日本 für mich\n\nModel\n  Let me roll. \n  ● roll_dice {\"count\":1}");
    assert!(after.ends_with("\n  Voilà 日本語.\n"), "{after}");
    let shown = said(&home, &["show", "waits-1"]).await;
    let (_, end) = shown.split_once("You\n  hello\n\nThe turn waits until ").unwrap();
    assert!(end.ends_with(", 1st retry, 529 overloaded\n  HTTP 529: Overloaded\n"), "{end}");
    post(&server, "/conversations/waits-1/queue", &json!({ "text": "and\nthen" })).await.json().await;
    let shown = said(&home, &["show", "waits-1"]).await;
    assert!(shown.ends_with("\n  HTTP 529: Overloaded\nQueued: and then\n"), "{shown}");
}

/// Returns the definitions in the generated schema for one line of an export.
fn schema() -> jsonschema::Validator {
    let document: Value = serde_json::from_str(SCHEMA).unwrap();
    jsonschema::validator_for(&json!({ "$ref": "#/$defs/ExportLine", "$defs": document["$defs"] })).unwrap()
}

#[tokio::test]
async fn an_export_has_lines_of_the_schema_and_contains_everything_once() {
    let (home, _server, _provider) = kept().await;
    let schema = schema();
    assert!(!schema.is_valid(&json!({ "type": "chunk", "seq": 1 })), "the schema refuses something");
    let exported = said(&home, &["export"]).await;
    let (mut chunks, mut expected) = (BTreeMap::new(), BTreeMap::new());
    for line in exported.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&value), "{line}");
        match serde_json::from_value(value).unwrap() {
            ExportLine::Conversation { id, latest_seq, .. } => {
                expected.insert(id.to_string(), (1..=latest_seq).collect::<Vec<_>>());
            }
            ExportLine::Chunk { conversation_id, seq, .. } => {
                assert!(expected.contains_key(conversation_id.as_str()), "after its conversation");
                chunks.entry(conversation_id.to_string()).or_insert(Vec::new()).push(seq);
            }
        }
    }
    assert_eq!(chunks, expected);
    assert_eq!(chunks.values().map(Vec::len).collect::<Vec<_>>(), [5, 1]);

    let one = said(&home, &["export", "done"]).await;
    assert_eq!(one.lines().count(), 6);
    let path = home.path().join("export.jsonl");
    let path = path.to_str().unwrap();
    let (status, out, told) = ask(&home, &["export", "done-1", "--output", path]).await;
    assert!(status.success() && out.is_empty(), "{told}");
    assert_eq!(told, format!("Wrote 1 conversation with 5 chunks to {path}.\n"));
    assert_eq!(fs::read_to_string(path).unwrap(), one);
    let again = complaint(&home, &["export", "-o", path]).await;
    assert!(again.contains("already exists"), "{again}");
    assert_eq!(fs::read_to_string(path).unwrap(), one, "and was left alone");
}

#[tokio::test]
async fn a_running_server_tells_what_its_file_has() {
    let (home, server, _provider) = kept().await;
    post(&server, "/conversations/waits-1/queue", &json!({ "text": "and\nthen" })).await.json().await;
    for words in [&["list"][..], &["show", "do"], &["show", "waits-1"], &["export"], &["export", "done"]] {
        let asked = [words, &["--server", &server.url]].concat();
        assert_eq!(said(&home, &asked).await, said(&home, words).await, "{words:?}");
    }
    let [asked, kept] =
        [&["--server", &server.url][..], &[]].map(|more| [&["list", "--json"], more].concat());
    let mut kept: Value = serde_json::from_str(&said(&home, &kept).await).unwrap();
    for listed in kept.as_array_mut().unwrap() {
        listed.as_object_mut().unwrap().remove("latestSeq");
    }
    assert_eq!(serde_json::from_str::<Value>(&said(&home, &asked).await).unwrap(), kept);
    let other = complaint(&home, &["show", "other", "--server", &server.url]).await;
    assert!(other.contains("no conversation's id begins with other"), "{other}");
    let both = complaint(&home, &["list", "--server", &server.url, "--data", "a.db"]).await;
    assert!(both.contains("cannot be used with"), "{both}");
}

#[tokio::test]
async fn nothing_is_deleted_by_accident() {
    let (home, mut server, _provider) = kept().await;
    let running = complaint(&home, &["delete", "done-1", "--yes"]).await;
    assert!(running.contains("a server has ") && running.contains("with --server"), "{running}");
    server.child.kill().await.unwrap();
    let empty = home.path().join("empty.db");
    fs::write(&empty, "").unwrap();
    let (empty, directory) = (empty.to_str().unwrap(), home.path().to_str().unwrap());
    for (words, expected) in [
        (&["delete", "done-1"][..], "use --yes"),
        (&["delete", "--yes", "done-1", "other"], "no conversation's id begins with other"),
        (&["show", "other"], "no conversation's id begins with other"),
        (&["list", "--data", "/nowhere/at.db"], "there is no /nowhere/at.db"),
        (&["delete", "--yes", "x", "--data", "/nowhere/at.db"], "or a running server with --server"),
        (&["list", "--data", empty], "empty.db is empty: nothing was kept there yet"),
        (&["delete", "--yes", "x", "--data", empty], "empty.db is empty: nothing was kept there yet"),
        (&["list", "--data", directory], "is a directory: name the file in it"),
    ] {
        let problem = complaint(&home, words).await;
        assert!(problem.contains(expected), "{problem}");
    }
    assert_eq!(said(&home, &["list"]).await.lines().count(), 3);
    let deleted = said(&home, &["delete", "--yes", "wai", "waits-1"]).await;
    assert_eq!(deleted, "Deleted waits-1 \u{201c}hello\u{201d} (1 chunk, with its unfinished turn)\n");
    assert_eq!(said(&home, &["list"]).await.lines().count(), 2);
    let server = home.serve().await;
    let lines = post(&server, "/chat", &json!({ "conversationId": "waits-1", "message": "anew" })).await;
    assert_eq!(ndjson(lines).await[0]["text"], "anew", "a deleted one may begin anew");
}

#[tokio::test]
async fn old_conversations_are_deleted_by_the_running_server_or_in_its_file() {
    let (home, mut server, _provider) = kept().await;
    let url = server.url.clone();
    let at_server = |age: &'static str| ["delete", "--yes", "--older-than", age, "--server"];
    let (status, told, error) = ask(&home, &[&at_server("1d")[..], &[&url]].concat()).await;
    assert_eq!(
        (status.code(), told.as_str(), error.as_str()),
        (Some(0), "", "There is no such conversation.\n")
    );
    let told = said(&home, &[&at_server("0d")[..], &[&url]].concat()).await;
    assert_eq!(told, "Deleted done-1 \u{201c}Würfle 日本 für mich\u{201d}\n", "unfinished turns stay");
    let listed = said(&home, &["list"]).await;
    assert!(listed.contains("waits-1") && !listed.contains("done-1"), "{listed}");
    server.child.kill().await.unwrap();
    let words = ["delete", "--yes", "--older-than", "0h"];
    assert_eq!(ask(&home, &words).await.2, "There is no such conversation.\n");
    assert!(complaint(&home, &["delete", "--yes", "--older-than", "90 days"]).await.contains("like 90d"));
}

#[tokio::test]
async fn a_closed_output_pipe_is_not_a_failure() {
    let (home, _server, _provider) = kept().await;
    for words in [&["list"][..], &["list", "--json"], &["show", "done"], &["export"]] {
        let mut command = home.command(&[&["conversations"], words].concat());
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().await.unwrap();
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{words:?}");
    }
}

#[tokio::test]
async fn a_terminal_has_its_real_width_and_colours_by_default() {
    let (home, mut server, _provider) = kept().await;
    let mut terminal = Terminal::of_width(&home, 48, &["conversations", "list"]);
    assert!(terminal.end().await.success());
    let shown = terminal.shown();
    let rows: Vec<&str> = shown.lines().collect();
    assert!(rows[1].starts_with("waits-1  ") && rows[1].ends_with(", 1st retry"), "{shown}");
    assert_eq!((rows[2], rows[4], rows.len()), ("  hello", "  Würfle 日本 für mich", 5), "{shown}");
    assert!(terminal.has_color());
    let mut terminal = Terminal::of_width(&home, 20, &["conversations", "show", "done"]);
    assert!(terminal.end().await.success());
    assert!(terminal.shown().contains("  Würfle 日本 für\n  mich\n"), "{}", terminal.shown());

    let program = format!("NO_COLOR=1 {} conversations list", env!("CARGO_BIN_EXE_everturn"));
    let mut terminal = Terminal::running(&home, "sh", &["-c", &program]);
    assert!(terminal.end().await.success());
    assert!(terminal.shown().contains("waits until") && !terminal.has_color());

    server.child.kill().await.unwrap();
    for (answer, left, told) in [("n\r", 3, "Nothing was deleted."), ("y\r", 2, "Deleted done-1")] {
        let mut terminal = Terminal::new(&home, &["conversations", "delete", "done-1"]);
        terminal.until("Delete 1 conversation for good? [y/N]").await;
        terminal.press(answer).await;
        terminal.until(told).await;
        assert_eq!(terminal.end().await.success(), left == 2);
        assert_eq!(said(&home, &["list"]).await.lines().count(), left);
    }
}

#[tokio::test]
async fn invisible_and_control_characters_are_shown_to_people_and_escaped_for_programs() {
    let provider = Loopback::start([chat::text(["user\u{202e}txt.exe \u{9b}31mred"]).reply()]).await;
    let home = Home::with_provider(&provider, LONG);
    let server = home.serve().await;
    let message = "a\u{200b}b \u{9b}31mred";
    ndjson(post(&server, "/chat", &json!({ "conversationId": "c", "message": message })).await).await;
    let hides = |text: &str| text.contains(['\u{202e}', '\u{200b}', '\u{9b}']);
    for words in [&["list"][..], &["list", "--json"], &["show", "c"], &["export"]] {
        let shown = said(&home, words).await;
        assert!(!hides(&shown), "{words:?}: {shown:?}");
    }
    let shown = said(&home, &["show", "c"]).await;
    assert!(shown.contains("a<U+200B>b 31mred") && shown.contains("user<U+202E>txt.exe 31mred"), "{shown}");
    let exported = said(&home, &["export"]).await;
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[1]["chunk"]["text"], message, "nothing is lost");
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat", "hi"]);
    assert!(terminal.end().await.success());
    assert_eq!(terminal.shown(), "user<U+202E>txt.exe 31mred");
}
