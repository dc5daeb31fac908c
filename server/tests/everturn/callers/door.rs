//! Which doors are open to whom.

use super::*;

/// Whom a door is open to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Everybody,
    Chat,
    Calls,
    Callers,
    /// And why it is open to no caller.
    Admin(&'static str),
}

fn of(method: &str, path: &str) -> For {
    let begins = |starts: &[&str]| starts.iter().any(|start| path.starts_with(start));
    match path {
        "/health" => For::Everybody,
        "/cluster" => {
            For::Admin("it names the servers and their addresses, and how many turns of all callers each has")
        }
        "/metrics" => For::Admin("its figures are of all callers together"),
        "/audit" => For::Admin("it says what others did"),
        "/providers" | "/providers/{name}" => For::Admin("everybody's calls use their keys"),
        "/mcp/{name}/login" => For::Admin("everybody's turns use its token"),
        _ if path.starts_with("/callers") => {
            For::Admin("a caller that made tokens or changed limits would have none")
        }
        "/retry" if method == "PATCH" => For::Admin("these settings are for all conversations"),
        "/tools" | "/ws" | "/chat" => For::Chat,
        "/v1/chat/completions" | "/v1/models" | "/v1/models/sim/model" => For::Callers,
        _ if begins(&["/conversations", "/api/chat", "/ag-ui", "/copilotkit"]) => For::Chat,
        _ if begins(&["/v1/", "/v1beta/", "/p/"]) => For::Calls,
        _ => For::Callers,
    }
}

/// Every route: those of the document, and those that it does not have.
fn routes() -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(everturn_wire::document::OPENAPI).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let methods = methods.as_object().unwrap().keys().filter(|key| key.len() <= 6 && *key != "servers");
        routes.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
    }
    assert!(routes.len() > 45, "{}", routes.len());
    for (method, path) in [
        ("GET", "/ws"),
        ("GET", "/api/chat/ws"),
        ("GET", "/providers"),
        ("POST", "/providers"),
        ("DELETE", "/providers/{name}"),
        ("POST", "/v1/messages"),
        ("POST", "/v1/messages/count_tokens"),
        ("POST", "/v1/responses"),
        ("GET", "/v1/responses/r1"),
        ("POST", "/v1/completions"),
        ("POST", "/v1/embeddings"),
        ("POST", "/v1beta/models/gemini-a:generateContent"),
        ("GET", "/v1/models/sim/model"),
        ("GET", "/p/sim/v1/anything"),
        ("DELETE", "/p/claude/v1/files/f1"),
    ] {
        routes.push((method.to_owned(), path.to_owned()));
    }
    if cfg!(feature = "mcp") {
        routes.extend(["POST", "DELETE"].map(|method| (method.to_owned(), "/mcp/{name}/login".to_owned())));
    }
    routes
}

#[tokio::test]
async fn every_door_is_open_to_those_with_its_scope_and_to_no_others() {
    let world = World::new().await;
    let (chat, calls) = (
        make_token(&world.home, &["chatty", "--scope", "chat"]).await,
        make_token(&world.home, &["program", "--scope", "calls"]).await,
    );
    let boss = make_token(&world.home, &["boss", "--scope", "admin"]).await;
    let revoked = make_token(&world.home, &["gone"]).await;
    let rotated = make_token(&world.home, &["turned"]).await;
    for (what, name) in [("revoke", "gone"), ("rotate", "turned")] {
        assert!(world.home.run(&["token", what, name]).await.status.success());
    }
    let spent = make_token(&world.home, &["spent", "--until", "2999-01-01"]).await;
    let file = world.home.journal().with_file_name("everturn.db.callers.toml");
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, kept.replace("2999-01-01", "2020-01-01")).unwrap();
    token::until_known(&world, &boss).await;
    token::until_status(&world, &spent, 401).await;
    for (method, path) in routes() {
        let of = of(&method, &path);
        // Of what does not exist, so that nothing is changed.
        let place = path.replace('{', "no-").replace('}', "");
        let body = (method != "GET").then(|| json!({}));
        let status = async |token: &str| world.ask(token, &method, &place, body.as_ref()).await.status;
        for token in ["", "wrong", &ADMIN[1..], &spent, &revoked, &rotated, &chat[..40], &chat.to_uppercase()]
        {
            let expected = of == For::Everybody;
            assert_eq!(status(token).await != 401, expected, "{method} {path} without a token");
        }
        for (token, may) in [
            (&chat, matches!(of, For::Everybody | For::Chat | For::Callers)),
            (&calls, matches!(of, For::Everybody | For::Calls | For::Callers)),
            (&world.ann, !matches!(of, For::Admin(_))),
            (&boss, true),
            (&ADMIN.to_owned(), true),
        ] {
            let status = status(token).await;
            assert_eq!(status == 403, !may, "{method} {path}: {of:?}, {status}");
            assert_ne!(status, 401, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_token_is_taken_in_every_header_that_clients_have_and_never_passed_on() {
    let world = World::new().await;
    let body = r#"{"model":"claude-a","messages":[],"max_tokens":5}"#;
    let bearer = format!("Bearer {}", world.ann);
    let encoded = encoded(&world.ann);
    let protocols = format!("everturn, bearer.{encoded}");
    for (name, value) in [
        ("authorization", &bearer),
        ("sec-websocket-protocol", &protocols),
        ("x-api-key", &world.ann),
        ("x-goog-api-key", &world.ann),
        ("api-key", &world.ann),
        ("x-everturn-token", &world.ann),
    ] {
        let headers = [("content-type", "application/json"), (name, value.as_str())];
        let answer = send(&world.server, Method::POST, "/v1/messages", &headers, body.to_owned()).await;
        assert_eq!(answer.status, 200, "{name}");
        // This one is sent what the caller sends, beside its token.
        let own = if name == "x-api-key" { "authorization" } else { "x-api-key" };
        let headers = [&headers[..], &[(own, "sk-anns-own-key")]].concat();
        let answer = send(&world.server, Method::POST, "/p/own/v1/messages", &headers, body.to_owned()).await;
        assert_eq!(answer.status, 200, "{name}");
        let request = world.provider.requests().pop().unwrap();
        assert_eq!(request.header(own), Some("sk-anns-own-key"), "{name}");
    }
    // In a URL it would end up in logs.
    let path = format!("/v1beta/models/gemini-a:generateContent?key={}", world.ann);
    assert_eq!(send(&world.server, Method::POST, &path, &[], "{}".to_owned()).await.status, 401);
    let both = [("x-api-key", world.ben.as_str()), ("x-everturn-token", world.ann.as_str())];
    let answer = send(&world.server, Method::POST, "/v1/messages", &both, body.to_owned()).await;
    assert_eq!(answer.status, 200);
    for request in world.provider.requests() {
        let seen = format!("{:?}", request.headers);
        assert!(!seen.contains("evt_") && !seen.contains(&encoded), "{seen}");
    }
}

#[tokio::test]
async fn commands_say_why_a_token_is_refused() {
    let world = World::new().await;
    let program = make_token(&world.home, &["program", "--scope", "calls"]).await;
    token::until_known(&world, &program).await;
    let to = ["--server", &world.server.url, "--token", &program];
    for words in [[&["chat"], &to[..], &["hello"]].concat(), [&["tools"], &to[..]].concat()] {
        let told = world.home.run(&words).await;
        assert!(!told.status.success());
        let why = stderr(&told);
        assert!(why.contains("this token is not for conversations"), "{words:?}: {why}");
    }
}
