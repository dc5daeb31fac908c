//! Access control.

use axum::{body::Body, routing::get};
use everturn_orchestrator::{Scope, Terms};
use everturn_transport_http::{
    Access, AccessError, CallLimits, Callers, Guard, KnownCaller, Metrics, TokenHash, router,
};
use everturn_wire::CallerName;
use hyper::{HeaderMap, Method, StatusCode, header::HOST};
use serde_json::json;

use crate::{
    client::{Answer, call, request},
    peer::{self, Peer, text},
    world::World,
};

const TOKEN: &str = "sesame-?/+";
/// The token in base64url.
const TOKEN_IN_BASE64: &str = "c2VzYW1lLT8vKw";

fn access(bound: &str) -> Access {
    Access {
        bound: bound.parse().unwrap(),
        hosts: Vec::new(),
        origins: Vec::new(),
        token: None,
        callers: Callers::default(),
        caller_header: None,
        is_open: |path| path == "/" || path.starts_with("/page/"),
    }
}

/// Returns the API, sockets and a page, protected by these rules.
async fn world(rules: impl FnOnce(&mut Access)) -> World {
    World::serve(|orchestrator, address| {
        let mut access = access(&address.to_string());
        rules(&mut access);
        let sockets = everturn_transport_ws::router(orchestrator.clone(), Default::default());
        let page = get(async || "page");
        let app = router(orchestrator, CallLimits::default(), Metrics::none()).merge(sockets);
        let app = app.route("/", page.clone()).route("/page/app.js", page);
        Guard::new(access).unwrap().protect(app)
    })
    .await
}

/// Sends a request with only these headers.
async fn ask(world: &World, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = request(method.parse::<Method>().unwrap(), world.address, path);
    if headers.iter().any(|(name, _)| *name == "host") {
        request.headers_mut().unwrap().remove(HOST);
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    call(world.address, request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn only_names_of_this_machine_and_configured_ones_are_hosts() {
    let world =
        world(|access| access.hosts = vec!["Chat.example".to_owned(), "other.example:8443".to_owned()]).await;
    let port = world.address.port();
    let table = [
        (format!("127.0.0.1:{port}"), 200),
        (format!("localhost:{port}"), 200),
        (format!("LOCALHOST.:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        ("chat.example".to_owned(), 200),
        ("chat.example:9000".to_owned(), 200),
        ("other.example:8443".to_owned(), 200),
        ("other.example".to_owned(), 403),
        ("localhost".to_owned(), 403),
        (format!("localhost:{}", port ^ 1), 403),
        (format!("evil.example:{port}"), 403),
        (format!("localhost.evil.example:{port}"), 403),
        (format!("127.0.0.1.evil.example:{port}"), 403),
        (format!("192.168.0.7:{port}"), 403),
        ("sub.chat.example".to_owned(), 403),
        (String::new(), 400),
        ("a b".to_owned(), 400),
        (format!("user@localhost:{port}"), 400),
    ];
    for (host, status) in table {
        for path in ["/models", "/", "/page/app.js"] {
            let answer = ask(&world, "GET", path, &[("host", &host)]).await;
            assert_eq!(answer.status.as_u16(), status, "{host:?} {path}");
            match status {
                200 => {}
                403 => assert!(answer.error().await.contains("`allowed_hosts` under [server]")),
                _ => assert!(!answer.error().await.is_empty()),
            }
        }
        // Monitoring may use other names of the server.
        assert_eq!(ask(&world, "GET", "/health", &[("host", &host)]).await.status, 200, "{host:?}");
    }
    let twice = [("host", "localhost"), ("host", "evil.example")];
    assert_eq!(ask(&world, "GET", "/models", &twice).await.status, 400);
    let target = format!("http://evil.example:{port}/models");
    let absolute =
        call(world.address, request(Method::GET, world.address, &target).body(Body::empty()).unwrap()).await;
    assert_eq!(absolute.status, 400);
}

#[tokio::test]
async fn a_server_for_other_machines_is_known_by_any_address() {
    let world = world(|access| access.bound.set_ip([0, 0, 0, 0].into())).await;
    let port = world.address.port();
    for (host, status) in
        [("192.168.0.7", 200), ("[fe80::1]", 200), ("localhost", 200), ("evil.example", 403)]
    {
        let answer = ask(&world, "GET", "/models", &[("host", &format!("{host}:{port}"))]).await;
        assert_eq!(answer.status.as_u16(), status, "{host}");
    }
}

#[tokio::test]
async fn pages_of_other_sites_get_nothing() {
    let world = world(|access| access.origins = vec!["https://friend.example".to_owned()]).await;
    let own = format!("http://{}", world.address);
    let table = [
        (own.as_str(), true),
        ("https://friend.example", true),
        ("http://friend.example", false),
        ("https://friend.example:444", false),
        ("http://127.0.0.1", false),
        ("http://localhost:3000", false),
        ("https://evil.example", false),
        ("null", false),
        ("", false),
    ];
    for (origin, may) in table {
        for (method, path) in [("GET", "/models"), ("POST", "/conversations/x/stop"), ("GET", "/")] {
            let answer = ask(&world, method, path, &[("origin", origin)]).await;
            assert_eq!(answer.status != StatusCode::FORBIDDEN, may, "{method} {path} {origin}");
        }
        let mut upgrade = peer::request(world.address, "/ws");
        upgrade.headers_mut().insert("origin", origin.parse().unwrap());
        let opened = Peer::open(world.address, upgrade).await;
        assert_eq!(opened.is_ok(), may, "{origin}");
        assert!(
            opened.err().is_none_or(|(status, body)| status == 403 && body.contains("error")),
            "{origin}"
        );
    }
}

#[tokio::test]
async fn nothing_is_stored_sniffed_or_loaded_by_other_sites() {
    let world = world(|access| {
        access.origins = vec!["https://friend.example".to_owned()];
        access.token = Some(TOKEN.to_owned());
    })
    .await;
    let (token, friend) = (format!("Bearer {TOKEN}"), ("origin", "https://friend.example"));
    let known = ("authorization", token.as_str());
    let preflight = [friend, ("access-control-request-method", "POST")];
    for (method, path, headers, status) in [
        ("GET", "/models", &[known, friend][..], 200),
        ("GET", "/conversations", &[known], 200),
        ("GET", "/openapi.json", &[known], 200),
        ("GET", "/health", &[], 200),
        ("GET", "/nowhere", &[known], 404),
        ("GET", "/chat", &[known], 405),
        ("GET", "/v1/models", &[known], 200),
        ("POST", "/v1/chat/completions", &[known], 415),
        ("POST", "/api/chat", &[known], 415),
        ("GET", "/models", &[], 401),
        ("GET", "/models", &[known, ("origin", "https://evil.example")], 403),
        ("OPTIONS", "/chat", &preflight, 200),
    ] {
        let answer = ask(&world, method, path, headers).await;
        assert_eq!(answer.status, status, "{method} {path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            let found: Vec<_> = answer.headers.get_all(name).iter().collect();
            assert_eq!(found, [value], "{method} {path}");
        }
        let is_friend = headers.contains(&friend);
        assert_eq!(answer.headers.contains_key("access-control-allow-origin"), is_friend, "{method} {path}");
        if status == 403 {
            assert!(answer.error().await.contains("`allowed_origins` under [server]"));
        }
    }
}

#[tokio::test]
async fn every_origin_that_is_named_must_be_allowed() {
    let world = world(|access| access.origins = vec!["https://friend.example".to_owned()]).await;
    let (friend, evil) = (("origin", "https://friend.example"), ("origin", "https://evil.example"));
    for (origins, status) in [([friend, evil], 403), ([evil, friend], 403), ([friend, friend], 200)] {
        assert_eq!(ask(&world, "GET", "/models", &origins).await.status, status, "{origins:?}");
    }
    let host = world.address.to_string();
    let twice = ask(&world, "GET", "/models", &[("host", &host), ("host", &host)]).await;
    assert_eq!(twice.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn browsers_are_told_about_other_origins_only_where_there_are_any() {
    let preflight = |origin| {
        [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,content-type"),
        ]
    };
    let allowed = |headers: &HeaderMap| headers.get("access-control-allow-origin").cloned();
    let open = world(|access| {
        access.origins = vec!["https://friend.example".to_owned()];
        access.token = Some(TOKEN.to_owned());
    })
    .await;
    let answer = ask(&open, "OPTIONS", "/chat", &preflight("https://friend.example")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(allowed(&answer.headers).unwrap(), "https://friend.example");
    let headers = answer.header("access-control-allow-headers").to_owned();
    for name in [
        "authorization",
        "idempotency-key",
        "traceparent",
        "everturn-budget",
        "x-api-key",
        "x-stainless-lang",
        "x-stainless-timeout",
    ] {
        assert!(headers.split(',').any(|header| header == name), "{headers}");
    }
    // Even the error about the missing token can be read.
    let answer = ask(&open, "GET", "/models", &[("origin", "https://friend.example")]).await;
    assert_eq!(answer.status, 401);
    assert!(
        allowed(&answer.headers).is_some()
            && answer.header("access-control-expose-headers")
                == "everturn-ignored,link,x-conversation-id,x-cursor"
    );
    assert_eq!(ask(&open, "OPTIONS", "/chat", &preflight("https://evil.example")).await.status, 403);
    let closed = world(|_| {}).await;
    let own = format!("http://{}", closed.address);
    let answer = ask(&closed, "OPTIONS", "/chat", &preflight(&own)).await;
    assert_eq!((answer.status.as_u16(), allowed(&answer.headers)), (405, None));
}

#[tokio::test]
async fn the_token_is_asked_for_everywhere_but_at_the_page_and_health() {
    let world = world(|access| access.token = Some(TOKEN.to_owned())).await;
    let bearer = format!("Bearer {TOKEN}");
    let good = [bearer.as_str(), &bearer.replace("Bearer", "bearer")];
    let bad = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer sesame",
        &format!("{bearer}x"),
        &bearer.to_uppercase(),
        "Basic c2VzYW1l",
        TOKEN,
    ];
    for path in ["/models", "/conversations", "/metrics", "/openapi.json", "/nowhere"] {
        for token in good {
            assert_ne!(
                ask(&world, "GET", path, &[("authorization", token)]).await.status,
                401,
                "{path} {token}"
            );
        }
        for token in bad {
            let answer = ask(&world, "GET", path, &[("authorization", token)]).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("www-authenticate")),
                (401, "Bearer"),
                "{path} {token}"
            );
            let error = answer.error().await;
            assert!(error.contains("Authorization: Bearer") && !error.contains(TOKEN));
        }
        assert_eq!(ask(&world, "GET", path, &[]).await.status, 401, "{path}");
    }
    for path in ["/", "/page/app.js", "/health"] {
        assert_eq!(ask(&world, "GET", path, &[]).await.status, 200, "{path}");
    }
    assert_eq!(ask(&world, "POST", "/page/app.js", &[]).await.status, 401);
    assert_eq!(ask(&world, "GET", "/", &[("upgrade", "websocket")]).await.status, 401);
}

#[tokio::test]
async fn each_mistake_with_a_token_is_told() {
    let known = |name: &str, scope: Scope, until| KnownCaller {
        name: CallerName::parse(name).unwrap(),
        scopes: vec![scope],
        token: Some(TokenHash::of(format!("the-token-of-{name}").as_bytes())),
        until,
        terms: Terms::default(),
        models: Vec::new(),
    };
    let revoked = KnownCaller { token: None, ..known("ben", Scope::Chat, None) };
    let all = vec![known("ann", Scope::Chat, Some(1)), revoked, known("proxy", Scope::Proxy, None)];
    let world = world(|access| access.callers.replace(all)).await;
    let name = "x-everturn-caller";
    let (anns, bens) = (("x-everturn-token", "the-token-of-ann"), ("x-everturn-token", "the-token-of-ben"));
    let proxys = ("x-everturn-token", "the-token-of-proxy");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let table: [(_, Headers<'_>, _); _] = [
        ("/models", &[], "asks for its token"),
        ("/models", &[("authorization", "Basic YTpi")], "asks for its token"),
        ("/models", &[bens], "does not know this token"),
        ("/models", &[anns], "has expired"),
        ("/models", &[("x-api-key", "sk-1"), anns], "has expired"),
        ("/models?key=the-token-of-proxy", &[proxys], "in the URL"),
        ("/models", &[proxys], "has to name one caller"),
        ("/models", &[proxys, (name, "ann"), (name, "eve")], "has to name one caller"),
        ("/models", &[proxys, (name, "ann")], "whom the proxy names"),
        ("/models", &[proxys, (name, "ben")], "whom the proxy names"),
        ("/models", &[proxys, (name, "proxy")], "whom the proxy names"),
    ];
    for (path, headers, why) in table {
        let answer = ask(&world, "GET", path, headers).await;
        assert_eq!(answer.status, 401, "{headers:?}");
        let error = answer.error().await;
        assert!(error.contains(why), "{path} {headers:?}: {error}");
    }
    assert_eq!(ask(&world, "GET", "/models", &[proxys, (name, "eve")]).await.status, 200);
}

#[tokio::test]
async fn a_socket_shows_the_token_as_a_header_or_a_subprotocol() {
    let mut world = world(|access| access.token = Some(TOKEN.to_owned())).await;
    let bearer = format!("Bearer {TOKEN}");
    let offer = format!("everturn, bearer.{TOKEN_IN_BASE64}");
    let table = [
        (Some(("authorization", bearer.as_str())), true),
        (Some(("sec-websocket-protocol", offer.as_str())), true),
        (Some(("sec-websocket-protocol", "everturn, bearer.c2VzYW1l")), false),
        (Some(("sec-websocket-protocol", "everturn, bearer.")), false),
        (Some(("sec-websocket-protocol", "everturn")), false),
        (None, false),
    ];
    for (header, may) in table {
        let mut upgrade = peer::request(world.address, "/ws");
        if let Some((name, value)) = header {
            upgrade.headers_mut().insert(name, value.parse().unwrap());
        }
        match Peer::open(world.address, upgrade).await {
            Ok(mut peer) => {
                assert!(may, "{header:?}");
                peer.say(json!({ "type": "chat.send", "message": "Hi" })).await;
                world.call().await.answer("Hello");
                assert_eq!(text(&peer.events_until("turn-sealed").await), "Hello");
            }
            Err((status, _)) => assert_eq!((status.as_u16(), may), (401, false), "{header:?}"),
        }
    }
    // A browser closes the socket unless the server selects an offered subprotocol.
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", offer.as_str()),
    ];
    let answer = ask(&world, "GET", "/ws", &upgrade).await;
    assert_eq!((answer.status.as_u16(), answer.header("sec-websocket-protocol")), (101, "everturn"));
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let mistake = |rules: fn(&mut Access)| {
        let mut access = access("127.0.0.1:1");
        rules(&mut access);
        Guard::new(access).err()
    };
    assert_eq!(mistake(|_| {}), None);
    let host = mistake(|access| access.hosts.push("http://chat.example".to_owned()));
    assert_eq!(host, Some(AccessError::BadHost("http://chat.example".to_owned())));
    let origin = mistake(|access| access.origins.push("chat.example".to_owned()));
    assert_eq!(origin, Some(AccessError::BadOrigin("chat.example".to_owned())));
    assert_eq!(mistake(|access| access.token = Some("a b".to_owned())), Some(AccessError::BadToken));
    assert_eq!(mistake(|access| access.token = Some(String::new())), Some(AccessError::BadToken));
}
