//! What fast and slow peers receive.

use serde_json::json;

use crate::{
    limit::flood,
    peer::{Peer, text},
    world,
};

const WORDS: usize = 50;

#[tokio::test]
async fn a_word_that_comes_alone_is_told_at_once_and_who_comes_late_is_sent_all_of_them_as_one_event() {
    let mut world = world().await;
    let mut first = Peer::connect(world.address).await;
    first.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    let call = world.call().await;
    let mut told = String::new();
    for n in 0..WORDS {
        let word = format!("word {n} ");
        call.text(&word);
        // Nothing more is sent before it was received.
        let event = first.events_until("text-delta").await.pop().unwrap();
        assert_eq!(event["delta"], word);
        told += &word;
    }
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut late = Peer::connect(world.address).await;
        late.say(json!({ "type": "chat.subscribe", "conversationId": "c" })).await;
        let mut frame = late.hear_text().await;
        while !frame.contains(r#""type":"text-delta""#) {
            frame = late.hear_text().await;
        }
        seen.push(frame);
    }
    assert!(seen[0].contains(&told), "{}", seen[0]);
    assert_eq!(seen[0], seen[1]);
    call.text("the end");
    assert_eq!(first.events_until("text-delta").await.pop().unwrap()["delta"], "the end");
}

#[tokio::test]
async fn other_news_does_not_wait_for_all_events_of_a_conversation() {
    let mut world = world().await;
    let mut slow = Peer::connect_narrow(world.address).await;
    slow.say(json!({ "type": "chat.send", "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    slow.events_until("turn-sealed").await;
    while slow.hear_status().await["status"] != "idle" {}
    // It watches, and stops reading: all of that, and the idle status, is still pending.
    let told = flood(&mut world).await;
    let (mut events, mut news) = (Vec::new(), None);
    while events.last().is_none_or(|event: &everturn_wire::Value| event["type"] != "turn-sealed") {
        let message: everturn_wire::Value = serde_json::from_str(&slow.hear_text().await).unwrap();
        match message["type"].as_str().unwrap() {
            "chat.delta" => events.push(message["event"].clone()),
            _ if message["status"] == "idle" => news = Some(events.len()),
            _ => {}
        }
    }
    assert!(text(&events) == told);
    assert!(news.is_some_and(|at| at + 10 < events.len()), "told after {news:?} of {} events", events.len());
}
