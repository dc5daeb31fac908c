//! The AI SDK's `WebSocketChatTransport` at `/api/chat/ws`.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use everturn_orchestrator::Orchestrator;
use everturn_transport_http::{CallLimits, Metrics, router_with_sockets};
use everturn_transport_ws::{SocketLimits, Sockets};
use everturn_wire::Value;
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::{net::TcpSocket, sync::Semaphore, task::yield_now};
use tokio_tungstenite::{
    client_async,
    tungstenite::{Message, http::StatusCode},
};

use crate::{
    ai_sdk::{Shell, answers, calls, submit, text, types, user},
    client::{get, post},
    guarded,
    peer::{Peer, request},
    storage::{Mishap, Storage},
    world::{World, still_time},
};

const PATH: &str = "/api/chat/ws";

fn app(orchestrator: Orchestrator, limits: SocketLimits) -> axum::Router {
    let sockets = Sockets::new(orchestrator.clone(), limits);
    let native = sockets.router();
    router_with_sockets(orchestrator, CallLimits::default(), Metrics::none(), sockets).merge(native)
}

async fn world_with(limits: SocketLimits) -> World {
    World::serve(|orchestrator, _| app(orchestrator, limits)).await
}

async fn world() -> World {
    world_with(SocketLimits::default()).await
}

async fn connect(address: SocketAddr) -> Peer {
    Peer::open(address, request(address, PATH)).await.unwrap()
}

/// A request as sent by the transport; `more` overrides its fields.
fn send(request_id: &str, chat: &str, more: Value) -> Value {
    let mut frame = submit(&json!([user("u", "hi")]));
    for (name, value) in [("type", "send"), ("requestId", request_id), ("id", chat)] {
        frame[name] = value.into();
    }
    (frame["headers"], frame["body"]) = (json!({}), json!({}));
    let Value::Object(more) = more else { panic!("{more}") };
    frame.as_object_mut().unwrap().extend(more);
    frame
}

fn resume(request_id: &str, chat: &str) -> Value {
    json!({ "type": "resume", "requestId": request_id, "id": chat, "headers": {}, "body": {} })
}

fn abort(request_id: &str) -> Value {
    json!({ "type": "abort", "requestId": request_id })
}

/// Returns the next frame, which must belong to this request.
async fn frame(peer: &mut Peer, request_id: &str) -> Value {
    let frame: Value = serde_json::from_str(&peer.hear_text().await).unwrap();
    assert_eq!(frame["requestId"], request_id, "{frame}");
    frame
}

/// Returns the chunks of a request from its start frame up to its end, or to the first chunk with this text.
async fn told(peer: &mut Peer, request_id: &str, until: Option<&str>) -> Vec<Value> {
    assert_eq!(frame(peer, request_id).await["type"], "start");
    more(peer, request_id, 0, until).await
}

/// Returns the chunks from this number on.
async fn more(peer: &mut Peer, request_id: &str, first: usize, until: Option<&str>) -> Vec<Value> {
    let mut chunks = Vec::new();
    loop {
        let frame = frame(peer, request_id).await;
        if frame["type"] == "end" {
            assert_eq!(until, None);
            return chunks;
        }
        assert_eq!((&frame["type"], &frame["sequence"]), (&json!("chunk"), &json!(first + chunks.len())));
        chunks.push(frame["chunk"].clone());
        if until.is_some_and(|text| frame["chunk"].to_string().contains(text)) {
            return chunks;
        }
    }
}

#[tokio::test]
async fn a_message_is_answered_in_numbered_chunks() {
    let mut world = world().await;
    let mut peer = connect(world.address).await;
    peer.say(send("r", "my chat", json!({ "body": { "model": "large" } }))).await;
    let asked = world.call().await;
    assert_eq!(asked.said(), ["User hi"]);
    asked.answer("Hello");
    let chunks = told(&mut peer, "r", None).await;
    assert_eq!(
        types(&chunks),
        ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]
    );
    assert_eq!(text(&chunks), "Hello");
    // It is the same chat as over HTTP.
    let id = chunks[0]["messageMetadata"]["conversationId"].as_str().unwrap();
    let history = get(world.address, &format!("/conversations/{id}")).await.json().await;
    assert_eq!(history["latestSeq"], 2);
    // The same key finds the same turn.
    for request_id in ["a", "b"] {
        peer.say(send(request_id, "keyed", json!({ "headers": { "idempotency-key": "k" } }))).await;
        if request_id == "a" {
            world.call().await.answer("Once");
        }
        assert_eq!(text(&told(&mut peer, request_id, None).await), "Once");
    }
    assert!(world.has_no_call());
}

#[tokio::test]
async fn requests_of_one_socket_are_concurrent_and_aborted_one_by_one() {
    let mut world = world().await;
    let mut peer = connect(world.address).await;
    peer.say(resume("0", "one")).await;
    assert_eq!(frame(&mut peer, "0").await["type"], "no-active");
    peer.say(send("1", "one", json!({}))).await;
    let one = world.call().await;
    one.text("Hel");
    let seen = told(&mut peer, "1", Some("Hel")).await;
    peer.say(send("2", "two", json!({}))).await;
    let two = world.call().await;
    two.text("Yes");
    let of_two = told(&mut peer, "2", Some("Yes")).await;
    // The first request is aborted, but its turn continues; the second is unaffected.
    peer.say(abort("1")).await;
    peer.say(abort("unknown")).await;
    // Later messages are read after both frames.
    peer.say(resume("?", "none")).await;
    assert_eq!(frame(&mut peer, "?").await["type"], "no-active");
    one.text("lo ");
    two.answer("!");
    let rest = more(&mut peer, "2", of_two.len(), None).await;
    assert_eq!(text(&rest), "!");
    // A replay begins at the start of the turn, and follows it.
    peer.say(resume("3", "one")).await;
    let again = told(&mut peer, "3", Some("lo ")).await;
    assert_eq!((&again[0], text(&again).as_str()), (&seen[0], "Hello "));
    one.answer("there");
    let rest = more(&mut peer, "3", again.len(), None).await;
    assert_eq!((text(&rest).as_str(), rest.last().unwrap()["type"].as_str()), ("there", Some("finish")));
    peer.say(resume("4", "one")).await;
    assert_eq!(frame(&mut peer, "4").await["type"], "no-active");
}

#[tokio::test]
async fn a_wait_is_reported_a_message_meanwhile_is_queued_and_a_stop_ends_both() {
    let mut world = world().await;
    let mut peer = connect(world.address).await;
    peer.say(send("1", "c", json!({}))).await;
    world.call().await.overloaded();
    let seen = told(&mut peer, "1", Some("data-everturn-retry")).await;
    assert_eq!(seen.last().unwrap()["data"]["code"], "529");
    peer.say(send("2", "c", json!({ "messages": [user("u", "hi"), user("u2", "more")] }))).await;
    // Both requests get its events, in any order.
    let mut of_second = Vec::new();
    while of_second.last().is_none_or(|frame: &Value| frame["type"] != "end") {
        let frame: Value = serde_json::from_str(&peer.hear_text().await).unwrap();
        if frame["requestId"] == "2" {
            of_second.push(frame);
        }
    }
    let kinds: Vec<_> =
        of_second.iter().map(|frame| frame["chunk"]["type"].as_str().unwrap_or("-")).collect();
    assert_eq!(kinds, ["-", "data-everturn-queued", "finish", "-"]);
    assert_eq!(post(world.address, "/api/chat/c/stop", Value::Null).await.json().await["abortedTurn"], true);
    loop {
        let frame = frame(&mut peer, "1").await;
        if frame["chunk"]["type"] == "abort" {
            break;
        }
        assert_eq!(frame["type"], "chunk");
    }
    assert_eq!(frame(&mut peer, "1").await["type"], "end");
}

#[tokio::test]
async fn a_call_runs_when_it_is_allowed() {
    let mut world = World::serve_built(
        |builder| builder.tool(Shell),
        |orchestrator, _| app(orchestrator, SocketLimits::default()),
    )
    .await;
    let mut peer = connect(world.address).await;
    peer.say(send("1", "my chat", json!({}))).await;
    calls(&world.call().await, &["a"]);
    let asked = told(&mut peer, "1", None).await;
    assert_eq!(asked.last().unwrap()["finishReason"], "tool-calls");
    let answer = answers(&asked[0]["messageId"], &[("a", true)]);
    let allowed = json!({ "messages": answer["messages"], "messageId": answer["messageId"] });
    peer.say(send("2", "my chat", allowed.clone())).await;
    world.call().await.answer("Done.");
    let chunks = told(&mut peer, "2", None).await;
    assert_eq!((&chunks[1]["output"], text(&chunks).as_str()), (&json!("ran \"a\""), "Done."));
    // Too late: the call is closed.
    peer.say(send("3", "my chat", allowed)).await;
    assert_eq!(types(&told(&mut peer, "3", None).await), ["start", "tool-output-error", "finish"]);
}

#[tokio::test]
async fn a_rejected_request_affects_no_other() {
    let mut world = world().await;
    let mut peer = connect(world.address).await;
    peer.say(send("1", "one", json!({}))).await;
    let call = world.call().await;
    call.text("Hel");
    let seen = told(&mut peer, "1", Some("Hel")).await;
    let model = json!({ "body": { "model": "gpt-9" } });
    for (frame, why) in [
        (send("x", "c", model), "test/small"),
        (send("x", "c", json!({ "messages": [] })), "messages is empty"),
        (json!({ "type": "?", "requestId": "x" }), "expected send, resume or abort"),
    ] {
        peer.say(frame).await;
        let refused = super::ai_sdk_socket::frame(&mut peer, "x").await;
        assert_eq!(refused["type"], "error");
        assert!(refused["errorText"].as_str().unwrap().contains(why), "{refused}");
    }
    call.answer("lo");
    assert_eq!(text(&more(&mut peer, "1", seen.len(), None).await), "lo");
}

#[tokio::test]
async fn a_frame_without_a_request_id_closes_the_socket() {
    let mut world = world_with(SocketLimits { command: 1024, ..SocketLimits::default() }).await;
    let mut table = vec![
        (Message::text("?"), "WebSocketChatTransport"),
        (Message::text(r#"{"type":"send"}"#), "requestId"),
        (Message::binary(b"{}".to_vec()), "text frames"),
    ];
    // The answers to both could not be told apart.
    table.push((Message::text(send("1", "c", json!({})).to_string()), "in use"));
    for (message, why) in table {
        let mut peer = connect(world.address).await;
        if why == "in use" {
            peer.say(send("1", "c", json!({}))).await;
            told(&mut peer, "1", Some("\"start\"")).await;
        }
        peer.send(message).await;
        let end = peer.end().await;
        assert!(u16::from(end.code) == 1008 && end.reason.contains(why), "{end:?}");
    }
    world.call().await.answer("Hello");
    let mut peer = connect(world.address).await;
    peer.send(Message::text("x".repeat(1025))).await;
    assert_eq!(u16::from(peer.end().await.code), 1009);
}

#[tokio::test]
async fn streams_are_limited_per_socket_and_in_total() {
    let limits = SocketLimits { sockets: 2, subscriptions: 1, ..SocketLimits::default() };
    let mut world = world_with(limits).await;
    let mut peer = connect(world.address).await;
    let _native = Peer::connect(world.address).await;
    let Err((status, _)) = Peer::open(world.address, request(world.address, PATH)).await else { panic!() };
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    peer.say(send("1", "one", json!({}))).await;
    let _call = world.call().await;
    told(&mut peer, "1", Some("start")).await;
    peer.say(send("2", "two", json!({}))).await;
    let refused = frame(&mut peer, "2").await;
    assert!(refused["errorText"].as_str().unwrap().contains("1 streams"), "{refused}");
    peer.say(abort("1")).await;
    peer.say(send("2", "two", json!({}))).await;
    world.call().await.answer("Hello");
    assert_eq!(text(&told(&mut peer, "2", None).await), "Hello");
}

#[tokio::test]
async fn concurrent_requests_are_limited() {
    let gate = Arc::new(Semaphore::new(0));
    let storage = Storage::new(move |_| Mishap::Waits(gate.clone()));
    let limits = SocketLimits { commands: 2, ..SocketLimits::default() };
    let world = World::serve_from(storage.clone(), |orchestrator, _| app(orchestrator, limits)).await;
    let mut peer = connect(world.address).await;
    still_time();
    peer.say_all(["1", "2", "3"].map(|id| send(id, id, json!({})))).await;
    while storage.appends() < 2 {
        yield_now().await;
    }
    tokio::time::advance(Duration::from_secs(2)).await;
    let refused = frame(&mut peer, "3").await;
    assert!(refused["errorText"].as_str().unwrap().contains("under way"), "{refused}");
    assert_eq!(storage.appends(), 2);
}

#[tokio::test]
async fn the_id_of_an_aborted_request_is_in_use_until_its_command_ends() {
    let gate = Arc::new(Semaphore::new(0));
    let storage = Storage::new(move |n| if n == 0 { Mishap::Waits(gate.clone()) } else { Mishap::Nothing });
    let app = |orchestrator, _| app(orchestrator, SocketLimits::default());
    let world = World::serve_from(storage.clone(), app).await;
    let mut peer = connect(world.address).await;
    peer.say(send("1", "first", json!({}))).await;
    while storage.appends() < 1 {
        yield_now().await;
    }
    peer.say_all([abort("1"), send("1", "second", json!({}))]).await;
    assert!(peer.end().await.reason.contains("in use"));
}

#[tokio::test]
async fn an_aborted_request_gets_no_answer_although_its_turn_starts_later() {
    let gate = Arc::new(Semaphore::new(0));
    let stalled = gate.clone();
    let storage =
        Storage::new(move |n| if n == 0 { Mishap::Waits(stalled.clone()) } else { Mishap::Nothing });
    let app = |orchestrator, _| app(orchestrator, SocketLimits::default());
    let mut world = World::serve_from(storage.clone(), app).await;
    let mut peer = connect(world.address).await;
    peer.say(send("1", "first", json!({}))).await;
    while storage.appends() < 1 {
        yield_now().await;
    }
    peer.say(abort("1")).await;
    // Its answer shows that the abort has been read.
    peer.say(resume("2", "none")).await;
    assert_eq!(frame(&mut peer, "2").await["type"], "no-active");
    gate.add_permits(1);
    let first = world.call().await;
    first.text("of the first turn");
    // Commands of one conversation end in order: the aborted one has, so its id may be used again.
    peer.say(resume("3", "first")).await;
    told(&mut peer, "3", Some("of the first turn")).await;
    peer.say(abort("3")).await;
    peer.say(send("1", "second", json!({}))).await;
    let second = world.call().await;
    second.text("of the second turn");
    second.finish();
    assert_eq!(text(&told(&mut peer, "1", None).await), "of the second turn");
    first.finish();
}

#[tokio::test]
async fn a_stalled_reader_is_dropped_and_delays_nobody() {
    let limits = SocketLimits { sockets: 2, ..SocketLimits::default() };
    let mut world = world_with(limits).await;
    let stream = TcpSocket::new_v4().unwrap();
    stream.set_recv_buffer_size(16 << 10).unwrap();
    let stream = stream.connect(world.address).await.unwrap();
    let (socket, _) = client_async(request(world.address, PATH), stream).await.unwrap();
    let mut stuck = Peer { socket };
    stuck.say(send("1", "c", json!({}))).await;
    let call = world.call().await;
    told(&mut stuck, "1", Some("start")).await;
    // It stops reading, while another client receives everything.
    let mut quick = connect(world.address).await;
    quick.say(resume("2", "c")).await;
    told(&mut quick, "2", Some("start")).await;
    let piece = "0123456789abcdef".repeat(1024);
    for _ in 0..1024 {
        call.text(&piece);
    }
    call.finish();
    let whole = more(&mut quick, "2", 1, None).await;
    assert_eq!(text(&whole).len(), 1024 * piece.len());
    still_time();
    tokio::time::advance(limits.send_timeout + Duration::from_secs(1)).await;
    let mut got = 0;
    while let Some(Ok(message)) = stuck.socket.next().await {
        got += message.len();
    }
    assert!(got < 1024 * piece.len(), "{got}");
    // Its slot is free again.
    connect(world.address).await;
}

#[tokio::test]
async fn a_shutdown_closes_the_socket_and_leaves_the_turn() {
    let mut orchestrator = None;
    let mut world = World::serve(|shared, _| {
        orchestrator = Some(shared.clone());
        app(shared, SocketLimits::default())
    })
    .await;
    let orchestrator = orchestrator.unwrap();
    let mut peer = connect(world.address).await;
    peer.say(send("1", "c", json!({}))).await;
    world.call().await.overloaded();
    told(&mut peer, "1", Some("data-everturn-retry")).await;
    orchestrator.shutdown(Duration::ZERO).await;
    let end = peer.end().await;
    assert!(u16::from(end.code) == 1001 && end.reason.contains("resume"), "{end:?}");
    assert!(orchestrator.metrics(&"c".into()).await.unwrap().is_empty(), "the turn was not sealed");
}

#[tokio::test]
async fn sockets_have_the_same_access_rules() {
    let world = guarded(|orchestrator| app(orchestrator, SocketLimits::default())).await;
    let open = async |headers: &[(&'static str, &str)]| {
        let mut request = request(world.address, PATH);
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        Peer::open(world.address, request).await
    };
    let Err((status, why)) = open(&[]).await else { panic!() };
    assert!(status == 401 && why.contains("bearer.<base64url of the token>"), "{why}");
    let token = ("sec-websocket-protocol", "everturn, bearer.c2VjcmV0");
    let Err((status, why)) = open(&[token, ("origin", "https://example.com")]).await else { panic!() };
    assert!(status == 403 && why.contains("https://example.com"), "{why}");
    let mut peer = open(&[token]).await.unwrap();
    peer.say(resume("r", "c")).await;
    assert_eq!(frame(&mut peer, "r").await["type"], "no-active");
    let plain = get(world.address, PATH).await;
    assert_eq!(plain.status, StatusCode::UNAUTHORIZED);
}
