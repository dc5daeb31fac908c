//! Callers, made and changed over HTTP by an administrator.

use super::*;

async fn said(world: &World, method: &str, path: &str, body: Value) -> (u16, Value) {
    let answer = world.ask(ADMIN, method, path, Some(&body).filter(|body| !body.is_null())).await;
    (answer.status, answer.json().await)
}

#[tokio::test]
async fn a_caller_is_made_limited_rotated_and_revoked() {
    let world = World::new().await;
    let new = json!({ "name": "cleo", "scopes": ["chat"], "tokensPerDay": 5_000, "moneyPerDay": 0.5, "models": ["sim/*"] });
    let (status, made) = said(&world, "POST", "/callers", new.clone()).await;
    assert_eq!(status, 201, "{made}");
    let first = made["token"].as_str().unwrap().to_owned();
    assert_eq!((&made["caller"]["status"], &made["caller"]["moneyPerDay"]), (&json!("valid"), &json!(0.5)));
    token::until_known(&world, &first).await;
    assert_eq!(world.json(&first, "/models").await["models"].as_array().unwrap().len(), 1);
    assert_eq!(said(&world, "POST", "/callers", new).await.0, 409);
    let (status, limited) =
        said(&world, "PUT", "/callers/cleo/limits", json!({ "parallel": 2, "priority": "background" })).await;
    assert_eq!((status, &limited["parallel"], &limited["tokensPerDay"]), (200, &json!(2), &Value::Null));
    let (_, rotated) = said(&world, "POST", "/callers/cleo/rotate", json!({ "until": "2999-01-31" })).await;
    let second = rotated["token"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    token::until_known(&world, &second).await;
    assert_eq!(world.ask(&first, "GET", "/models", None).await.status, 401);
    let (_, all) = said(&world, "GET", "/callers", Value::Null).await;
    let text = all.to_string();
    assert!(!text.contains("evt_") && !text.contains("hash"), "{text}");
    let cleo = all["callers"].as_array().unwrap().iter().find(|caller| caller["name"] == "cleo").unwrap();
    assert_eq!((&cleo["until"], &cleo["priority"]), (&json!("2999-01-31"), &json!("background")));
    let (_, revoked) = said(&world, "DELETE", "/callers/cleo", Value::Null).await;
    assert_eq!(revoked["status"], "revoked");
    let refused = async { while world.ask(&second, "GET", "/models", None).await.status != 401 {} };
    timeout(DEADLINE, refused).await.expect("it is refused within a second or so");
    let audit = world.json(ADMIN, "/audit").await.to_string();
    for action in
        ["POST /callers", "PUT /callers/{id}/limits", "POST /callers/{id}/rotate", "DELETE /callers/{id}"]
    {
        assert!(audit.contains(&format!("{action}\",\"object\":\"cleo\"")), "{action}: {audit}");
    }
    assert!(!audit.contains("evt_"), "{audit}");
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_and_says_why() {
    let world = World::new().await;
    let before = world.json(ADMIN, "/callers").await;
    for (method, path, body, status, why) in [
        ("POST", "/callers", json!({}), 422, "\"name\""),
        ("POST", "/callers", json!({ "name": "Not A Name" }), 422, "name"),
        (
            "POST",
            "/callers",
            json!({ "name": "x", "scopes": ["root"] }),
            422,
            "\"root\" is not a valid scope",
        ),
        ("POST", "/callers", json!({ "name": "x", "until": "soon" }), 422, "is not a date"),
        ("POST", "/callers", json!({ "name": "x", "parallel": 0 }), 422, "must be more than 0"),
        ("POST", "/callers", json!({ "name": "x", "moneyPerDay": -1 }), 422, "an amount of money"),
        ("POST", "/callers", json!({ "name": "x", "scopes": ["admin"], "parallel": 1 }), 422, "no limits"),
        ("POST", "/callers", json!({ "name": "ann" }), 409, "caller ann already exists"),
        ("PUT", "/callers/nobody/limits", json!({}), 404, "there is no caller"),
        ("PUT", "/callers/ann/limits", json!({ "parallel": "two" }), 422, "parallel"),
        ("POST", "/callers/nobody/rotate", json!({}), 404, "there is no caller"),
        ("DELETE", "/callers/nobody", Value::Null, 404, "there is no caller"),
    ] {
        let (was, answer) = said(&world, method, path, body.clone()).await;
        let text = answer["error"].as_str().unwrap_or_default();
        assert!(was == status && text.contains(why), "{method} {path} {body}: {was} {answer}");
    }
    assert_eq!(world.json(ADMIN, "/callers").await, before);
}

#[tokio::test]
async fn the_first_caller_must_leave_somebody_who_is_the_administrator() {
    let provider = Loopback::with(model).await;
    let home = Home::with(&configured(&provider, ""));
    let server = home.launch(home.command(&["--listen", "127.0.0.1:0"])).await.expect("a greeting");
    let make = async |body: Value| {
        let headers = [("content-type", "application/json")];
        let answer = send(&server, Method::POST, "/callers", &headers, body.to_string()).await;
        (answer.status, answer.text().await)
    };
    let (status, why) = make(json!({ "name": "ann" })).await;
    assert!(status == 409 && why.contains("nobody could sign in"), "{status} {why}");
    let (status, made) = make(json!({ "name": "boss", "scopes": ["admin"] })).await;
    assert_eq!(status, 201, "{made}");
}

/// Those of the configuration are shown, and changed there alone.
#[tokio::test]
async fn callers_of_the_configuration_are_not_changed() {
    let provider = Loopback::with(model).await;
    let hash = "ab".repeat(32);
    let more = format!("[[caller]]\nname = \"fixed\"\ntoken_hash = \"{hash}\"\nrequests_per_minute = 7\n");
    let home = Home::with(&configured(&provider, &more));
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_TOKEN", ADMIN);
    let server = home.launch(command).await.expect("a greeting");
    let bearer = format!("Bearer {ADMIN}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let all = send(&server, Method::GET, "/callers", &headers, String::new()).await.json().await;
    let fixed = &all["callers"][0];
    assert_eq!((&fixed["configured"], &fixed["requestsPerMinute"]), (&json!(true), &json!(7)));
    for (method, path) in [
        (Method::PUT, "/callers/fixed/limits"),
        (Method::POST, "/callers/fixed/rotate"),
        (Method::DELETE, "/callers/fixed"),
    ] {
        let answer = send(&server, method, path, &headers, "{}".to_owned()).await;
        assert_eq!(answer.status, 409);
        assert!(answer.text().await.contains("in the configuration file"));
    }
}
