//! Who used what: exact figures, whatever failed, also after a server was killed.

use std::{collections::HashSet, sync::Mutex};

use super::*;

const PRICES: &str = "[[price]]\nmodel = \"sim/*\"\ninput = 1\noutput = 2\n\
     [[price]]\nmodel = \"claude/claude-*\"\ninput = 3\noutput = 15\ncached = 0.3\n";

/// Fails the first of all requests with the same words of failing, and answers each API as it does, with token counts.
fn provider_of_all() -> impl Fn(&Request) -> Reply + Send + Sync + 'static {
    let seen = Mutex::new(HashSet::new());
    move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let is_first = |words: &str| body.contains(words) && seen.lock().unwrap().insert(words.to_owned());
        if is_first("fails in a turn") || is_first("fails in a call") {
            return fault::overloaded();
        }
        if is_first("has to wait") {
            return fault::rate_limited(Some(45));
        }
        let streams = body.contains("\"stream\":true");
        let data = |events: &[Value]| {
            let kind = |event: &Value| {
                event["type"].as_str().map_or(String::new(), |kind| format!("event: {kind}\n"))
            };
            Reply::sse(events.iter().map(|event| format!("{}data: {event}\n\n", kind(event))))
        };
        let messages = json!({ "input_tokens": 10, "cache_read_input_tokens": 30, "output_tokens": 1 });
        let responses = json!({ "input_tokens": 9, "input_tokens_details": { "cached_tokens": 4 }, "output_tokens": 5,
            "output_tokens_details": { "reasoning_tokens": 2 } });
        let chat = json!({ "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 });
        match (request.path.as_str(), streams) {
            (path, true) if path.contains("messages") => data(&[
                json!({ "type": "message_start", "message": { "id": "m", "usage": messages } }),
                json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Fine." } }),
                json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 7 } }),
                json!({ "type": "message_stop" }),
            ]),
            (path, false) if path.contains("messages") => Reply::json(
                200,
                &json!({ "content": [{ "type": "text", "text": "Fine." }], "usage": { "input_tokens": 2, "output_tokens": 3 } }),
            ),
            (path, true) if path.contains("responses") => data(&[
                json!({ "type": "response.output_text.delta", "delta": "Fine." }),
                json!({ "type": "response.completed", "response": { "id": "r", "usage": responses, "user": null } }),
            ]),
            (path, false) if path.contains("responses") => {
                Reply::json(200, &json!({ "output": [], "usage": responses }))
            }
            (_, true) if body.contains("passes") => data(&[
                json!({ "choices": [{ "index": 0, "delta": { "content": "Fine." } }], "usage": null }),
                json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }], "usage": null }),
                json!({ "choices": [], "usage": chat }),
            ]),
            (_, false) if body.contains("passes") => Reply::json(
                200,
                &json!({ "choices": [{ "message": { "content": "Fine." } }], "usage": chat }),
            ),
            _ => chat::text(["Fine."]).reply(),
        }
    }
}

async fn world() -> World {
    let provider = Loopback::with(provider_of_all()).await;
    let url = provider.base_url();
    let retry = "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 5\njitter = 0.0";
    let home = Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{retry}\n{PRICES}\
         [[provider]]\nname = \"sim\"\nbase_url = \"{url}/v1\"\nmodels = [\"model\"]\n\
         [[provider]]\nname = \"claude\"\nkind = \"anthropic\"\napi_key = \"sk-own-12345678\"\nbase_url = \"{url}\"\nmodels = [\"claude-a\"]\n\
         [[provider]]\nname = \"oai\"\nkind = \"openai-responses\"\nbase_url = \"{url}/v1\"\nmodels = [\"o-a\"]\n"
    ));
    let (ann, ben) = (make_token(&home, &["ann"]).await, make_token(&home, &["ben"]).await);
    let server = launch(&home).await;
    World { provider, home, server, ann, ben, _store: None }
}

async fn launch(home: &Home) -> Server {
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_TOKEN", ADMIN);
    home.launch(command).await.expect("a greeting")
}

async fn pass(world: &World, token: &str, path: &str, body: Value) {
    let answer = world.ask(token, "POST", path, Some(&body)).await;
    assert_eq!(answer.status, 200, "{path}");
    answer.text().await;
}

/// What is compared of a row.
fn figures(row: &Value) -> Vec<u64> {
    let names = [
        "turns",
        "survived",
        "failed",
        "requests",
        "refusals",
        "inputTokens",
        "cacheReadTokens",
        "outputTokens",
        "reasoningTokens",
    ];
    names.map(|name| row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"))).to_vec()
}

fn row<'r>(report: &'r Value, key: &str, name: Option<&str>) -> &'r Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row[key].as_str() == name).unwrap_or_else(|| panic!("{name:?}: {report}"))
}

fn assert_costs(row: &Value, millionths: f64) {
    let cost = row["cost"].as_f64().unwrap_or_else(|| panic!("no cost: {row}"));
    assert!((cost * 1e6 - millionths).abs() < 1e-3, "{cost} {millionths}");
}

#[tokio::test]
async fn figures_are_exact_through_failures_and_a_kill() {
    let mut world = world().await;
    let (ann, ben) = (world.ann.clone(), world.ben.clone());
    let message = |text: &str| json!({ "messages": [{ "role": "user", "content": text }], "max_tokens": 5, "model": "claude-a" });
    let streamed = |mut body: Value| {
        body["stream"] = true.into();
        body
    };
    world.chat(&ann, &json!({ "message": "This fails in a turn" })).await;
    world.chat(&ben, &json!({ "message": "Hello" })).await;
    world.chat(ADMIN, &json!({ "message": "Hello" })).await;
    pass(&world, &ann, "/v1/messages", streamed(message("This fails in a call"))).await;
    pass(&world, &ann, "/v1/messages", message("Hello")).await;
    let input = json!({ "model": "o-a", "input": "Hello" });
    pass(&world, &ben, "/v1/responses", streamed(input.clone())).await;
    pass(&world, &ben, "/v1/responses", input).await;
    let body = json!({ "model": "model", "messages": [{ "role": "user", "content": "It passes" }] });
    pass(&world, &ben, "/p/sim/v1/chat/completions", streamed(body.clone())).await;
    pass(&world, &ben, "/p/sim/v1/chat/completions", body).await;
    let waiting = json!({ "message": "This has to wait", "conversationId": "waits" });
    drop(world.ask(&ann, "POST", "/chat", Some(&waiting)).await);
    let usage =
        async |world: &World, token: &str, by: &str| world.json(token, &format!("/usage?by={by}")).await;
    let refused = async {
        while figures(&usage(&world, &ann, "caller").await["total"])[4] < 3 {
            yield_now().await;
        }
    };
    timeout(DEADLINE, refused).await.expect("the turn meets its refusal");
    let before = usage(&world, ADMIN, "caller,model,target,day").await;
    world.server.child.kill().await.unwrap();
    world.server = launch(&world.home).await;
    assert_eq!(usage(&world, ADMIN, "caller,model,target,day").await, before, "nothing was lost");
    assert_eq!(world.ask(&ann, "POST", "/conversations/waits/retry/now", Some(&json!({}))).await.status, 200);
    let ended = async {
        while figures(&usage(&world, &ann, "caller").await["total"])[0] < 4 {
            yield_now().await;
        }
    };
    timeout(DEADLINE, ended).await.expect("the turn ends");

    let all = usage(&world, ADMIN, "caller").await;
    let anns = [4, 3, 0, 7, 3, 62, 30, 12, 0];
    let bens = [5, 0, 0, 5, 0, 34, 8, 19, 4];
    assert_eq!(figures(row(&all, "caller", Some("ann"))), anns);
    assert_eq!(figures(row(&all, "caller", Some("ben"))), bens);
    assert_eq!(figures(row(&all, "caller", None)), [1, 0, 0, 1, 0, 10, 0, 1, 0]);
    assert_eq!(figures(&all["total"]), [10, 3, 0, 13, 3, 106, 38, 32, 4]);
    assert_eq!(world.provider.counts().requests, 13, "as the provider counts");
    assert!(row(&all, "caller", Some("ann"))["waitedMs"].as_u64().unwrap() > 0);
    assert_costs(row(&all, "caller", Some("ann")), 24.0 + 195.0);
    assert_costs(row(&all, "caller", Some("ben")), 34.0);
    assert_eq!(row(&all, "caller", Some("ben"))["unpriced"], json!(["oai/o-a"]));
    let models = usage(&world, ADMIN, "model").await;
    assert_eq!(row(&models, "model", Some("oai/o-a"))["cost"], Value::Null, "not 0");
    assert_eq!(figures(row(&models, "model", Some("claude/claude-a"))), [2, 1, 0, 3, 1, 42, 30, 10, 0]);

    // A caller sees its own.
    let own = usage(&world, &ann, "caller,model,target,day").await;
    assert_eq!(figures(&own["total"]), anns);
    assert!(own["rows"].as_array().unwrap().iter().all(|row| row["caller"] == "ann"), "{own}");
    assert_eq!(figures(&usage(&world, &ben, "").await["total"]), bens);
    for (query, why) in
        [("from=2026-02-30", "from"), ("by=callers", "by"), ("from=2000-01-01", "400 days"), ("to=x", "to")]
    {
        let answer = world.ask(&ann, "GET", &format!("/usage?{query}"), None).await;
        let (status, text) = (answer.status, answer.text().await);
        assert!(status == 400 && text.contains(why), "{query} {status} {text}");
    }

    let mut command = world.home.command(&["usage", "--server", &world.server.url, "--by", "model"]);
    let shown = timeout(DEADLINE, command.env("EVERTURN_TOKEN", &ann).output()).await.unwrap().unwrap();
    assert!(shown.status.success(), "{}", stderr(&shown));
    let shown = stdout(&shown);
    assert!(
        shown.contains("claude/claude-a") && shown.contains("SURVIVED") && !shown.contains("oai/"),
        "{shown}"
    );
}
