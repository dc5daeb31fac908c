//! A world: successive processes over one journal.

use std::{
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use everturn_orchestrator::{
    Builder, Exponential, Journal as _, MemoryJournal, Orchestrator, RetryPolicy,
    kernel::{Retry, Schedule},
};
use everturn_wire::ConversationId;
use futures_util::future::join_all;
use tokio::{
    runtime::Runtime,
    time::{sleep, timeout},
};

use super::{
    book::Book,
    durable::Durable,
    end::End,
    fuse::{Fuse, Trigger},
    model::Model,
    person::{Person, answer},
    phase,
    plan::{Life, Plan},
    script::{HOUR_MS, Script},
    tool::{Counted, Started},
    watch::Watcher,
};
use crate::WallClock;

/// Maximum number of retries of a step in every world: more than transient failures need.
pub(super) const MAX_RETRIES: u32 = 6;

/// Longer than everything that can happen in a world.
const FOR_EVER: Duration = Duration::from_secs(20 * 24 * 3600);

/// What outlives the processes of a world.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) book: Book,
    pub(super) kept: Arc<MemoryJournal>,
    pub(super) model: Model,
    pub(super) watchers: Vec<Watcher>,
    started: Started,
}

impl World {
    pub(super) fn new(seed: u64, plan: Plan, traced: bool) -> Self {
        let book = Book::new(seed, traced);
        let watchers = |c: usize| {
            let (id, book) = (ConversationId::from(format!("c{c}")), book.clone());
            (0..2).map(move |number| Watcher::new(id.clone(), number, book.clone()))
        };
        let watchers = (0..plan.prompts.len()).flat_map(watchers).collect();
        let model = Model::new(Script { seed, longest_ms: HOUR_MS }, book.clone(), plan.context);
        Self { plan, book, kept: Arc::default(), model, watchers, started: Started::default() }
    }

    pub(super) fn conversations(&self) -> impl Iterator<Item = (ConversationId, &[String])> {
        let prompts = self.plan.prompts.iter().enumerate();
        prompts.map(|(c, prompts)| (ConversationId::from(format!("c{c}")), prompts.as_slice()))
    }

    /// Runs all processes. Returns their number.
    pub(super) fn run(&self) -> usize {
        let mut lives = 0;
        for life in &self.plan.lives {
            lives += 1;
            if self.live(life) {
                return lives;
            }
        }
        self.live(&self.plan.last);
        lives + 1
    }

    /// Runs one process. Returns whether everything was done.
    fn live(&self, life: &Life) -> bool {
        let Life { trigger, down_ms, set_back_ms, .. } = *life;
        let Ok(runtime) = runtime() else {
            self.book.wrong("no runtime can be made".to_owned());
            return true;
        };
        let fuse = Fuse::new(trigger);
        runtime.block_on(async {
            self.book.begin_life();
            let done = tokio::select! {
                biased;
                () = fuse.burnt() => false,
                lived = timeout(FOR_EVER, self.work(&fuse, life)) => {
                    if lived.is_err() {
                        self.book.wrong("not all comes to its end".to_owned());
                    }
                    true
                }
            };
            if !done {
                let phases = self.conversations().filter_map(|(id, _)| phase::of(&self.kept, &id));
                self.book.pages().tally.count(trigger.name());
                self.book.pages().tally.meets(trigger.name(), phases);
            }
            let how = if done { "all is done".to_owned() } else { format!("{trigger:?}") };
            let set_back = if done { 0 } else { set_back_ms };
            self.book.end_life(&how, down_ms, set_back);
            done
        })
        // Whatever still runs is dropped with the runtime.
    }

    /// The work of the process and its environment.
    async fn work(&self, fuse: &Fuse, life: &Life) {
        let clock = WallClock::new(self.book.pages().time.wall());
        let orchestrator = self.builder(fuse, life).clock(Arc::new(clock.clone())).build();
        if let Err(error) = orchestrator.resume().await {
            self.book.wrong(format!("cannot resume: {error}"));
        }
        for watcher in &self.watchers {
            tokio::spawn(watcher.clone().watch(orchestrator.clone()));
        }
        if let Trigger::Shutdown { at_ms, grace_ms } = life.trigger {
            let end = End { orchestrator: orchestrator.clone(), book: self.book.clone(), fuse: fuse.clone() };
            tokio::spawn(end.come(at_ms, grace_ms, self.watchers.clone()));
        }
        let person =
            Person { orchestrator: &orchestrator, kept: &self.kept, book: &self.book, clock: &clock };
        if self.plan.asks {
            for (id, _) in self.conversations() {
                let (answer_ms, book) = (self.plan.answer_ms, self.book.clone());
                tokio::spawn(answer(orchestrator.clone(), id, answer_ms, book));
            }
        }
        let all_said = || async {
            let talks = self.conversations().map(|(id, prompts)| {
                let person = &person;
                async move { person.say(&id, prompts).await }
            });
            join_all(talks).await;
        };
        futures_util::future::join(all_said(), person.act(&life.deeds)).await;
        // The last action may have begun something.
        all_said().await;
        while !self.all_seen().await {
            sleep(Duration::from_secs(60)).await;
        }
    }

    /// Whether every watcher is at the end.
    async fn all_seen(&self) -> bool {
        for watcher in &self.watchers {
            let stored = self.kept.load(&watcher.id).await.ok().flatten();
            if stored.is_some_and(|stored| watcher.seen().cursor < stored.head.end) {
                return false;
            }
        }
        true
    }

    fn builder(&self, fuse: &Fuse, life: &Life) -> Builder {
        let (kept, book) = (self.kept.clone(), self.book.clone());
        let durable =
            Durable { kept, book, fuse: fuse.clone(), outage: life.outage, appends: AtomicU32::new(0) };
        let tool = |name, is_idempotent| Counted {
            name,
            is_idempotent,
            asks: self.plan.asks && !is_idempotent,
            eager: self.plan.settings.eager_tools,
            started: self.started.clone(),
            model: self.model.clone(),
            fuse: fuse.clone(),
        };
        let builder = Orchestrator::builder();
        let builder = if self.plan.context.is_some() { builder.compact() } else { builder };
        builder
            .model("world", "model", Arc::new(self.model.line(fuse)))
            .tool(tool("charge", false))
            .tool(tool("lookup", true))
            .journal(Arc::new(durable))
            .schedule(Replayed::policy(Exponential {
                base: Duration::from_millis(self.plan.base_ms),
                max_retries: MAX_RETRIES,
                jitter: 0.2,
                seed: self.plan.base_ms,
                ..Exponential::default()
            }))
            .settings(self.plan.settings.clone())
    }
}

/// A schedule that ignores which turn asks, because turn ids are random, and a world must be reproducible.
pub(super) struct Replayed(Exponential);

impl Replayed {
    pub(super) fn policy(schedule: Exponential) -> RetryPolicy {
        RetryPolicy::own(Self(schedule))
    }
}

impl Schedule for Replayed {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.0.delay_for(&Retry::new(retry.attempt, retry.failure))
    }

    fn max_retries(&self) -> Option<u32> {
        self.0.max_retries()
    }
}

impl Trigger {
    fn name(self) -> &'static str {
        match self {
            Self::Before(_) => "a crash before an append",
            Self::After(_) => "a crash after an append",
            Self::Piece(_) => "a crash in mid-stream",
            Self::Tool(_) => "a crash in a tool",
            Self::Asked(_) => "a crash while a person is asked",
            Self::Time(_) => "a crash at a time",
            Self::Shutdown { .. } => "a shutdown",
            Self::Never => "no crash",
        }
    }
}

pub(super) fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()
}
