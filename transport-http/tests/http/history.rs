//! What is read about conversations.

use everturn_wire::Value;
use serde_json::json;

use crate::{
    client::{get, post},
    world,
    world::World,
};

/// A conversation `c` of six chunks: three questions and their answers.
async fn conversation(world: &mut World) {
    for n in 1..=3 {
        let body = json!({ "conversationId": "c", "message": format!("question {n}") });
        let stream = post(world.address, "/chat", body).await;
        world.call().await.answer(&format!("answer {n}"));
        stream.text().await;
    }
}

#[tokio::test]
async fn history_is_read_in_windows() {
    let mut world = world().await;
    conversation(&mut world).await;
    let table = [
        ("", vec![1, 2, 3, 4, 5, 6], 6),
        ("?sinceSeq=4", vec![5, 6], 6),
        ("?sinceSeq=6", vec![], 6),
        ("?sinceSeq=99", vec![], 99),
        ("?beforeSeq=3", vec![1, 2], 2),
        ("?beforeSeq=1", vec![], 0),
        ("?sinceSeq=1&beforeSeq=5", vec![2, 3, 4], 4),
        ("?sinceSeq=5&beforeSeq=2", vec![], 5),
        ("?limit=2", vec![5, 6], 6),
        ("?limit=0", vec![], 0),
        ("?limit=2&beforeSeq=4", vec![2, 3], 3),
        ("?limit=9007199254740991&sinceSeq=0", vec![1, 2, 3, 4, 5, 6], 6),
        ("?somethingElse=1&limit=1", vec![6], 6),
    ];
    for (query, expected, latest) in table {
        let window = get(world.address, &format!("/conversations/c{query}")).await.json().await;
        let seqs: Vec<_> =
            window["chunks"].as_array().unwrap().iter().map(|chunk| chunk["seq"].as_u64().unwrap()).collect();
        assert_eq!((seqs, window["latestSeq"].as_u64()), (expected, Some(latest)), "{query}");
    }
    let window = get(world.address, "/conversations/c?limit=2").await.json().await;
    let chunk = |role, text: &str| json!({ "role": role, "chunk": { "type": "text", "text": text } });
    let mut expected = json!([chunk("user", "question 3"), chunk("assistant", "answer 3")]);
    (expected[0]["seq"], expected[1]["seq"]) = (5.into(), 6.into());
    assert_eq!(window["chunks"], expected);
}

#[tokio::test]
async fn a_window_that_makes_no_sense_is_refused() {
    let mut world = world().await;
    conversation(&mut world).await;
    for name in ["sinceSeq", "beforeSeq", "limit"] {
        for value in
            ["", "-1", "+1", "1.0", "1e3", "x", "0x1", "%201", "9007199254740992", "99999999999999999999"]
        {
            let answer = get(world.address, &format!("/conversations/c?{name}={value}")).await;
            assert_eq!(answer.status, 400, "{name}={value}");
            assert!(answer.error().await.contains(name));
        }
        let answer = get(world.address, &format!("/conversations/c?{name}=1&{name}=1")).await;
        assert_eq!(answer.status, 400);
        assert!(answer.error().await.contains("twice"));
    }
}

#[tokio::test]
async fn conversations_are_listed_with_their_figures() {
    let mut world = world().await;
    assert_eq!(get(world.address, "/conversations").await.json().await, json!([]));
    world.clock.advance(std::time::Duration::from_secs(1));
    conversation(&mut world).await;
    let expected = json!([{
        "id": "c", "createdAt": 1000, "lastActivityAt": 1000, "title": "question 1", "status": "idle",
        "workspaceId": "default",
    }]);
    assert_eq!(get(world.address, "/conversations").await.json().await, expected);
    let status = get(world.address, "/conversations/c/status").await.json().await;
    let expected = json!({ "conversationId": "c", "isActive": false, "status": "idle", "autoRetry": true });
    assert_eq!(status, expected);
    let metrics = get(world.address, "/conversations/c/metrics").await.json().await;
    let turns = metrics["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 3);
    let usage = json!({ "inputTokens": 3, "outputTokens": 2 });
    assert!(
        turns.iter().all(|turn| turn["steps"] == 1 && turn["contextSize"] == 5 && turn["usage"] == usage)
    );
}

#[tokio::test]
async fn models_and_health_are_told() {
    let world = world().await;
    let models: Value = get(world.address, "/models").await.json().await;
    assert_eq!(models, json!({ "models": ["test/small", "test/large"] }));
    assert_eq!(get(world.address, "/health").await.json().await, json!({ "ok": true }));
}
