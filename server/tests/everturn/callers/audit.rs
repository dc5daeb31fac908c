//! The audit log: what administrators and tokens did, for administrators alone.

use super::*;

async fn entries(world: &World, path: &str) -> Vec<Value> {
    world.json(ADMIN, path).await["entries"].as_array().unwrap().clone()
}

/// What is compared of entries, oldest first.
fn told(entries: &[Value]) -> Vec<String> {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or("-").to_owned();
    let told = entries
        .iter()
        .rev()
        .map(|entry| ["who", "action", "object", "outcome"].map(|key| text(entry, key)).join(" "));
    told.collect()
}

#[tokio::test]
async fn what_administrators_and_tokens_did_is_kept_for_administrators_alone() {
    let mut world = World::new().await.with_ann_talking().await;
    let boss = make_token(&world.home, &["boss", "--scope", "admin"]).await;
    // Begun anew, it knows the token at once, so that no sign-in is refused meanwhile.
    world.server.child.kill().await.unwrap();
    world.server = serve(&world.home, &[]).await;
    let before = entries(&world, "/audit").await.len();
    // What callers do with their own is not noted, nor what administrators do with theirs.
    world.chat(&world.ann, &json!({ "message": "Hello" })).await;
    world.json(&boss, "/conversations").await;
    assert_eq!(entries(&world, "/audit").await.len(), before);
    for (method, path, body) in [
        ("GET", "/conversations/plans@ann/export", None),
        ("PATCH", "/retry", Some(json!({ "enabled": true }))),
        ("DELETE", "/providers/none", None),
        ("DELETE", "/conversations/plans-2%40ann", None),
    ] {
        world.ask(&boss, method, path, body.as_ref()).await.text().await;
    }
    assert_eq!(world.ask(&world.ben, "GET", "/audit", None).await.status, 403);
    let guess = "guessed-token-0123456789";
    for _ in 0..30 {
        assert_eq!(world.ask(guess, "GET", &format!("/audit?{guess}"), None).await.status, 401);
    }
    world.home.run(&["token", "limit", "ben", "--parallel", "2"]).await;
    world.home.run(&["token", "revoke", "ben"]).await;
    world.server.child.kill().await.unwrap();
    world.server = serve(&world.home, &[]).await;
    let all = entries(&world, "/audit").await;
    let all_told = told(&all);
    let place = all_told.iter().position(|line| line.contains("export")).unwrap();
    assert!(
        all_told[..place].join("\n").contains("- token new ann done\n- token new ben done"),
        "{all_told:?}"
    );
    assert!(all_told.contains(&"- token new boss done".to_owned()), "{all_told:?}");
    assert_eq!(
        all_told[place..place + 6],
        [
            "boss GET /conversations/{id}/export plans@ann done",
            "boss PATCH /retry - done",
            "boss DELETE /providers/{id} none 404",
            "boss DELETE /conversations/{id} plans-2@ann done",
            "ben GET /audit - 403",
            "- sign-in - 401",
        ]
    );
    let refused = all_told.iter().filter(|line| line.ends_with("401") || line.ends_with("403")).count();
    // Unless a minute began meanwhile.
    assert!((10..=20).contains(&refused), "{refused} of 31");
    assert_eq!(all_told[all_told.len() - 2..], ["- token limit ben done", "- token revoke ben done"]);
    assert!(all.iter().any(|entry| entry["from"] == "127.0.0.1"));
    let text = serde_json::to_string(&all).unwrap();
    for secret in [&boss, &world.ann, ADMIN, guess, "heron"] {
        assert!(!text.contains(secret), "{text}");
    }
    // By pages.
    let page = entries(&world, "/audit?limit=2").await;
    let next = entries(&world, &format!("/audit?limit=2&before={}", page[1]["id"])).await;
    assert_eq!([page, next].concat(), all[..4]);
    let shown = stdout(&world.home.run(&["audit", "--limit", "1"]).await);
    assert!(shown.contains("(administrator)  token revoke ben  done, from this machine"), "{shown}");
}
