//! `everturn chat` in a real terminal.

use everturn_sim::{Gate, Loopback, Reply, chat, fault};

use crate::{
    home::{Home, LONG, SHORT},
    proxy::Proxy,
    terminal::{CTRL_C, CTRL_D, ESC, Terminal},
};

/// Streams `Hello`, waits for the gate, then streams ` again.`
fn gated(gate: &Gate) -> Reply {
    chat::text(["Hello", " again."]).reply().stall_before(2, gate)
}

#[tokio::test]
async fn a_wait_counts_down_and_r_skips_it() {
    let gate = Gate::new();
    let provider = Loopback::start([fault::overloaded(), gated(&gate)]).await;
    let home = Home::with_provider(&provider, LONG);
    let mut terminal = Terminal::new(&home, &["chat", "hi"]);
    terminal.until("Retrying (1/3) in 45s... (esc to cancel, r to retry now)").await;
    assert!(terminal.shown().contains("! HTTP 529: Overloaded\nRetrying"), "{}", terminal.shown());
    assert!(terminal.is_yellow("Retrying"));
    terminal.until("Retrying (1/3) in 44s...").await;
    terminal.until("Retrying (1/3) in 43s...").await;
    assert_eq!(terminal.shown().matches("Retrying").count(), 1, "redrawn in place");
    terminal.press("r").await;
    terminal.until("Hello").await;
    assert!(!terminal.shown().contains("again"), "shown as it comes");
    gate.open();
    assert_eq!(terminal.end().await.code(), Some(0));
    let shown = terminal.shown();
    let expected = "! HTTP 529: Overloaded\n\nHello again.\n\nAnswered after 1 retry, in ";
    assert!(shown.starts_with(expected), "{shown}");
    assert_eq!(provider.counts().requests, 2);
}

#[tokio::test]
async fn esc_cancels_a_wait() {
    let provider = Loopback::start([fault::rate_limited(None)]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat", "hi"]);
    terminal.until("Retrying (1/3) in 45s").await;
    terminal.press(ESC).await;
    assert_eq!(terminal.end().await.code(), Some(1));
    let expected = "! HTTP 429: Rate limit reached for requests\nRetry cancelled.";
    assert_eq!(terminal.shown(), expected);
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn ctrl_c_stops_an_answer() {
    let provider = Loopback::start([gated(&Gate::new())]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat", "hi"]);
    terminal.until("Hello").await;
    terminal.press(CTRL_C).await;
    assert_eq!(terminal.end().await.code(), Some(130));
    assert_eq!(terminal.shown(), "Hello\n\nStopped.");
    provider.until(|seen| seen.open == 0).await;
}

#[tokio::test]
async fn an_exhausted_schedule_names_its_attempts_and_the_last_failure() {
    let provider = Loopback::start([fault::overloaded(), fault::bad_gateway()]).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, SHORT), &["chat", "hi"]);
    assert_eq!(terminal.end().await.code(), Some(1));
    let expected = "! HTTP 529: Overloaded\n! HTTP 502: Bad Gateway\n\
                    Retry failed after 2 attempts: HTTP 502: Bad Gateway\n\
                    Gave up after 2 retries over 3 ms.\n\
                    The provider failed: try again later, or switch to another model.";
    assert_eq!(terminal.shown(), expected);
    assert_eq!(provider.counts().requests, 3);
}

#[tokio::test]
async fn the_terminal_is_restored() {
    let provider = Loopback::start([chat::text(["one\ntwo\nthree"]).reply()]).await;
    let home = Home::with_provider(&provider, LONG);
    let script = format!("{} chat hi; stty -a", env!("CARGO_BIN_EXE_everturn"));
    let mut terminal = Terminal::running(&home, "sh", &["-c", &script]);
    assert_eq!(terminal.end().await.code(), Some(0));
    let shown = terminal.shown();
    assert!(shown.starts_with("one\ntwo\nthree\n"), "every line begins at the left: {shown}");
    let modes: Vec<&str> = shown.split([' ', '\n', ';']).collect();
    for mode in ["icanon", "echo", "isig", "opost"] {
        assert!(modes.contains(&mode), "{mode}: {shown}");
    }
}

#[tokio::test]
async fn without_a_message_it_is_a_conversation() {
    let provider = Loopback::start(["I am one.", "I am two."].map(|said| chat::text([said]).reply())).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    assert!(terminal.shown().contains("sim/model"), "{}", terminal.shown());
    terminal.enter("first", "> first\nI am one.\n\n>").await;
    terminal.enter("second", "> second\nI am two.\n\n>").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let asked = String::from_utf8(provider.requests()[1].body.to_vec()).unwrap();
    assert!(asked.contains("first") && asked.contains("I am one.") && asked.contains("second"), "{asked}");
}

#[tokio::test]
async fn ctrl_c_in_a_conversation_ends_the_answer_only() {
    let replies = [gated(&Gate::new()), chat::text(["Fine."]).reply()];
    let provider = Loopback::start(replies).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.press(CTRL_C).await;
    terminal.until("Hello\n\nStopped.\n\n>").await;
    terminal.enter("second", "Fine.\n\n>").await;
    terminal.press(CTRL_C).await;
    assert_eq!(terminal.end().await.code(), Some(130));
}

#[tokio::test]
async fn a_lost_connection_is_restored_and_nothing_is_printed_twice() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate)]).await;
    let home = Home::with_provider(&provider, LONG);
    let server = home.serve().await;
    let proxy = Proxy::before(server.authority()).await;
    let mut terminal = Terminal::new(&Home::empty(), &["chat", "--server", &proxy.url, "hi"]);
    terminal.until("Hello").await;
    proxy.cut();
    terminal.until("Connection lost, reconnecting (1/125)...").await;
    terminal.until("Waiting for the model...").await;
    gate.open();
    assert_eq!(terminal.end().await.code(), Some(0));
    let shown = terminal.shown();
    assert!(shown.starts_with("Hello again.\n\nContinue with: everturn chat --server "), "{shown}");
    assert_eq!(provider.counts().requests, 1);
}
