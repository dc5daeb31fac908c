//! Event streams: NDJSON and server-sent events.

use std::time::Duration;

use axum::body::Body;
use everturn_transport_http::{CallLimits, Metrics, router};
use everturn_wire::Value;
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::{
    client::{Answer, call, get, post, request},
    peer::Peer,
    storage::{Mishap, Storage},
    world,
    world::World,
    world_with,
};

/// Returns the lines up to and including the first of this type.
async fn lines_until(answer: &mut Answer, kind: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        lines.push(answer.line().await.unwrap());
        if is(&lines[lines.len() - 1], kind) {
            return lines;
        }
    }
}

/// Returns ids and data of events up to and including the first of this type.
async fn events_until(answer: &mut Answer, kind: &str) -> Vec<(String, String)> {
    let mut events = Vec::new();
    loop {
        events.push(answer.event().await);
        if is(&events[events.len() - 1].1, kind) {
            return events;
        }
    }
}

fn is(event: &str, kind: &str) -> bool {
    serde_json::from_str::<Value>(event).unwrap()["type"] == kind
}

/// Creates a conversation `c` with one sealed turn, and returns its SSE events from the start, with their ids.
async fn told(world: &mut World) -> Vec<(String, String)> {
    let answer = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    for piece in ["Hel", "lo", " there"] {
        call.text(piece);
    }
    call.finish();
    answer.text().await;
    let mut all = get(world.address, "/conversations/c/events?cursor=0").await;
    events_until(&mut all, "turn-sealed").await
}

async fn resume(world: &World, query: &str, last_event_id: Option<&str>) -> Answer {
    let path = format!("/conversations/c/events{query}");
    let mut request = request(Method::GET, world.address, &path);
    if let Some(id) = last_event_id {
        request = request.header("last-event-id", id);
    }
    call(world.address, request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_turn_is_told_line_by_line_until_it_is_sealed() {
    let mut world = world().await;
    let mut answer = post(world.address, "/chat", json!({ "message": "Hi" })).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let id = answer.header("x-conversation-id").to_owned();
    world.call().await.overloaded();
    // The wait is visible while it lasts.
    lines_until(&mut answer, "provider-retry").await;
    world.clock.advance(Duration::from_secs(5));
    world.call().await.answer("Hello");
    let lines = lines_until(&mut answer, "turn-sealed").await;
    assert!(answer.line().await.is_none());
    let told = |line: &String| serde_json::from_str::<Value>(line).unwrap();
    let (again, event) = (told(&lines[0]), told(&lines[1]));
    assert_eq!((&again["type"], &again["retry"]["phase"]), (&json!("status"), &json!("asking")));
    assert_eq!((&event["type"], &event["delta"]), (&json!("text-delta"), &json!("Hello")));
    assert_eq!(event["conversationId"], id);
}

#[tokio::test]
async fn all_transports_tell_the_same_bytes() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let mut ndjson = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    let first = world.call().await;
    let mut sse = get(world.address, "/conversations/c/events").await;
    assert_eq!(sse.header("content-type"), "text/event-stream");
    peer.say(json!({ "type": "chat.subscribe", "conversationId": "c" })).await;
    peer.sync().await;
    first.overloaded();
    let mut lines = lines_until(&mut ndjson, "provider-retry").await;
    world.clock.advance(Duration::from_secs(5));
    let call = world.call().await;
    call.reasoning("so");
    for piece in ["Hel", "lo \"\u{2028}", "\u{0}wörld\n"] {
        call.text(piece);
        lines.push(ndjson.line().await.unwrap());
    }
    call.finish();
    lines.extend(lines_until(&mut ndjson, "turn-sealed").await);
    let events = events_until(&mut sse, "turn-sealed").await;
    let frames: Vec<_> = events
        .iter()
        .map(|(id, event)| format!(r#"{{"type":"chat.delta","cursor":"{id}","event":{event}}}"#))
        .collect();
    assert_eq!(lines, events.into_iter().map(|(_, event)| event).collect::<Vec<_>>());
    assert!(lines.len() > 9, "{lines:?}");
    // A late client receives the same, with available text in one piece.
    let mut late = Peer::connect(world.address).await;
    late.say(json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": "1" })).await;
    let is_text = |frame: &String| frame.contains(r#""type":"text-delta""#);
    for run in frames.chunk_by(|a, b| is_text(a) && is_text(b)) {
        let heard = late.hear_text().await;
        match run {
            [frame] => assert_eq!(&heard, frame),
            [.., last] => {
                let value = |frame: &str| serde_json::from_str::<Value>(frame).unwrap();
                let deltas =
                    run.iter().map(|frame| value(frame)["event"]["delta"].as_str().unwrap().to_owned());
                let mut whole = value(last);
                whole["event"]["delta"] = deltas.collect::<String>().into();
                assert_eq!(value(&heard), whole);
            }
            [] => {}
        }
    }
}

#[tokio::test]
async fn every_event_id_yields_exactly_the_rest() {
    let mut world = world().await;
    let all = told(&mut world).await;
    assert!(all.len() > 7, "{all:?}");
    for (place, (id, _)) in all.iter().enumerate().take(all.len() - 1) {
        let by_header = resume(&world, "", Some(id)).await;
        let by_query = resume(&world, &format!("?cursor={id}"), None).await;
        // A browser that reconnects repeats its original query.
        let by_both = resume(&world, "?cursor=0", Some(id)).await;
        for mut answer in [by_header, by_query, by_both] {
            assert_eq!(events_until(&mut answer, "turn-sealed").await, all[place + 1..]);
        }
    }
}

#[tokio::test]
async fn a_stream_goes_on_from_turn_to_turn() {
    let mut world = world().await;
    told(&mut world).await;
    // No turn is running, so the stream continues with what comes next.
    let mut stream = get(world.address, "/conversations/c/events").await;
    let mut beyond = resume(&world, "?cursor=9999999", None).await;
    for prompt in ["one", "two"] {
        let answer = post(world.address, "/chat", json!({ "conversationId": "c", "message": prompt })).await;
        world.call().await.answer("Hello");
        answer.text().await;
        for stream in [&mut stream, &mut beyond] {
            let events = events_until(stream, "turn-sealed").await;
            let prompts: Vec<_> = events.iter().filter(|(_, event)| is(event, "user-message")).collect();
            assert!(prompts.len() == 1 && prompts[0].1.contains(prompt), "{prompts:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_had_no_event_yet_can_be_resumed() {
    let mut world = world().await;
    told(&mut world).await;
    let mut idle = get(world.address, "/conversations/c/events").await;
    let begin = idle.until("\n\n").await.unwrap();
    drop(idle);
    let answer = post(world.address, "/chat", json!({ "conversationId": "c", "message": "missed?" })).await;
    world.call().await.answer("Hello");
    answer.text().await;
    let mut again = resume(&world, "", begin.strip_prefix("id: ")).await;
    let events = events_until(&mut again, "turn-sealed").await;
    assert!(events.iter().any(|(_, event)| event.contains("missed?")), "{events:?}");
}

#[tokio::test]
async fn who_comes_during_a_wait_sees_the_turn_from_its_start() {
    let mut world = world().await;
    let mut sender = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.overloaded();
    let seen = lines_until(&mut sender, "provider-retry").await;
    let mut late = get(world.address, "/conversations/c/events").await;
    let seen_late = events_until(&mut late, "provider-retry").await;
    assert_eq!(seen, seen_late.into_iter().map(|(_, event)| event).collect::<Vec<_>>());
}

#[tokio::test]
async fn extension_events_are_for_those_who_ask() {
    let table = [
        ("/chat", json!({ "message": "Hi" }), false),
        ("/chat", json!({ "message": "Hi", "extensions": true }), true),
        ("/chat?extensions=true", json!({ "message": "Hi" }), true),
        ("/chat?extensions=false", json!({ "message": "Hi", "extensions": true }), false),
    ];
    for (path, body, asked) in table {
        let mut world = world().await;
        let mut answer = post(world.address, path, body).await;
        let id = answer.header("x-conversation-id").to_owned();
        world.call().await.overloaded();
        lines_until(&mut answer, "provider-retry").await;
        world.clock.advance(Duration::from_secs(5));
        world.call().await.answer("Hello");
        let lines = lines_until(&mut answer, "turn-sealed").await;
        assert_eq!(lines.iter().any(|line| is(line, "retry-ended")), asked, "{path}");
        for asked in [true, false] {
            let path = format!("/conversations/{id}/events?cursor=0&extensions={asked}");
            let events = events_until(&mut get(world.address, &path).await, "turn-sealed").await;
            assert_eq!(events.iter().any(|(_, event)| is(event, "retry-ended")), asked, "{path}");
        }
    }
}

#[tokio::test]
async fn going_away_does_not_touch_the_turn() {
    let mut world = world().await;
    let mut sender = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    call.text("Hel");
    lines_until(&mut sender, "text-delta").await;
    drop(sender);
    let mut next = get(world.address, "/conversations/c/events").await;
    events_until(&mut next, "text-delta").await;
    call.answer("lo");
    let events = events_until(&mut next, "turn-sealed").await;
    assert!(events.iter().any(|(_, event)| event.contains(r#""delta":"lo""#)), "{events:?}");
    assert!(events.iter().any(|(_, event)| is(event, "done") && event.contains(r#""reason":"stop""#)));
}

/// The runtime's clock advances when all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_silent_stream_shows_that_it_lives() {
    let limits = CallLimits::default();
    let mut world = world_with(limits).await;
    told(&mut world).await;
    let mut stream = get(world.address, "/conversations/c/events").await;
    assert!(stream.until("\n\n").await.unwrap().starts_with("id: "));
    let begun = tokio::time::Instant::now();
    for beat in 1..=3 {
        assert_eq!(stream.until("\n\n").await.unwrap(), ":");
        assert!(begun.elapsed() >= limits.heartbeat * beat);
    }
}

#[tokio::test]
async fn a_server_that_shuts_down_refuses_turns_and_ends_streams_in_good_order() {
    let mut orchestrator = None;
    let mut world = World::serve(|shared, _| {
        orchestrator = Some(shared.clone());
        router(shared, CallLimits::default(), Metrics::none())
    })
    .await;
    let orchestrator = orchestrator.unwrap();
    let mut lines = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    call.text("Hel");
    lines_until(&mut lines, "text-delta").await;
    let mut events = get(world.address, "/conversations/c/events").await;
    events_until(&mut events, "text-delta").await;
    let ending = tokio::spawn({
        let orchestrator = orchestrator.clone();
        async move { orchestrator.shutdown(Duration::from_secs(1)).await }
    });
    let refused = loop {
        let answer = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
        // A conflict, until the shutdown has begun.
        if answer.status != StatusCode::CONFLICT {
            break answer;
        }
    };
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.error().await.contains("shutting down"));
    call.text("lo");
    lines_until(&mut lines, "text-delta").await;
    world.clock.advance(Duration::from_secs(1));
    ending.await.unwrap();
    // A truncated body is an error for the client.
    assert_eq!(lines.line().await, None);
    assert!(is(&events.event().await.1, "text-delta"));
    assert_eq!(events.until("\n\n").await, None);
    assert_eq!(get(world.address, "/conversations/c/status").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_answer_whose_turn_cannot_be_saved_is_cut_off_and_the_turn_has_one_end() {
    let fails_once = Storage::new(|n| if n == 1 { Mishap::Fails } else { Mishap::Nothing });
    let mut world = World::serve_from(fails_once, |orchestrator, _| {
        router(orchestrator, CallLimits::default(), Metrics::none())
    })
    .await;
    let mut lines = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    call.text("Hel");
    lines_until(&mut lines, "text-delta").await;
    call.finish();
    assert!(lines.is_cut_off().await, "so that the client sees that it is not all");
    // Reading does not drive the turn, which retries by itself.
    assert_eq!(get(world.address, "/conversations/c/status").await.json().await["isActive"], true);
    world.clock.advance(Duration::from_secs(10));
    world.call().await.answer("Hello");
    let mut all = get(world.address, "/conversations/c/events?cursor=0").await;
    let events = events_until(&mut all, "turn-sealed").await;
    for once in ["user-message", "done", "turn-sealed"] {
        assert_eq!(events.iter().filter(|event| is(&event.1, once)).count(), 1, "{once}: {events:?}");
    }
    assert!(!events.iter().any(|event| is(&event.1, "error")), "{events:?}");
}
