//! Bodies of calls that wait while memory is short: on disk.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use super::*;

/// Nearly the largest body that is taken. Memory keeps eight of them for calls that wait.
const SIZE: usize = 15 << 20;
const IN_MEMORY: usize = 8;

/// A schedule whose waits end by hand alone, however long the test takes.
const BY_HAND: &str =
    "schedule = \"exponential\"\nbase_ms = 3600000\nmax_delay_ms = 3600000\nmax_retries = 3\njitter = 0.0";

fn body(n: usize) -> String {
    let text = char::from(b'a' + u8::try_from(n).unwrap()).to_string().repeat(SIZE);
    // Success of the last one says nothing about the others.
    let model = if n > IN_MEMORY { "claude-b" } else { "claude-a" };
    format!(r#"{{"model":"{model}","messages":["{text}"],"max_tokens":5}}"#)
}

/// Asks, without waiting for the answer. It ends without one if the server is killed.
fn asked(server: &Arc<Server>, n: usize) -> tokio::task::JoinHandle<Option<String>> {
    let server = server.clone();
    tokio::spawn(async move {
        let session = format!("s{n}");
        let headers = [("content-type", "application/json"), ("x-claude-code-session-id", &*session)];
        let response = try_send(&server, Method::POST, "/v1/messages", &headers, body(n)).await?;
        Some(response.text().await)
    })
}

async fn waiting(server: &Server, many: usize) -> Vec<Value> {
    let is_waiting = |call: &Value| call["phase"] == "waiting";
    calls_until(server, |calls| calls.len() == many && calls.iter().all(is_waiting)).await
}

async fn retry_now(server: &Server, call: &Value) {
    let id = call["id"].as_str().unwrap();
    assert_eq!(post(server, &format!("/calls/{id}/retry-now"), &Value::Null).await.status, 200);
}

/// Returns the sizes of the bodies that a server has on disk below a directory, none of which has a name, or another reader.
fn on_disk(server: &Server, directory: &Path) -> Vec<u64> {
    let files = fs::read_dir(format!("/proc/{}/fd", server.child.id().unwrap())).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let bodies = files.filter_map(|file| {
        let name = fs::read_link(&file).ok().filter(|name| name.starts_with(directory))?;
        let about = fs::metadata(file).ok().filter(|about| about.len() as usize > SIZE)?;
        assert_eq!((about.nlink(), about.mode() & 0o777), (0, 0o600), "{}", name.display());
        Some(about.len())
    });
    bodies.collect()
}

fn largest(directory: &Path) -> u64 {
    let files = fs::read_dir(directory).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).max().unwrap()
}

#[tokio::test]
async fn a_body_is_private_on_disk_sent_as_it_came_and_gone_after_its_answer_or_a_crash() {
    let is_up = Arc::new(AtomicBool::new(false));
    let (failing, up) = (fault::overloaded(), is_up.clone());
    let provider = Loopback::with(move |_| match up.load(Ordering::SeqCst) {
        false => failing.clone(),
        true => Reply::json(200, &json!({ "content": "done" })),
    })
    .await;
    let home = messages_home(&provider, BY_HAND, "");
    let directory = home.journal().parent().unwrap().to_owned();
    let server = Arc::new(home.serve().await);
    let mut answers = Vec::new();
    for n in 0..=IN_MEMORY + 1 {
        answers.push(asked(&server, n));
        waiting(&server, n + 1).await;
        let expected = vec![body(n).len() as u64; (n + 1).saturating_sub(IN_MEMORY)];
        assert_eq!(on_disk(&server, &directory), expected, "{n}");
    }
    let calls = waiting(&server, IN_MEMORY + 2).await;
    let is_sent_again = async |server: &Server, call: &Value, n| {
        let before = provider.counts().requests;
        retry_now(server, call).await;
        provider.arrived(before + 1).await;
        assert!(provider.requests().pop().unwrap().body == body(n), "it is sent as it came: {n}");
    };
    is_sent_again(&server, &calls[IN_MEMORY], IN_MEMORY).await;
    let calls = waiting(&server, IN_MEMORY + 2).await;
    assert_eq!(on_disk(&server, &directory).len(), 2, "it was refused");
    is_up.store(true, Ordering::SeqCst);
    is_sent_again(&server, &calls[IN_MEMORY + 1], IN_MEMORY + 1).await;
    assert_eq!(answers.pop().unwrap().await.unwrap().unwrap(), r#"{"content":"done"}"#);
    waiting(&server, IN_MEMORY + 1).await;
    assert_eq!(on_disk(&server, &directory).len(), 1);

    let id = server.child.id().unwrap().to_string();
    tokio::process::Command::new("kill").args(["-KILL", &id]).status().await.unwrap();
    for answer in answers {
        assert_eq!(answer.await.unwrap(), None);
    }
    let mut server = Arc::into_inner(server).unwrap();
    server.child.wait().await.unwrap();
    assert!(largest(&directory) < SIZE as u64, "nothing is left of them");

    let server = Arc::new(home.serve().await);
    let answer = asked(&server, IN_MEMORY);
    let again = waiting(&server, 1).await;
    assert_eq!(
        (&again[0]["nextAt"], again[0]["retries"].as_u64()),
        (&calls[IN_MEMORY]["nextAt"], calls[IN_MEMORY]["retries"].as_u64())
    );
    is_sent_again(&server, &again[0], IN_MEMORY).await;
    assert_eq!(answer.await.unwrap().unwrap(), r#"{"content":"done"}"#);
    assert!(on_disk(&server, &directory).is_empty() && largest(&directory) < SIZE as u64);
}
