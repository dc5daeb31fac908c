//! `everturn targets`: the state of the models behind a route.

use everturn_sim::{ClosedPort, Loopback, chat, fault};
use serde_json::{Value, json};

use crate::{
    client::{get, ndjson, post},
    home::{Home, Server, stderr, stdout},
};

/// A server on which a turn found the first model of the route of `a/model` and `b/model` rate limited.
async fn limited() -> (Home, Server) {
    let (a, b) = (
        Loopback::start([fault::rate_limited(Some(3600))]).await,
        Loopback::start([chat::text(["hello"]).reply()]).await,
    );
    let provider = |name, provider: &Loopback| {
        format!(
            "[[provider]]\nname = \"{name}\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
            provider.base_url()
        )
    };
    let route = "[[route]]\nname = \"r\"\ntargets = [\"a/model\", \"b/model\"]\nschedule = \"interactive\"\n";
    let home = Home::with(&format!("{}{}{route}", provider("a", &a), provider("b", &b)));
    let server = home.serve().await;
    let events = ndjson(post(&server, "/chat", &json!({ "message": "hi", "model": "route/r" })).await).await;
    assert!(events.iter().any(|event| event["delta"] == "hello"), "{events:?}");
    (home, server)
}

#[tokio::test]
async fn what_a_turn_learned_is_listed() {
    let (home, server) = limited().await;
    let output = home.run(&["targets", "--server", &server.url]).await;
    let (said, error) = (stdout(&output), stderr(&output));
    assert!(output.status.success() && error.is_empty(), "{error}");
    let rows: Vec<&str> = said.lines().collect();
    assert!(rows[1].starts_with("a/model  rate limited until "), "{said}");
    assert_eq!((rows[0], &rows[2..]), ("TARGET   STATE", &["b/model  free"][..]));
    let output = home.run(&["targets", "--json", "--server", &server.url]).await;
    let told: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(told, get(&server, "/targets").await.json().await);
    assert_eq!(told["targets"][0]["category"], "rate_limited");
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let home = Home::with("[server]\ntoken = \"of-server-s3cret\"");
    let (server, closed) = (home.serve().await, ClosedPort::reserve().unwrap());
    for (url, expected) in [
        (server.url.clone(), "requires a token: set EVERTURN_TOKEN"),
        (closed.base_url(), "start one with `everturn serve`"),
        ("nonsense://x".to_owned(), "write http://127.0.0.1:4777"),
    ] {
        let output = home.run(&["targets", "--server", &url]).await;
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{url}");
        assert!(stderr(&output).contains(expected), "{url}: {}", stderr(&output));
    }
    let output = home.run(&["targets", "--token", "wr0ng", "--server", &server.url]).await;
    let told = stderr(&output);
    let expected = "did not accept the token: check EVERTURN_TOKEN";
    assert!(told.contains(expected) && !told.contains("wr0ng"), "{told}");
    let words = ["targets", "--server", &server.url];
    let output = home.command(&words).env("EVERTURN_TOKEN", "of-server-s3cret").output().await.unwrap();
    assert_eq!(stdout(&output), "TARGET      STATE\ndemo/flaky  free\n");
}
