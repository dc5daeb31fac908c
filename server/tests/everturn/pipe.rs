//! `everturn chat` in pipes: standard output contains only the answer.

use std::process::Stdio;

use everturn_sim::{Loopback, chat, fault};
use tokio::io::AsyncWriteExt as _;

use crate::home::{Home, LONG, SHORT, stderr, stdout};

#[tokio::test]
async fn the_answer_is_all_there_is_on_standard_output() {
    let provider = Loopback::start([fault::overloaded(), chat::text(["Hel", "lo"]).reply()]).await;
    let output = Home::with_provider(&provider, SHORT).run(&["chat", "hi"]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("Hello\n", Some(0)));
    let said = stderr(&output);
    // The rest of a wait of 1 ms is not predictable.
    let said_of_wait = said.strip_prefix("HTTP 529: Overloaded\nRetrying (1/2) ").unwrap();
    let (_, end) = said_of_wait.split_once("...\n").unwrap();
    assert!(end.starts_with("Answered after 1 retry"), "{said}");
    assert!(!said.contains('\u{1b}') && !said.contains('\r'), "{said:?}");
}

#[tokio::test]
async fn a_failure_is_no_answer() {
    let provider = Loopback::start([fault::overloaded()]).await;
    let output = Home::with_provider(&provider, SHORT).run(&["chat", "hi"]).await;
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(1)));
    let said = stderr(&output);
    let end = "\nRetry failed after 2 attempts: HTTP 529: Overloaded\nGave up after 2 retries over 3 ms.\n\
               The provider is out of capacity at the moment: wait, or switch to another model.\n";
    assert!(said.ends_with(end), "{said}");
    assert_eq!(provider.counts().requests, 3);
}

#[tokio::test]
async fn a_message_can_be_piped_in() {
    let provider = Loopback::start([chat::text(["ok"]).reply()]).await;
    let home = Home::with_provider(&provider, SHORT);
    for words in [&["chat"][..], &["chat", "-"], &["run", "-"], &["run", "explain"]] {
        let mut child = home.command(words).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all("many\nlines\n".as_bytes()).await.unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(stdout(&output), "ok\n", "{}", stderr(&output));
    }
    let asked = |of: usize| String::from_utf8(provider.requests()[of].body.to_vec()).unwrap();
    assert!(asked(1).contains(r#""many\nlines""#), "{}", asked(1));
    assert!(asked(3).contains(r#""explain\n\nmany\nlines""#), "{}", asked(3));
}

#[tokio::test]
async fn ctrl_c_ends_it_with_130() {
    let provider = Loopback::start([fault::overloaded()]).await;
    let home = Home::with_provider(&provider, LONG);
    let child = home.command(&["chat", "hi"]).spawn().unwrap();
    provider.arrived(1).await;
    let id = child.id().unwrap().to_string();
    assert!(tokio::process::Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("", Some(130)), "{}", stderr(&output));
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let home = Home::empty();
    let nothing = ["chat", "--server", "http://127.0.0.1:1", "hi"];
    for (words, expected) in [
        (&nothing[..], "start one with `everturn serve`"),
        (&["chat", "--server", "nonsense://x", "hi"], "write http://127.0.0.1:4777"),
        (&["chat", "--model", "no/such", "hi"], "known models: demo/flaky"),
        (&["chat", "--conversation", "a", "hi"], "there is no conversation whose id begins with a"),
        (&["chat", "--continue", "hi"], "there is no conversation to continue yet"),
        (&["chat", "--json"], "standard input is empty"),
        (&["chat", " "], "it is empty"),
        (&["chat"], "standard input is empty"),
        (&["chat", "--config", "/nowhere.toml", "hi"], "cannot read the configuration /nowhere.toml"),
    ] {
        let output = home.run(words).await;
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let said = stderr(&output);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn a_token_is_required_and_never_shown() {
    let home = Home::with("[server]\ntoken = \"of-server-s3cret\"");
    let server = home.serve().await;
    let words = ["chat", "--server", &server.url, "--model", "no/such", "hi"];
    let refused = home.run(&words).await;
    assert!(stderr(&refused).contains("set EVERTURN_TOKEN"), "{}", stderr(&refused));
    let wrong = home.command(&words).env("EVERTURN_TOKEN", "other-s3cret").output().await.unwrap();
    assert!(stderr(&wrong).contains("did not accept the token: check EVERTURN_TOKEN"), "{}", stderr(&wrong));
    let right = home.command(&words).env("EVERTURN_TOKEN", "of-server-s3cret").output().await.unwrap();
    assert!(stderr(&right).contains("unknown model"), "{}", stderr(&right));
    for output in [refused, wrong, right] {
        assert!(!stderr(&output).contains("s3cret"));
    }
}

#[tokio::test]
async fn log_lines_have_no_colour_codes_in_a_pipe() {
    let provider = Loopback::start([chat::text(["ok"]).reply()]).await;
    let home = Home::with_provider(&provider, SHORT);
    let output = home.command(&["run", "hi"]).env("EVERTURN_LOG", "debug").output().await.unwrap();
    let told = stderr(&output);
    assert!(told.contains("DEBUG") && !told.contains('\u{1b}'), "{told}");
}
