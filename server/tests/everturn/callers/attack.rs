//! Tokens where they should not be: in URLs, in headers that are not theirs, in logs.

use super::*;

#[tokio::test]
async fn a_token_in_a_url_opens_nothing_and_no_token_is_logged() {
    let provider = Loopback::with(model).await;
    let home = Home::with(&configured(&provider, ""));
    let (ann, ben) = (make_token(&home, &["ann"]).await, make_token(&home, &["ben"]).await);
    let log = home.place("log");
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_TOKEN", ADMIN).env("EVERTURN_LOG", "trace");
    command.stderr(std::fs::File::create(&log).unwrap());
    let server = home.launch_piped(command).await;
    let mut world = World { provider, home, server, ann, ben, _store: None };
    for place in [
        "/models?token={}",
        "/models?key={}",
        "/models?access_token={}",
        "/conversations/{}",
        "/callers/{}",
        "/p/sim/v1/{}",
        "/p/own/v1/{}:x?key={}",
        "/v1/models/{}",
        "/v1beta/models/gemini-a:generateContent?key={}",
        "/ws?token={}",
        "/api/chat/ws?bearer={}",
    ] {
        let place = place.replace("{}", &world.ann);
        // Also where the request is somebody's.
        for token in ["", &world.ann, &world.ben, ADMIN] {
            assert_eq!(world.ask(token, "GET", &place, None).await.status, 401, "{place}");
        }
    }
    for name in ["cookie", "referer", "origin", "x-everturn-caller", "sec-websocket-key", "from"] {
        let headers = [(name, world.ann.as_str())];
        let status = send(&world.server, Method::GET, "/models", &headers, String::new()).await.status;
        assert!(status == 401 || status == 403, "{name}: {status}");
    }
    let bearer = format!("bearer {}", &world.ann[..60]);
    let cut = [("authorization", bearer.as_str())];
    assert_eq!(send(&world.server, Method::GET, "/models", &cut, String::new()).await.status, 401);
    assert_eq!(world.provider.requests().len(), 0, "no provider sees one");
    let protocols = format!("everturn, bearer.{}", encoded(&world.ann));
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    assert_eq!(send(&world.server, Method::GET, "/models", &headers, String::new()).await.status, 200);
    world.chat(&world.ann, &json!({ "message": "Hello" })).await;
    world.json(ADMIN, "/audit").await;
    let page = send(&world.server, Method::GET, "/", &[], String::new()).await;
    assert_eq!((page.status, page.header("referrer-policy")), (200, "no-referrer"));
    world.server.child.kill().await.unwrap();
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "it is a log of all: {log}");
    for token in [world.ann.as_str(), &world.ben, ADMIN] {
        let encoded = encoded(token);
        let line = log.lines().find(|line| line.contains(token) || line.contains(&encoded));
        assert_eq!(line, None);
    }
}
