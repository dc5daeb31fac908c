//! `everturn run`: one turn for a script.

use std::{fs, process::Stdio};

use everturn_sim::{Loopback, Reply, chat, fault};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, process::Command};

use crate::{
    home::{Home, LONG, SHORT, stderr, stdout},
    terminal::Terminal,
};

/// Returns a call of the reporting tool.
fn reports(report: &Value) -> Reply {
    chat::tool("call_1", "final_report", [report.to_string()]).reply()
}

fn home(provider: &Loopback) -> Home {
    with_schema(Home::with_provider(provider, SHORT))
}

fn with_schema(home: Home) -> Home {
    let schema =
        json!({ "type": "object", "required": ["status"], "properties": { "status": { "type": "string" } } });
    fs::write(home.place("schema.json"), schema.to_string()).unwrap();
    home
}

fn run(home: &Home, words: &[&str]) -> Command {
    let mut command = home.command(words);
    command.current_dir(home.path());
    command
}

const REPORT: [&str; 4] = ["run", "--report", "schema.json", "Check it"];

#[tokio::test]
async fn the_report_is_all_there_is_on_standard_output() {
    let report = json!({ "status": "done" });
    let provider = Loopback::start([reports(&report)]).await;
    let output = run(&home(&provider), &REPORT).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), format!("{report:#}\n"));
    let asked = provider.requests()[0].json().unwrap();
    let offered = asked["tools"].as_array().unwrap();
    let tool = offered.iter().find(|tool| tool["function"]["name"] == "final_report").unwrap();
    assert_eq!(tool["function"]["parameters"]["required"], json!(["status"]));
}

#[tokio::test]
async fn a_rejected_report_and_words_are_sent_back_until_the_report_is_valid() {
    let provider = Loopback::start([
        chat::text(["I am done."]).reply(),
        reports(&json!({ "status": 7 })),
        reports(&json!({ "status": "done" })),
    ])
    .await;
    let output = run(&home(&provider), &REPORT).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json!({ "status": "done" }));
    let said = stderr(&output);
    assert!(
        said.contains("No report yet (1/3): the reply has neither a tool call nor a final report"),
        "{said}"
    );
    assert!(said.contains("final_report {\"status\":7} failed: "), "{said}");
    assert!(!said.contains("I am done.") && !said.contains('\u{1b}'), "{said:?}");
    let last = provider.requests()[2].json().unwrap().to_string();
    assert!(last.contains("TURN-FAILED: the reply has neither"), "{last}");
}

#[tokio::test]
async fn a_missing_report_exits_with_1_and_a_reason() {
    let provider = Loopback::start([chat::text(["I am done."]).reply()]).await;
    let output = run(&home(&provider), &REPORT).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["success"], report.get("report")), (&json!(false), None));
    let why = "the model gave no acceptable final report in 6 attempts";
    assert!(report["reason"].as_str().unwrap().contains(why), "{report}");
    assert!(stderr(&output).contains(&format!("No report: {why}")), "{}", stderr(&output));
    assert_eq!(provider.counts().requests, 6, "three in the step, then three in the last one");
}

#[tokio::test]
async fn transient_failures_are_waited_out() {
    let report = json!({ "status": "done" });
    let limited = || fault::rate_limited(None);
    let provider = Loopback::start([limited(), limited(), reports(&report)]).await;
    let output = run(&home(&provider), &REPORT).output().await.unwrap();
    assert_eq!((stdout(&output), output.status.code()), (format!("{report:#}\n"), Some(0)));
    let said = stderr(&output);
    assert!(said.contains("Retrying (1/2)") && said.contains("Retrying (2/2)"), "{said}");
    assert_eq!(provider.counts().requests, 3);
}

#[tokio::test]
async fn a_running_server_can_be_used_and_keeps_the_turn() {
    let provider = Loopback::start([reports(&json!({ "status": "done" }))]).await;
    let home = home(&provider);
    let server = home.serve().await;
    let words = ["run", "--server", &server.url, "--report", "schema.json", "Check it"];
    let output = run(&home, &words).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let list = crate::client::get(&server, "/conversations").await.json().await;
    let id = list[0]["id"].as_str().unwrap();
    let figures = crate::client::get(&server, &format!("/conversations/{id}/metrics")).await.json().await;
    let turn = figures["turns"][0]["turnId"].as_str().unwrap();
    let path = format!("/conversations/{id}/turns/{turn}");
    let read = crate::client::get(&server, &path).await.json().await;
    assert_eq!(read["finalReport"], json!({ "success": true, "report": { "status": "done" } }));
}

#[tokio::test]
async fn without_a_schema_it_prints_the_answer_and_reads_from_standard_input() {
    let provider = Loopback::start([chat::text(["Fi", "ne."]).reply()]).await;
    let home = home(&provider);
    let mut child = run(&home, &["run", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"many\nlines\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("Fine.\n", Some(0)), "{}", stderr(&output));
    let asked = String::from_utf8(provider.requests()[0].body.to_vec()).unwrap();
    assert!(asked.contains(r#""many\nlines""#), "{asked}");
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_and_prints_why_there_is_no_report() {
    let provider = Loopback::start([fault::overloaded()]).await;
    let home = with_schema(Home::with_provider(&provider, LONG));
    let child = run(&home, &REPORT).spawn().unwrap();
    provider.arrived(1).await;
    let id = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.unwrap().success());
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["success"], &report["reason"]), (&json!(false), &json!("the turn was stopped")));
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn a_configured_report_is_required_of_every_turn() {
    let provider = Loopback::start([reports(&json!({ "n": 1 }))]).await;
    let config = format!(
        "[agent]\nfinal_report = \"of/every-turn.json\"\nreport_attempts = 1\n[[provider]]\nname = \"sim\"\n\
         base_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    );
    let home = Home::with(&config);
    // Relative to the configuration, not to the working directory.
    fs::create_dir(home.place("everturn/of")).unwrap();
    fs::write(home.place("everturn/of/every-turn.json"), r#"{"type":"object","required":["n"]}"#).unwrap();
    let output = run(&home, &["run", "Count"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json!({ "n": 1 }));
}

#[tokio::test]
async fn errors_name_their_cause_and_location() {
    let home = Home::empty();
    fs::write(home.place("broken.json"), "{\n  \"type\": object\n}").unwrap();
    fs::write(home.place("list.json"), "[]").unwrap();
    fs::write(home.place("type.json"), r#"{"type":"no-such"}"#).unwrap();
    for (words, expected) in [
        (
            &["run", "--report", "none.json", "hi"][..],
            "cannot read the schema none.json: name a file with a JSON Schema: No such",
        ),
        (
            &["run", "--report", "broken.json", "hi"],
            "broken.json:2:11: not JSON (expected value): write the JSON Schema",
        ),
        (
            &["run", "--report", "list.json", "hi"],
            "list.json: the final report cannot be required: its schema must be a JSON object",
        ),
        (
            &["run", "--report", "type.json", "hi"],
            "type.json: the final report cannot be required: its schema cannot be used",
        ),
        (&["run"], "nothing to say: write everturn run"),
        (&["run", "-"], "standard input is empty"),
        (&["run", "--conversation", "a", "hi"], "there is no conversation whose id begins with a"),
        (&["run", "--server", "http://127.0.0.1:1", "hi"], "start one with `everturn serve`"),
    ] {
        let output = run(&home, words).output().await.unwrap();
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{words:?}");
        let said = stderr(&output);
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[tokio::test]
async fn in_a_terminal_progress_is_dim_and_the_report_is_not() {
    let provider =
        Loopback::start([chat::text(["I am done."]).reply(), reports(&json!({ "status": "done" }))]).await;
    let home = home(&provider);
    let schema = home.place("schema.json").display().to_string();
    let mut terminal = Terminal::new(&home, &["run", "--report", &schema, "Check it"]);
    terminal.until("\"status\": \"done\"").await;
    assert!(terminal.shown().contains("No report yet (1/3)"), "{}", terminal.shown());
    assert!(terminal.is_dim("No report yet") && !terminal.is_dim("\"status\": "));
    assert_eq!(terminal.end().await.code(), Some(0));
}

#[tokio::test]
async fn in_a_conversation_a_report_is_shown_as_a_report() {
    let provider = Loopback::start([
        chat::text(["I am done."]).reply(),
        reports(&json!({ "status": "done" })),
        chat::text(["Never."]).reply(),
    ])
    .await;
    let config = format!(
        "[agent]\nfinal_report = {{ type = \"object\", required = [\"status\"] }}\n[[provider]]\nname = \"sim\"\n\
         base_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    );
    let mut terminal = Terminal::new(&Home::with(&config), &["chat"]);
    terminal.until("\n>").await;
    terminal.press("Check it\r").await;
    terminal.until("\"status\": \"done\"\n}").await;
    let shown = terminal.shown();
    assert!(shown.contains("No report yet (1/3)") && shown.contains("Final report"), "{shown}");
    assert!(!shown.contains("TURN-FAILED"), "{shown}");
    terminal.enter("Again", "No report: the model gave no acceptable final report in 6 attempts").await;
}
