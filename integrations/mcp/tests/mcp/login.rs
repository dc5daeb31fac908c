//! Servers that ask for a login, and their authorization server, with real HTTP.

use std::sync::Arc;

use everturn_mcp::{Command, Connection, Endpoint, Login, LoginStore, MemoryLogins, ServerConfig, log_out};
use everturn_orchestrator::StartTurn;
use everturn_wire::{
    ApprovalMode, QuestionAction, QuestionKind, QuestionOutcome, ToolSourceInfo, ToolSourceLogin,
    ToolSourceStatus,
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    elicitation::{asked, settled},
    support::{DEADLINE, Remote, World, called, installed, wait_for},
};

/// Where the browser ends. Nothing listens there, as the tests are the browser.
const REDIRECT: &str = "http://127.0.0.1:9/mcp/callback";

/// A server that asks for a login.
struct Locked {
    remote: Remote,
    browser: reqwest::Client,
    logins: Arc<MemoryLogins>,
}

impl Locked {
    async fn start() -> Self {
        let script = installed("testing/e2e/support/oauth-mcp.mjs");
        let command =
            |_| Command { program: "node".to_owned(), args: vec![script.clone()], ..Command::default() };
        let redirect = reqwest::redirect::Policy::none();
        // Only one of the crates of the tests brings a default, so a provider is installed by none.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let browser = reqwest::Client::builder().redirect(redirect).build().unwrap();
        Self { remote: Remote::start(command, None).await, browser, logins: Arc::default() }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.remote.port)
    }

    fn config(&self) -> ServerConfig {
        let endpoint = Endpoint { url: self.url("/mcp"), ..Endpoint::default() };
        ServerConfig { logins: self.logins.clone(), ..ServerConfig::new("s", Connection::Http(endpoint)) }
    }

    /// Changes how it behaves, and returns what happened.
    async fn control(&self, change: &Value) -> Value {
        let asked = self.browser.post(self.url("/control")).header("content-type", "application/json");
        let told = asked.body(change.to_string()).send().await.unwrap().bytes().await.unwrap();
        serde_json::from_slice(&told).unwrap()
    }

    /// Opens the login's address as a browser does. Returns where that ends.
    async fn visit(&self, login: &Login) -> String {
        let answer = self.browser.get(login.url()).send().await.unwrap();
        let place = answer.headers().get("location").map(|place| place.to_str().unwrap().to_owned());
        place.unwrap_or_else(|| panic!("no redirect: {}", answer.status()))
    }

    async fn log_in(&self, world: &World) {
        let login = world.server.begin_login(REDIRECT).await.unwrap();
        let place = self.visit(&login).await;
        login.finish(&place).await.unwrap();
    }

    /// Returns a world with scripted calls of these tools, which nobody has logged in.
    async fn world(&self, tools: &[&str]) -> World {
        let calls: Vec<_> = tools.iter().map(|tool| (*tool, json!({}))).collect();
        let world = World::new(self.config(), &calls);
        needed(&world).await;
        world
    }
}

async fn needed(world: &World) {
    let is_down = |source: &ToolSourceInfo| source.status == ToolSourceStatus::Down;
    let down = world.until(|source| is_down(source) && source.login == Some(ToolSourceLogin::Needed)).await;
    assert!(down.message.unwrap().contains("everturn mcp login s"));
}

async fn up(world: &World) {
    let up = world.until(|source| source.status == ToolSourceStatus::Up).await;
    assert_eq!(up.login, Some(ToolSourceLogin::Done));
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_login_the_tools_can_be_called() {
    let locked = Locked::start().await;
    let world = locked.world(&["greet"]).await;
    locked.log_in(&world).await;
    up(&world).await;
    assert_eq!(world.call().await.content, "hello, friend");
    // Another process finds the login.
    let other = World::new(locked.config(), &[("greet", json!({}))]);
    up(&other).await;
    assert_eq!(other.call().await.content, "hello, friend");
    let seen = locked.control(&json!({})).await;
    assert_eq!((&seen["registered"], &seen["issued"], &seen["refreshed"]), (&json!(1), &json!(1), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expired_is_replaced_before_a_call() {
    let locked = Locked::start().await;
    // Tokens are replaced half a minute before they expire, so that this one is old from the beginning.
    locked.control(&json!({ "expiresIn": 5 })).await;
    let world = locked.world(&["greet"]).await;
    locked.log_in(&world).await;
    up(&world).await;
    let before = locked.control(&json!({})).await;
    assert_eq!(world.call().await.content, "hello, friend");
    let after = locked.control(&json!({})).await;
    assert!(after["refreshed"].as_u64() > before["refreshed"].as_u64(), "{before} {after}");
    assert_eq!((&after["issued"], &after["refused"]), (&json!(1), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_server_no_longer_accepts_is_replaced_during_a_call() {
    let locked = Locked::start().await;
    let world = locked.world(&["greet"]).await;
    locked.log_in(&world).await;
    up(&world).await;
    locked.control(&json!({ "revoke": "access" })).await;
    assert_eq!(world.call().await.content, "hello, friend");
    let seen = locked.control(&json!({})).await;
    assert_eq!((&seen["issued"], &seen["refreshed"], &seen["calls"]), (&json!(1), &json!(1), &json!(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_login_waits_until_somebody_has_logged_in() {
    let locked = Locked::start().await;
    let world = locked.world(&["greet", "greet", "greet", "greet"]).await;
    locked.log_in(&world).await;
    up(&world).await;
    // Refused in the middle of a call, and nobody wants to log in.
    locked.control(&json!({ "revoke": "all" })).await;
    let (started, mut watched) = world.begin().await;
    let question = asked(&mut watched).await;
    assert_eq!((question.kind, question.asker.as_str()), (QuestionKind::Login, "s"));
    let id = &started.conversation_id;
    let refused = world.answer(id, &question, QuestionAction::Accept, None).await.unwrap_err();
    assert!(refused.contains("this question ends when somebody has logged in at s"), "{refused}");
    assert_eq!(world.answer(id, &question, QuestionAction::Decline, None).await, Ok(true));
    let refused = called(&mut watched).await;
    assert!(refused.is_error && refused.content.contains("which the user declined"), "{refused:?}");
    needed(&world).await;
    // The tools stay listed.
    assert_eq!(world.offered(), ["s__greet", "s__leak"]);
    // Known before the call.
    let (_, mut watched) = world.begin().await;
    assert_eq!(asked(&mut watched).await.kind, QuestionKind::Login);
    locked.log_in(&world).await;
    assert_eq!(settled(&mut watched).await, QuestionOutcome::Accepted);
    assert_eq!(called(&mut watched).await.content, "hello, friend");
    // Refused in the middle of a call, which is repeated.
    locked.control(&json!({ "revoke": "all" })).await;
    let (_, mut watched) = world.begin().await;
    assert_eq!(asked(&mut watched).await.kind, QuestionKind::Login);
    locked.log_in(&world).await;
    assert_eq!(called(&mut watched).await.content, "hello, friend");
    // Nobody is there to log in.
    locked.control(&json!({ "revoke": "all" })).await;
    let mut start = StartTurn::new("hi");
    start.approvals = ApprovalMode::Deny;
    let started = world.orchestrator.start(start).await.unwrap();
    let watched = world.orchestrator.subscribe(&started.conversation_id, Some(started.from), true).await;
    let refused = called(&mut watched.unwrap()).await;
    assert!(refused.is_error && refused.content.contains("everturn mcp login s"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorization_server_that_is_away_costs_no_login() {
    let locked = Locked::start().await;
    locked.control(&json!({ "expiresIn": 5 })).await;
    let world = locked.world(&["greet", "greet"]).await;
    locked.log_in(&world).await;
    up(&world).await;
    // A refresh token that was sent may be used up; this one was not accepted for another reason.
    let kept = locked.logins.read("s", &locked.url("/mcp")).unwrap();
    locked.control(&json!({ "isDown": true, "expiresIn": 3600 })).await;
    assert!(world.call().await.is_error);
    let same = locked.logins.read("s", &locked.url("/mcp")).unwrap();
    assert!(kept.is_some() && kept == same, "the login is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_told_and_changes_nothing() {
    let locked = Locked::start().await;
    locked.control(&json!({ "refuses": true })).await;
    let world = locked.world(&[]).await;
    let login = world.server.begin_login(REDIRECT).await.unwrap();
    let place = locked.visit(&login).await;
    let refused = login.finish(&place).await.unwrap_err().to_string();
    assert_eq!(refused, "the login was refused: you said no (access_denied)");
    needed(&world).await;
    assert_eq!(locked.logins.read("s", &locked.url("/mcp")).unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_of_another_login_is_not_accepted() {
    let locked = Locked::start().await;
    let world = locked.world(&[]).await;
    let (mine, other) = (
        world.server.begin_login(REDIRECT).await.unwrap(),
        world.server.begin_login(REDIRECT).await.unwrap(),
    );
    let place = locked.visit(&other).await;
    let error = mine.finish(&place).await.unwrap_err().to_string();
    assert!(error.contains("does not belong to the login") && !error.contains("code-"), "{error}");
    assert_eq!(locked.control(&json!({})).await["issued"], json!(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_logs_in_and_out() {
    let locked = Locked::start().await;
    let world = locked.world(&[]).await;
    world.server.look_again();
    let login = Login::begin(&locked.config(), REDIRECT).await.unwrap();
    let place = locked.visit(&login).await;
    login.finish(&place).await.unwrap();
    world.server.look_again();
    up(&world).await;
    assert!(log_out(&locked.config()).unwrap() && !log_out(&locked.config()).unwrap());
    world.server.look_again();
    needed(&world).await;
}

/// Of each login there are two notices: of the one who logs in, and of the one who sees what is kept change. On one thread, the
/// second comes before the server is connected to again.
#[tokio::test]
async fn a_login_that_is_noticed_twice_is_connected_with_once() {
    let locked = Locked::start().await;
    let world = locked.world(&["greet"]).await;
    locked.log_in(&world).await;
    world.server.look_again();
    up(&world).await;
    assert_eq!(world.call().await.content, "hello, friend");
    assert_eq!(locked.control(&json!({})).await["listed"], json!(1));
    // Another login of the same person is one.
    locked.log_in(&world).await;
    let again = async { while locked.control(&json!({})).await["listed"] != json!(2) {} };
    timeout(DEADLINE, again).await.expect("it connects again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_for_its_url_alone() {
    let (locked, other) = (Locked::start().await, Locked::start().await);
    let world = locked.world(&[]).await;
    locked.log_in(&world).await;
    up(&world).await;
    let elsewhere = World::new(ServerConfig { logins: locked.logins.clone(), ..other.config() }, &[]);
    needed(&elsewhere).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_server_repeats_is_hidden() {
    let locked = Locked::start().await;
    let world = locked.world(&["leak"]).await;
    locked.log_in(&world).await;
    up(&world).await;
    assert_eq!(world.call().await.content, "you sent Bearer [secret]");
    let seen = locked.control(&json!({})).await;
    let told = format!("{:?} {:?}", world.source(), world.provider.requests());
    for secret in seen["secrets"].as_array().unwrap() {
        assert!(!told.contains(secret.as_str().unwrap()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_oauth_says_so() {
    let locked = Locked::start().await;
    let endpoint = Endpoint { url: locked.url("/control"), ..Endpoint::default() };
    let config = ServerConfig::new("s", Connection::Http(endpoint));
    let world = World::new(config, &[]);
    wait_for(|| (world.source().status == ToolSourceStatus::Down).then_some(())).await;
    assert_eq!(world.source().login, None);
    let program = ServerConfig::new("s", Connection::Command(Command::default()));
    let error = Login::begin(&program, REDIRECT).await.err().unwrap().to_string();
    assert!(error.contains("is a program of this machine"), "{error}");
}
