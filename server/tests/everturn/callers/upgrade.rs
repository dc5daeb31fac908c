//! A data file and a configuration from before there were callers.

use super::*;

/// As programs of each earlier format left them, killed while `waits` waited and `streams` was being answered.
const FILES: [&[u8]; 4] = [
    include_bytes!("../../../../stores/sqlite/tests/sqlite/file/format-1.db"),
    include_bytes!("../../../../stores/sqlite/tests/sqlite/file/format-2.db"),
    include_bytes!("../../../../stores/sqlite/tests/sqlite/file/format-3.db"),
    include_bytes!("../../../../stores/sqlite/tests/sqlite/file/format-4.db"),
];

/// A configuration of that time, with or without a token of the server.
fn old_configuration(provider: &Loopback, token: Option<&str>) -> String {
    let token = token.map(|token| format!("token = \"{token}\"\n")).unwrap_or_default();
    format!(
        "system_prompt = \"You are brief.\"\n[server]\nlisten = \"127.0.0.1:0\"\n{token}[retry]\n{LONG}\n\
         [[provider]]\nname = \"sim\"\nkind = \"openai-chat\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    )
}

async fn ask(server: &Server, token: Option<&str>, path: &str) -> Response {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    send(server, Method::GET, path, &headers, String::new()).await
}

async fn json_of(server: &Server, token: Option<&str>, path: &str) -> Value {
    let answer = ask(server, token, path).await;
    assert_eq!(answer.status, 200, "{path}");
    answer.json().await
}

async fn ids(server: &Server, token: Option<&str>) -> Vec<String> {
    let list = json_of(server, token, "/conversations").await;
    let mut ids: Vec<_> =
        list.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    ids.sort_unstable();
    ids
}

/// Opens a file, lets its turns go on, and only then makes tokens.
async fn goes_on(file: &[u8], token: Option<&str>) {
    let provider = Loopback::with(model).await;
    let home = Home::with(&old_configuration(&provider, token));
    let data = home.journal();
    std::fs::create_dir_all(data.parent().unwrap()).unwrap();
    std::fs::write(&data, file).unwrap();
    let server = home.launch(home.command(&[])).await.expect("a greeting");
    let all = ["rolls", "streams", "talks", "waits"];
    assert_eq!(ids(&server, token).await, all);
    let idle = async {
        for id in ["waits", "streams"] {
            let path = format!("/conversations/{id}/status");
            while json_of(&server, token, &path).await["status"] != "idle" {
                yield_now().await;
            }
        }
    };
    timeout(DEADLINE, idle).await.expect("both turns go on");
    let history = ask(&server, token, "/conversations/waits").await.text().await;
    assert!(history.contains("Fine."), "{history}");
    // A message to a conversation that was there, and a call that passes through.
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
    headers.push(("content-type", "application/json"));
    let body = json!({ "message": "hello", "conversationId": "talks" }).to_string();
    ndjson(send(&server, Method::POST, "/chat", &headers, body).await).await;
    let body = json!({ "model": "sim/model", "messages": [{ "role": "user", "content": "hi" }] });
    let passed = send(&server, Method::POST, "/v1/chat/completions", &headers, body.to_string()).await;
    assert_eq!(passed.status, 200);
    assert_eq!(ids(&server, token).await, all);
    // Nobody is named, and nothing is noted.
    assert_eq!(json_of(&server, token, "/callers").await["callers"], json!([]));
    assert_eq!(json_of(&server, token, "/audit").await["entries"], json!([]));
    let usage = json_of(&server, token, "/usage?by=caller").await;
    let rows = usage["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["caller"]), (1, &Value::Null), "{usage}");
    for kept in ["callers.toml", "audit.jsonl"] {
        assert!(!data.with_file_name(format!("everturn.db.{kept}")).exists(), "{kept}");
    }
    let without = ask(&server, None, "/conversations").await.status;
    assert_eq!(without, if token.is_some() { 401 } else { 200 });

    // With the first token, what was there belongs to the administrator.
    let ann = make_token(&home, &["ann"]).await;
    let admin = match token {
        Some(token) => token.to_owned(),
        None => make_token(&home, &["boss", "--scope", "admin"]).await,
    };
    let known = async {
        for (token, status) in [(None, 401), (Some(&*ann), 200), (Some(&*admin), 200)] {
            while ask(&server, token, "/models").await.status != status {
                yield_now().await;
            }
        }
    };
    timeout(DEADLINE, known).await.expect("the server notices them");
    assert_eq!(ids(&server, Some(&ann)).await, [""; 0]);
    for id in all {
        assert_eq!(ask(&server, Some(&ann), &format!("/conversations/{id}")).await.status, 404);
        assert_eq!(ask(&server, Some(&admin), &format!("/conversations/{id}")).await.status, 200);
    }
    assert_eq!(ids(&server, Some(&admin)).await, all);
    assert_eq!(json_of(&server, Some(&ann), "/usage").await["rows"], json!([]));
}

#[tokio::test]
async fn a_data_file_from_before_callers_goes_on_for_everybody() {
    for file in FILES {
        goes_on(file, None).await;
    }
}

#[tokio::test]
async fn a_data_file_from_before_callers_goes_on_for_the_token_of_the_server() {
    for file in FILES {
        goes_on(file, Some("the-token-of-the-server")).await;
    }
}
