//! Whose call goes first when calls have to wait: callers take turns, and what runs in the background gives way.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures_util::future::{join, join_all};

use super::*;

/// How long the provider's limit lasts, in seconds, unless a later response says otherwise.
const LIMITED_S: u64 = 3_600;

/// A provider whose first response reports that nothing is left for an hour, and its second one that so much is.
async fn limited(left: usize) -> Loopback {
    let answered = AtomicUsize::new(0);
    Loopback::with(move |_: &Request| {
        let left = match answered.fetch_add(1, Ordering::Relaxed) {
            0 => 0,
            before => left.saturating_sub(before - 1),
        };
        Reply::json(200, &json!({ "choices": [] }))
            .header("x-ratelimit-limit-requests", "1000")
            .header("x-ratelimit-remaining-requests", &left.to_string())
            .header("x-ratelimit-reset-requests", &format!("{LIMITED_S}s"))
    })
    .await
}

/// A server in front of it, with a route in the background and these callers.
struct Line {
    provider: Loopback,
    server: Server,
    tokens: HashMap<&'static str, String>,
    _home: Home,
}

impl Line {
    async fn new(callers: &[&'static str], left: usize) -> Self {
        let provider = limited(left).await;
        let home = Home::with(&format!(
            "[retry]\n{LONG}\n[[provider]]\nname = \"sim\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n\
             [[route]]\nname = \"night\"\ntargets = [\"sim/model\"]\npriority = \"background\"\n",
            provider.base_url()
        ));
        let mut tokens = HashMap::new();
        for caller in callers {
            tokens.insert(*caller, make_token(&home, &[*caller]).await);
        }
        let mut command = home.command(&["--listen", "127.0.0.1:0"]);
        command.env("EVERTURN_TOKEN", ADMIN);
        let server = home.launch(command).await.expect("a greeting");
        tokens.insert("admin", ADMIN.to_owned());
        let line = Self { provider, server, tokens, _home: home };
        line.call("admin", "sim/model", &[]).await;
        line
    }

    /// Makes a call that passes through. The provider sees whose it is.
    async fn call(&self, caller: &'static str, model: &str, headers: &[(&'static str, &str)]) {
        let bearer = format!("Bearer {}", self.tokens[caller]);
        let mut all = vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
        all.extend(headers);
        let mark = headers.first().map_or("", |(_, value)| value);
        let text = format!("{caller} {model} {mark}");
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": text }] });
        let answer = send(&self.server, Method::POST, "/v1/chat/completions", &all, body.to_string()).await;
        let status = answer.status;
        assert_eq!(status, 200, "{}", answer.text().await);
    }

    /// Waits until so many calls wait.
    async fn waiting(&self, count: usize) {
        let bearer = format!("Bearer {ADMIN}");
        loop {
            let headers = [("authorization", bearer.as_str())];
            let calls = send(&self.server, Method::GET, "/calls", &headers, String::new()).await.json().await;
            let calls = calls["calls"].as_array().expect("a list").clone();
            if calls.iter().filter(|call| call["phase"] == "waiting").count() == count {
                return;
            }
        }
    }

    /// Makes one of the calls that wait, so that the provider says how much is left.
    async fn open(&self) {
        let bearer = format!("Bearer {ADMIN}");
        let headers = [("authorization", bearer.as_str())];
        let calls = send(&self.server, Method::GET, "/calls", &headers, String::new()).await.json().await;
        let id = calls["calls"][0]["id"].as_str().expect("a call");
        let path = format!("/calls/{id}/retry-now");
        let ordered = send(&self.server, Method::POST, &path, &headers, String::new()).await;
        assert!((200..300).contains(&ordered.status), "{}", ordered.status);
    }

    /// What the provider was asked, in order, without the first.
    fn asked(&self) -> Vec<String> {
        let text = |request: &Request| {
            request.json().unwrap()["messages"][0]["content"].as_str().unwrap().to_owned()
        };
        self.provider.requests().iter().skip(1).map(text).collect()
    }
}

/// Waits for what there is room for. The rest goes on waiting, and is never answered: who goes first is seen by who goes at all,
/// because calls that may go at once arrive in any order.
async fn only(these: impl Future<Output = ()>, rest: impl Future) {
    tokio::select! {
        () = these => {}
        _ = rest => panic!("there was room for all"),
        () = tokio::time::sleep(DEADLINE) => panic!("there was no room for those that go first"),
    }
}

#[tokio::test]
async fn a_greedy_caller_does_not_make_the_others_wait() {
    let modest = ["ann", "ben", "cleo"];
    // 5 rounds of 4.
    let line = Line::new(&["greedy", "ann", "ben", "cleo"], 20).await;
    let greedy = join_all((0..150).map(|_| line.call("greedy", "sim/model", &[])));
    let others = async {
        line.waiting(150).await;
        let calls = join_all((0..15).map(|n| line.call(modest[n % 3], "sim/model", &[])));
        let opens = async {
            line.waiting(165).await;
            line.open().await;
        };
        join(calls, opens).await;
    };
    only(others, greedy).await;
    let greedy = line.asked().iter().filter(|text| text.starts_with("greedy")).count();
    // The one that a person asked for, 5 in turn, and some that went before the last of the others was seen to be answered. By age, all
    // 150 would have gone first.
    assert!(greedy <= 30, "{greedy}");
}

#[tokio::test]
async fn what_runs_in_the_background_gives_way() {
    let line = Line::new(&[], 16).await;
    let low = [("everturn-priority", "background")];
    let background = join(
        join_all((0..60).map(|_| line.call("admin", "sim/model", &low))),
        join_all((0..60).map(|_| line.call("admin", "route/night", &[]))),
    );
    let others = async {
        line.waiting(120).await;
        let usual = [("everturn-priority", "interactive")];
        let calls = join_all((0..14).map(|_| line.call("admin", "sim/model", &usual)));
        let opens = async {
            line.waiting(134).await;
            line.open().await;
        };
        join(calls, opens).await;
        let bearer = format!("Bearer {ADMIN}");
        let headers = [("authorization", bearer.as_str()), ("everturn-priority", "urgent")];
        let refused = send(&line.server, Method::POST, "/v1/messages", &headers, json!({}).to_string()).await;
        assert_eq!(refused.status, 400);
        assert!(refused.text().await.contains("interactive or background"));
    };
    only(others, background).await;
    let low = line.asked().iter().filter(|text| !text.ends_with("interactive")).count();
    // As above. By age, all 120 would have gone first.
    assert!(low <= 24, "{low}");
}
