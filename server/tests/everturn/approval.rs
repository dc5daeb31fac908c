//! Tool calls that need a person's approval, in `everturn chat`: in a terminal and in a pipe.

use everturn_sim::{Gate, Loopback, Reply, chat, fault};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::{
    client::{get, post},
    home::{Home, LONG, stderr, stdout},
    terminal::{CTRL_C, ESC, Terminal},
};

const KEYS: &str = "[y] allow once  [a] always in this conversation  [n] deny";

fn said(text: &str) -> Reply {
    chat::text([text]).reply()
}

/// Returns calls of the dice tool with these arguments.
fn rolls(inputs: &[&str]) -> Reply {
    let call = |answer: chat::Answer, (at, input): (usize, &&str)| {
        answer.tool(at, &format!("call_{at}"), "roll_dice", [*input])
    };
    let answer = chat::Answer::new().role();
    inputs.iter().enumerate().fold(answer, call).finish("tool_calls").done().reply()
}

fn home(provider: &Loopback, policy: &str, tools: &str) -> Home {
    Home::with(&format!(
        "[tools]\ndice = true\n{tools}\n[tools.policy]\nroll_dice = \"{policy}\"\n[retry]\n{LONG}\n[[provider]]\n\
         name = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    ))
}

/// Returns the tool results of the last request.
fn told(provider: &Loopback) -> Vec<String> {
    let last = provider.requests().last().unwrap().json().unwrap();
    let messages = last["messages"].as_array().unwrap().iter().rev();
    let results = messages.take_while(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

/// Opens a terminal, and sends this message.
async fn opened(home: &Home, words: &[&str], message: &str) -> Terminal {
    let mut terminal = Terminal::new(home, words);
    terminal.until("\n>").await;
    terminal.press(&format!("{message}\r")).await;
    terminal
}

#[tokio::test]
async fn a_key_allows_a_call_or_denies_it() {
    let provider =
        Loopback::start([rolls(&[r#"{"sides":20}"#]), said("Nice."), rolls(&["{}"]), said("Well.")]).await;
    let mut terminal = opened(&home(&provider, "ask", ""), &["chat"], "roll").await;
    terminal.until("? roll_dice needs your approval\n  \u{2502} sides: 20\n").await;
    terminal.until(KEYS).await;
    assert!(terminal.is_yellow("? roll_dice") && terminal.is_yellow("[y]"));
    terminal.press("y").await;
    terminal.until("roll_dice allowed\n").await;
    terminal.until("Nice.\n\n>").await;
    assert!(!terminal.shown().contains(KEYS), "{}", terminal.shown());
    assert!(told(&provider)[0].parse::<u8>().is_ok());
    terminal.enter("more", "\u{2502} no arguments").await;
    terminal.until(KEYS).await;
    terminal.press("N").await;
    terminal.until("roll_dice denied\n").await;
    terminal.until("Well.\n\n>").await;
    assert!(told(&provider)[0].contains("denied"), "{:?}", told(&provider));
    terminal.enter("/tools", "TOOL       POLICY  CLAIMS\nroll_dice  ask\n\n>").await;
}

#[tokio::test]
async fn a_line_answers_too_and_a_reason_reaches_the_model() {
    let provider = Loopback::start([rolls(&["{}", "{}"]), said("Well."), said("Hello.")]).await;
    let mut terminal = opened(&home(&provider, "ask", ""), &["chat"], "roll").await;
    terminal.until(&format!("{KEYS} (1 more after this)")).await;
    terminal.enter("/deny not on a Sunday", "roll_dice denied: not on a Sunday").await;
    terminal.until(KEYS).await;
    terminal.enter("/allow", "roll_dice allowed").await;
    terminal.until("Well.\n\n>").await;
    assert!(told(&provider).iter().any(|result| result.contains("not on a Sunday")));
    terminal.enter("/allow", "No call waits for approval.\n\n>").await;
    assert_eq!(provider.counts().requests, 2);
}

#[tokio::test]
async fn an_always_allowed_tool_needs_no_approval_until_that_is_revoked() {
    let replies = [rolls(&["{}", "{}"]), rolls(&["{}"]), said("One."), rolls(&["{}"]), said("Two.")];
    let provider = Loopback::start(replies).await;
    let mut terminal = opened(&home(&provider, "ask", ""), &["chat"], "roll").await;
    terminal.until(KEYS).await;
    terminal.press("a").await;
    terminal.until("roll_dice allowed in this conversation; /revoke roll_dice takes that back").await;
    terminal.until("One.\n\n>").await;
    assert_eq!(provider.counts().requests, 3, "the other call, and the next step, asked nobody");
    terminal
        .enter("/allowed", "Allowed in this conversation: roll_dice. /revoke TOOL takes that back.\n\n>")
        .await;
    terminal.enter("/revoke roll_dice", "Each call of roll_dice asks you again.\n\n>").await;
    terminal.enter("/allowed", "No tool is allowed in the whole conversation.\n\n>").await;
    terminal.press("again\r").await;
    terminal.until(KEYS).await;
    terminal.press("y").await;
    terminal.until("Two.\n\n>").await;
}

#[tokio::test]
async fn several_approvals_are_asked_for_one_after_the_other() {
    let calls = rolls(&[r#"{"sides":4}"#, r#"{"sides":6}"#, r#"{"sides":8}"#]);
    let provider = Loopback::start([calls, said("Done.")]).await;
    let mut terminal = opened(&home(&provider, "ask", ""), &["chat"], "roll").await;
    for (sides, key, more) in
        [(4, "y", " (2 more after this)"), (6, "n", " (1 more after this)"), (8, "y", "")]
    {
        terminal.until(&format!("sides: {sides}")).await;
        terminal.until_ends(&format!("{KEYS}{more}")).await;
        assert!(!terminal.shown().contains(&format!("sides: {}", sides + 2)), "{}", terminal.shown());
        terminal.press(key).await;
    }
    terminal.until("Done.\n\n>").await;
    let results = told(&provider);
    assert_eq!(results.iter().filter(|result| result.parse::<u8>().is_ok()).count(), 2, "{results:?}");
}

#[tokio::test]
async fn a_half_typed_line_is_not_an_answer() {
    let gate = Gate::new();
    let provider = Loopback::start([rolls(&["{}"]).hold(&gate), said("Done.")]).await;
    let mut terminal = opened(&home(&provider, "ask", ""), &["chat"], "roll").await;
    terminal.until("Waiting for the model").await;
    terminal.press("yes, a").await;
    terminal.until("> yes, a").await;
    gate.open();
    let hint = "/allow, /allow always or /deny REASON answers; Esc clears the line\n> yes, a";
    terminal.until(hint).await;
    terminal.press("nd more").await;
    terminal.until(&format!("{hint}nd more")).await;
    terminal.enter("", "Queued: yes, and more").await;
    terminal.until(KEYS).await;
    terminal.press("kept").await;
    terminal.until("> kept").await;
    terminal.press(ESC).await;
    terminal.until_ends(KEYS).await;
    assert_eq!(provider.counts().requests, 1, "nothing was answered so far");
    terminal.press("y").await;
    terminal.until("> yes, and more\n\nDone.\n\n>").await;
}

#[tokio::test]
async fn an_unanswered_approval_is_denied_after_its_timeout() {
    let provider = Loopback::start([rolls(&["{}"]), said("Too bad.")]).await;
    let home = home(&provider, "ask", "approval_timeout_ms = 8000");
    let mut terminal = opened(&home, &["chat"], "roll").await;
    terminal.until(&format!("{KEYS} (denied in ")).await;
    terminal.until("roll_dice denied: not answered in time").await;
    terminal.until("Too bad.\n\n>").await;
}

#[tokio::test]
async fn a_review_without_a_decision_is_followed_by_a_question() {
    // The second request is the reviewer's.
    let provider = Loopback::start([rolls(&["{}"]), fault::of_status(403, None), said("Fine.")]).await;
    let home = home(&provider, "review", "[tools.review]\nmodel = \"sim/model\"");
    let mut terminal = opened(&home, &["chat"], "roll").await;
    terminal.until("roll_dice could not be reviewed\n").await;
    terminal.until("? roll_dice needs your approval: the automatic review came to no decision").await;
    terminal.until(KEYS).await;
    terminal.press("y").await;
    terminal.until("Fine.\n\n>").await;
}

#[tokio::test]
async fn a_question_outlives_its_server() {
    let provider = Loopback::start([rolls(&["{}"]), said("Alive.")]).await;
    let home = home(&provider, "ask", "");
    let mut server = home.serve().await;
    let mut terminal = opened(&home, &["chat", "--server", &server.url], "roll").await;
    terminal.until(KEYS).await;
    server.child.kill().await.unwrap();
    terminal.until("Connection lost, reconnecting").await;
    let again = home.launch(home.command(&["--listen", server.authority()])).await;
    terminal.until(KEYS).await;
    terminal.press("y").await;
    terminal.until("roll_dice allowed").await;
    terminal.until("Alive.\n\n>").await;
    drop(again);
}

#[tokio::test]
async fn ctrl_c_ends_a_turn_that_waits_for_an_answer() {
    let provider = Loopback::start([rolls(&["{}"]), said("Again.")]).await;
    let mut terminal = opened(&home(&provider, "ask", ""), &["chat"], "roll").await;
    terminal.until(KEYS).await;
    terminal.press(CTRL_C).await;
    terminal.until("Stopped.\n\n>").await;
    assert!(!terminal.shown().contains(KEYS), "{}", terminal.shown());
}

#[tokio::test]
async fn a_pipe_denies_calls_by_default() {
    let provider = Loopback::start([rolls(&["{}"]), said("Without dice.")]).await;
    let home = home(&provider, "ask", "");
    let output = home.run(&["chat", "roll"]).await;
    assert_eq!(
        (output.status.code(), stdout(&output).trim()),
        (Some(0), "Without dice."),
        "{}",
        stderr(&output)
    );
    assert!(told(&provider)[0].contains("needs approval"), "{:?}", told(&provider));
    let output = home.run(&["chat", "--approvals", "ask", "roll"]).await;
    assert!(
        !output.status.success() && stderr(&output).contains("nobody could answer"),
        "{}",
        stderr(&output)
    );
}

#[tokio::test]
async fn a_pipe_that_asks_for_approval_prints_where_to_answer() {
    let provider = Loopback::start([rolls(&[r#"{"sides":6}"#]), said("Rolled.")]).await;
    let home = home(&provider, "ask", "");
    let server = home.serve().await;
    let words = ["chat", "--server", &server.url, "--new-conversation", "c-1", "--approvals", "ask", "roll"];
    let mut child = home.command(&words).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut heard = Vec::new();
    while heard.last().is_none_or(|line: &String| !line.starts_with("It waits for an answer")) {
        heard.push(lines.next_line().await.unwrap().expect("it says where to answer"));
    }
    assert_eq!(&heard[heard.len() - 3..heard.len() - 1], ["roll_dice needs your approval", "  | sides: 6"]);
    assert!(heard.last().unwrap().ends_with("POST /conversations/c-1/approvals."), "{heard:?}");
    let asked: Value = get(&server, "/conversations/c-1/approvals").await.json().await;
    let call = &asked["pending"][0];
    let answer = json!({
        "turnId": call["turnId"], "stepId": call["stepId"], "toolCallId": call["toolCallId"], "verdict": "allowed",
    });
    let answered: Value = post(&server, "/conversations/c-1/approvals", &answer).await.json().await;
    assert_eq!(answered["answered"], true);
    let output = child.wait_with_output().await.unwrap();
    assert_eq!((output.status.code(), stdout(&output).trim()), (Some(0), "Rolled."));
}

#[tokio::test]
async fn a_conversation_that_needs_attention_is_listed_while_its_server_runs_and_afterwards() {
    let provider = Loopback::start([rolls(&["{}"])]).await;
    let home = home(&provider, "ask", "");
    let mut server = home.serve().await;
    post(&server, "/chat", &json!({ "conversationId": "c-1", "message": "roll" })).await;
    loop {
        let status: Value = get(&server, "/conversations/c-1/status").await.json().await;
        if status["approvals"].is_array() {
            break;
        }
    }
    for is_running in [true, false] {
        let list = stdout(&home.run(&["conversations", "list"]).await);
        assert!(list.lines().nth(1).is_some_and(|line| line.contains("  needs you  ")), "{list}");
        if is_running {
            server.child.kill().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_script_that_continues_a_turn_denies_what_it_asks() {
    let provider = Loopback::start([rolls(&["{}", "{}"]), said("Well."), said("Two.")]).await;
    let home = home(&provider, "ask", "");
    let mut terminal = opened(&home, &["chat"], "roll").await;
    terminal.until(KEYS).await;
    terminal.kill().await;
    let output = home.run(&["run", "--continue", "second"]).await;
    assert_eq!(stdout(&output), "Well.\nTwo.\n", "{}", stderr(&output));
    let request = provider.requests()[1].json().unwrap();
    let results = request["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    let results: Vec<_> = results.map(|message| message["content"].as_str().unwrap()).collect();
    assert!(results.len() == 2 && results.iter().all(|text| text.contains("nobody is there")), "{results:?}");
}
