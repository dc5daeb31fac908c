//! The flaky provider as another process sees it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Output, Stdio},
};

struct Flaky {
    process: Child,
    authority: String,
}

impl Flaky {
    fn start(words: &[&str]) -> Self {
        let mut process = command(words).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let authority = line.strip_prefix("listening on http://").and_then(|rest| rest.strip_suffix("/v1\n"));
        Self { process, authority: authority.expect(&line).to_owned() }
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> Result<String, ErrorKind> {
        let mut stream = TcpStream::connect(&self.authority).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(|error| error.kind())?;
        Ok(answer)
    }

    fn chat(&self, body: &str) -> Result<String, ErrorKind> {
        self.exchange("POST", "/v1/chat/completions", body)
    }

    fn requests(&self) -> String {
        self.exchange("GET", "/__requests", "").unwrap().rsplit("\r\n").next().unwrap().to_owned()
    }
}

impl Drop for Flaky {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flaky-provider"));
    command.args(words);
    command
}

#[test]
fn it_fails_as_configured_then_answers_and_counts() {
    let flaky =
        Flaky::start(&["--fail", "429,529,close,reset,cut", "--retry-after", "7", "--text", "one two"]);
    assert_eq!(flaky.requests(), "0");
    let limited = flaky.chat("{}").unwrap();
    assert!(limited.starts_with("HTTP/1.1 429 ") && limited.contains("retry-after: 7\r\n"), "{limited}");
    assert!(flaky.chat("{}").unwrap().contains("overloaded_error"));
    assert_eq!(flaky.chat("{}"), Ok(String::new()));
    assert_eq!(flaky.chat("{}"), Err(ErrorKind::ConnectionReset));
    let cut = flaky.chat("{}").unwrap();
    assert!(cut.starts_with("HTTP/1.1 200 ") && !cut.contains("[DONE]"), "{cut}");
    let answer = flaky.chat("{}").unwrap();
    assert!(answer.contains(r#""content":"one ""#) && answer.contains(r#""content":"two""#), "{answer}");
    assert!(answer.contains("data: [DONE]"));
    assert_eq!(flaky.requests(), "6");
}

#[test]
fn it_calls_its_tool_until_it_has_the_result() {
    let flaky = Flaky::start(&["--tool", "add", r#"{"a":1}"#, "--text", "done."]);
    let call = flaky.chat(r#"{"messages":[{"role":"user"}]}"#).unwrap();
    assert!(call.contains(r#""name":"add""#) && call.contains(r#"{\"a\":1}"#), "{call}");
    let answer = flaky.chat(r#"{"messages":[{"role":"user"},{"role":"tool"}]}"#).unwrap();
    assert!(answer.contains(r#""content":"done.""#), "{answer}");
}

#[test]
fn an_unknown_path_is_a_404() {
    let flaky = Flaky::start(&[]);
    assert!(flaky.exchange("GET", "/v1/models", "").unwrap().contains(r#""id":"flaky""#));
    assert!(flaky.exchange("POST", "/v1/responses", "{}").unwrap().starts_with("HTTP/1.1 404 "));
    assert_eq!(flaky.requests(), "0");
}

#[test]
fn an_unknown_fault_is_rejected() {
    for fault in ["200", "explode", ""] {
        let Output { status, stderr, .. } = command(&["--fail", fault]).output().unwrap();
        assert_eq!(status.code(), Some(2), "{fault:?}");
        assert!(String::from_utf8_lossy(&stderr).contains("expected a status from 400 to 599"));
    }
}
