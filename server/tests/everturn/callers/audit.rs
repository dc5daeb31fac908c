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
    let clerk = make_token(&world.home, &["clerk", "--scope", "chat"]).await;
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
    for path in ["/v1/messages/of-clerk", "/providers/of-clerk"] {
        assert_eq!(world.ask(&clerk, "POST", path, Some(&json!({}))).await.status, 403, "{path}");
    }
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
        all_told[place..place + 8],
        [
            "boss GET /conversations/{id}/export plans@ann done",
            "boss PATCH /retry - done",
            "boss DELETE /providers/{id} none 404",
            "boss DELETE /conversations/{id} plans-2@ann done",
            "ben GET /audit - 403",
            "clerk POST /v1/messages - 403",
            "clerk POST /providers - 403",
            "- sign-in - 401",
        ]
    );
    let refused = all_told.iter().filter(|line| line.ends_with("401") || line.ends_with("403")).count();
    // Unless a minute began meanwhile.
    assert!((10..=20).contains(&refused), "{refused} of 31");
    assert_eq!(all_told[all_told.len() - 2..], ["- token limit ben done", "- token revoke ben done"]);
    assert!(all.iter().any(|entry| entry["from"] == "127.0.0.1"));
    let text = serde_json::to_string(&all).unwrap();
    for secret in [&boss, &world.ann, ADMIN, guess, "heron", "of-clerk"] {
        assert!(!text.contains(secret), "{text}");
    }
    // By pages.
    let page = entries(&world, "/audit?limit=2").await;
    let next = entries(&world, &format!("/audit?limit=2&before={}", page[1]["id"])).await;
    assert_eq!([page, next].concat(), all[..4]);
    let shown = stdout(&world.home.run(&["audit", "--limit", "1"]).await);
    assert!(shown.contains("(administrator)  token revoke ben  done, from this machine"), "{shown}");
}

#[tokio::test]
async fn a_refused_sign_in_is_noted_with_its_reason_and_without_the_token() {
    let mut world = World::new().await;
    let proxy = make_token(&world.home, &["front", "--scope", "proxy"]).await;
    world.home.run(&["token", "revoke", "ben"]).await;
    // Begun anew, it knows of both at once.
    world.server.child.kill().await.unwrap();
    world.server = serve(&world.home, &[]).await;
    let before = entries(&world, "/audit").await.len();
    let in_url = format!("/models?key={}", world.ann);
    for (token, path) in [(&world.ben, "/models"), (&proxy, "/models"), (&world.ann, in_url.as_str())] {
        assert_eq!(world.ask(token, "GET", path, None).await.status, 401, "{path}");
    }
    assert_eq!(send(&world.server, Method::GET, "/models", &[], String::new()).await.status, 401);
    let all = entries(&world, "/audit").await;
    let noted: Vec<&str> =
        all.iter().take(all.len() - before).map(|entry| entry["why"].as_str().unwrap()).collect();
    let [none, url, unnamed, unknown] = noted[..] else { panic!("{noted:?}") };
    assert_eq!(
        [none, url, unknown],
        [
            "this server asks for its token",
            "a token is in the URL, where logs keep it",
            "this server does not know this token",
        ]
    );
    assert!(unnamed.starts_with("this token is a proxy's, which has to name one caller"), "{unnamed}");
    let shown = stdout(&world.home.run(&["audit", "--limit", "1"]).await);
    assert!(shown.contains("  sign-in  401: this server asks for its token, from 127.0.0.1"), "{shown}");
    let text = serde_json::to_string(&all).unwrap();
    assert!(!text.contains("evt_"), "{text}");
}

#[tokio::test]
async fn what_is_not_in_a_path_is_noted_as_well() {
    let world = World::new().await.with_ann_talking().await;
    let boss = make_token(&world.home, &["boss", "--scope", "admin"]).await;
    token::until_known(&world, &boss).await;
    let before = entries(&world, "/audit").await.len();
    // In a body.
    let body = json!({ "message": "Stop that", "conversationId": "plans@ann" });
    world.ask(&boss, "POST", "/chat", Some(&body)).await.text().await;
    // What is only a place in a list is not.
    world.ask(&boss, "GET", "/conversations?before=99999999999999-plans@ann", None).await.text().await;
    // Over a socket, of its own and of Ann's.
    let mut socket = Socket::open_as(&world.server, "/ws", &boss).await;
    for id in ["mine", "plans@ann"] {
        socket.say(&json!({ "type": "chat.stop", "conversationId": id })).await;
    }
    socket
        .say(&json!({ "type": "chat.queue.cancel", "conversationId": "plans@ann", "messageId": "m" }))
        .await;
    // Ann's own is not noted, whatever she does.
    world.chat(&world.ann, &json!({ "message": "Hello", "conversationId": "plans" })).await;
    let noted = async {
        loop {
            let all = entries(&world, "/audit").await;
            if all.len() >= before + 3 {
                return told(&all)[before..].to_vec();
            }
        }
    };
    let mut noted = timeout(DEADLINE, noted).await.expect("they are noted");
    noted.sort_unstable();
    assert_eq!(
        noted,
        [
            "boss POST /chat plans@ann done",
            "boss WebSocket chat.queue.cancel plans@ann asked",
            "boss WebSocket chat.stop plans@ann asked",
        ]
    );
}

#[tokio::test]
async fn a_request_whose_client_leaves_before_the_answer_is_noted() {
    let world = World::new().await;
    // The provider that is tried takes the connection, and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let body = json!({ "vendor": "openai-compatible", "baseUrl": format!("http://{}/v1", silent.local_addr().unwrap()) });
    let asked = world.ask(ADMIN, "POST", "/providers", Some(&body));
    let held = tokio::select! {
        answer = asked => panic!("it is answered: {}", answer.status),
        connection = silent.accept() => connection.unwrap(),
    };
    let noted = async {
        loop {
            let all = entries(&world, "/audit").await;
            if let Some(line) = told(&all).into_iter().find(|line| line.contains("/providers")) {
                return line;
            }
        }
    };
    let noted = timeout(DEADLINE, noted).await.expect("it is noted");
    drop(held);
    assert_eq!(noted, "- POST /providers - client left");
}
