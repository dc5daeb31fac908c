//! Starting and ending a server.

use everturn_sim::{Gate, Loopback, chat};
use serde_json::json;
use tokio::time::timeout;

use crate::{
    client::{get, ndjson, post},
    home::{DEADLINE, Home, LONG, stderr, stdout},
    terminal::{CTRL_C, Terminal},
};

#[tokio::test]
async fn it_prints_its_url_and_its_models() {
    let mut terminal = Terminal::new(&Home::empty(), &["--listen", "0"]);
    terminal.until("(see --help)").await;
    let shown = terminal.shown();
    for expected in [
        "on http://127.0.0.1:",
        "demo/flaky",
        "chat --server http://127.0.0.1:",
        "OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    terminal.press(CTRL_C).await;
    assert_eq!(terminal.end().await.code(), Some(0));
}

#[tokio::test]
async fn a_running_turn_may_end_before_the_server_does() {
    let gate = Gate::new();
    let provider = Loopback::start([chat::text(["one", " two"]).reply().stall_before(2, &gate)]).await;
    let mut server = Home::with_provider(&provider, LONG).serve().await;
    let mut lines = post(&server, "/chat", &json!({ "message": "hi" })).await;
    while !lines.line().await.unwrap().contains("text-delta") {}
    server.terminate().await;
    gate.open();
    let rest = ndjson(lines).await;
    assert_eq!(rest.last().unwrap()["type"], "turn-sealed");
    let ended = timeout(DEADLINE, server.child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
}

#[tokio::test]
async fn a_turn_that_does_not_end_does_not_delay_the_shutdown() {
    let provider = Loopback::start([chat::text(["one"]).reply().hold(&Gate::new())]).await;
    let mut server = Home::with_provider(&provider, LONG).serve().await;
    let _lines = post(&server, "/chat", &json!({ "message": "hi" })).await;
    provider.arrived(1).await;
    server.terminate().await;
    let ended = timeout(DEADLINE, server.child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
}

#[tokio::test]
async fn the_configuration_that_help_shows_starts_a_server() {
    let help = stdout(&Home::empty().run(&["--help"]).await);
    let (_, sample) = help.split_once("\n  [[provider]]\n").expect("a sample");
    let (sample, rest) = sample.split_once("\nWith kind").unwrap();
    let server = Home::with(&format!("[[provider]]\n{sample}\n")).serve().await;
    let models = get(&server, "/models").await.json().await;
    assert_eq!(models["models"], json!(["local/llama3.2"]));
    for kind in ["openai-responses", "anthropic", "gemini"] {
        assert!(rest.contains(kind));
        let config = format!("[[provider]]\n{sample}\nkind = \"{kind}\"\napi_key = \"k\"\n");
        Home::with(&config).serve().await;
    }
}

#[tokio::test]
async fn an_unusable_path_is_reported_once() {
    let home = Home::empty();
    let output = home.run(&["--listen", "0", "--data", home.path().to_str().unwrap()]).await;
    let told = stderr(&output);
    assert!(!output.status.success());
    assert_eq!(told.matches("Is a directory").count(), 1, "{told}");
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let home = Home::empty();
    let server = home.serve().await;
    let second = home.run(&["serve", "--listen", server.authority()]).await;
    assert_eq!((second.status.code(), stdout(&second).as_str()), (Some(1), ""));
    let said = stderr(&second);
    assert!(said.contains(server.authority()) && said.contains("--listen 127.0.0.1:0"), "{said}");
}

#[tokio::test]
async fn an_unusable_server_configuration_is_rejected_at_once() {
    for (config, words, expected) in [
        ("", &["--listen", "0.0.0.0:0"][..], "refusing to listen on 0.0.0.0:0"),
        ("[server]\nport = 1", &[], "config.toml:2: unknown field `port`"),
        (
            "[[provider]]\nname = \"a\"\nbase_url = \"nonsense\"\nmodels = [\"m\"]",
            &["--listen", "127.0.0.1:0"],
            "provider \"a\": `base_url` must begin with http:// or https://",
        ),
    ] {
        let output = Home::with(config).run(words).await;
        assert_eq!(output.status.code(), Some(1), "{config}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let usage = Home::empty().run(&["--no-such-flag"]).await;
    assert_eq!(usage.status.code(), Some(2));
}

#[tokio::test]
async fn a_policy_without_a_tool_is_warned_about_at_startup() {
    let home = Home::with("[tools.policy]\nrol_dice = \"ask\"\nroll_dice = \"ask\"\n\"*\" = \"ask\"");
    let greeting = home.serve().await.greeting("stop").await;
    let warnings: Vec<&String> = greeting.iter().filter(|line| line.starts_with("warning")).collect();
    let expected = "\"rol_dice\" under [tools.policy] has no effect, because no tool has this name: did you mean \"roll_dice\"?";
    assert_eq!(warnings, [&format!("warning {expected}")]);
    let told = home.run(&["run", "--ephemeral", "hi"]).await;
    assert!(stderr(&told).contains(&format!("Warning: {expected}")), "{}", stderr(&told));
}
