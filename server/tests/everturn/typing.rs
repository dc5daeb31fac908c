//! Input typed into `everturn chat` before, during and after an answer.

use std::process::Stdio;

use everturn_orchestrator::{Commit, Head, Journal as _, Version, kernel::Millis};
use everturn_sim::{Gate, Loopback, Reply, chat, fault};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::ConversationId;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    client::{Socket, post},
    home::{Home, LONG, SHORT, stderr, stdout},
    terminal::{CTRL_C, CTRL_D, ESC, Terminal},
};

const LEFT: &str = "\u{1b}[D";
const UP: &str = "\u{1b}[A";

/// Returns the bytes that a terminal sends for pasted text.
fn pasted(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

fn said(text: &str) -> Reply {
    chat::text([text]).reply()
}

/// Streams `Hello`, waits for the gate, then streams ` again.`
fn gated(gate: &Gate) -> Reply {
    chat::text(["Hello", " again."]).reply().stall_before(2, gate)
}

/// Returns the last message of each request.
fn asked(provider: &Loopback) -> Vec<String> {
    let last = |body: Value| body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    provider.requests().iter().map(|request| last(request.json().unwrap())).collect()
}

#[tokio::test]
async fn a_line_is_edited_recalled_and_pasted_whole() {
    let provider = Loopback::start(["One.", "Two.", "Three."].map(said)).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.press(&format!("ac{LEFT}b\r")).await;
    terminal.until("One.\n\n>").await;
    terminal.press(UP).await;
    terminal.until("One.\n\n> abc").await;
    terminal.enter("d", "Two.\n\n>").await;
    terminal.press(&pasted("first\rsecond\r\rfourth")).await;
    terminal.until("fourth").await;
    terminal.enter("", "Three.\n\n>").await;
    terminal.press("not this").await;
    terminal.until("> not this").await;
    terminal.press(CTRL_C).await;
    terminal.until_gone("not this").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(asked(&provider), [r#""abc""#, r#""abcd""#, r#""first\nsecond\n\nfourth""#]);
}

#[tokio::test]
async fn a_new_line_begins_in_three_ways_before_and_during_an_answer() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate), said("Two.")]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/help", "Ctrl-J, Alt+Enter, or \\ before Enter begins a new line.").await;
    terminal.until_ends("\n>").await;
    terminal.press("a\nb").await;
    terminal.until("> a\n  b").await;
    terminal.press("\u{1b}\rc").await;
    terminal.until("> a\n  b\n  c").await;
    terminal.press("\\\rd\\e").await;
    terminal.until("> a\n  b\n  c\n  d\\e").await;
    terminal.enter("", "Hello").await;
    terminal.press("a\nb\u{1b}\rc\\\rd\\e").await;
    terminal.until("Hello\n> a\u{21b5}b\u{21b5}c\u{21b5}d\\e").await;
    terminal.enter("", "Queued: a b c d\\e").await;
    gate.open();
    terminal.until("Two.\n\n>").await;
    assert_eq!(asked(&provider), [r#""a\nb\nc\nd\\e""#, r#""a\nb\nc\nd\\e""#]);
}

#[tokio::test]
#[cfg_attr(not(feature = "mcp"), ignore = "needs the feature `mcp`")]
async fn a_line_typed_while_nothing_reads_keys_is_sent_and_the_terminal_is_restored() {
    let provider = Loopback::start([said("One.")]).await;
    // A program whose start is waited for, until it can read a line.
    let home = Home::with(&format!(
        "[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"m\"]\n[[mcp]]\nname = \"slow\"\n\
         command = \"sh\"\nargs = [\"-c\", \"read line < fifo\"]\ncwd = \"FOLDER\"",
        provider.base_url()
    ));
    let file = home.path().join("everturn/config.toml");
    let config =
        std::fs::read_to_string(&file).unwrap().replace("FOLDER", &home.path().display().to_string());
    std::fs::write(&file, config).unwrap();
    let fifo = home.place("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut terminal = Terminal::new(&home, &["chat"]);
    terminal.until_quiet().await;
    terminal.press("first\r").await;
    tokio::fs::write(&fifo, "go\n").await.unwrap();
    terminal.until("One.\n\n>").await;
    assert_eq!(asked(&provider), [r#""first""#]);
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(terminal.is_restored());
}

#[tokio::test]
async fn another_conversation_is_begun_or_chosen_even_while_a_turn_waits() {
    let replies = [said("One."), fault::overloaded(), said("Two."), said("At last.")];
    let provider = Loopback::start(replies).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/conversations", "No conversations yet.\n\n>").await;
    terminal.enter("plan my week", "One.\n\n>").await;
    terminal.enter("and the next", "Retrying (1/3) in 45s").await;
    terminal.enter("/new", "A new conversation.\n\n>").await;
    terminal.enter("something else", "Two.\n\n>").await;
    terminal.enter("/conversations", "plan my week  (waits until ").await;
    terminal.until("\u{25cf}  1  ").await;
    terminal.until("/conversations NUMBER continues one; part of its title is enough.\n\n>").await;
    terminal.press("/conversations nothing\r").await;
    terminal.until("No conversation has \"nothing\" in its title").await;
    terminal.until_ends("\n>").await;
    terminal.enter("/conversations 2", "(esc to cancel, r to retry now)").await;
    terminal.press("r").await;
    terminal.until("At last.\n\nAnswered after 1 retry").await;
    terminal.until_ends("\n>").await;
    terminal.press("/conversations something\r").await;
    terminal.until_ends("> something else\nTwo.\n\n>").await;
    assert_eq!(
        asked(&provider),
        [r#""plan my week""#, r#""and the next""#, r#""something else""#, r#""and the next""#]
    );
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(
        terminal.shown().contains("Continue with: everturn chat --conversation "),
        "{}",
        terminal.shown()
    );
}

#[tokio::test]
async fn text_typed_during_a_wait_is_a_message_and_not_key_commands() {
    let provider = Loopback::start([fault::overloaded(), said("Fine."), said("More.")]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Retrying (1/3) in 45s").await;
    terminal.press("one more").await;
    terminal.until("(esc to cancel, r to retry now)\n> one more").await;
    assert_eq!(provider.counts().requests, 1, "an r in a text is a letter");
    terminal.enter("", "Queued: one more").await;
    terminal.press("kept").await;
    terminal.until("> kept").await;
    terminal.press(ESC).await;
    terminal.until_gone("kept").await;
    assert!(terminal.shown().contains("Retrying (1/3)"), "Esc clears a line first: {}", terminal.shown());
    terminal.press("r").await;
    terminal.until("Fine.").await;
    terminal.until("\n\n> one more\nMore.\n\n>").await;
    assert_eq!(asked(&provider), [r#""first""#, r#""first""#, r#""one more""#]);
}

#[tokio::test]
async fn nothing_says_when_a_wait_would_have_ended_that_was_skipped() {
    let provider = Loopback::start([fault::rate_limited(Some(7200)), said("Fine.")]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.press("first\r").await;
    // With the time of day.
    terminal.until("Retrying (1/3) in 2h 00m (").await;
    terminal.press("r").await;
    terminal.until("Answered after 1 retry").await;
    let shown = terminal.shown();
    let (_, since) = shown.split_once("> first\n").unwrap();
    let lines: Vec<&str> = since.lines().collect();
    assert!(lines[0].starts_with("! HTTP 429: Rate limit reached"), "{shown}");
    assert_eq!(lines[1..4], ["", "Fine.", ""], "{shown}");
}

#[tokio::test]
async fn unsent_text_is_kept_in_the_next_prompt() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate), said("Done.")]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.press(&pasted("two\rlines")).await;
    terminal.until("Hello\n> two\u{21b5}lines").await;
    gate.open();
    terminal.until("Hello again.\n\n> two\n  lines").await;
    terminal.enter("", "Done.\n\n>").await;
    assert_eq!(asked(&provider), [r#""first""#, r#""two\nlines""#]);
}

#[tokio::test]
async fn a_turn_that_failed_or_was_stopped_is_tried_again_over_the_same_history() {
    let gate = Gate::new();
    let replies =
        [fault::overloaded(), fault::overloaded(), fault::overloaded(), gated(&gate), said("At last.")];
    let provider = Loopback::start(replies).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, SHORT), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/retry", "Nothing to retry: nothing was asked yet.\n\n>").await;
    terminal.enter("first", "/retry MODEL asks another model.\n\n>").await;
    terminal.enter("/retry", "Hello").await;
    terminal.press(CTRL_C).await;
    terminal.until("Stopped.\n\n>").await;
    terminal.enter("/retry", "At last.\n\n>").await;
    let last = provider.requests().last().unwrap().json().unwrap();
    let messages: Vec<_> =
        last["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(messages, ["first"], "asked once, over the same history");
}

#[tokio::test]
async fn retry_settings_are_shown_and_changed() {
    let replies = [said("Hello."), fault::overloaded(), fault::overloaded(), said("At last.")];
    let provider = Loopback::start(replies).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.press("/settings\r").await;
    terminal
        .until("Retry settings of all conversations, from the next turn on:\n  preset       exponential\n")
        .await;
    terminal.enter("/settings baseDelayMs 1", "this conversation has not begun: say something first").await;
    terminal.enter("first", "Hello.\n\n>").await;
    terminal
        .enter(
            "/settings baseDelayMs 900000",
            "baseDelayMs, is 900000 ms here, but maxDelayMs allows 300000 ms",
        )
        .await;
    terminal
        .enter(
            "/settings baseDelayMs 1 maxRetries 5",
            "Retry settings of this conversation, from the next turn on:\n",
        )
        .await;
    terminal.until("  maxRetries   5  (set here)\n  baseDelayMs  1  (set here)\n").await;
    terminal.enter("second", "At last.\n\nAnswered after 2 retries, in ").await;
}

#[tokio::test]
async fn a_fallback_chain_is_set_shown_followed_and_cleared() {
    let provider = Loopback::start([fault::overloaded(), said("From the other."), fault::overloaded()]).await;
    let home = Home::with(&format!(
        "[retry]\nschedule = \"interactive\"\nbase_ms = 45000\nmax_retries = 1\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\n\
         models = [\"one\", \"two\"]\n",
        provider.base_url()
    ));
    let mut terminal = Terminal::new(&home, &["chat"]);
    terminal.until("\n>").await;
    terminal
        .enter("/settings fallback sim/one sim/two", "this conversation has not begun: say something first")
        .await;
    terminal.press("/settings all fallback sim/one sim/three\r").await;
    terminal.until("\"sim/three\" is not a model or route of this server").await;
    terminal
        .enter(
            "/settings all fallback sim/one sim/two",
            "Retry settings of all conversations, from the next turn on:\n",
        )
        .await;
    terminal.until("  fallback     sim/one -> sim/two  (set here)\n").await;
    terminal.enter("/settings all revert never", "  revert       never  (set here)\n").await;
    terminal.enter("first", "From the other.\n").await;
    // Input typed before the prompt reappears belongs to the turn.
    terminal.until("Answered after 1 retry").await;
    terminal.until_ends("\n>").await;
    let models = provider
        .requests()
        .iter()
        .map(|request| request.json().unwrap()["model"].clone())
        .collect::<Vec<_>>();
    assert_eq!(models, ["one", "two"]);
    terminal.enter("/settings all fallback sim/one none", "/settings all fallback sim/one none\n").await;
    terminal.until_ends("  quota        fail\n\n>").await;
    terminal.enter("/settings all revert default", "  revert       cooldown-expiry\n").await;
}

#[tokio::test]
async fn a_failed_turn_is_tried_again_with_another_model() {
    let provider = Loopback::start([fault::overloaded(), said("Hello."), said("Again.")]).await;
    let home = Home::with(&format!(
        "[retry]\nschedule = \"exponential\"\nmax_retries = 0\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\n\
         models = [\"one\", \"two\"]\n",
        provider.base_url()
    ));
    let mut terminal = Terminal::new(&home, &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "/retry asks again, /retry MODEL asks another model.\n\n>").await;
    terminal.enter("/retry sim/three", "known models: sim/one, sim/two\n\n>").await;
    terminal.enter("/retry sim/two", "Hello.\n\n>").await;
    terminal.enter("second", "Again.\n\n>").await;
    let models: Vec<_> =
        provider.requests().iter().map(|request| request.json().unwrap()["model"].clone()).collect();
    assert_eq!(models, ["one", "two", "two"]);
}

#[tokio::test]
async fn a_wait_ended_by_another_viewer_ends_here_and_esc_ends_the_next() {
    let gate = Gate::new();
    let silent = said("Too late.").stall_before(0, &gate);
    let provider = Loopback::start([fault::overloaded(), silent]).await;
    let server = Home::with_provider(&provider, LONG).serve().await;
    let words = ["chat", "--server", &server.url, "--new-conversation", "shared", "hi"];
    let mut terminal = Terminal::new(&Home::empty(), &words);
    terminal.until("Retrying (1/3) in 45s").await;
    let mut other = Socket::open(&server, "/ws").await;
    other.say(&json!({ "type": "retry.now", "conversationId": "shared" })).await;
    terminal.until("Asking again (1/3)... (esc to cancel)").await;
    assert!(!terminal.shown().contains("Retrying"), "{}", terminal.shown());
    provider.arrived(2).await;
    terminal.press(ESC).await;
    assert_eq!(terminal.end().await.code(), Some(1));
    assert!(terminal.shown().contains("\nRetry cancelled.\n"), "{}", terminal.shown());
    assert_eq!(provider.counts().requests, 2);
}

#[tokio::test]
async fn piped_input_follows_the_message() {
    let provider = Loopback::start([said("ok")]).await;
    let home = Home::with_provider(&provider, SHORT);
    let mut child = home.command(&["chat", "review", "this"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"+ a\n- b\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(stdout(&output), "ok\n", "{}", stderr(&output));
    assert_eq!(asked(&provider), [r#""review this\n\n+ a\n- b""#]);
}

#[tokio::test]
async fn a_conversation_is_found_by_a_prefix_and_never_created_by_mistake() {
    let provider = Loopback::start([said("ok")]).await;
    let server = Home::with_provider(&provider, SHORT).serve().await;
    for id in ["abc-1", "abc-2", "abd"] {
        post(&server, "/chat", &json!({ "conversationId": id, "message": "hi" })).await.text().await;
    }
    let home = Home::empty();
    let chat = async |flag: &str, id: &str| {
        let output = home.run(&["chat", "--server", &server.url, flag, id, "hello"]).await;
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    for (flag, id, code, expected) in [
        ("--conversation", "abd", Some(0), "ok\n"),
        ("--conversation", "abc-2", Some(0), "ok\n"),
        ("--conversation", "abc-1\u{2026}", Some(0), "ok\n"),
        ("--conversation", "ab", Some(1), "3 conversations begin with ab: write more of "),
        ("--conversation", "x", Some(1), "no conversation whose id begins with x"),
        ("--conversation", " ", Some(1), "is not a valid id"),
        ("--new-conversation", "abd", Some(1), "there is already a conversation abd"),
        ("--new-conversation", "a b", Some(1), "is not valid"),
        ("--new-conversation", "mine", Some(0), "ok\n"),
        ("--conversation", "mi", Some(0), "ok\n"),
    ] {
        let (ended, told) = chat(flag, id).await;
        assert_eq!(ended, code, "{flag} {id}: {told}");
        assert!(told.contains(expected), "{flag} {id}: {told}");
    }
    let list = crate::client::get(&server, "/conversations").await.json().await;
    assert_eq!(list.as_array().unwrap().len(), 4, "{list}");
}

#[tokio::test]
async fn a_prefix_is_searched_for_in_all_pages_of_conversations() {
    let provider = Loopback::start([said("ok")]).await;
    let home = Home::with_provider(&provider, SHORT);
    {
        std::fs::create_dir_all(home.journal().parent().unwrap()).unwrap();
        let journal = SqliteJournal::open(home.journal()).unwrap();
        let ids = ["old-1".to_owned()].into_iter().chain((0..1_000).map(|n| format!("new-{n}")));
        for (at, id) in (1..).zip(ids) {
            journal
                .append(&ConversationId::from(id), Version(0), Commit::new(Head::new(Millis(at))))
                .await
                .unwrap();
        }
    }
    let server = home.serve().await;
    let output =
        Home::empty().run(&["chat", "--server", &server.url, "--conversation", "old", "hello"]).await;
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "ok\n".to_owned()), "{}", stderr(&output));
}

#[tokio::test]
async fn a_terminal_without_a_size_gets_the_default_size() {
    let provider = Loopback::start([said("Several words on one line.")]).await;
    let mut terminal = Terminal::of_size(&Home::with_provider(&provider, LONG), 0, 0, &["chat", "hi"]);
    assert_eq!(terminal.end().await.code(), Some(0));
    assert_eq!(terminal.shown(), "Several words on one line.");
}

#[tokio::test]
async fn a_provider_without_its_key_is_off_and_the_others_serve() {
    let provider = Loopback::start([said("ok")]).await;
    let home = Home::with(&format!(
        "[[provider]]\nname = \"off\"\napi_key_env = \"NO_SUCH_KEY\"\nmodels = [\"m\"]\n\
         [[provider]]\nname = \"on\"\nbase_url = \"{}/v1\"\nmodels = [\"m\"]\n",
        provider.base_url()
    ));
    let output = home.run(&["chat", "hi"]).await;
    assert_eq!(stdout(&output), "ok\n", "{}", stderr(&output));
    let expected = "Off: provider \"off\": its key is missing: set the environment variable NO_SUCH_KEY\n";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    let explained = home.run(&["explain", "--status", "503"]).await;
    assert!(explained.status.success(), "it needs no key: {}", stderr(&explained));
}

#[tokio::test]
async fn waits_for_the_network_are_counted_without_a_maximum() {
    let provider = Loopback::start([said("One.").close_delimited()]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "One.\n\n>").await;
    // It answered before, so a refused connection means that it is not there at the moment.
    let address = provider.address();
    drop(provider);
    while TcpStream::connect(address).await.is_ok() {}
    terminal.press("second\r").await;
    for retry in 1..=4 {
        terminal.until(&format!("Retrying ({retry}) in ")).await;
        terminal.press("r").await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_chat_without_a_server_warns_like_a_server() {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    let provider = Loopback::start([said("One."), said("Two."), said("Three.")]).await;
    let home = Home::empty();
    let chat = async |words: &[&str]| {
        let mut command = home.command(words);
        command.env("OPENAI_BASE_URL", format!("{}/v1", provider.base_url()));
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    let told = chat(&["chat", "hi"]).await;
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("Warning: EVERTURN_MODEL is not set"), "{told}");
    let journal = home.journal();
    fs::set_permissions(&journal, fs::Permissions::from_mode(0o644)).unwrap();
    let told = chat(&["run", "hi"]).await;
    let expected =
        format!("Warning: {} contains conversations and is open to other users", journal.display());
    assert!(told.contains(&expected), "{told}");
    // It uses no file.
    let told = chat(&["chat", "--ephemeral", "hi"]).await;
    assert!(!told.contains("contains conversations"), "{told}");
}
