//! Cursors: resuming a stream.

use std::time::Duration;

use everturn_wire::Value;
use serde_json::json;

use crate::{
    peer::{Peer, text},
    puppet::Call,
    world,
    world::World,
};

/// An event with its end position.
type Told = (u64, Value);

async fn hear(peer: &mut Peer) -> Told {
    let message = peer.hear().await;
    assert_eq!(message["type"], "chat.delta", "{message}");
    (message["cursor"].as_str().unwrap().parse().unwrap(), message["event"].clone())
}

async fn hear_until(peer: &mut Peer, kind: &str) -> Vec<Told> {
    let mut told = vec![hear(peer).await];
    while told[told.len() - 1].1["type"] != kind {
        told.push(hear(peer).await);
    }
    told
}

/// Joins streamed text of one kind, because its segmentation is arbitrary.
fn joined(events: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for event in events {
        match (all.last_mut(), event["delta"].as_str()) {
            (Some(last), Some(delta)) if last["type"] == event["type"] => {
                last["delta"] = format!("{}{delta}", last["delta"].as_str().unwrap()).into();
            }
            _ => all.push(event),
        }
    }
    all.retain(|event| event["delta"] != "");
    all
}

/// Returns what follows a position: whole events, and the rest of a text that contains it.
fn rest(all: &[Told], cursor: u64) -> Vec<Value> {
    let mut rest = Vec::new();
    for (end, event) in all.iter().filter(|(end, _)| *end > cursor) {
        let mut event = event.clone();
        if let Some(delta) = event["delta"].as_str() {
            let start = end - delta.len() as u64;
            let seen = usize::try_from(cursor.saturating_sub(start)).unwrap();
            event["delta"] = delta[delta.floor_char_boundary(seen)..].into();
        }
        rest.push(event);
    }
    joined(rest)
}

/// Runs a turn with a wait, reasoning, and multi-byte text.
async fn lively_turn(world: &mut World, peer: &mut Peer) -> Vec<Told> {
    peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi", "extensions": true }))
        .await;
    world.call().await.overloaded();
    let mut all = hear_until(peer, "provider-retry").await;
    world.clock.advance(Duration::from_secs(5));
    let call = world.call().await;
    call.reasoning("Hm");
    call.reasoning(", so");
    all.extend(hear_until(peer, "reasoning-delta").await);
    for piece in ["Grüße", " \"", "€\n", "", "end"] {
        call.text(piece);
    }
    call.finish();
    all.extend(hear_until(peer, "turn-sealed").await);
    all.push(hear(peer).await);
    assert_eq!(all[all.len() - 1].1["status"], "idle");
    all
}

#[tokio::test]
async fn every_cursor_yields_exactly_the_rest() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    // A turn's starter sees it from its start. Right before it, the conversation became active.
    let mut all = vec![(1, json!({ "type": "status", "status": "active", "conversationId": "c" }))];
    all.extend(lively_turn(&mut world, &mut peer).await);
    let (end, _) = all[all.len() - 1];
    assert!(all.len() > 10 && end > 30, "{all:?}");
    for cursor in 0..end {
        let cursor_text = cursor.to_string();
        peer.say(json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": cursor_text, "extensions": true }))
            .await;
        let mut told = vec![hear(&mut peer).await];
        while told[told.len() - 1].0 < end {
            told.push(hear(&mut peer).await);
        }
        assert_eq!(joined(told.into_iter().map(|(_, event)| event)), rest(&all, cursor), "after {cursor}");
    }
}

#[tokio::test]
async fn a_cursor_at_or_beyond_the_end_waits_for_what_comes() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let all = lively_turn(&mut world, &mut peer).await;
    let (end, _) = all[all.len() - 1];
    for cursor in [end, end + 1, u64::MAX] {
        let mut again = Peer::connect(world.address).await;
        again
            .say(json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": cursor.to_string() }))
            .await;
        again.say(json!({ "type": "chat.send", "conversationId": "c", "message": "more" })).await;
        world.call().await.answer("yes");
        let events = again.events_until("turn-sealed").await;
        assert_eq!((&events[0]["type"], &events[0]["text"]), (&json!("user-message"), &json!("more")));
    }
}

#[tokio::test]
async fn what_left_memory_comes_from_the_journal() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let long = "word ".repeat(100_000);
    let mut cursors = vec![0];
    for _ in 0..2 {
        peer.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
        let call: Call = world.call().await;
        for piece in long.as_bytes().chunks(1000) {
            call.text(str::from_utf8(piece).unwrap());
        }
        call.finish();
        cursors.extend(hear_until(&mut peer, "turn-sealed").await.into_iter().map(|(end, _)| end));
    }
    let mut again = Peer::connect(world.address).await;
    again.say(json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": "0" })).await;
    let mut events = again.events_until("turn-sealed").await;
    assert_eq!(text(&events), long);
    events = again.events_until("turn-sealed").await;
    assert_eq!(text(&events), long);
    // In the middle of a text that was stored joined with others.
    let mut at = cursors[cursors.len() / 4] + 3;
    let mut third = Peer::connect(world.address).await;
    third.say(json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": at.to_string() })).await;
    while at < cursors[cursors.len() - 1] {
        let (end, event) = hear(&mut third).await;
        assert_eq!(at + event["delta"].as_str().map_or(1, str::len) as u64, end, "{event}");
        at = end;
    }
}

#[tokio::test]
async fn subscribing_again_starts_over_and_unsubscribing_ends_it() {
    let mut world = world().await;
    let mut peer = Peer::connect(world.address).await;
    let all = lively_turn(&mut world, &mut peer).await;
    for _ in 0..3 {
        peer.say(json!({ "type": "chat.subscribe", "conversationId": "c", "cursor": "0" })).await;
        let events = peer.events_until("turn-sealed").await;
        assert_eq!(text(&events), text(&all.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>()));
    }
    peer.say(json!({ "type": "chat.unsubscribe", "conversationId": "c" })).await;
    let mut other = Peer::connect(world.address).await;
    other.say(json!({ "type": "chat.send", "conversationId": "c", "message": "more" })).await;
    world.call().await.answer("yes");
    other.events_until("turn-sealed").await;
    assert_eq!(peer.answer_to(json!({ "type": "?" })).await["type"], "error");
}
