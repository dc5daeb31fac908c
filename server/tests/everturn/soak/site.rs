//! A server with its provider and its clients, which may be killed and started again.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use everturn_sim::Loopback;
use futures_util::future::join_all;
use tokio::{
    join,
    sync::{Notify, RwLock, RwLockReadGuard},
};

use super::{
    client,
    provider::{self, Answered},
};
use crate::home::{Home, Server, stderr, stdout};

/// Clients at once. Each has a token of its own.
const CLIENTS: usize = 6;
const ADMIN: &str = "the-administrators";

/// When clients take up no further task.
#[derive(Clone, Copy)]
pub(crate) enum Over {
    At(Instant),
    After(usize),
}

pub(crate) struct Site {
    pub(crate) home: Home,
    pub(crate) answered: Answered,
    server: RwLock<Server>,
    tokens: Vec<Mutex<String>>,
    over: Over,
    /// After how many tasks the server is killed, each time.
    kill_every: Option<usize>,
    done: AtomicUsize,
    kills: AtomicUsize,
    progress: Notify,
    _provider: Loopback,
}

impl Site {
    pub(crate) async fn new(over: Over, kill_every: Option<usize>) -> Self {
        let (provider, answered) = provider::provider(1).await;
        let url = provider.base_url();
        let home = Home::with(&format!(
            "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[tools]\ndice = true\n[retry]\nschedule = \"exponential\"\nbase_ms = 20\n\
             max_delay_ms = 500\nmax_retries = 200\n[[provider]]\nname = \"sim\"\nbase_url = \"{url}/v1\"\nmodels = [\"model\"]\n\
             [[provider]]\nname = \"claude\"\nkind = \"anthropic\"\napi_key = \"sk-own-12345678\"\nbase_url = \"{url}\"\n\
             models = [\"claude-a\"]\n"
        ));
        let server = serve(&home).await;
        let mut tokens = Vec::new();
        for client in 0..CLIENTS {
            tokens.push(Mutex::new(token(&home, &["new", &format!("client{client}")]).await));
        }
        Self {
            home,
            answered,
            server: RwLock::new(server),
            tokens,
            over,
            kill_every,
            done: AtomicUsize::new(0),
            kills: AtomicUsize::new(0),
            progress: Notify::new(),
            _provider: provider,
        }
    }

    /// Runs all clients until it is over. `each` is called after every tenth task.
    pub(crate) async fn run(&self, mut each: impl FnMut(&Self, &Server)) {
        let clients = join_all((0..CLIENTS).map(|number| client::run(self, number)));
        let watch = async {
            let mut seen = 0;
            while !self.is_over() {
                self.progress.notified().await;
                let done = self.done.load(Relaxed);
                if done / 10 > seen / 10 {
                    each(self, &*self.server().await);
                }
                if let Some(every) = self.kill_every
                    && done / every > seen / every
                {
                    self.kill().await;
                }
                seen = done;
            }
        };
        join!(clients, watch);
    }

    pub(crate) fn is_over(&self) -> bool {
        match self.over {
            Over::At(end) => Instant::now() >= end,
            Over::After(tasks) => self.done.load(Relaxed) >= tasks,
        }
    }

    /// Whether a call may have been made for nothing, because its server was killed.
    pub(crate) fn is_killed(&self) -> bool {
        self.kill_every.is_some()
    }

    pub(crate) fn is_done(&self) {
        self.done.fetch_add(1, Relaxed);
        self.progress.notify_one();
    }

    /// The running server.
    pub(crate) async fn server(&self) -> RwLockReadGuard<'_, Server> {
        self.server.read().await
    }

    pub(crate) fn token(&self, client: usize) -> String {
        self.tokens[client].lock().unwrap().clone()
    }

    /// Gives a client another token; the former one is no longer valid.
    pub(crate) async fn rotate(&self, client: usize) {
        let new = token(&self.home, &["rotate", &format!("client{client}")]).await;
        *self.tokens[client].lock().unwrap() = new;
    }

    async fn kill(&self) {
        let id = self.server().await.child.id().unwrap().to_string();
        let killed = tokio::process::Command::new("kill").args(["-KILL", &id]).status().await.unwrap();
        assert!(killed.success());
        // Clients that notice give way.
        let mut server = self.server.write().await;
        server.child.wait().await.unwrap();
        *server = serve(&self.home).await;
        self.kills.fetch_add(1, Relaxed);
    }

    pub(crate) fn tally(&self) -> String {
        format!("{} tasks, {} kills", self.done.load(Relaxed), self.kills.load(Relaxed))
    }
}

async fn serve(home: &Home) -> Server {
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_TOKEN", ADMIN);
    home.launch(command).await.expect("a greeting")
}

async fn token(home: &Home, words: &[&str]) -> String {
    let made = home.run(&[&["token"], words].concat()).await;
    assert!(made.status.success(), "{}", stderr(&made));
    stdout(&made).trim().to_owned()
}
