//! Limits of callers, kept through the real server.

use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::{SystemTime, UNIX_EPOCH},
};

use everturn_sim::Gate;
use futures_util::future::{join, join_all};
use tokio::time::Instant;

use super::*;
#[cfg(target_os = "linux")]
use crate::fault::Injection;

/// A server with a caller that has limits.
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
        Self::behind(provider, words, more).await
    }

    /// Its provider answers nothing before the gate is open.
    async fn at_a_gate(words: &[&str]) -> (Self, Gate) {
        let gate = Gate::new();
        let held = gate.clone();
        let answer = move |_: &Request| Reply::json(200, &json!({ "choices": [] })).hold(&held);
        (Self::behind(Loopback::with(answer).await, words, "").await, gate)
    }

    async fn behind(provider: Loopback, words: &[&str], more: &str) -> Self {
        let home = Home::with(&format!(
            "[retry]\n{LONG}\n{more}[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
            provider.base_url()
        ));
        let token = make_token(&home, &[&["ann"], words].concat()).await;
        let server = serve(&home).await;
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

/// A day, in seconds.
const DAY: u64 = 24 * 60 * 60;

/// Starts the server. Shortly before midnight UTC its clock is an hour late: a limit of a day must last longer than any test, and
/// than calls can afford to wait.
async fn serve(home: &Home) -> Server {
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_TOKEN", ADMIN);
    #[cfg(target_os = "linux")]
    if DAY - SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() % DAY < 1_800 {
        Injection::none().clock(-3_600).inject(&mut command, home);
    }
    home.launch(command).await.expect("a greeting")
}

#[tokio::test]
async fn a_call_that_asks_for_a_short_answer_counts_as_one() {
    let limited = Limited::new(&["--tokens-per-day", "300"]).await;
    let ask = async |text: &str, more: Value| {
        let mut body = json!({ "model": "sim/model", "messages": [{ "role": "user", "content": text }] });
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let bearer = format!("Bearer {}", limited.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("everturn-budget", "10m"),
        ];
        send(&limited.server, Method::POST, "/v1/chat/completions", &headers, body.to_string()).await.status
    };
    assert_eq!(ask("first", json!({ "max_completion_tokens": 20 })).await, 200);
    assert_eq!(ask("second", json!({ "max_tokens": 20 })).await, 200);
    assert_eq!(ask("third", json!({})).await, 429, "an answer of 500 tokens does not fit any more");
    assert_eq!(ask("fourth", json!({ "max_tokens": 20 })).await, 200);
}

/// What limits a caller whose thousand calls come at once, and how many go.
struct Kind {
    words: [&'static str; 2],
    /// How many go in each minute, or day, in which some came. Tokens and money are estimated: 500 tokens for an answer, and a few for
    /// a body.
    go: RangeInclusive<usize>,
    told: &'static str,
}

/// Makes a thousand calls at once. They wait for 20 s at most, or, if only the next day helps, not at all. One that is let go
/// at the last moment, as a minute begins just then, is cut off by its budget.
async fn race(limited: &Limited, kind: &Kind) {
    let minute = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60;
    let begun = minute();
    let is_daily = kind.words[0].ends_with("day");
    let budget = if is_daily { "10m" } else { "20s" };
    let cut_off = &AtomicUsize::new(0);
    let calls = join_all((0..1_000).map(|n| async move {
        let answer = limited.call(&[("everturn-budget", budget)], &format!("call {n}")).await;
        match answer.status {
            200 => None,
            504 if !is_daily => {
                cut_off.fetch_add(1, Relaxed);
                None
            }
            429 => Some((answer.header("retry-after").to_owned(), answer.text().await)),
            status => panic!("{:?}: {status}: {}", kind.words, answer.text().await),
        }
    }));
    let refused: Vec<_> = calls.await.into_iter().flatten().collect();
    let went = 1_000 - refused.len();
    let made = limited.provider.requests().len();
    assert!((went - cut_off.load(Relaxed)..=went).contains(&made), "{:?}: {made} of {went}", kind.words);
    let (times, longest) =
        if is_daily { (1, DAY) } else { (usize::try_from(minute() - begun).unwrap() + 1, 60) };
    // One that was cut off used no tokens as far as anybody knows, so another one goes.
    let most = kind.go.end() * times + cut_off.load(Relaxed);
    assert!((*kind.go.start()..=most).contains(&made), "{:?}: {made} calls went", kind.words);
    for (after, text) in refused {
        let after: u64 = after.parse().unwrap_or_else(|_| panic!("{:?}: no retry-after: {text}", kind.words));
        assert!((1..=longest).contains(&after), "{:?}: {after}", kind.words);
        assert!(text.contains(kind.told) && text.contains("rate_limit_error"), "{text}");
    }
}

#[tokio::test]
async fn a_thousand_calls_at_once_do_not_exceed_a_limit_in_requests_tokens_or_money() {
    let price = "[[price]]\nmodel = \"sim/model\"\ninput = 1\noutput = 10\n";
    for (words, go, told) in [
        (["--requests-per-minute", "60"], 60..=60, "60 requests a minute"),
        (["--tokens-per-minute", "50000"], 96..=96, "50000 tokens a minute"),
        (["--money-per-day", "0.5"], 99..=99, "to spend 0.5 a day"),
    ] {
        let limited = Limited::with(&words, price, Value::Null).await;
        race(&limited, &Kind { words, go, told }).await;
    }
}

#[tokio::test]
async fn of_a_thousand_calls_no_more_are_made_at_once_than_a_caller_may() {
    let (limited, gate) = Limited::at_a_gate(&["--parallel", "7"]).await;
    let calls = join_all((0..1_000).map(|n| {
        let limited = &limited;
        async move { limited.call(&[], &format!("call {n}")).await.status }
    }));
    let opens = async {
        gate.reached_by(7).await;
        let waiting = async || {
            let calls = json_of(&limited, "/calls").await["calls"].as_array().unwrap().clone();
            calls.iter().filter(|call| call["phase"] == "waiting").count()
        };
        while waiting().await < 993 {}
        assert_eq!(limited.provider.requests().len(), 7);
        gate.open();
    };
    let (statuses, ()) =
        timeout(2 * DEADLINE, join(calls, opens)).await.expect("all go, one after the other");
    assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    assert_eq!(limited.provider.requests().len(), 1_000);
}

#[tokio::test]
async fn a_call_waits_for_one_of_its_callers_own_as_long_as_it_can_afford() {
    let (limited, gate) = Limited::at_a_gate(&["--parallel", "1"]).await;
    let first = limited.call(&[], "first");
    let second = async {
        gate.reached_by(1).await;
        // Less than the longest wait between two looks.
        limited.call(&[("everturn-budget", "20s")], "second").await
    };
    let opens = async {
        let told = "this server allows its caller one call at a time, and one is running";
        while !json_of(&limited, "/calls").await.to_string().contains(told) {}
        let calls = json_of(&limited, "/calls").await["calls"].clone();
        let waits = |call: &&Value| call["phase"] == "waiting";
        let waiting = calls.as_array().unwrap().iter().find(waits).expect("one waits");
        assert_eq!(waiting["shared"], true, "it may go earlier: {calls}");
        gate.open();
    };
    let all = timeout(DEADLINE, join(first, join(second, opens))).await;
    let (first, (second, ())) = all.expect("the second waits, too");
    assert_eq!((first.status, second.status), (200, 200));
}

/// Real time: until the limit is changed, which the server notices within a second or so.
#[tokio::test]
async fn a_limit_that_was_raced_is_lifted_for_a_call_that_waits() {
    let words = ["--tokens-per-day", "50000"];
    let limited = Limited::new(&words).await;
    race(&limited, &Kind { words, go: 96..=96, told: "50000 tokens a day" }).await;
    // The limit is gone while a call waits: it goes within seconds, and not tomorrow.
    let waits = limited.call(&[], "one more");
    let begun = Instant::now();
    let changes = async {
        while json_of(&limited, "/calls").await["calls"][0]["phase"] != "waiting" {}
        let changed = limited.home.run(&["token", "limit", "ann", "--tokens-per-day", "none"]).await;
        assert!(changed.status.success(), "{}", stderr(&changed));
        assert_eq!(stdout(&changed), "ann: no limits\n");
    };
    let (answer, ()) = join(timeout(DEADLINE, waits), changes).await;
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
    limited.server = serve(&limited.home).await;
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
    assert_eq!(
        retry["message"],
        "this server allows its caller 600 tokens a day, and this call may need more than are left"
    );
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
    assert!(refused.text().await.contains("to spend 0.02 a day"));
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
