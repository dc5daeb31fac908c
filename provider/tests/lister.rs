//! Lists of models, over a real socket.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use everturn_provider::{
    ChatCompletions, ChatConfig, EndpointConfig, Gemini, GeminiConfig, HttpClient, HttpConfig,
};
use everturn_sim::{Loopback, Reply};
use everturn_wire::{Category, Failure};
use serde_json::json;

fn at(server: &Loopback) -> EndpointConfig {
    EndpointConfig { api_key: Some("sk-s3cret-s3cret".into()), ..EndpointConfig::new(server.base_url()) }
}

fn http() -> HttpClient {
    HttpClient::new(HttpConfig::default()).unwrap()
}

async fn failure(reply: Reply) -> Failure {
    let server = Loopback::start([reply]).await;
    let chat = ChatCompletions::new(http(), ChatConfig::new(at(&server))).unwrap();
    let failure = chat.lister().fetch().await.unwrap_err();
    assert_eq!(server.counts().requests, 1, "nothing is repeated");
    assert!(!format!("{failure:?}").contains("s3cret"), "{failure:?}");
    failure
}

#[tokio::test]
async fn one_request_asks_for_the_list() {
    let list =
        json!({ "models": [{ "name": "models/one", "supportedGenerationMethods": ["generateContent"] }] });
    let server = Loopback::start([Reply::json(200, &list)]).await;
    let gemini = Gemini::new(http(), GeminiConfig::new(at(&server))).unwrap();
    assert_eq!(gemini.lister().fetch().await.unwrap()[0].name, "one");
    let asked = &server.requests()[0];
    assert_eq!((&*asked.method, &*asked.path), ("GET", "/models?pageSize=1000"), "not as an event stream");
    assert_eq!(asked.header("accept"), Some("application/json"));
    assert_eq!(server.counts().requests, 1);
}

#[tokio::test]
async fn a_list_that_fails_is_diagnosed_without_the_key() {
    let refusal = json!({ "error": { "message": "Incorrect API key provided: sk-s3cret-s3cret" } });
    assert_eq!(failure(Reply::json(401, &refusal)).await.category, Category::Auth);
    let page = Reply::status(200).header("content-type", "text/html").body("<html>hello</html>");
    let page = failure(page).await;
    assert_eq!(page.category, Category::InvalidResponse);
    assert!(page.message.contains("not a list of models"), "{page:?}");
    let list = json!({ "data": [{ "id": "one" }] });
    assert_eq!(failure(Reply::json(200, &list).cut_at(5)).await.category, Category::Network);
    assert_eq!(failure(Reply::reset()).await.category, Category::Network);
}

#[tokio::test]
async fn a_list_without_end_is_not_kept() {
    let endless = Reply::status(200).chunked().body(vec![b' '; 9 << 20]);
    let endless = failure(endless).await;
    assert!(endless.message.contains("longer than 8 MiB"), "{endless:?}");
}
