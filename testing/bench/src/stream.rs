//! A saturated stream: CPU per delta.

pub(crate) mod adapter;
pub(crate) mod post;

use std::future::Future;

use anyhow::{Context, Result, bail, ensure};
use cpu_time::ProcessTime;
use everturn_kernel::StreamEvent;
use everturn_orchestrator::{Orchestrator, StartTurn, Started, Subscription};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio_tungstenite::tungstenite::Message;

use crate::{DELTAS, bare::Bare, child::Child};

pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Prints CPU nanoseconds per delta of the bare client.
pub(crate) fn bare(base: &str) -> Result<()> {
    block_on(async {
        let mut client = Bare::connect(&format!("{base}/flood")).await?;
        let (started, mut text, mut deltas) = (ProcessTime::now(), 0, 0);
        client
            .stream("Go", |delta| {
                text += delta.len();
                deltas += 1;
            })
            .await?;
        print(started, deltas, text)
    })
}

/// Measures adapter, kernel and orchestrator, with one subscriber and some further ones.
pub(crate) fn in_process(base: &str, further: usize) -> Result<()> {
    block_on(async {
        let orchestrator = orchestrator(&format!("{base}/flood"))?;
        let started = ProcessTime::now();
        let turn = orchestrator.start(StartTurn::new("Go")).await?;
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..=further {
            readers.spawn(read(subscribe(&orchestrator, &turn).await?));
        }
        for (deltas, bytes) in readers.join_all().await.into_iter().collect::<Result<Vec<_>>>()? {
            ensure!(deltas > 0 && bytes > DELTAS as usize, "a reader got only {deltas} events");
        }
        print(started, DELTAS, 6)
    })
}

pub(crate) async fn subscribe(orchestrator: &Orchestrator, turn: &Started) -> Result<Subscription> {
    Ok(orchestrator.subscribe(&turn.conversation_id, Some(turn.from), false).await?)
}

pub(crate) async fn read(mut events: Subscription) -> Result<(u64, usize)> {
    let (mut deltas, mut bytes) = (0, 0);
    loop {
        let frame = events.next().await?;
        deltas += 1;
        bytes += frame.event().len();
        if frame.ends_turn() {
            return Ok((deltas, bytes));
        }
    }
}

/// Measures WebSocket clients, each in its own process.
pub(crate) fn websocket(base: &str, clients: usize) -> Result<()> {
    block_on(async {
        let orchestrator = orchestrator(&format!("{base}/flood"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("ws://{}/ws", listener.local_addr()?);
        let router = everturn_transport_ws::router(
            orchestrator.clone(),
            everturn_transport_ws::SocketLimits::default(),
        );
        tokio::spawn(async move { axum::serve(listener, router).await });
        let conversation = "bench";
        let mut readers = Vec::new();
        for n in 0..clients {
            let first = r#"{"type":"chat.subscribe","conversationId":"bench","cursor":"0"}"#;
            let mut reader = Child::start(&["reader", &url, first])?;
            if n == 0 {
                let start = StartTurn::new("Go").conversation(conversation);
                orchestrator.start(start).await?;
            }
            readers.push(tokio::task::spawn_blocking(move || reader.line()));
        }
        let started = ProcessTime::now();
        for reader in readers {
            let bytes: usize = reader.await??.parse().context("a reader failed")?;
            ensure!(bytes > DELTAS as usize);
        }
        print(started, DELTAS, 6)
    })
}

/// Reads a conversation over WebSocket until its turn is sealed. Prints the number of bytes received.
pub(crate) fn reader(url: &str, subscribe: &str) -> Result<()> {
    block_on(async {
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await?;
        socket.send(Message::text(subscribe)).await?;
        let mut bytes = 0;
        while let Some(message) = socket.next().await {
            let Message::Text(text) = message? else { continue };
            bytes += text.len();
            if text.contains(r#""type":"turn-sealed""#) {
                break;
            }
        }
        println!("{bytes}");
        Ok(())
    })
}

/// Prints CPU nanoseconds per delta of an adapter alone.
pub(crate) fn adapter(api: &str, base: &str) -> Result<()> {
    block_on(async {
        let provider = adapter::of(api, &format!("{base}/flood"))?;
        let (started, mut text, mut deltas) = (ProcessTime::now(), 0, 0);
        let mut facts = provider.stream(adapter::request());
        while let Some(fact) = facts.next().await {
            match fact {
                // Joined from the deltas that arrived together, each of which has one word.
                StreamEvent::Text(joined) => {
                    text += joined.len();
                    deltas += joined.matches("word").count() as u64;
                }
                StreamEvent::Failed(failure) => bail!("{api}: {}", failure.message),
                _ => {}
            }
        }
        print(started, deltas, text)
    })
}

fn print(started: ProcessTime, deltas: u64, text: usize) -> Result<()> {
    ensure!(deltas == DELTAS && text > 5, "only {deltas} of {DELTAS} deltas came");
    println!("{:.1}", started.elapsed().as_nanos() as f64 / deltas as f64);
    Ok(())
}

/// Creates an orchestrator for the provider, like an embedder.
pub(crate) fn orchestrator(base: &str) -> Result<Orchestrator> {
    Ok(Orchestrator::builder().model("bench", "m", adapter::of("chat", base)?).build())
}
