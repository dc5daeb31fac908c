//! Conversations that exceed the model's context, in the terminal and on disk.

use everturn_sim::{Loopback, Reply, Request, chat, fault};
use serde_json::{Value, json};

use crate::{
    client::{ndjson, post},
    home::{Home, LONG, stdout},
    terminal::{CTRL_D, Terminal},
};

/// The model's context window, in characters.
const LIMIT: usize = 800;

const SUMMARY: &str = "They counted to three.";

fn messages(request: &Request) -> Vec<Value> {
    request.json().unwrap()["messages"].as_array().unwrap().clone()
}

fn is_for_summary(request: &Request) -> bool {
    messages(request)[0]["role"] == "system"
}

/// Answers with 270 characters that end with their number, rejects what is too long, and fails the first calls for a
/// summary.
async fn provider(mut failures: usize) -> Loopback {
    let mut answers = 0;
    Loopback::with(move |request: &Request| {
        if is_for_summary(request) {
            let fails = failures > 0;
            failures = failures.saturating_sub(1);
            return if fails { fault::overloaded() } else { chat::text([SUMMARY]).reply() };
        }
        let length: usize =
            messages(request).iter().map(|message| message["content"].to_string().len()).sum();
        if length > LIMIT {
            let error = json!({"error": {"code": "context_length_exceeded", "message": "Too many tokens."}});
            return Reply::json(400, &error);
        }
        answers += 1;
        chat::text([format!("{}end-{answers}.", "word ".repeat(53))]).reply()
    })
    .await
}

#[tokio::test]
async fn the_terminal_says_that_earlier_messages_are_summarized() {
    let provider = provider(1).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    for (question, number) in ["one", "two", "three"].into_iter().zip(1..) {
        terminal.enter(question, &format!("end-{number}.\n\n>")).await;
    }
    terminal.press("four\r").await;
    let begins = "The conversation is too long for the model: summarizing earlier messages.\n";
    terminal.until(begins).await;
    terminal.until("Retrying the summary (1/3) in 45s... (esc to cancel, r to retry now)").await;
    terminal.press("r").await;
    terminal.until("Earlier messages were summarized for the model.\n").await;
    terminal.until("Answered after 1 retry, in ").await;
    let shown = terminal.shown();
    assert_eq!(shown.matches("summar").count(), 2, "a line when it begins and one at the end: {shown}");
    terminal.press(CTRL_D).await;
    assert_eq!(terminal.end().await.code(), Some(0));
    let last = provider.requests().pop().unwrap();
    let sent = messages(&last)[0]["content"].to_string();
    assert!(sent.contains(SUMMARY) && sent.contains("four"), "{sent}");
}

#[tokio::test]
async fn a_person_has_earlier_messages_summarized_and_the_wait_is_shown() {
    let provider = provider(1).await;
    let mut terminal = Terminal::new(&Home::with_provider(&provider, LONG), &["chat"]);
    terminal.until("\n>").await;
    terminal.enter("/compact", "there is nothing to summarize yet\n\n>").await;
    for (question, number) in ["one", "two"].into_iter().zip(1..) {
        terminal.enter(question, &format!("end-{number}.\n\n>")).await;
    }
    terminal.enter("/compact", "Retrying the summary (1/3) in 45s... (esc to cancel, r to retry now)").await;
    terminal.press("r").await;
    terminal.until("Earlier messages were summarized for the model.\n").await;
    terminal.until_ends("\n>").await;
    terminal.enter("/compact", "is too short to summarize").await;
    terminal.until_ends("\n>").await;
    terminal.enter("three", "end-3.\n\n>").await;
    let sent = messages(&provider.requests().pop().unwrap());
    let said: Vec<String> = sent.iter().map(|message| message["content"].to_string()).collect();
    assert!(said[0].contains(SUMMARY) && said[0].contains("two") && said[2].contains("three"), "{said:?}");
    assert_eq!(said.len(), 3, "{said:?}");
}

#[tokio::test]
async fn another_model_summarizes_and_the_stored_history_stays_complete() {
    let provider = provider(0).await;
    let home = Home::with(&format!(
        "[compaction]\nmodel = \"sim/small\"\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"large\", \"small\"]\n",
        provider.base_url()
    ));
    let server = home.serve().await;
    for message in ["one", "two", "three", "four"] {
        ndjson(post(&server, "/chat", &json!({ "conversationId": "c1", "message": message })).await).await;
    }
    let models: Vec<Value> =
        provider.requests().iter().map(|request| request.json().unwrap()["model"].clone()).collect();
    assert_eq!(models, ["large", "large", "large", "large", "small", "large"]);

    let shown = stdout(&home.run(&["conversations", "show", "c1"]).await);
    let (before, after) = shown.split_once("\nSummary\n").unwrap();
    assert!(
        ["one", "two", "three", "four"].iter().all(|said| before.contains(&format!("You\n  {said}\n"))),
        "{shown}"
    );
    let expected = format!("  (for the model, in place of earlier messages)\n  {SUMMARY}\n\nModel\n  word ");
    assert!(after.starts_with(&expected), "{shown}");

    let exported = stdout(&home.run(&["conversations", "export", "c1"]).await);
    let chunks: Vec<Value> =
        exported.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(chunks.len(), 9, "{exported}");
    let summary = json!({ "type": "system", "text": SUMMARY, "keepsFrom": 7 });
    assert_eq!(
        (&chunks[7]["seq"], &chunks[7]["role"], &chunks[7]["chunk"]),
        (&json!(8), &json!("system"), &summary)
    );
}

#[tokio::test]
async fn with_a_known_window_history_is_summarized_before_any_rejection() {
    let provider = provider(0).await;
    let home = Home::with(&format!(
        "[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\ncontext_window = {}\n",
        provider.base_url(),
        LIMIT / 4
    ));
    let server = home.serve().await;
    for message in ["one", "two", "three", "four"] {
        ndjson(post(&server, "/chat", &json!({ "conversationId": "c1", "message": message })).await).await;
    }
    let requests = provider.requests();
    assert_eq!(requests.iter().filter(|request| is_for_summary(request)).count(), 1);
    assert_eq!(requests.len(), 5, "four answers, one summary and no refusal");
}

#[tokio::test]
async fn without_compaction_an_overflow_fails_the_turn_with_a_reason() {
    let provider = provider(0).await;
    let home = Home::with(&format!(
        "[compaction]\nenabled = false\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    ));
    let output = home.run(&["chat", &"word ".repeat(200)]).await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(provider.counts().requests, 1);
    let config = "[compaction]\nmodel = \"sim/none\"\n[[provider]]\nname = \"sim\"\nbase_url = \"http://h\"\nmodels = [\"model\"]\n";
    let refused = Home::with(config).run(&["--listen", "127.0.0.1:0"]).await;
    let told = crate::home::stderr(&refused);
    assert!(
        !refused.status.success()
            && told.contains("config.toml:2: `[compaction] model` is \"sim/none\", which is not available"),
        "{told}"
    );
}
