//! A server on a free port, with a provider and a clock controlled by the test.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::Router;
use everturn_orchestrator::{Builder, Clock, Journal, MemoryJournal, Orchestrator, kernel::Millis};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::{Notify, mpsc::UnboundedReceiver},
};

use crate::puppet::{Call, Puppet};

/// A server, its provider and its clock.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) clock: Arc<HandClock>,
    calls: UnboundedReceiver<Call>,
}

impl World {
    /// Serves the app that `app` creates from the orchestrator and the address.
    pub(crate) async fn serve(app: impl FnOnce(Orchestrator, SocketAddr) -> Router) -> Self {
        Self::serve_from(Arc::new(MemoryJournal::new()), app).await
    }

    /// Serves conversations from this journal.
    pub(crate) async fn serve_from(
        journal: Arc<dyn Journal>,
        app: impl FnOnce(Orchestrator, SocketAddr) -> Router,
    ) -> Self {
        Self::serve_built(|builder| builder.journal(journal), app).await
    }

    /// Serves an orchestrator that the test configures further.
    pub(crate) async fn serve_built(
        build: impl FnOnce(Builder) -> Builder,
        app: impl FnOnce(Orchestrator, SocketAddr) -> Router,
    ) -> Self {
        let (builder, clock, calls) = Self::builder();
        Self::of(build(builder).build(), clock, calls, app).await
    }

    /// Serves a node of a cluster, which the test configures.
    #[allow(dead_code, reason = "not every transport asks")]
    pub(crate) async fn serve_node(
        build: impl FnOnce(Builder) -> Builder,
        app: impl FnOnce(Orchestrator, SocketAddr) -> Router,
    ) -> Self {
        let (builder, clock, calls) = Self::builder();
        let orchestrator = build(builder).build();
        orchestrator.resume().await.unwrap();
        Self::of(orchestrator, clock, calls, app).await
    }

    fn builder() -> (Builder, Arc<HandClock>, UnboundedReceiver<Call>) {
        let (puppet, calls) = Puppet::new();
        let clock = Arc::new(HandClock::default());
        let model = Arc::new(puppet);
        let builder = Orchestrator::builder()
            .model("test", "small", model.clone())
            .model("test", "large", model)
            .clock(clock.clone());
        (builder, clock, calls)
    }

    async fn of(
        orchestrator: Orchestrator,
        clock: Arc<HandClock>,
        calls: UnboundedReceiver<Call>,
        app: impl FnOnce(Orchestrator, SocketAddr) -> Router,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = app(orchestrator, address);
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, clock, calls }
    }

    /// Returns the whole response to a request with this start.
    pub(crate) async fn ask(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{head}Host: {}\r\nConnection: close\r\n\r\n", self.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// Whether there is no provider call that the test has not taken.
    #[allow(dead_code, reason = "not every transport asks")]
    pub(crate) fn has_no_call(&mut self) -> bool {
        self.calls.try_recv().is_err()
    }

    /// Returns the next provider call.
    pub(crate) async fn call(&mut self) -> Call {
        self.calls.recv().await.unwrap()
    }
}

/// Pauses the runtime's clock. It does not advance by itself, because some task is always busy.
pub(crate) fn still_time() {
    tokio::time::pause();
    tokio::spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
}

/// A clock that advances only by hand.
#[derive(Default)]
pub(crate) struct HandClock {
    now: AtomicU64,
    moved: Notify,
}

impl HandClock {
    pub(crate) fn advance(&self, time: Duration) {
        self.now.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
        self.moved.notify_waiters();
    }
}

#[async_trait]
impl Clock for HandClock {
    fn now(&self) -> Millis {
        Millis(self.now.load(Ordering::SeqCst))
    }

    async fn sleep(&self, delay: Duration) {
        let until = self.now().plus(u64::try_from(delay.as_millis()).unwrap());
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.now() >= until {
                return;
            }
            moved.await;
        }
    }
}
