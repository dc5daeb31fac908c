//! Providers whose TLS and HTTP/2 fail, with the real server in front.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use everturn_sim::{Authority, Gate, Handshake, Loopback, Reply, Request, Tls, chat};
use hyper::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    client::{get, ndjson, post, send},
    home::{DEADLINE, Home, Server},
};

/// Enough tries for every script here.
const QUICK: &str = "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 50\njitter = 0.0";

/// Starts a server that trusts this authority.
async fn trusting(home: &Home, authority: &Authority) -> Server {
    let file = home.place("authority.crt");
    authority.write(&file);
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("SSL_CERT_FILE", file);
    home.launch(command).await.expect("a greeting")
}

/// Starts a turn and returns its events.
async fn turn(server: &Server, conversation: &str) -> Vec<Value> {
    let message = json!({ "conversationId": conversation, "message": "hi", "extensions": true });
    ndjson(post(server, "/chat", &message).await).await
}

async fn status(server: &Server, conversation: &str) -> Value {
    get(server, &format!("{conversation}/status")).await.json().await
}

fn of<'a>(events: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |event| event["type"] == kind)
}

/// Every way in which an answer breaks off before its content.
fn broken() -> Vec<Reply> {
    let answer = || chat::text(["Never."]).reply();
    // The role alone is no content.
    let role = chat::Answer::new().role().reply().body_bytes().len();
    let mut broken = vec![Reply::hang_up(), Reply::reset(), Reply::hang_up().go_away_at(0, 0, false)];
    for code in [0, 1, 2, 7, 8, 11, 13] {
        broken.push(Reply::hang_up().reset_stream_at(0, code));
        broken.push(answer().reset_stream_at(role, code));
    }
    for at in [0, role] {
        broken.push(answer().go_away_at(at, 0, false));
        broken.push(answer().go_away_at(at, 2, false));
        broken.push(answer().go_away_at(0, 0, true).cut_at(at));
        broken.extend([answer().cut_at(at), answer().reset_at(at), answer().truncate_at(at)]);
    }
    broken
}

#[tokio::test]
async fn a_turn_outlives_every_way_to_break_off_and_answers_once() {
    let authority = Authority::new();
    let tls = Tls::http2(&authority.issue());
    let greet = move |number| match number {
        0 => Handshake::Instead(b""),
        1 => Handshake::Reset,
        _ => Handshake::Complete(tls.clone()),
    };
    let answered = || chat::text(["He", "llo."]).reply();
    // Few per turn, because each wait is twice as long as the one before.
    let script: Vec<Vec<Reply>> = broken().chunks(5).map(<[Reply]>::to_vec).collect();
    let replies: Vec<_> =
        script.iter().flat_map(|broken| broken.iter().cloned().chain([answered()])).collect();
    let provider = Loopback::secured(greet, move |request| replies[request.index].clone()).await;
    let home = Home::with_provider(&provider, QUICK);
    let server = trusting(&home, &authority).await;
    let mut requests = 0;
    for (number, broken) in script.iter().enumerate() {
        let events = turn(&server, &format!("c{number}")).await;
        let text: String = of(&events, "text-delta").map(|event| event["delta"].as_str().unwrap()).collect();
        assert_eq!(text, "Hello.");
        assert_eq!((of(&events, "done").count(), of(&events, "turn-sealed").count()), (1, 1));
        requests += broken.len() + 1;
        let handshakes = if number == 0 { 2 } else { 0 };
        let told = of(&events, "provider-retry").count();
        assert_eq!(told, broken.len() + handshakes, "each failed try was told: {broken:?}");
        assert_eq!(provider.counts().requests, requests, "and none was made twice: {broken:?}");
    }
    assert_eq!(provider.counts().failed_handshakes, 2);
    let history = get(&server, "/conversations/c0").await.text().await;
    assert!(history.contains("Hello.") && !history.contains("Never."), "{history}");
}

#[tokio::test]
async fn text_that_was_shown_stays_and_is_not_repeated() {
    let authority = Authority::new();
    let tls = Tls::http2(&authority.issue());
    let answer = chat::text(["Half", " of it."]);
    let half: usize = answer.frames()[..2].iter().map(String::len).sum();
    let script = [
        answer.reply().reset_stream_at(half, 0),
        answer.reply().reset_stream_at(half, 2),
        answer.reply().go_away_at(half, 0, false),
        answer.reply().truncate_at(half),
        answer.reply().reset_at(half),
    ];
    let tries = script.len();
    let provider = Loopback::secured(
        move |_| Handshake::Complete(tls.clone()),
        move |request| script[request.index].clone(),
    )
    .await;
    let home = Home::with_provider(&provider, QUICK);
    let server = trusting(&home, &authority).await;
    for number in 0..tries {
        let events = turn(&server, &format!("c{number}")).await;
        let text: String = of(&events, "text-delta").map(|event| event["delta"].as_str().unwrap()).collect();
        assert_eq!((text.as_str(), of(&events, "error").count()), ("Half", 1), "{number}: {events:?}");
        assert_eq!(of(&events, "provider-retry").count(), 0);
        assert_eq!(provider.counts().requests, number + 1);
    }
}

#[tokio::test]
async fn a_certificate_that_expires_ends_the_turn_with_the_reason_until_it_is_renewed() {
    let authority = Authority::new();
    let identities = [authority.issue(), authority.issue_expired(), authority.issue()];
    let handshakes = identities.map(|identity| Handshake::Complete(Tls::http1(&identity)));
    let provider = Loopback::secured(
        move |number| handshakes[number].clone(),
        |_| chat::text(["Hello."]).reply().close_delimited(),
    )
    .await;
    let home = Home::with_provider(&provider, QUICK);
    let server = trusting(&home, &authority).await;
    assert_eq!(of(&turn(&server, "c1").await, "error").count(), 0);
    let events = turn(&server, "c2").await;
    let error = of(&events, "error").next().unwrap().to_string();
    assert!(error.contains("certificate expired") && error.contains("the clock"), "{error}");
    assert_eq!(of(&events, "provider-retry").count(), 0);
    assert_eq!(of(&turn(&server, "c3").await, "error").count(), 0, "it needs no restart");
    assert_eq!((provider.counts().requests, provider.counts().connections), (2, 3));
}

#[tokio::test]
async fn a_call_passed_through_is_never_cut_short_and_called_complete() {
    let authority = Authority::new();
    let tls = Tls::http2(&authority.issue());
    let whole = json!({ "id": "m1", "content": [{ "type": "text", "text": "All of it." }] });
    let middle = whole.to_string().len() / 2;
    let reply = Reply::json(200, &whole);
    let script = [
        reply.clone().reset_stream_at(middle, 0),
        reply.clone().reset_stream_at(usize::MAX, 0),
        reply.clone().go_away_at(middle, 0, false),
        reply.clone().truncate_at(middle),
        reply.clone().reset_at(middle),
        reply,
    ];
    let tries = script.len();
    let provider = Loopback::secured(
        move |_| Handshake::Complete(tls.clone()),
        move |request| script[request.index].clone(),
    )
    .await;
    let home = Home::with(&format!(
        "[retry]\n{QUICK}\n[[provider]]\nname = \"sim\"\nkind = \"anthropic\"\napi_key = \"sk-own-12345678\"\nbase_url = \
         \"{}\"\nmodels = [\"claude-a\"]\n",
        provider.base_url()
    ));
    let server = trusting(&home, &authority).await;
    let headers = [("content-type", "application/json")];
    let body = r#"{"model":"claude-a","messages":[],"max_tokens":5}"#;
    let response = send(&server, Method::POST, "/v1/messages", &headers, body.to_owned()).await;
    assert_eq!((response.status, response.json().await), (200, whole));
    assert_eq!(provider.counts().requests, tries);
}

#[tokio::test]
async fn calls_lost_with_their_connection_come_back_spread() {
    const TURNS: usize = 1_000;
    let authority = Authority::new();
    let tls = Tls::http2(&authority.issue());
    let gate = Gate::new();
    let arrived = Arc::<Mutex<Vec<Instant>>>::default();
    let (held, arrivals) = (gate.clone(), arrived.clone());
    let choose = move |request: &Request| {
        arrivals.lock().unwrap().push(Instant::now());
        match request.index {
            0..TURNS => Reply::hang_up().stall_at(0, &held),
            _ => chat::text(["Hello."]).reply(),
        }
    };
    let provider = Loopback::secured(move |_| Handshake::Complete(tls.clone()), choose).await;
    let home = Home::with_provider(&provider, "schedule = \"exponential\"\nbase_ms = 2000\nmax_retries = 5");
    let server = trusting(&home, &authority).await;
    for number in 0..TURNS {
        let message = json!({ "conversationId": format!("c{number}"), "message": "hi" });
        post(&server, "/chat", &message).await;
    }
    gate.reached_by(TURNS).await;
    let connections = provider.counts().connections;
    assert!(connections < TURNS / 4, "{connections} connections for {TURNS} calls");
    let lost = Instant::now();
    gate.open();
    timeout(DEADLINE, provider.arrived(2 * TURNS)).await.expect("all come back");
    let mut waits = Vec::new();
    for number in 0..TURNS {
        let conversation = format!("/conversations/c{number}");
        let answered = async { while status(&server, &conversation).await["isActive"] == true {} };
        timeout(DEADLINE, answered).await.expect("an answer in time");
        let attempts = get(&server, &format!("{conversation}/attempts")).await.json().await;
        waits.push(Duration::from_millis(attempts["attempts"][0]["waitMs"].as_u64().expect("a wait")));
        let history = get(&server, &conversation).await.text().await;
        assert_eq!(history.matches("Hello.").count(), 1, "{history}");
    }
    // Jitter changes each wait by up to a tenth, so waits differ by up to 400 ms, and those of the middle eight tenths by 320 ms.
    waits.sort();
    let (first, last) = (waits[TURNS / 10], waits[TURNS * 9 / 10]);
    assert!(last - first > Duration::from_millis(250), "all come back from {first:?} to {last:?}");
    // How much later a call arrives depends on the machine. Waits are counted in whole milliseconds.
    for (came, wait) in arrived.lock().unwrap()[TURNS..].iter().zip(waits) {
        assert!(
            *came + Duration::from_millis(2) >= lost + wait,
            "{:?} after all were lost, not {wait:?}",
            *came - lost
        );
    }
    assert_eq!(provider.counts().requests, 2 * TURNS, "each call was lost once, and made twice");
}
