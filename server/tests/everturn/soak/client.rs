//! What a client does: one task after the other, each begun again if the server is killed meanwhile.

use hyper::Method;
use serde_json::{Value, json};
use tokio::{select, task::yield_now};

use super::{
    follower::Follower,
    provider::{answer, question},
    site::Site,
};
use crate::{
    client::{Response, try_send},
    home::Server,
};

/// Turns of a conversation, and conversations that a client keeps.
const TURNS: usize = 5;
const KEPT: usize = 4;

pub(crate) async fn run(site: &Site, number: usize) {
    let mut follower = Follower::new(String::new());
    be_known(site, number).await;
    for task in 0.. {
        if site.is_over() {
            return;
        }
        let name = format!("{number}.{task}");
        if task % TURNS == 0 {
            begin(site, number, task / TURNS, &mut follower).await;
        }
        match task % 7 {
            2 | 5 => call(site, number, &name, task % 2 == 0, 1).await,
            3 => leave(site, number, &name).await,
            _ => turn(site, number, &name, &mut follower, task % 11 == 10).await,
        }
        if task % 10 == 9 {
            site.rotate(number).await;
            be_known(site, number).await;
        }
        site.is_done();
    }
}

/// Waits until the server has noticed the client's token.
async fn be_known(site: &Site, number: usize) {
    let asked = async |server: &Server| {
        Some(send(server, site, number, Method::GET, "/models", &[], String::new()).await?.status)
    };
    while again(site, asked).await != 200 {
        yield_now().await;
    }
}

/// Another conversation; the oldest is deleted.
async fn begin(site: &Site, number: usize, count: usize, follower: &mut Follower) {
    *follower = Follower::new(format!("conversation-{number}-{count}"));
    if let Some(oldest) = count.checked_sub(KEPT) {
        let path = format!("/conversations/conversation-{number}-{oldest}");
        let gone = again(site, async |server| {
            Some(send(server, site, number, Method::DELETE, &path, &[], String::new()).await?.status)
        });
        // It has no turn if all its tasks were calls, or was deleted by a server that was killed before it answered.
        assert!([200, 204, 404].contains(&gone.await), "{path}");
        let listed = again(site, async |server| {
            let list = send(server, site, number, Method::GET, "/conversations", &[], String::new()).await?;
            list.try_text().await
        });
        let listed = listed.await;
        assert!(!listed.contains(&format!("\"conversation-{number}-{oldest}\"")), "{listed}");
    }
}

/// A turn, perhaps with a tool, followed from wherever the client was. It may be stopped.
async fn turn(site: &Site, number: usize, name: &str, follower: &mut Follower, stops: bool) {
    let text = question(name, if name.ends_with('4') { "roll" } else { "say" });
    let id = follower.conversation.clone();
    let body = json!({ "conversationId": id, "message": text, "model": "sim/model" }).to_string();
    let begun = again(site, async |server| {
        let key = [("idempotency-key", name)];
        let response = send(server, site, number, Method::POST, "/chat", &key, body.clone()).await?;
        Some(response.status)
    });
    assert_eq!(begun.await, 200, "{name}");
    if stops {
        let path = format!("/conversations/{id}/stop");
        let stopped = again(site, async |server| {
            Some(send(server, site, number, Method::POST, &path, &[], "{}".to_owned()).await?.status)
        });
        assert_eq!(stopped.await, 200, "{name}");
    }
    let mut events = Vec::new();
    let told = loop {
        let server = site.server().await;
        if let Some(told) = follower.turn(&server, &site.token(number), &mut events).await {
            break told;
        }
    };
    let made = site.answered.lock().unwrap().remove(name).unwrap_or_default();
    if stops && told.reason != "stop" {
        return;
    }
    assert_eq!((told.text, told.reason.as_str()), (answer(name), "stop"), "{events:#?}");
    assert!(made == 1 || site.is_killed() && made > 0, "{name}: {made} answers: {events:#?}");
}

/// A call that passes through, and is answered at most so many times.
async fn call(site: &Site, number: usize, name: &str, streams: bool, most: usize) {
    let body = message(name, streams);
    let told = again(site, async |server| pass(server, site, number, name, &body).await?.try_text().await);
    let text = if streams { streamed(&told.await) } else { whole(&told.await) };
    assert_eq!(text, answer(name));
    let made = site.answered.lock().unwrap().remove(name).unwrap_or_default();
    assert!((1..=most).contains(&made) || site.is_killed() && made > 0, "{name}: {made} answers");
}

/// A call whose client leaves at once, and asks again.
async fn leave(site: &Site, number: usize, name: &str) {
    let body = message(name, false);
    again(site, async |server| {
        select! {
            biased;
            _ = pass(server, site, number, name, &body) => {}
            () = async { for _ in 0..50 { yield_now().await } } => {}
        }
        Some(())
    })
    .await;
    // It may leave just when its answer is sent, which the server cannot know.
    call(site, number, name, false, 2).await;
}

fn message(name: &str, streams: bool) -> String {
    let messages = json!([{ "role": "user", "content": question(name, "say") }]);
    json!({ "model": "claude-a", "max_tokens": 99, "stream": streams, "messages": messages }).to_string()
}

async fn pass(server: &Server, site: &Site, number: usize, name: &str, body: &str) -> Option<Response> {
    let key = [("idempotency-key", name)];
    let response = send(server, site, number, Method::POST, "/v1/messages", &key, body.to_owned()).await?;
    assert_eq!(response.status, 200, "{name}");
    Some(response)
}

fn whole(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{body}"));
    body["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
}

fn streamed(body: &str) -> String {
    let frames =
        body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    frames.filter_map(|frame| frame["delta"]["text"].as_str().map(str::to_owned)).collect()
}

async fn send(
    server: &Server,
    site: &Site,
    number: usize,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Option<Response> {
    let bearer = format!("Bearer {}", site.token(number));
    let own = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    try_send(server, method, path, &[&own, headers].concat(), body).await
}

/// Does it until a server lives long enough.
async fn again<T>(site: &Site, act: impl AsyncFn(&Server) -> Option<T>) -> T {
    loop {
        let server = site.server().await;
        if let Some(done) = act(&server).await {
            return done;
        }
        assert!(site.is_killed(), "the server is gone");
    }
}
