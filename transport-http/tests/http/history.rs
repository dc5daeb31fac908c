//! Reading conversations.

use everturn_transport_http::CallLimits;
use everturn_wire::Value;
use serde_json::json;

use crate::{
    client::{Answer, get, post},
    world,
    world::World,
    world_with,
};

/// Creates a conversation `c` of six chunks: three questions and their answers.
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
        "workspaceId": "default", "model": "test/small", "endReason": "stop",
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

/// Returns the link to the next page.
fn next(answer: &Answer) -> Option<String> {
    let link = answer.headers.get("link")?.to_str().unwrap();
    Some(link.strip_prefix('<').unwrap().strip_suffix(r#">; rel="next""#).unwrap().to_owned())
}

#[tokio::test]
async fn conversations_are_listed_page_by_page() {
    let mut world = world_with(CallLimits { list: 3, ..CallLimits::default() }).await;
    for id in ["a", "b", "c", "d", "e", "f", "g"] {
        let stream = post(world.address, "/chat", json!({ "conversationId": id, "message": "Hi" })).await;
        world.call().await.answer("Hello");
        stream.text().await;
        if id != "b" {
            world.clock.advance(std::time::Duration::from_secs(1));
        }
    }
    for (first, sizes) in [
        ("/conversations", vec![3, 3, 1]),
        ("/conversations?limit=9", vec![3, 3, 1]),
        ("/conversations?limit=2", vec![2, 2, 2, 1]),
    ] {
        let (mut pages, mut ids, mut path) = (Vec::new(), String::new(), Some(first.to_owned()));
        while let Some(page) = path {
            let answer = get(world.address, &page).await;
            path = next(&answer);
            let list = answer.json().await;
            let list = list.as_array().unwrap();
            pages.push(list.len());
            ids.extend(list.iter().map(|summary| summary["id"].as_str().unwrap()));
        }
        assert_eq!((pages, ids.as_str()), (sizes, "gfedbca"), "{first}");
    }
    for bad in ["before=x", "before=1", "before=1-a%20b", "limit=x"] {
        assert_eq!(get(world.address, &format!("/conversations?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn history_without_a_limit_comes_in_parts() {
    let mut world = world_with(CallLimits { chunks: 4, window: 1000, ..CallLimits::default() }).await;
    conversation(&mut world).await;
    let address = world.address;
    let read = async |query: &str| {
        let window = get(address, &format!("/conversations/c{query}")).await.json().await;
        let chunks = window["chunks"].as_array().unwrap().iter();
        let seqs: Vec<_> = chunks.map(|chunk| chunk["seq"].as_u64().unwrap()).collect();
        (seqs, window["latestSeq"].as_u64().unwrap(), window["more"].as_bool())
    };
    assert_eq!(read("").await, (vec![3, 4, 5, 6], 6, None));
    assert_eq!(read("?sinceSeq=0").await, (vec![1, 2, 3, 4], 4, Some(true)));
    assert_eq!(read("?sinceSeq=4").await, (vec![5, 6], 6, None));
    assert_eq!(read("?sinceSeq=2").await, (vec![3, 4, 5, 6], 6, None));
    assert_eq!(read("?sinceSeq=0&beforeSeq=5").await, (vec![1, 2, 3, 4], 4, None));
    assert_eq!(read("?sinceSeq=0&limit=2").await, (vec![5, 6], 6, None));
    assert_eq!(read("?limit=5").await, (vec![2, 3, 4, 5, 6], 6, None));
    // Longer than a whole window: it is returned alone, and the reader can continue after it.
    let body = json!({ "conversationId": "c", "message": "long ".repeat(1000) });
    let stream = post(world.address, "/chat", body).await;
    world.call().await.answer("Yes");
    stream.text().await;
    assert_eq!(read("").await, (vec![8], 8, None));
    assert_eq!(read("?sinceSeq=5").await, (vec![6], 6, Some(true)));
    assert_eq!(read("?sinceSeq=6").await, (vec![7], 7, Some(true)));
    assert_eq!(read("?sinceSeq=7").await, (vec![8], 8, None));
    assert_eq!(read("?limit=3&beforeSeq=8").await, (vec![7], 7, None));
}

#[tokio::test]
async fn history_says_how_its_turns_ended() {
    let mut world = world().await;
    conversation(&mut world).await;
    let turns = async |query: &str| {
        let window = get(world.address, &format!("/conversations/c{query}")).await.json().await;
        let turns = window["turns"].as_array().cloned().unwrap_or_default();
        assert!(turns.iter().all(|turn| turn["reason"] == "stop" && turn["usage"]["inputTokens"] == 3));
        turns.iter().map(|turn| (turn["firstSeq"].as_u64(), turn["lastSeq"].as_u64())).collect::<Vec<_>>()
    };
    let all = [(1, 2), (3, 4), (5, 6)].map(|(first, last)| (Some(first), Some(last)));
    assert_eq!(turns("").await, all);
    // Including turns that are only partly shown.
    assert_eq!(turns("?sinceSeq=1&beforeSeq=4").await, all[..2]);
    assert_eq!(turns("?limit=1").await, all[2..]);
    assert_eq!(turns("?sinceSeq=6").await, []);
}

#[tokio::test]
async fn models_targets_tools_and_health_are_told() {
    let world = world().await;
    let models: Value = get(world.address, "/models").await.json().await;
    assert_eq!(models, json!({ "models": ["test/small", "test/large"] }));
    let targets: Value = get(world.address, "/targets").await.json().await;
    assert_eq!(targets, json!({ "targets": [{ "target": "test/small" }, { "target": "test/large" }] }));
    let tools: Value = get(world.address, "/tools").await.json().await;
    assert_eq!(tools["sources"], json!([]));
    assert_eq!(get(world.address, "/health").await.json().await, json!({ "ok": true }));
}

#[tokio::test]
async fn failed_attempts_are_read_by_turn_and_by_number() {
    let mut world = world().await;
    for id in ["c", "c", "d"] {
        let mut stream = post(world.address, "/chat", json!({ "conversationId": id, "message": "Hi" })).await;
        world.call().await.overloaded();
        while !stream.line().await.unwrap().contains("provider-retry") {}
        post(world.address, &format!("/conversations/{id}/stop"), Value::Null).await;
        while stream.line().await.is_some() {}
    }
    let read = async |path: &str| get(world.address, path).await.json().await;
    let all = read("/conversations/c/attempts").await;
    let [first, second] = &all["attempts"].as_array().unwrap()[..] else { panic!("{all}") };
    let turn_id = first["turnId"].as_str().unwrap();
    assert_ne!(second["turnId"], turn_id);
    let expected = json!({
        "turnId": turn_id, "step": 0, "attempt": 0, "target": "test/small", "category": "overloaded", "code": "529",
        "message": first["message"], "failedAt": 0, "latencyMs": 0, "waitMs": 5_000,
    });
    assert_eq!((first, all.get("more")), (&expected, None));
    let newest = json!({ "attempts": [second], "more": true });
    assert_eq!(read("/conversations/c/attempts?limit=1").await, newest);
    let of_turn = json!({ "attempts": [first] });
    assert_eq!(read(&format!("/conversations/c/attempts?turnId={turn_id}")).await, of_turn);
    let none = json!({ "attempts": [] });
    assert_eq!(read(&format!("/conversations/d/attempts?turnId={turn_id}")).await, none);
    assert_eq!(read("/conversations/c/attempts?limit=0").await, json!({ "attempts": [], "more": true }));
}
