//! A disk that is full, fails, or contains something else: the turn stops with an error, nothing acknowledged is lost,
//! and every message says what to do.

use std::{fs, path::PathBuf};

use everturn_sim::{Gate, Loopback, Request, chat};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::{Socket, get, post},
    fault::Injection,
    home::{DEADLINE, Home, SHORT, Server, stderr, stdout},
};

const EIO: i32 = 5;
const EACCES: i32 = 13;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

/// A server whose disk fails while a file exists.
struct Sick {
    home: Home,
    switch: PathBuf,
    fault: Injection,
}

impl Sick {
    fn new(provider: &Loopback, kinds: &str, errno: i32, times: Option<usize>) -> Self {
        let home = Home::with_provider(provider, SHORT);
        let switch = home.place("sick");
        let fault = Injection::none().failing(kinds, errno, &switch, times);
        Self { home, switch, fault }
    }

    async fn serve(&self) -> Server {
        let mut command = self.home.command(&["--listen", "127.0.0.1:0"]);
        // These failures are intended, and need not be logged.
        command.env("EVERTURN_LOG", "off");
        self.fault.inject(&mut command, &self.home);
        self.home.launch(command).await.unwrap()
    }

    fn falls_ill(&self) {
        fs::write(&self.switch, "").unwrap();
    }

    fn recovers(&self) {
        fs::remove_file(&self.switch).unwrap();
    }
}

/// Answers `first` at once; holds back the second half of every other answer until the gate opens.
async fn provider(gate: &Gate) -> Loopback {
    let gate = gate.clone();
    Loopback::with(move |request: &Request| {
        let is_first = String::from_utf8_lossy(&request.body).contains("first");
        let answer = chat::text(["All ", "good."]).reply();
        if is_first { answer } else { answer.stall_before(2, &gate) }
    })
    .await
}

async fn say(server: &Server, id: &str, text: &str) -> (u16, String) {
    let answer = post(server, "/chat", &json!({ "conversationId": id, "message": text })).await;
    (answer.status, answer.text().await)
}

async fn texts(server: &Server, id: &str) -> Vec<String> {
    let history = get(server, &format!("/conversations/{id}")).await.json().await;
    let chunks = history["chunks"].as_array().unwrap();
    chunks.iter().filter_map(|stored| stored["chunk"]["text"].as_str().map(str::to_owned)).collect()
}

async fn watch(server: &Server, id: &str) -> Socket {
    let mut socket = Socket::open(server, "/ws").await;
    let subscribe =
        json!({ "type": "chat.subscribe", "conversationId": id, "cursor": "0", "extensions": true });
    socket.say(&subscribe).await;
    socket
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}

/// What fails, how, how often, and the expected message.
const FAILURES: [(&str, i32, Option<usize>, &str); 5] = [
    ("w", ENOSPC, None, "free space on its file system"),
    ("w", EIO, None, "look at the disk"),
    ("f", EIO, None, "could not be flushed to the disk"),
    ("f", ENOSPC, None, "could not be flushed to the disk"),
    // Linux reports it once, and then treats the data as written.
    ("f", EIO, Some(1), "could not be flushed to the disk"),
];

#[tokio::test]
async fn a_turn_whose_disk_fails_reports_it_and_continues_after_a_restart() {
    for (kinds, errno, times, advice) in FAILURES {
        let gate = Gate::new();
        let provider = provider(&gate).await;
        let sick = Sick::new(&provider, kinds, errno, times);
        let mut server = sick.serve().await;
        let (status, _) = say(&server, "kept", "first").await;
        assert_eq!(status, 200);
        let acknowledged =
            post(&server, "/chat", &json!({ "conversationId": "c1", "message": "second" })).await;
        assert_eq!(acknowledged.status, 200);
        provider.arrived(2).await;
        let mut socket = watch(&server, "c1").await;
        sick.falls_ill();
        gate.open();

        // Subscribers are told.
        let told = socket.hear("chat.error").await;
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("everturn.db") && message.contains(advice), "{kinds} {errno}: {message}");

        // New requests are refused while it lasts.
        if times.is_none() {
            let (status, text) = say(&server, "c2", "first").await;
            assert_eq!(status, 500, "{kinds} {errno}: {text}");
            assert!(text.contains("everturn.db") && text.contains(advice), "{kinds} {errno}: {text}");
        }
        assert_eq!(texts(&server, "kept").await, ["first", "All good."], "what is there can be read");

        // The next process, on a working disk, has everything that was acknowledged, and ends the turn.
        server.child.kill().await.unwrap();
        fs::remove_file(&sick.switch).unwrap();
        let server = sick.serve().await;
        let events = watch(&server, "c1").await.events("turn-sealed").await;
        assert_eq!((count(&events, "user-message"), count(&events, "done")), (1, 1), "{events:#?}");
        assert_eq!(texts(&server, "kept").await, ["first", "All good."]);
        assert_eq!(texts(&server, "c1").await, ["second", "All good."]);
    }
}

#[tokio::test]
async fn a_recovered_disk_is_used_again() {
    for (kinds, errno, _, _) in FAILURES {
        let gate = Gate::new();
        gate.open();
        let provider = provider(&gate).await;
        let sick = Sick::new(&provider, kinds, errno, None);
        let server = sick.serve().await;
        sick.falls_ill();
        let (status, text) = say(&server, "c1", "first").await;
        assert_eq!(status, 500, "{kinds} {errno}: {text}");
        sick.recovers();
        let (status, text) = say(&server, "c1", "first").await;
        assert_eq!(status, 200, "{kinds} {errno}: {text}");
        assert_eq!(texts(&server, "c1").await, ["first", "All good."]);
    }
}

/// Data of a failed flush is not on the disk, even if later flushes succeed. Everything that the next process read, or
/// that was acknowledged later, must be.
#[tokio::test]
async fn nothing_builds_on_data_of_a_failed_flush() {
    let gate = Gate::new();
    let provider = provider(&gate).await;
    let mut sick = Sick::new(&provider, "f", EIO, Some(1));
    let image = sick.home.place("image");
    fs::create_dir(&image).unwrap();
    sick.fault = sick.fault.clone().imaged(&image.canonicalize().unwrap());
    let mut server = sick.serve().await;
    // The target's recovery is saved before the disk fails, so that the only flush is the turn's.
    assert_eq!(say(&server, "kept", "first").await.0, 200);
    let _lines = post(&server, "/chat", &json!({ "conversationId": "c1", "message": "second" })).await;
    provider.arrived(2).await;
    let mut socket = watch(&server, "c1").await;
    sick.falls_ill();
    gate.open();
    socket.hear("chat.error").await;
    server.child.kill().await.unwrap();
    sick.recovers();

    let mut server = sick.serve().await;
    watch(&server, "c1").await.events("turn-sealed").await;
    let (status, _) = say(&server, "c2", "first").await;
    assert_eq!(status, 200);
    let before = (texts(&server, "c1").await, texts(&server, "c2").await);
    server.child.kill().await.unwrap();
    Injection::cut_power(&sick.home, &image);

    let server = sick.serve().await;
    assert_eq!((texts(&server, "c1").await, texts(&server, "c2").await), before);
}

/// Runs a command that cannot start, and returns its error.
async fn refused(home: &Home, words: &[&str], fault: Injection) -> String {
    let mut command = home.command(&[&["--listen", "127.0.0.1:0"], words].concat());
    fault.inject(&mut command, home);
    let output = timeout(DEADLINE, command.output()).await.expect("it ends").unwrap();
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with("everturn: ") && !said.contains("panicked"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[tokio::test]
async fn a_read_only_path_is_named() {
    let home = Home::empty();
    let switch = home.place("sick");
    fs::write(&switch, "").unwrap();
    for (kinds, errno, file, why) in [
        ("ol", EROFS, "everturn.db.lock", "Read-only file system"),
        ("ol", EACCES, "everturn.db.lock", "Permission denied"),
        ("o", EACCES, "everturn.db", "Permission denied"),
        ("w", ENOSPC, "everturn.db", "free space"),
    ] {
        let said = refused(&home, &[], Injection::none().failing(kinds, errno, &switch, None)).await;
        assert!(said.contains(file) && said.contains(why), "{said}");
        assert!(said.contains("choose another file") || errno == ENOSPC, "{said}");
    }
    fs::remove_file(&switch).unwrap();
    assert_eq!(say(&home.serve().await, "c1", "first").await.0, 200, "nothing was spoilt");
}

#[tokio::test]
async fn an_impossible_path_is_named() {
    let home = Home::empty();
    let file = home.place("file");
    fs::write(&file, "mine").unwrap();
    let below = file.join("below/everturn.db");
    for place in [home.place(""), below, "/proc/everturn.db".into()] {
        let place = place.to_str().unwrap();
        let said = refused(&home, &["--data", place], Injection::none()).await;
        assert!(said.contains(place.trim_end_matches("/everturn.db").trim_end_matches('/')), "{said}");
        assert!(said.contains("choose another"), "{said}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let new = home.place("new/er/everturn.db");
    let words = ["--listen", "127.0.0.1:0", "--data", new.to_str().unwrap()];
    home.launch(home.command(&words)).await.expect("a directory that is not there is made");
}

/// Size of a page of the data file, in bytes.
const PAGE: usize = 1024;

#[tokio::test]
async fn a_corrupt_file_is_named_and_left_alone() {
    let provider = Loopback::start([chat::text(["All ", "good."]).reply()]).await;
    let home = Home::with_provider(&provider, SHORT);
    let mut server = home.serve().await;
    for number in 0..20 {
        assert_eq!(say(&server, &format!("c{number}"), "first").await.0, 200);
    }
    server.terminate().await;
    server.child.wait().await.unwrap();
    let journal = home.journal();
    let sound = fs::read(&journal).unwrap();
    assert!(sound.len() > 12 * PAGE, "there is something to spoil");

    for (what, from, to, expected) in [
        ("the header", 0, 100, "is not an Everturn journal"),
        ("the first table", PAGE, 2 * PAGE, "damaged"),
        ("everything but the header", PAGE, sound.len(), "damaged"),
        ("all", 0, sound.len(), "is not an Everturn journal"),
    ] {
        let mut spoilt = sound.clone();
        spoilt[from..to].fill(0xa5);
        fs::write(&journal, &spoilt).unwrap();
        let said = refused(&home, &[], Injection::none()).await;
        assert!(said.contains("everturn.db") && said.contains(expected), "{what}: {said}");
        assert!(said.contains("move it away") || said.contains("restore it from a backup"), "{what}: {said}");
        assert_eq!(fs::read(&journal).unwrap(), spoilt, "{what}");
    }
    fs::write(&journal, &sound).unwrap();
    assert_eq!(texts(&home.serve().await, "c7").await, ["first", "All good."]);
}
