//! What a caller learns of another's conversations and calls: nothing.

use super::*;

/// The body of a request that would be valid, if its conversation existed.
fn body(method: &str, path: &str) -> Option<Value> {
    let body = match (method, path.rsplit('/').next().unwrap_or_default()) {
        ("GET" | "DELETE", _) => return None,
        (_, "queue") => json!({ "text": "hi" }),
        ("PATCH", "retry") => json!({ "enabled": false }),
        ("PATCH", _) => json!({ "title": "Mine now" }),
        (_, "questions") => json!({ "questionId": "q", "action": "decline" }),
        (_, "approvals") => {
            json!({ "turnId": "t", "stepId": "t#0", "toolCallId": "c", "verdict": "allowed" })
        }
        _ => json!({}),
    };
    Some(body)
}

/// The routes of one conversation or call.
fn routes(of: &str) -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(everturn_wire::document::OPENAPI).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let of_one = paths.iter().filter(|(path, _)| path.starts_with(of) && path.contains('{'));
    let all = of_one.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys().filter(|key| key.len() <= 6);
        methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    all.collect()
}

/// What is answered, without the name that was asked for.
async fn said(world: &World, token: &str, method: &str, path: &str, id: &str) -> (u16, String) {
    let place = path.replace("{id}", id).replace("{chatId}", id).replace("{threadId}", id);
    let place =
        place.replace("{agentId}", "default").replace("{turnId}", "t").replace("{messageId}", "heron-1");
    let place = place.replace("{tool}", "roll_dice");
    let answer = world.ask(token, method, &place, body(method, path).as_ref()).await;
    let status = answer.status;
    (status, answer.text().await.replace(id, "ID"))
}

#[tokio::test]
async fn another_callers_conversation_is_one_that_does_not_exist() {
    nothing_is_told_of_conversations(World::new().await).await;
}

async fn nothing_is_told_of_conversations(world: World) {
    let world = world.with_ann_talking().await;
    let before = world.anns().await;
    let ids = before[0].as_array().unwrap();
    assert_eq!(ids.len(), 3);
    let made = ids.iter().map(|listed| listed["id"].as_str().unwrap()).find(|id| !id.starts_with("plans"));
    let made = made.unwrap().to_owned();
    let all = routes("/conversations/");
    assert!(all.len() > 18, "{}", all.len());
    for (method, path) in &all {
        let (nothing, nothing_full) = (
            said(&world, &world.ben, method, path, "nowhere").await,
            said(&world, &world.ben, method, path, "nowhere@ann").await,
        );
        assert_eq!(nothing.0, 404, "{method} {path}: {nothing:?}");
        assert_eq!(nothing_full, nothing, "{method} {path}");
        for id in ["plans", "plans-2", &made] {
            for id in [id.to_owned(), format!("{id}@ann"), format!("{id}%40ann")] {
                let answer = said(&world, &world.ben, method, path, &id).await;
                let shown = id.replace("%40", "@");
                assert_eq!((answer.0, answer.1.replace(&shown, "ID")), nothing, "{method} {path} {id}");
            }
        }
        // It is not for lack of a route or of a valid request.
        let (status, text) = said(&world, &world.ann, method, path, "nowhere").await;
        assert_eq!((status, text), nothing, "{method} {path}");
    }
    // The chat protocols have no such error: a chat that does not exist is idle, and can be begun.
    for of in ["/api/chat/", "/ag-ui/", "/copilotkit/"] {
        for (method, path) in routes(of).into_iter().filter(|(_, path)| !path.ends_with("/run")) {
            let nothing = said(&world, &world.ben, &method, &path, "nowhere").await;
            for id in ["plans", "plans-2", &made] {
                assert_eq!(said(&world, &world.ben, &method, &path, id).await, nothing, "{method} {path}");
            }
        }
    }
    assert_eq!(world.anns().await, before, "nothing was changed");
}

#[tokio::test]
async fn lists_searches_and_cursors_show_only_what_is_the_callers() {
    nothing_is_told_in_lists(World::new().await).await;
}

async fn nothing_is_told_in_lists(world: World) {
    let world = world.with_ann_talking().await;
    let bens = world.chat(&world.ben, &json!({ "message": "Just the weather" })).await;
    let page = world.ask(&world.ann, "GET", "/conversations?limit=1", None).await;
    let link = page.header("link").to_owned();
    let cursor = link.split("before=").nth(1).unwrap().split(['>', '&']).next().unwrap().to_owned();
    assert!(!cursor.contains('@'), "{cursor}");
    for path in [
        "/conversations".to_owned(),
        "/conversations?limit=1".to_owned(),
        "/conversations?search=heron".to_owned(),
        "/conversations?search=plans".to_owned(),
        "/conversations?search=a&limit=1".to_owned(),
        format!("/conversations?before={cursor}"),
        format!("/conversations?before={cursor}@ann"),
        format!("/conversations?search=heron&before={cursor}"),
        format!("/conversations?search=heron&before={cursor}/0"),
        "/conversations?before=99999999999999-plans".to_owned(),
        "/conversations?search=heron&before=99999999999999-plans@ann/0".to_owned(),
        "/calls".to_owned(),
        "/models".to_owned(),
        "/targets".to_owned(),
        "/tools".to_owned(),
        "/usage?by=caller,model,target,day".to_owned(),
        "/retry".to_owned(),
        "/v1/models".to_owned(),
    ] {
        let answer = world.ask(&world.ben, "GET", &path, None).await;
        let link = answer.header("link").to_owned();
        // What was asked for may be repeated.
        let asked = path.split("before=").nth(1).and_then(|cursor| cursor.split_once('-'));
        let asked = asked.map_or("nothing", |(_, id)| id.split('/').next().unwrap_or_default());
        let text = answer.text().await.replace(&format!("before={cursor}"), "").replace(asked, "");
        assert_silent(
            &format!("{text} {link}").replace("search=heron", "").replace("search=plans", ""),
            &path,
        );
        if path == "/conversations" {
            assert!(text.contains(&bens), "{text}");
        }
    }
    // Ann's usage is hers, the administrator's that of all.
    let callers = async |token: &str| {
        let told = world.json(token, "/usage?by=caller").await;
        let rows = told["rows"].as_array().unwrap().iter();
        rows.map(|row| row["caller"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(callers(&world.ann).await, ["ann"]);
    assert_eq!(callers(&world.ben).await, ["ben"]);
    assert_eq!(callers(ADMIN).await, ["ann", "ben"]);
    // Ann pages through all of hers.
    let mut found = Vec::new();
    let mut next = Some("/conversations?limit=1".to_owned());
    while let Some(path) = next {
        let page = world.ask(&world.ann, "GET", &path, None).await;
        next =
            page.header("link").strip_prefix('<').and_then(|link| Some(link.split_once('>')?.0.to_owned()));
        let page = page.json().await;
        found.extend(page.as_array().unwrap().iter().map(|listed| listed["title"].to_string()));
    }
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.iter().all(|title| title.contains("heron")), "{found:?}");
    let found = world.json(&world.ann, "/conversations?search=nests").await;
    assert_eq!(found[0]["id"], "plans");
    // The administrator sees all, under full names.
    let all = world.json(ADMIN, "/conversations").await.to_string();
    for id in ["\"plans@ann\"", "\"plans-2@ann\"", &format!("\"{bens}@ben\"")] {
        assert!(all.contains(id), "{id} {all}");
    }
    let history = world.json(ADMIN, "/conversations/plans@ann").await;
    assert!(history.to_string().contains("heron"));
    let found = world.json(ADMIN, "/conversations?search=nests").await;
    assert_eq!(found[0]["id"], "plans@ann");
}

#[tokio::test]
async fn callers_may_call_their_conversations_the_same() {
    let world = World::new().await.with_ann_talking().await;
    let before = world.anns().await;
    let bens = json!({ "message": "Just the weather", "conversationId": "plans" });
    assert_eq!(world.chat(&world.ben, &bens).await, "plans");
    for (path, body) in [
        (
            "/api/chat",
            json!({ "id": "plans", "messages": [{ "id": "m", "role": "user", "parts": [{ "type": "text", "text": "More weather" }] }] }),
        ),
        (
            "/ag-ui",
            json!({ "threadId": "plans", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "Weather too" }], "tools": [], "context": [], "state": {}, "forwardedProps": {} }),
        ),
    ] {
        let answer = world.ask(&world.ben, "POST", path, Some(&body)).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_silent(&answer.text().await.replace("plans", ""), path);
    }
    let named =
        [("authorization", format!("Bearer {}", world.ben)), ("x-conversation-id", "plans-2".to_owned())];
    let named: Vec<_> = named.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let headers = [&[("content-type", "application/json")], &named[..]].concat();
    let body = json!({ "model": "sim/model", "messages": [{ "role": "user", "content": "Still weather" }] });
    let answer = send(&world.server, Method::POST, "/v1/chat/completions", &headers, body.to_string()).await;
    assert_eq!((answer.status, answer.header("x-conversation-id")), (200, "plans-2"));
    drop(answer);
    // No model was shown what another caller said.
    for request in world.provider.requests() {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        assert!(!(body.contains("eather") && body.contains("heron")), "{body}");
    }
    assert_eq!(world.anns().await, before);
    let bens = world.json(&world.ben, "/conversations/plans").await.to_string();
    assert!(bens.contains("Just the weather") && !bens.contains("heron"), "{bens}");
    // The administrator has a conversation of that name, too, and makes none for others.
    assert_eq!(world.chat(ADMIN, &json!({ "message": "Mine", "conversationId": "plans" })).await, "plans");
    let others = json!({ "message": "Yours", "conversationId": "none-yet@ann" });
    assert_eq!(world.ask(ADMIN, "POST", "/chat", Some(&others)).await.status, 404);
    assert_eq!(world.anns().await, before);
}

#[tokio::test]
async fn a_call_is_seen_ordered_and_joined_by_its_caller_alone() {
    let world = World::new().await;
    let body =
        r#"{"model":"claude-a","messages":[{"role":"user","content":"heron, wait for it"}],"max_tokens":5}"#;
    let pass = async |token: &str, body: &str| {
        let headers =
            [("x-api-key", token), ("x-claude-code-session-id", "s1"), ("content-type", "application/json")];
        send(&world.server, Method::POST, "/v1/messages", &headers, body.to_owned()).await
    };
    let calls = async |token: &str| world.json(token, "/calls").await["calls"].as_array().unwrap().clone();
    let others = async {
        let anns = timeout(DEADLINE, async {
            loop {
                let calls = calls(&world.ann).await;
                if calls.first().is_some_and(|call| call["phase"] == "waiting") {
                    return calls;
                }
                yield_now().await;
            }
        });
        let anns = anns.await.expect("the call waits");
        assert!(calls(&world.ben).await.is_empty());
        let (id, all) = (anns[0]["id"].as_str().unwrap().to_owned(), calls(ADMIN).await);
        assert_eq!((&all[0]["id"], &all[0]["caller"]), (&json!(format!("{id}@ann")), &json!("ann")));
        for what in ["retry-now", "give-up"] {
            let nothing = world.ask(&world.ben, "POST", &format!("/calls/nothing/{what}"), None).await;
            let nothing = (nothing.status, nothing.text().await);
            assert_eq!(nothing.0, 404);
            for id in [id.clone(), format!("{id}@ann")] {
                let answer = world.ask(&world.ben, "POST", &format!("/calls/{id}/{what}"), None).await;
                assert_eq!((answer.status, answer.text().await), nothing);
            }
        }
        let before = world.provider.counts().requests;
        // The same request by another is another call.
        let ben = pass(&world.ben, body);
        let control = async {
            world.provider.arrived(before + 1).await;
            let call = timeout(DEADLINE, async {
                loop {
                    if let Some(call) = calls(&world.ben).await.first() {
                        return call["id"].as_str().unwrap().to_owned();
                    }
                    yield_now().await;
                }
            });
            let call = call.await.unwrap();
            assert_ne!(call, id);
            assert_eq!(
                world.ask(&world.ben, "POST", &format!("/calls/{call}/give-up"), None).await.status,
                200
            );
        };
        let (bens, ()) = tokio::join!(ben, control);
        assert!(bens.status >= 500, "{}", bens.status);
        assert_eq!(calls(&world.ann).await.len(), 1, "Ann's waits as before");
        assert_eq!(world.ask(&world.ann, "POST", &format!("/calls/{id}/give-up"), None).await.status, 200);
    };
    let (anns, ()) = tokio::join!(pass(&world.ann, body), others);
    assert!(anns.status >= 500);
}

#[tokio::test]
async fn the_terminal_has_a_callers_own_conversations() {
    let world = World::new().await.with_ann_talking().await;
    let ask = async |token: &str, words: &[&str]| {
        let to = ["--server", &world.server.url, "--token", token];
        world.home.run(&[&["conversations"], words, &to].concat()).await
    };
    let listed = stdout(&ask(&world.ann, &["list"]).await);
    assert!(
        listed.contains("plans    ") && listed.contains("plans-2  ") && !listed.contains('@'),
        "{listed}"
    );
    let shown = stdout(&ask(&world.ann, &["show", "plans-2"]).await);
    assert!(shown.contains("heron, wait for it") && shown.contains("Queued: heron queued"), "{shown}");
    assert_eq!(stdout(&ask(&world.ben, &["list"]).await), "No conversations yet.\n");
    for words in [&["show", "plans"][..], &["export", "plans"], &["delete", "--yes", "plans"]] {
        let refused = ask(&world.ben, words).await;
        assert!(!refused.status.success() && stdout(&refused).is_empty(), "{words:?}");
        assert!(stderr(&refused).contains("no conversation's id begins with plans"), "{}", stderr(&refused));
    }
    let deleted = stdout(&ask(&world.ann, &["delete", "--yes", "plans-2"]).await);
    assert!(deleted.starts_with("Deleted plans-2 "), "{deleted}");
    let stranger = stderr(&ask("evt_forged-0123456789", &["list"]).await);
    assert!(stranger.contains("does not know this token"), "{stranger}");
}

#[tokio::test]
async fn on_postgres_callers_are_kept_apart_as_well() {
    let Some(world) = World::on_postgres().await else { return };
    nothing_is_told_in_lists(world).await;
    nothing_is_told_of_conversations(World::on_postgres().await.unwrap()).await;
}

#[tokio::test]
async fn on_nats_callers_are_kept_apart_as_well() {
    let Some(world) = World::on_nats().await else { return };
    nothing_is_told_in_lists(world).await;
    nothing_is_told_of_conversations(World::on_nats().await.unwrap()).await;
}
