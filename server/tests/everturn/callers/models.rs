//! Callers that may use some models only.

use super::*;

/// The models that are listed in each form.
async fn listed(world: &World, token: &str) -> [String; 3] {
    let bearer = format!("Bearer {token}");
    let plain = [("authorization", bearer.as_str())];
    let claude = [("authorization", bearer.as_str()), ("anthropic-version", "2023-06-01")];
    let mut all = [const { String::new() }; 3];
    for (at, (path, headers)) in
        [("/models", &plain[..]), ("/v1/models", &plain[..]), ("/v1/models", &claude[..])]
            .into_iter()
            .enumerate()
    {
        all[at] = send(&world.server, Method::GET, path, headers, String::new()).await.text().await;
    }
    all
}

#[tokio::test]
async fn a_caller_sees_and_uses_its_models_alone() {
    let world = World::new().await;
    let token = make_token(&world.home, &["cleo", "--models", "claude/*"]).await;
    token::until_known(&world, &token).await;
    let of_ann = listed(&world, &world.ann).await;
    assert!(of_ann[..2].iter().all(|list| list.contains("sim/model")), "{of_ann:?}");
    for list in listed(&world, &token).await {
        assert!(list.contains("claude-a"), "{list}");
        assert!(!list.contains("sim") && !list.contains("claude-b") && !list.contains("gem"), "{list}");
    }
    let targets = world.json(&token, "/targets").await.to_string();
    assert!(targets.contains("claude-a"), "{targets}");
    for other in ["sim", "claude-b", "gem"] {
        assert!(!targets.contains(other), "{other}: {targets}");
    }
    assert!(world.json(&world.ann, "/targets").await.to_string().contains("sim/model"));
    let seen = world.provider.requests().len();
    // By every way to name a model, or to leave it out where it is not read.
    let message = |model: &str| json!({ "model": model, "messages": [{ "role": "user", "content": "hi" }] });
    for (path, body) in [
        ("/chat", json!({ "message": "hi", "model": "sim/model" })),
        ("/v1/chat/completions", message("sim/model")),
        ("/v1/chat/completions", message("sim/unlisted")),
        ("/v1/chat/completions", message("model")),
        ("/v1/messages", message("own/claude-b")),
        ("/p/own/v1/messages", message("claude-b")),
        ("/p/own/v1/messages", message("claude-a")),
        ("/p/sim/v1/embeddings", json!({ "input": "x" })),
        ("/v1beta/models/gemini-a:generateContent", json!({})),
    ] {
        let answer = world.ask(&token, "POST", path, Some(&body)).await;
        assert!((400..405).contains(&answer.status), "{path} {body}: {}", answer.status);
    }
    // The one that a provider reads might be the first.
    let twice = r#"{"model":"claude-b","model":"claude-a"}"#.to_owned();
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    assert_eq!(send(&world.server, Method::POST, "/v1/messages", &headers, twice).await.status, 404);
    let chains =
        json!({ "message": "hi", "retry": { "fallbackChains": { "claude/claude-a": ["sim/model"] } } });
    assert_eq!(world.ask(&token, "POST", "/chat", Some(&chains)).await.status, 400);
    assert_eq!(world.provider.requests().len(), seen, "no provider was asked");
    // Its own it may use, also as the default.
    assert_eq!(world.ask(&token, "POST", "/v1/messages", Some(&message("claude-a"))).await.status, 200);
    let told =
        world.ask(&token, "POST", "/chat", Some(&json!({ "message": "hi", "conversationId": "c" }))).await;
    assert_eq!(told.status, 200);
    assert_eq!(world.json(&token, "/conversations").await[0]["model"], "claude/claude-a");
    let limit = async |models: &str| world.home.run(&["token", "limit", "cleo", "--models", models]).await;
    let unclear = limit("none").await;
    assert!(!unclear.status.success() && stderr(&unclear).contains("write '*' for all models"));
    assert_eq!(stdout(&limit("*").await), "cleo: no limits\n");
}
