//! Limits of callers, kept through the real server.

use futures_util::future::join_all;
use tokio::time::Instant;

use super::*;

/// A server whose provider notes how many calls run at once.
struct Limited {
    provider: Loopback,
    home: Home,
    server: Server,
    token: String,
}

impl Limited {
    async fn new(words: &[&str]) -> Self {
        Self::with(words, "", Value::Null).await
    }

    /// `usage`: what the provider reports.
    async fn with(words: &[&str], more: &str, usage: Value) -> Self {
        let answer = json!({ "choices": [], "usage": usage });
        let provider = Loopback::with(move |_: &Request| Reply::json(200, &answer)).await;
        let home = Home::with(&format!(
            "[retry]\n{LONG}\n{more}[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
            provider.base_url()
        ));
        let token = make_token(&home, &[&["ann"], words].concat()).await;
        let mut command = home.command(&["--listen", "127.0.0.1:0"]);
        command.env("EVERTURN_TOKEN", ADMIN);
        let server = home.launch(command).await.expect("a greeting");
        Self { provider, home, server, token }
    }

    async fn call(&self, headers: &[(&'static str, &'static str)], text: &str) -> Response {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
        all.extend(headers);
        let body = json!({ "model": "sim/model", "messages": [{ "role": "user", "content": text }] });
        send(&self.server, Method::POST, "/v1/chat/completions", &all, body.to_string()).await
    }
}

/// Real time: until the limit is changed, which the server notices within a second or so.
#[tokio::test]
async fn a_thousand_calls_at_once_do_not_exceed_a_limit() {
    // A day's, as a minute may end while the test runs.
    let limited = Limited::new(&["--tokens-per-day", "50000"]).await;
    let calls = join_all((0..1_000).map(|n| {
        let limited = &limited;
        async move { limited.call(&[("everturn-budget", "20s")], &format!("call {n}")).await }
    }));
    let (mut went, mut refused) = (0, 0);
    for answer in calls.await {
        match answer.status {
            200 => went += 1,
            429 => {
                let after: u64 = answer.header("retry-after").parse().unwrap();
                assert!((1..=24 * 60 * 60).contains(&after), "{after}");
                refused += 1;
                if refused == 1 {
                    let text = answer.text().await;
                    assert!(
                        text.contains("50000 tokens a day") && text.contains("rate_limit_error"),
                        "{text}"
                    );
                }
            }
            status => panic!("{status}: {}", answer.text().await),
        }
    }
    // A call is estimated at 500 tokens and a few for its body.
    assert_eq!(went + refused, 1_000);
    assert_eq!(limited.provider.requests().len(), went);
    assert!((85..=100).contains(&went), "{went} calls went");
    // The limit is gone while a call waits: it goes within seconds, and not tomorrow.
    let waits = limited.call(&[], "one more");
    let begun = Instant::now();
    let changes = async {
        while json_of(&limited, "/calls").await["calls"][0]["phase"] != "waiting" {}
        let changed = limited.home.run(&["token", "limit", "ann", "--tokens-per-day", "none"]).await;
        assert!(changed.status.success(), "{}", stderr(&changed));
        assert_eq!(stdout(&changed), "ann: no limits\n");
    };
    let (answer, ()) = futures_util::future::join(timeout(DEADLINE, waits), changes).await;
    assert_eq!(answer.expect("it goes").status, 200);
    assert!(begun.elapsed().as_secs() < 60);
}

/// Waits until the caller has spent so much.
async fn spent(limited: &Limited, cost: f64) {
    let counted = async || json_of(limited, "/usage").await["total"]["cost"].as_f64().unwrap_or(0.0);
    while (counted().await - cost).abs() > 1e-9 {}
}

async fn json_of(limited: &Limited, path: &str) -> Value {
    let bearer = format!("Bearer {}", limited.token);
    send(&limited.server, Method::GET, path, &[("authorization", &bearer)], String::new()).await.json().await
}

#[tokio::test]
async fn a_limit_survives_a_kill_and_a_turn_says_what_it_waits_for() {
    let mut limited = Limited::new(&["--tokens-per-day", "600", "--priority", "background"]).await;
    assert_eq!(limited.call(&[], "one").await.status, 200);
    let list = stdout(&limited.home.run(&["token", "list"]).await);
    assert!(list.contains("600 tokens/day, background"), "{list}");
    let saved = async { while limited.call(&[("everturn-quota", "fail")], "two").await.status != 429 {} };
    timeout(DEADLINE, saved).await.expect("it is refused");
    // What was used is saved within a moment.
    let wal = limited.home.journal().with_extension("db-wal");
    let kept = async {
        while !String::from_utf8_lossy(&std::fs::read(&wal).unwrap()).contains(r#""callers":{"ann":[["#) {
            yield_now().await;
        }
    };
    timeout(DEADLINE, kept).await.expect("it is saved");
    limited.server.child.kill().await.unwrap();
    let mut command = limited.home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_TOKEN", ADMIN);
    limited.server = limited.home.launch(command).await.expect("a greeting");
    let bearer = format!("Bearer {}", limited.token);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = json!({ "message": "hi", "conversationId": "c" }).to_string();
    let asked = send(&limited.server, Method::POST, "/chat", &headers, body).await;
    assert_eq!(asked.status, 200);
    let waits = async {
        loop {
            let retry = json_of(&limited, "/conversations/c/status").await["retry"].clone();
            if retry["nextAt"].is_number() {
                return retry;
            }
        }
    };
    let retry = timeout(DEADLINE, waits).await.expect("it waits");
    assert_eq!((&retry["because"], &retry["shared"]), (&json!("caller-limit"), &json!(true)), "{retry}");
    assert_eq!(retry["message"], "this server allows its caller 600 tokens a day, which are used up");
}

/// Each call costs 0.0014, which its estimate is far above.
#[tokio::test]
async fn money_that_calls_which_pass_through_report_at_their_end_is_what_counts() {
    let usage = json!({ "prompt_tokens": 400, "completion_tokens": 100, "total_tokens": 500 });
    let price = "[[price]]\nmodel = \"sim/model\"\ninput = 1\noutput = 10\n";
    let limited = Limited::with(&["--money-per-day", "0.02"], price, usage).await;
    let list = stdout(&limited.home.run(&["token", "list"]).await);
    assert!(list.contains("costs of 0.02/day"), "{list}");
    let mut went = 0;
    let refused = loop {
        let answer = limited.call(&[("everturn-quota", "fail")], "one").await;
        if answer.status != 200 {
            break answer;
        }
        answer.text().await;
        went += 1;
        // Its cost may be counted after its answer was received.
        timeout(DEADLINE, spent(&limited, 0.0014 * f64::from(went))).await.expect("it is counted");
    };
    assert_eq!(refused.status, 429);
    assert!(refused.text().await.contains("costs of 0.02 a day"));
    // 14 cost 0.0196; estimates leave room for some fewer, and without corrections for 4.
    assert!((8..=14).contains(&went), "{went}");
    let other = json!({ "model": "sim/other", "messages": [{ "role": "user", "content": "hi" }] });
    let bearer = format!("Bearer {}", limited.token);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let asked = limited.provider.requests().len();
    let other =
        send(&limited.server, Method::POST, "/v1/chat/completions", &headers, other.to_string()).await;
    assert_eq!(other.status, 403);
    let text = other.text().await;
    assert!(text.contains("no price of sim/other"), "{text}");
    assert_eq!(limited.provider.requests().len(), asked);
    for odd in ["-1", "0.0000001", "ten", "0"] {
        let odd = limited.home.run(&["token", "limit", "ann", &format!("--money-per-day={odd}")]).await;
        assert!(!odd.status.success());
        let why = stderr(&odd);
        assert!(why.contains("such as 2.50") || why.contains("must be more than 0"), "{why}");
    }
}
