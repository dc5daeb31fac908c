//! A wait that outlives its process keeps its end, whatever happens to the wall clock.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use everturn_sim::{Loopback, Request, chat, fault};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::{
    client::{get, post},
    fault::Injection,
    home::{Home, SHORT, Server},
};

/// The provider's hint.
const HINT: Duration = Duration::from_secs(30);
/// How long the first process runs.
const LIFE: Duration = Duration::from_secs(10);
/// How much later than scheduled an attempt may be on a busy machine: half of what the first process ran.
const LATE: Duration = Duration::from_secs(5);
const HOUR: i64 = 3600;

/// A turn that waits for the provider's hint, and whose process was killed meanwhile.
struct Waiting {
    provider: Loopback,
    home: Home,
    /// When each attempt reached the socket.
    attempts: Arc<Mutex<Vec<Instant>>>,
}

impl Waiting {
    async fn begin(life: Duration) -> Self {
        let attempts = Arc::<Mutex<Vec<Instant>>>::default();
        let arrived = attempts.clone();
        let provider = Loopback::with(move |_: &Request| {
            let mut arrived = arrived.lock().unwrap();
            arrived.push(Instant::now());
            match arrived.len() {
                1 => fault::rate_limited(Some(HINT.as_secs())),
                _ => chat::text(["Here I am."]).reply(),
            }
        })
        .await;
        let home = Home::with_provider(&provider, SHORT);
        let mut server = home.serve().await;
        let _lines = post(&server, "/chat", &json!({ "conversationId": "c1", "message": "hi" })).await;
        provider.arrived(1).await;
        let since = attempts.lock().unwrap()[0];
        while !get(&server, "/conversations/c1/status").await.text().await.contains("nextAt") {}
        sleep(life.saturating_sub(since.elapsed())).await;
        server.child.kill().await.unwrap();
        Self { provider, home, attempts }
    }

    async fn go_on(&self, clock: i64) -> Server {
        let mut command = self.home.command(&["--listen", "127.0.0.1:0"]);
        Injection::none().clock(clock).inject(&mut command, &self.home);
        self.home.launch(command).await.unwrap()
    }

    /// Waits for the next attempt, and returns the time since the first one.
    async fn next_attempt(&self) -> Duration {
        timeout(2 * HINT, self.provider.arrived(2)).await.expect("the next attempt");
        let attempts = self.attempts.lock().unwrap();
        attempts[1] - attempts[0]
    }

    /// Checks that one attempt was enough.
    async fn ends(&self, server: &Server) {
        while get(server, "/conversations/c1/status").await.json().await["isActive"] == true {}
        let history = get(server, "/conversations/c1").await.text().await;
        assert!(history.contains("Here I am."), "{history}");
        assert_eq!(self.provider.counts().requests, 2);
    }
}

/// Real time: 10 s in one process, the other 20 s in the next.
#[tokio::test]
async fn killed_during_a_wait_the_turn_waits_only_for_the_rest() {
    let waiting = Waiting::begin(LIFE).await;
    let server = waiting.go_on(0).await;
    let came = waiting.next_attempt().await;
    assert!(came >= HINT && came <= HINT + LATE, "{came:?}");
    waiting.ends(&server).await;
}

#[tokio::test]
async fn a_clock_set_forward_ends_the_wait_without_a_burst_of_requests() {
    let waiting = Waiting::begin(Duration::ZERO).await;
    let server = waiting.go_on(HOUR).await;
    assert!(waiting.next_attempt().await < HINT / 2);
    waiting.ends(&server).await;
}

/// Also in real time: no longer than was decided, counted from the restart.
#[tokio::test]
async fn a_clock_set_back_lengthens_no_wait() {
    let waiting = Waiting::begin(Duration::ZERO).await;
    let server = waiting.go_on(-HOUR).await;
    let restarted = waiting.attempts.lock().unwrap()[0].elapsed();
    let came = waiting.next_attempt().await;
    assert!(came >= HINT && came <= restarted + HINT + LATE, "{came:?}");
    waiting.ends(&server).await;
}
