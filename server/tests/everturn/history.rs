//! Histories of any length and with every kind of chunk, as shown and exported by `everturn conversations`.

use std::{fs, sync::Arc};

use everturn_orchestrator::{Commit, Cursor, Head, Journal as _, Version, kernel::Millis};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::{
    Category, Chunk, ConversationStatus, Decider, Decision, DoneReason, ErrorReport, RetryOutcome, Role,
    StoredChunk, Verdict,
};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::home::{Home, stderr, stdout};

/// Returns a file with one conversation of these chunks.
async fn kept(chunks: Vec<(Role, Chunk)>) -> Home {
    ended(chunks, ConversationStatus::Idle, None).await
}

/// Returns a file with one conversation of these chunks, whose last turn ended for this reason.
async fn ended(
    chunks: Vec<(Role, Chunk)>,
    status: ConversationStatus,
    end_reason: Option<DoneReason>,
) -> Home {
    let home = Home::empty();
    let path = home.journal();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let last_seq = chunks.len() as u64;
    let head = Head {
        created_at: Millis(0),
        last_activity_at: Millis(0),
        title: "title".to_owned(),
        status,
        end_reason,
        model: None,
        end: Cursor::default(),
        last_seq,
    };
    let stored = (1..).zip(chunks).map(|(seq, (role, chunk))| StoredChunk {
        seq,
        role,
        chunk: Arc::new(chunk),
        supersedes: None,
    });
    let commit = Commit { chunks: stored.map(Arc::new).collect(), ..Commit::new(head) };
    journal.append(&"c".into(), Version(0), commit).await.unwrap();
    home
}

fn text(text: String) -> (Role, Chunk) {
    (Role::Assistant, Chunk::Text { text })
}

async fn said(home: &Home, words: &[&str]) -> String {
    let output = home.run(&[&["conversations"], words].concat()).await;
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[tokio::test]
async fn an_export_of_many_chunks_misses_none() {
    let home = kept((1..=700).map(|number| text(number.to_string())).collect()).await;
    let exported = said(&home, &["export"]).await;
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<&Value> = lines[1..].iter().map(|line| &line["seq"]).collect();
    assert_eq!(json!(found), json!((1..=700).collect::<Vec<_>>()));
    assert!(lines[1..].iter().all(|line| line["chunk"]["text"].as_str() == Some(&line["seq"].to_string())));
}

#[tokio::test]
async fn no_partial_export_is_left_behind() {
    let home = kept(vec![text("long ".repeat(1 << 20))]).await;
    let path = home.path().join("export.jsonl");
    // Limits the file size to a few MiB, which the program sees as an error.
    let line = format!(
        "trap '' XFSZ; ulimit -f 2048; exec {} conversations export -o {}",
        env!("CARGO_BIN_EXE_everturn"),
        path.display()
    );
    let output =
        Command::new("sh").args(["-c", &line]).env_clear().envs(home.variables()).output().await.unwrap();
    let told = stderr(&output);
    assert!(
        !output.status.success() && told.contains("cannot write ") && told.contains("export.jsonl"),
        "{told}"
    );
    assert!(!path.exists(), "half of it would pass for all of it");
}

#[tokio::test]
async fn an_error_is_shown_with_its_attempts_and_long_results_in_full_on_demand() {
    let content = (1..=12).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let result = Chunk::ToolResult {
        tool_call_id: "t".into(),
        tool_name: "look".to_owned(),
        content,
        is_error: false,
        step_id: None,
        images: Vec::new(),
        questions: Vec::new(),
        decisions: vec![
            Decision::new(Decider::Review, Verdict::TimedOut),
            Decision {
                name: Some("Ada".to_owned()),
                via: Some("page".to_owned()),
                ..Decision::new(Decider::Person, Verdict::Allowed)
            },
        ],
    };
    let error = Chunk::Error(ErrorReport {
        message: "HTTP 529: {}".to_owned(),
        code: Some("529".to_owned()),
        category: Some(Category::Overloaded),
        advice: Some("Wait.".to_owned()),
        retries: Some(21),
        waited_ms: Some(27_105_000),
        outcome: Some(RetryOutcome::Exhausted),
        detail: Some("the budget is spent".to_owned()),
        rejected_image: None,
    });
    let home = kept(vec![(Role::Tool, result), (Role::Assistant, error)]).await;
    let end = "\n\nError\n  HTTP 529: {}\n  Gave up after 21 retries over 7 h 32 min.\n  \
               Not tried again: the budget is spent.\n  Wait.\n";
    let short = said(&home, &["show", "c"]).await;
    let decided = "\n    Review took too long\n    Allowed by Ada (page)\n    line 1\n";
    assert!(short.contains(decided), "{short}");
    assert!(
        short.ends_with(&format!("\n    line 8\n    ... 4 more lines (--full shows all){end}")),
        "{short}"
    );
    let full = said(&home, &["show", "c", "--full"]).await;
    assert!(full.ends_with(&format!("\n    line 12{end}")), "{full}");
}

#[tokio::test]
async fn the_list_says_which_conversations_ended_in_a_failure() {
    let cases = [
        (ConversationStatus::Idle, Some(DoneReason::Error), "failed", Some("error")),
        (ConversationStatus::Closed, Some(DoneReason::Error), "failed, closed", Some("error")),
        (ConversationStatus::Idle, Some(DoneReason::Aborted), "idle", Some("aborted")),
        (ConversationStatus::Idle, None, "idle", None),
    ];
    for (status, reason, word, on_the_wire) in cases {
        let home = ended(vec![text("x".to_owned())], status, reason).await;
        let listed = said(&home, &["list"]).await;
        let row: Vec<&str> =
            listed.lines().nth(1).unwrap().split("  ").filter(|cell| !cell.is_empty()).collect();
        assert_eq!((row[2], row[3]), (word, "title"), "{listed}");
        let listed: Value = serde_json::from_str(&said(&home, &["list", "--json"]).await).unwrap();
        assert_eq!(listed[0]["endReason"].as_str(), on_the_wire, "{listed}");
    }
}
