//! A proxy that names the caller of each request.

use super::*;

const NAME: &str = "x-everturn-caller";

impl World {
    /// Asks as a proxy that passes on a request of somebody.
    async fn ask_for(&self, proxy: &str, names: &[&str], path: &str, body: Option<&Value>) -> Response {
        let bearer = format!("Bearer {proxy}");
        let mut headers = vec![("authorization", &*bearer), ("content-type", "application/json")];
        headers.extend(names.iter().map(|name| (NAME, *name)));
        let (method, body) = match body {
            Some(body) => (Method::POST, body.to_string()),
            None => (Method::GET, String::new()),
        };
        send(&self.server, method, path, &headers, body).await
    }

    async fn with_proxy(self) -> (Self, String) {
        let proxy = make_token(&self.home, &["edge", "--scope", "proxy"]).await;
        let known = async {
            while self.ask_for(&proxy, &["cleo"], "/models", None).await.status != 200 {
                yield_now().await;
            }
        };
        timeout(DEADLINE, known).await.expect("the server notices in time");
        (self, proxy)
    }
}

#[tokio::test]
async fn whom_a_proxy_names_is_the_caller() {
    let (world, proxy) = World::new().await.with_ann_talking().await.with_proxy().await;
    let list = async |names: &[&str]| {
        let answer = world.ask_for(&proxy, names, "/conversations", None).await;
        (answer.status, answer.text().await)
    };
    // Somebody with a token, and somebody without.
    let (status, anns) = list(&["ann"]).await;
    assert_eq!((status, anns.matches("\"id\"").count()), (200, 3), "{anns}");
    let mail = "Cleo@example.com";
    let said = json!({ "message": "The owl nests in May", "conversationId": "plans" });
    assert_eq!(world.ask_for(&proxy, &[mail], "/chat", Some(&said)).await.status, 200);
    assert!(list(&["cleo@example.com"]).await.1.contains("owl"));
    for other in [["cleo@example.org"], ["cleo"], ["ben"]] {
        assert_eq!(list(&other).await, (200, "[]".to_owned()));
    }
    assert!(!list(&["ann"]).await.1.contains("owl"));
    // Nobody, and more than one.
    for names in [&[][..], &[""], &["(null)"], &["ann", "ben"], &["edge"]] {
        assert_eq!(list(names).await.0, 401, "{names:?}");
    }
    // A name counts only with the proxy's token.
    let bens = format!("Bearer {}", world.ben);
    let headers = [("authorization", &*bens), (NAME, "ann")];
    let answer = send(&world.server, Method::GET, "/conversations", &headers, String::new()).await;
    assert_eq!(answer.text().await, "[]");
    let answer = send(&world.server, Method::GET, "/conversations", &[(NAME, "ann")], String::new()).await;
    assert_eq!(answer.status, 401);
    // What a proxy opened ends with its token.
    let other = make_token(&world.home, &["other", "--scope", "proxy"]).await;
    let stream = async || world.ask_for(&other, &["ann"], "/conversations/plans/events", None).await;
    let stream = async {
        loop {
            let stream = stream().await;
            if stream.status == 200 {
                return stream;
            }
            yield_now().await;
        }
    };
    let stream = timeout(DEADLINE, stream).await.expect("the server notices in time");
    world.home.run(&["token", "revoke", "other"]).await;
    assert!(timeout(DEADLINE, stream.try_text()).await.expect("it ends").is_none(), "it is cut off");
    // An administrator is one, and whoever was revoked has no access.
    make_token(&world.home, &["root", "--scope", "admin"]).await;
    world.home.run(&["token", "revoke", "ben"]).await;
    let noticed = async {
        while list(&["ben"]).await.0 != 401 || !list(&["root"]).await.1.contains("@ann") {
            yield_now().await;
        }
    };
    timeout(DEADLINE, noticed).await.expect("the server notices in time");
    assert_eq!(world.ask_for(&proxy, &["ann"], "/providers", None).await.status, 403);
    assert_eq!(world.ask_for(&proxy, &["root"], "/providers", None).await.status, 200);
}

/// The way to lock out somebody whom only the proxy knows.
#[tokio::test]
async fn what_somebody_opened_ends_when_a_token_of_that_name_is_made_and_revoked() {
    let (world, proxy) = World::new().await.with_proxy().await;
    let said = json!({ "message": "hi", "conversationId": "c" });
    ndjson(world.ask_for(&proxy, &["dora"], "/chat", Some(&said)).await).await;
    let stream = world.ask_for(&proxy, &["dora"], "/conversations/c/events", None).await;
    assert_eq!(stream.status, 200);
    make_token(&world.home, &["dora"]).await;
    assert!(world.home.run(&["token", "revoke", "dora"]).await.status.success());
    assert!(timeout(DEADLINE, stream.try_text()).await.expect("it ends").is_none(), "it is cut off");
    assert_eq!(world.ask_for(&proxy, &["dora"], "/conversations/c/events", None).await.status, 401);
    assert_eq!(world.ask_for(&proxy, &["cleo"], "/models", None).await.status, 200);
}

#[tokio::test]
async fn neither_the_name_nor_the_proxys_token_is_passed_on() {
    let (world, proxy) = World::new().await.with_proxy().await;
    let answer =
        world.ask_for(&proxy, &["cleo"], "/v1/messages", Some(&json!({ "model": "claude-a" }))).await;
    assert_eq!(answer.status, 200);
    let seen = world.provider.requests().pop().unwrap();
    assert_eq!((seen.header("x-api-key"), seen.header(NAME)), (Some("sk-own-12345678"), None));
    assert!(!format!("{seen:?}").contains(&proxy));
}

#[tokio::test]
async fn another_header_can_name_the_caller() {
    let home = Home::with(
        "[server]\ncaller_header = \"X-Forwarded-User\"\n[[caller]]\nname = \"edge\"\nscopes = [\"proxy\"]\ntoken_env = \"EDGE\"\n",
    );
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EDGE", "a-proxys-token");
    let server = home.launch(command).await.expect("a greeting");
    for (name, status) in [("x-forwarded-user", 200), (NAME, 401)] {
        let headers = [("x-everturn-token", "a-proxys-token"), (name, "ann")];
        assert_eq!(send(&server, Method::GET, "/models", &headers, String::new()).await.status, status);
    }
}
