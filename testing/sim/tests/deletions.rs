//! Worlds in which a conversation is deleted and begun again at any of three nodes, while events between them are lost,
//! late and repeated. What a node sends to the model is always what the journal has.
//!
//! More of them: `EFFORT=3000 cargo test -p everturn-sim --test deletions`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    env,
    sync::{Arc, Mutex},
    time::Duration,
};

use everturn_orchestrator::{
    Clock, Exponential, Fault, Journal as _, Orchestrator, StartTurn, SystemClock, Window,
    kernel::{FinishReason, Provider, Request, StreamEvent},
};
use everturn_sim::cluster::{Noise, SharedLog};
use everturn_wire::{Category, Chunk, ConversationId, ConversationStatus, Failure};
use futures_util::{
    FutureExt as _, StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::time::sleep;

const WORLDS: u64 = 50;
const NODES: usize = 3;
/// How often the conversation is deleted in a world.
const LIVES: usize = 5;
/// How often a message is sent again that a node cannot take yet, once a second.
const TRIES: usize = 120;

/// What the model was sent, other than the journal has it.
type Wrong = Arc<Mutex<Vec<String>>>;

/// The model of all nodes. It refuses some calls, so that a conversation that was begun again has other versions.
#[derive(Clone)]
struct Model {
    log: SharedLog,
    random: Arc<Mutex<fastrand::Rng>>,
    wrong: Wrong,
}

impl Provider for Model {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let said = texts(request.messages.iter().flat_map(everturn_wire::Message::iter));
        let stored = self.log.journal().chunks(&id(), Window::default()).now_or_never().unwrap().unwrap();
        let stored = texts(stored.iter().map(|stored| &*stored.chunk));
        if said != stored {
            self.wrong.lock().unwrap().push(format!("sent to the model: {said:?}, stored: {stored:?}"));
        }
        let mut random = self.random.lock().unwrap();
        if random.u8(0..3) == 0 {
            let failure = Failure::new(Category::Overloaded, true, "HTTP 529: busy");
            return stream::iter([StreamEvent::Failed(failure)]).boxed();
        }
        let text = StreamEvent::Text(format!("answer {:x}", random.u32(..)));
        stream::iter([text, StreamEvent::Finished(FinishReason::Stop)]).boxed()
    }
}

fn texts<'c>(chunks: impl Iterator<Item = &'c Chunk>) -> Vec<String> {
    let text = |chunk: &Chunk| match chunk {
        Chunk::Text { text } => Some(text.clone()),
        _ => None,
    };
    chunks.filter_map(text).collect()
}

fn id() -> ConversationId {
    "c".into()
}

struct World {
    log: SharedLog,
    nodes: Vec<Orchestrator>,
    random: fastrand::Rng,
}

impl World {
    async fn new(seed: u64, wrong: &Wrong) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let log = SharedLog::noisy(clock.clone(), Noise::default(), seed);
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(!seed)));
        let model = Model { log: log.clone(), random, wrong: wrong.clone() };
        let mut nodes = Vec::new();
        for place in 0..NODES {
            let (journal, cluster) = log.node(&format!("n{place}"));
            let schedule =
                Exponential { base: Duration::from_millis(300), max_retries: 99, ..Exponential::default() };
            let builder = Orchestrator::builder().model("world", "model", Arc::new(model.clone()));
            let builder = builder.journal(journal).clock(clock.clone()).cluster(cluster);
            let node = builder.schedule(schedule).build();
            node.resume().await.unwrap();
            nodes.push(node);
        }
        Self { log, nodes, random: fastrand::Rng::with_seed(seed) }
    }

    /// The conversation is deleted and begun again several times, with other noise each time.
    async fn run(mut self) {
        for _ in 0..LIVES {
            let watched: Vec<_> = self.nodes.iter().filter(|_| self.random.u8(0..4) > 0).cloned().collect();
            self.talk(None).await;
            watched.into_iter().for_each(|node| drop(tokio::spawn(watch(node))));
            self.pause(40_000).await;
            let (noise, node) = (self.noise(), self.node());
            self.log.disturb(noise);
            delete(&node).await;
            // At the same node, so that the others may have heard of neither.
            self.talk(Some(node)).await;
            let noise = self.noise();
            self.log.disturb(noise);
            self.talk(None).await;
        }
    }

    /// Says something a few times, at this node or at any.
    async fn talk(&mut self, at: Option<Orchestrator>) {
        for _ in 0..self.random.u8(1..4) {
            let node = at.clone().unwrap_or_else(|| self.node());
            let text = format!("message {:x}", self.random.u32(..));
            self.say(&node, &text).await;
            self.pause(3_000).await;
        }
    }

    fn node(&mut self) -> Orchestrator {
        self.nodes[self.random.usize(..NODES)].clone()
    }

    async fn pause(&mut self, most_ms: u64) {
        sleep(Duration::from_millis(self.random.u64(0..most_ms))).await;
    }

    fn noise(&mut self) -> Noise {
        let mut often = |most: f64| if self.random.bool() { most } else { 0.0 };
        Noise { lost: often(1.0), late: often(0.5), doubled: often(0.5), ..Noise::default() }
    }

    /// Says something at a node, which may take another turn for running, and waits until it is answered.
    async fn say(&self, node: &Orchestrator, text: &str) {
        let mut refused = String::new();
        for _ in 0..TRIES {
            match node.start(StartTurn::new(text).conversation(id())).await {
                Ok(_) => {
                    while !self.rests().await {
                        sleep(Duration::from_millis(100)).await;
                    }
                    return;
                }
                Err(error) => refused = error.to_string(),
            }
            sleep(Duration::from_secs(1)).await;
        }
        panic!("{text} is not taken: {refused}");
    }

    async fn rests(&self) -> bool {
        let stored = self.log.journal().load(&id()).await.unwrap();
        stored.is_some_and(|stored| stored.head.status == ConversationStatus::Idle)
    }
}

async fn delete(node: &Orchestrator) {
    match node.delete(&id()).await {
        Err(error) if error.fault() != Fault::Missing => panic!("it cannot be deleted: {error}"),
        _ => {}
    }
}

/// Follows the conversation at a node until it is deleted there.
async fn watch(node: Orchestrator) {
    let Ok(mut told) = node.subscribe(&id(), None, true).await else { return };
    while told.next().await.is_ok() {}
}

fn run(seed: u64) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let wrong = Wrong::default();
    runtime.block_on(async { World::new(seed, &wrong).await.run().await });
    std::mem::take(&mut *wrong.lock().unwrap())
}

#[test]
fn what_is_sent_to_the_model_is_what_the_journal_has() {
    let percent: u64 = env::var("EFFORT").map_or(100, |percent| percent.parse().unwrap());
    for seed in 0..WORLDS * percent / 100 {
        let wrong = run(seed);
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    }
}
