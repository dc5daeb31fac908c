//! Turns that move between providers, and between the keys of one.

use std::time::{Duration, SystemTime};

use everturn_sim::{Loopback, Reply, Request, chat, fault};
use serde_json::{Value, json};

use crate::{
    client::{Socket, get, post},
    home::{Home, Server},
    terminal::Terminal,
};

/// Returns a home with the route `main` over `a/m` with key `ka` and `b/m` with key `kb`.
fn home(a: &Loopback, b: &Loopback, schedule: &str) -> Home {
    let provider = |name: &str, provider: &Loopback| {
        format!(
            "[[provider]]\nname = \"{name}\"\nbase_url = \"{}/v1\"\napi_key = \"k{name}\"\nmodels = [\"m\"]\n",
            provider.base_url()
        )
    };
    let [a, b] = [provider("a", a), provider("b", b)];
    Home::with(&format!(
        "default_model = \"route/main\"\n[tools]\ndice = true\n{a}{b}[[route]]\nname = \"main\"\n\
         targets = [\"a/m\", \"b/m\"]\n{schedule}\n"
    ))
}

const INTERACTIVE: &str = "schedule = \"interactive\"";

fn said(text: &str) -> Reply {
    chat::text([text]).reply()
}

/// Returns the key of each request.
fn keys(provider: &Loopback) -> Vec<String> {
    let key = |request: &Request| request.header("authorization").unwrap().to_owned();
    provider.requests().iter().map(key).collect()
}

/// Subscribes from the start.
async fn watch(server: &Server, extensions: bool) -> Socket {
    let mut socket = Socket::open(server, "/ws").await;
    let subscribe =
        json!({ "type": "chat.subscribe", "conversationId": "c1", "cursor": "0", "extensions": extensions });
    socket.say(&subscribe).await;
    socket
}

/// Returns the events of the turn, without a preceding status.
async fn turn(mut socket: Socket) -> Vec<Value> {
    let events = socket.events("turn-sealed").await;
    events.into_iter().skip_while(|event| event["type"] == "status").collect()
}

async fn say(server: &Server, conversation: &str) {
    post(server, "/chat", &json!({ "conversationId": conversation, "message": "hi" })).await;
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_turn_moves_to_the_next_target_and_tells_clients_that_support_it() {
    let a = Loopback::start([fault::overloaded()]).await;
    let b = Loopback::start([said("Hello.")]).await;
    let server = home(&a, &b, INTERACTIVE).serve().await;
    say(&server, "c1").await;
    let events = turn(watch(&server, true).await).await;
    let expected = [
        "user-message",
        "turn-start",
        "target-switched",
        "provider-retry",
        "status",
        "retry-ended",
        "text-delta",
        "usage",
        "step-complete",
        "done",
        "turn-sealed",
    ];
    assert_eq!(types(&events), expected);
    let switched = &events[2];
    assert_eq!((&switched["from"], &switched["to"]), (&json!("a/m"), &json!("b/m")));
    assert_eq!((&switched["role"], &switched["reason"]), (&json!("main"), &json!("a/m is overloaded")));
    let retry = &events[3];
    assert_eq!((&retry["target"], &retry["delayMs"]), (&json!("b/m"), &json!(0)));
    assert_eq!(
        (&retry["attempt"], &retry["maxAttempts"], &retry["code"]),
        (&json!(0), &json!(3), &json!("529"))
    );
    assert_eq!((&events[5]["outcome"], &events[5]["target"]), (&json!("recovered"), &json!("b/m")));

    let plain = turn(watch(&server, false).await).await;
    let is_base = |kind: &&&str| !["target-switched", "retry-ended"].contains(*kind);
    assert_eq!(types(&plain), expected.iter().filter(is_base).copied().collect::<Vec<_>>());
    assert_eq!(of_type(&plain, "text-delta")[0]["delta"], "Hello.");
    assert_eq!((keys(&a), keys(&b)), (vec!["Bearer ka".to_owned()], vec!["Bearer kb".to_owned()]));

    // What is known about `a` applies to every turn.
    say(&server, "c2").await;
    b.arrived(2).await;
    assert_eq!(a.counts().requests, 1);
}

/// Returns the usage limit of a plan, which ends in two hours.
fn used_up() -> Reply {
    let message = "The usage limit has been reached";
    Reply::json(
        429,
        &json!({"error": {"type": "usage_limit_reached", "message": message, "resets_in_seconds": 7200}}),
    )
}

#[tokio::test]
async fn a_provider_continues_with_its_second_key_if_the_first_one_is_exhausted_or_rejected() {
    let cases = [
        (used_up(), "quota_exhausted", "a/m has reached its usage limit"),
        (fault::insufficient_quota(), "quota_exhausted", "a/m has reached its usage limit"),
        (fault::unauthorized(), "auth", "a/m refused the credential"),
    ];
    for (refusal, category, reason) in cases {
        let provider = Loopback::with(move |request: &Request| match request.header("authorization") {
            Some("Bearer first") => refusal.clone(),
            _ => said("Hello."),
        })
        .await;
        let config = format!(
            "[[provider]]\nname = \"a\"\nbase_url = \"{}/v1\"\napi_key = [\"first\", \"second\"]\nmodels = [\"m\"]\n",
            provider.base_url()
        );
        let server = Home::with(&config).serve().await;
        assert_eq!(get(&server, "/models").await.json().await["models"], json!(["a/m"]));
        say(&server, "c1").await;
        let events = turn(watch(&server, true).await).await;
        let switched = of_type(&events, "target-switched")[0];
        assert_eq!((&switched["from"], &switched["to"]), (&json!("a/m"), &json!("a#2/m")));
        assert_eq!(switched["reason"], reason);
        assert_eq!(of_type(&events, "provider-retry")[0]["category"], category);
        assert_eq!(keys(&provider), ["Bearer first", "Bearer second"]);

        say(&server, "c2").await;
        provider.arrived(3).await;
        assert_eq!(
            keys(&provider)[2],
            "Bearer second",
            "what is known of the first one holds for every turn"
        );
    }
}

#[tokio::test]
async fn a_wait_for_a_target_outlives_its_process() {
    let a = Loopback::start([fault::rate_limited(Some(10)), said("Hello.")]).await;
    let b = Loopback::start([fault::rate_limited(Some(10))]).await;
    let home = home(&a, &b, "schedule = \"interactive\"\nbase_ms = 100");
    let mut server = home.serve().await;
    say(&server, "c1").await;
    let mut socket = watch(&server, true).await;
    let mut events = socket.events("provider-retry").await;
    events.extend(socket.events("provider-retry").await);
    let before = get(&server, "/conversations/c1/status").await.json().await["retry"].take();
    assert_eq!((&before["phase"], &before["target"]), (&json!("waiting"), &json!("a/m")), "{before}");
    server.child.kill().await.unwrap();

    let server = home.serve().await;
    let after = get(&server, "/conversations/c1/status").await.json().await["retry"].take();
    assert_eq!(after, before, "the wait keeps its end and its target");
    let mut socket = watch(&server, true).await;
    a.arrived(2).await;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert!(
        now >= Duration::from_millis(before["nextAt"].as_u64().unwrap()),
        "a was told not to be asked yet"
    );
    let events = socket.events("turn-sealed").await;
    assert_eq!((a.counts().requests, b.counts().requests), (2, 1));
    let retries = of_type(&events, "provider-retry");
    let targets: Vec<&Value> = retries.iter().map(|retry| &retry["target"]).collect();
    assert_eq!(targets, ["b/m", "a/m"], "one for each request but the first");
    assert_eq!(of_type(&events, "retry-ended")[0]["target"], "a/m");
    assert_eq!(of_type(&events, "text-delta").len(), 1);
    assert_eq!(of_type(&events, "done")[0]["reason"], "stop");
}

#[tokio::test]
async fn a_step_goes_back_to_the_first_target_when_it_is_free_again() {
    let a = Loopback::start([fault::rate_limited(Some(1)), said("Hello.")]).await;
    // The wait after its failure is longer than the hint of `a`.
    let b = Loopback::start([fault::of_status(503, None), chat::tool("call_1", "roll_dice", ["{}"]).reply()])
        .await;
    let server = home(&a, &b, "schedule = \"interactive\"\nbase_ms = 600").serve().await;
    say(&server, "c1").await;
    let events = watch(&server, true).await.events("turn-sealed").await;
    let moves: Vec<(&str, &Value)> = events
        .iter()
        .filter(|event| event["to"].is_string())
        .map(|event| (event["type"].as_str().unwrap(), &event["to"]))
        .collect();
    assert_eq!(moves, [("target-switched", &json!("b/m")), ("target-restored", &json!("a/m"))]);
    assert_eq!((keys(&a).len(), keys(&b).len()), (2, 2));
    let messages = a.requests()[1].json().unwrap()["messages"].take();
    assert_eq!(messages.as_array().unwrap().last().unwrap()["role"], "tool", "a continues what b began");
    assert_eq!(of_type(&events, "text-delta").len(), 1);
}

#[tokio::test]
async fn a_terminal_describes_a_switch_of_targets() {
    let a = Loopback::start([fault::overloaded()]).await;
    let b = Loopback::start([said("Hello.")]).await;
    let mut terminal = Terminal::new(&home(&a, &b, INTERACTIVE), &["chat", "hi"]);
    assert_eq!(terminal.end().await.code(), Some(0));
    let shown = terminal.shown();
    let expected =
        "Switched to b/m: a/m is overloaded\n! HTTP 529: Overloaded\n\nHello.\n\nAnswered after 1 retry, in ";
    assert!(shown.starts_with(expected), "{shown}");
}
