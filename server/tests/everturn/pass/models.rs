//! Lists of models, as each kind of caller expects them.

use super::*;

const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

const CONFIG: &str = "[[route]]\nname = \"best\"\ntargets = [\"claude/claude-a\", \"other/claude-b\"]\n\
    [[route]]\nname = \"mixed\"\ntargets = [\"claude/claude-a\", \"chat/gpt-a\"]\n\
    [[provider]]\nname = \"chat\"\nbase_url = \"URL/v1\"\nmodels = [\"gpt-a\"]\n\
    [[provider]]\nname = \"claude\"\nkind = \"anthropic\"\nbase_url = \"URL\"\napi_key = \"k-12345678\"\nmodels = [\"claude-a\"]\n\
    [[provider]]\nname = \"other\"\nkind = \"anthropic\"\nbase_url = \"URL\"\napi_key = \"k-12345678\"\nmodels = [\"claude-a\", \"claude-b\"]\n\
    [[provider]]\nname = \"gemini\"\nkind = \"gemini\"\nbase_url = \"URL/v1beta\"\napi_key = \"k-12345678\"\nmodels = [\"gemini-a\"]\ncontext_window = 5000\n";

async fn list(server: &Server, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
    let response = send(server, Method::GET, path, headers, String::new()).await;
    (response.status, response.json().await)
}

#[tokio::test]
async fn each_caller_gets_the_models_that_it_can_ask_for_in_its_own_form() {
    let provider = Loopback::start([Reply::status(500)]).await;
    let config = CONFIG.replace("URL", &provider.base_url());
    let server = Home::with(&format!("[server]\nallowed_hosts = [\"127.0.0.1\"]\n{config}")).serve().await;
    let (status, all) = list(&server, "/v1/models", &[]).await;
    let ids: Vec<_> = all["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    let every = [
        "chat/gpt-a",
        "claude/claude-a",
        "other/claude-a",
        "other/claude-b",
        "gemini/gemini-a",
        "route/best",
        "route/mixed",
    ];
    assert_eq!((status, json!(ids)), (200, json!(every)));
    let of = |name: &str| json!({ "type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z" });
    let claudes = json!({
        "data": [of("claude-a"), of("claude-b"), of("route/best")],
        "has_more": false,
        "first_id": "claude-a",
        "last_id": "route/best",
    });
    assert_eq!(list(&server, "/v1/models?limit=1000", &[VERSION]).await, (200, claudes));
    assert_eq!(list(&server, "/v1/models/claude-b", &[VERSION]).await, (200, of("claude-b")));
    assert_eq!(list(&server, "/v1/models/gpt-a", &[]).await.1["id"], "chat/gpt-a");
    for (headers, kind) in [(&[VERSION][..], "not_found_error"), (&[], "invalid_request_error")] {
        let (status, told) = list(&server, "/v1/models/unheard-of", headers).await;
        assert_eq!((status, &told["error"]["type"]), (404, &json!(kind)));
    }
    let gemini = json!({ "models": [{
        "name": "models/gemini-a",
        "displayName": "gemini-a",
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"],
        "inputTokenLimit": 5000,
    }] });
    assert_eq!(list(&server, "/v1beta/models?pageSize=50", &[]).await, (200, gemini));
    assert_eq!(provider.counts().requests, 0);
}

#[tokio::test]
async fn where_no_models_are_known_the_provider_answers() {
    let theirs = json!({ "data": [{ "id": "theirs", "z": 1 }] });
    let provider = Loopback::start([Reply::json(200, &theirs)]).await;
    let server = doors::server(&provider, SHORT, "").await;
    for (path, headers) in [
        ("/v1/models?limit=1000", &[VERSION][..]),
        ("/v1/models/a", &[VERSION]),
        ("/v1beta/models?a=b", &[]),
        // codex asks its vendor for a catalogue, whatever models are known here.
        ("/v1/models?client_version=0.169.0", &[]),
    ] {
        assert_eq!(list(&server, path, headers).await, (200, theirs.clone()), "{path}");
        assert_eq!(provider.requests().pop().unwrap().path, path);
    }
}
