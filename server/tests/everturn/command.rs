//! Commands that are typed into `everturn chat`: between turns, and while one runs.

use std::net::SocketAddr;

use everturn_sim::{Gate, Loopback, Reply, chat, fault};
use hyper::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::{
    client::{post, send},
    home::{Home, LONG, stderr, stdout},
    terminal::{CTRL_D, Terminal},
};

fn said(text: &str) -> Reply {
    chat::text([text]).reply()
}

/// `Hello`, then the gate, then ` again.`
fn gated(gate: &Gate) -> Reply {
    chat::text(["Hello", " again."]).reply().stall_before(2, gate)
}

/// With `sim/one`, `sim/two` and a route over both.
fn home(provider: &Loopback) -> Home {
    Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{LONG}\n\
         [[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"one\", \"two\"]\n\
         [[route]]\nname = \"both\"\ntargets = [\"sim/one\", \"sim/two\"]\nschedule = \"interactive\"\n",
        provider.base_url()
    ))
}

/// The models that were asked.
fn models(provider: &Loopback) -> Vec<String> {
    let model = |body: serde_json::Value| body["model"].as_str().unwrap().to_owned();
    provider.requests().iter().map(|request| model(request.json().unwrap())).collect()
}

/// The last message of each request.
fn asked(provider: &Loopback) -> Vec<String> {
    let last = |body: serde_json::Value| {
        let messages = body["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    provider.requests().iter().map(|request| last(request.json().unwrap())).collect()
}

#[tokio::test]
async fn models_are_listed_and_chosen_for_the_next_turns() {
    let provider = Loopback::start(["One.", "Two.", "Three."].map(said)).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/model", "  \u{25cf} sim/one  (default)\n    sim/two\n    route/both\n").await;
    terminal.until_ends("\n>").await;
    terminal.enter("first", "One.\n\n>").await;
    terminal.enter("/model sim", "sim matches several: sim/one, sim/two\n\n>").await;
    terminal
        .enter("/model none", "No model or route matches none; there are: sim/one, sim/two, route/both\n\n>")
        .await;
    terminal.enter("/model two", "sim/two answers your next message.\n\n>").await;
    terminal.enter("second", "Two.\n\n>").await;
    terminal.enter("third", "Three.\n\n>").await;
    terminal.enter("/model", "    sim/one  (default)\n  \u{25cf} sim/two\n").await;
    assert_eq!(models(&provider), ["one", "two", "two"]);
}

#[tokio::test]
async fn a_turn_that_waits_is_moved_to_the_model_that_is_chosen() {
    let provider = Loopback::start([fault::overloaded(), said("Fine."), said("More.")]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Retrying (1/3) in 45s").await;
    terminal.enter("/model three", "No model or route matches three;").await;
    terminal.until("Retrying (1/3) in 4").await;
    assert_eq!(provider.counts().requests, 1, "it waits still");
    terminal.enter("/model two", "Moved to another model.\n\nFine.\n").await;
    terminal.until_ends("\n>").await;
    terminal.enter("second", "More.\n\n>").await;
    assert_eq!(models(&provider), ["one", "two", "two"]);
}

#[tokio::test]
async fn a_model_that_is_chosen_while_an_answer_comes_answers_the_next_message() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate), said("Two.")]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.enter("/model two", "sim/two answers what you send after this answer.").await;
    gate.open();
    terminal.until_ends("\n>").await;
    terminal.enter("second", "Two.\n\n>").await;
    assert_eq!(models(&provider), ["one", "two"]);
}

#[tokio::test]
async fn an_answer_is_stopped_by_a_line_and_the_conversation_goes_on() {
    let provider = Loopback::start([gated(&Gate::new()), said("Fine.")]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/stop", "Nothing runs.\n\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.enter("/stop", "Stopped.\n\n>").await;
    provider.until(|seen| seen.open == 0).await;
    terminal.enter("second", "Fine.\n\n>").await;
    terminal.press("/exit\r").await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(terminal.shown().ends_with("Continue with: everturn chat --continue"), "{}", terminal.shown());
}

#[tokio::test]
async fn a_queued_message_is_taken_back() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate), said("Two.")]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/cancel", "No message is queued.\n\n>").await;
    terminal.enter("first", "Hello").await;
    for message in ["second", "third", "fourth"] {
        terminal.enter(message, &format!("Queued: {message} (/cancel takes it back)")).await;
    }
    for message in ["fourth", "third"] {
        terminal.enter("/cancel", &format!("Not sent: {message}")).await;
    }
    gate.open();
    terminal.until("> second\nTwo.\n\n>").await;
    assert_eq!(asked(&provider), ["first", "second"]);
}

/// Commands go over a WebSocket, and a message is withdrawn by a request of its own, which may come first.
#[tokio::test]
async fn a_queued_message_that_is_still_on_its_way_is_taken_back() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate)]).await;
    let server = home(&provider).serve().await;
    let (slow, hold) = slow_commands(server.url.strip_prefix("http://").unwrap().to_owned()).await;
    let mut terminal = Terminal::new(&Home::empty(), &["chat", "--server", &format!("http://{slow}")]);
    terminal.until("\n>").await;
    terminal.enter("first", "Hello").await;
    hold.send_replace(true);
    terminal.enter("second", "Queued: second").await;
    terminal.press("/cancel\r").await;
    terminal.press("/model\r").await;
    // Answered by a request: one that withdraws the message would have been, too.
    terminal.until("route/both").await;
    hold.send_replace(false);
    terminal.until("Not sent: second").await;
    gate.open();
    terminal.until(" again.").await;
    assert_eq!(asked(&provider), ["first"]);
}

#[tokio::test]
async fn a_message_that_arrives_after_its_turn_could_not_be_taken_back() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate), said("Two.")]).await;
    let server = home(&provider).serve().await;
    let (slow, hold) = slow_commands(server.url.strip_prefix("http://").unwrap().to_owned()).await;
    let mut terminal = Terminal::new(&Home::empty(), &["chat", "--server", &format!("http://{slow}")]);
    terminal.until("\n>").await;
    terminal.enter("first", "Hello").await;
    hold.send_replace(true);
    terminal.enter("second", "Queued: second").await;
    terminal.press("/cancel\r").await;
    terminal.enter("/model", "route/both").await;
    gate.open();
    terminal.until("Too late, already sent: second\n> second").await;
    hold.send_replace(false);
    terminal.until("Two.").await;
    assert_eq!(asked(&provider), ["first", "second"]);
}

/// Starts a relay to the server. What clients send over WebSockets waits as long as the sender says.
async fn slow_commands(server: String) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, (hold, held)) = (listener.local_addr().unwrap(), watch::channel(false));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&server).await.unwrap();
            let mut held = held.clone();
            tokio::spawn(async move {
                let ((mut client, mut to_client), (mut answers, mut server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut answers, &mut to_client).await });
                let (mut bytes, mut is_socket) = (vec![0; 64 << 10], false);
                while let Ok(read @ 1..) = client.read(&mut bytes).await {
                    if is_socket {
                        held.wait_for(|held| !held).await.unwrap();
                    }
                    is_socket |= bytes[..read].windows(9).any(|word| word.eq_ignore_ascii_case(b"websocket"));
                    server.write_all(&bytes[..read]).await.unwrap();
                }
            });
        }
    });
    (address, hold)
}

#[tokio::test]
async fn a_message_that_the_server_does_not_queue_is_not_waited_for() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate), said("Two."), said("Three.")]).await;
    let server = home(&provider).serve().await;
    let chat = ["chat", "--server", &server.url, "--new-conversation", "full"];
    let mut terminal = Terminal::new(&Home::empty(), &chat);
    terminal.until("\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.enter("second", "Queued: second").await;
    // The queue has 32 places, of which the others are taken by another client.
    let others: Vec<String> = (0..31).map(|n| format!("other-{n}")).collect();
    for id in &others {
        let body = json!({ "text": id, "messageId": id });
        post(&server, "/conversations/full/queue", &body).await.json().await;
    }
    terminal.enter("third", "Not sent: third\n").await;
    terminal.until("has 32 queued messages already").await;
    for id in &others {
        let path = format!("/conversations/full/queue/{id}");
        send(&server, Method::DELETE, &path, &[], String::new()).await.json().await;
    }
    gate.open();
    terminal.until("> second\nTwo.\n\n>").await;
    terminal.enter("fourth", "Three.\n\n>").await;
    assert_eq!(asked(&provider), ["first", "second", "fourth"]);
}

#[tokio::test]
async fn the_name_of_a_model_is_enough_if_only_one_provider_has_it() {
    let provider = Loopback::start(["One.", "Two.", "Three."].map(said)).await;
    let home = Home::with(&format!(
        "[[provider]]\nname = \"a\"\nbase_url = \"{0}/v1\"\nmodels = [\"one\", \"maker/two\"]\n\
         [[provider]]\nname = \"b\"\nbase_url = \"{0}/v1\"\nmodels = [\"one\", \"three\"]\n",
        provider.base_url()
    ));
    for (model, answer) in [("three", "One.\n"), ("maker/two", "Two.\n"), ("b/one", "Three.\n")] {
        let output = home.run(&["chat", "--model", model, "hi"]).await;
        assert_eq!(stdout(&output), answer, "{}", stderr(&output));
    }
    assert_eq!(models(&provider), ["three", "maker/two", "one"]);
    for model in ["one", "two", "thre"] {
        let output = home.run(&["chat", "--model", model, "hi"]).await;
        let expected = format!("unknown model {model:?}; known models: a/one, a/maker/two, b/one, b/three");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
}

#[tokio::test]
async fn an_unknown_command_is_not_sent_and_the_closest_one_is_named() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate), said("Two.")]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/modle", "Unknown command /modle: did you mean /model? /help lists all commands.").await;
    terminal.enter("/help", "/cancel                  take the last queued message back\n").await;
    terminal.until_ends("\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.enter("/sotp", "Unknown command /sotp: did you mean /stop?").await;
    terminal.enter("/tools", "no tools").await;
    gate.open();
    terminal.until_ends("\n>").await;
    terminal.enter(" /modle", "Two.\n\n>").await;
    assert_eq!(asked(&provider), ["first", "/modle"]);
}

#[tokio::test]
async fn tab_completes_commands_and_models() {
    let gate = Gate::new();
    let provider = Loopback::start([gated(&gate)]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.press("/mo\t").await;
    terminal.until("\n> /model").await;
    terminal.press(" tw\t").await;
    terminal.until("\n> /model sim/two").await;
    terminal.enter("", "sim/two answers your next message.\n\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.press("/st\t").await;
    terminal.until("> /stop").await;
    terminal.enter("", "Stopped.\n\n>").await;
    assert_eq!(models(&provider), ["two"]);
}

#[tokio::test]
async fn ctrl_d_leaves_also_while_an_answer_comes() {
    let provider = Loopback::start([gated(&Gate::new())]).await;
    let mut terminal = Terminal::new(&home(&provider), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("first", "Hello").await;
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    assert!(!terminal.shown().contains("Stopped."), "{}", terminal.shown());
}
