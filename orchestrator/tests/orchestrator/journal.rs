//! Journals: what they must do, and what becomes of turns when they do not.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_orchestrator::{Cursor, Frame, Journal, MemoryJournal};
use everturn_provider::{Cue, Scripted};
use everturn_wire::ConversationStatus;

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, ask, builder, lines, refused},
    tool::Gated,
};

#[tokio::test]
async fn the_one_in_memory_is_a_journal() {
    everturn_sim::journal::conformance(async || Arc::new(MemoryJournal::new()) as Arc<dyn Journal>).await;
}

/// A turn that waits, runs a tool, waits again and answers, in a journal that has a mishap before its n-th append and,
/// if it is broken for longer, from then on until it is mended.
struct Trial {
    world: World,
    storage: Arc<Storage>,
    mended: Arc<AtomicBool>,
}

impl Trial {
    fn new(at: usize, mishap: Mishap, lasting: bool) -> Self {
        let mended = Arc::new(AtomicBool::new(false));
        let is_mended = mended.clone();
        let storage = Storage::new(move |n| {
            let hit = n == at || (lasting && n > at && !is_mended.load(Ordering::Relaxed));
            if hit { mishap.clone() } else { Mishap::Nothing }
        });
        // The first failure leaves time to begin to watch.
        let late = [vec![Cue::Pause(Duration::from_millis(1))], refused()].concat();
        let calls = [late, ask("gated", &["a", "b"]), refused(), answer("well"), refused(), answer("fine")];
        let tool = Gated::new();
        tool.gate.add_permits(100);
        let world = World::of(builder(Scripted::new(calls)).tool(tool).journal(storage.clone()));
        Self { world, storage, mended }
    }

    /// Every event in the journal, but those of streamed text.
    async fn kept(&self) -> HashSet<Vec<u8>> {
        let events = self.storage.events(&self.world.id, Cursor::default(), usize::MAX).await.unwrap();
        events.into_iter().map(|event| event.json.to_vec()).collect()
    }

    /// Nothing was told that is not in the journal, but streamed text and the three events that say so.
    async fn told_nothing_else(&self, frames: &[Frame], broke: bool) {
        let told = lines(frames);
        let (kept, end) = (self.kept().await, frames.len() - if broke { 3 } else { 0 });
        for (frame, line) in frames[..end].iter().zip(&told) {
            let streamed = ["text-delta", "tool-output"].iter().any(|start| line.starts_with(start));
            assert!(
                streamed || kept.contains(&frame.event().to_vec()),
                "{line} is not in the journal: {told:?}"
            );
        }
    }
}

/// How many appends that turn makes.
async fn appends() -> usize {
    let trial = Trial::new(usize::MAX, Mishap::Nothing, false);
    let frames = trial.world.say("hi").await.frames().await;
    trial.told_nothing_else(&frames, false).await;
    trial.storage.appends()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_be_saved_ends_and_the_next_one_runs() {
    let count = appends().await;
    assert!(count >= 8, "{count}");
    for (mishap, why) in
        [(Mishap::Fails, "the journal failed: disk full"), (Mishap::Rival, "by someone else")]
    {
        for lasting in [false, true] {
            for at in 1..count {
                let trial = Trial::new(at, mishap.clone(), lasting);
                let mut watcher = trial.world.say("hi").await;
                let frames = watcher.frames().await;
                let told = lines(&frames);
                let [.., error, done, sealed] = told.as_slice() else { panic!("{told:?}") };
                assert!(error.starts_with("error") && error.contains(why), "append {at}: {told:?}");
                assert_eq!((done.as_str(), sealed.as_str()), ("done error", "turn-sealed"));
                trial.told_nothing_else(&frames, true).await;
                trial.mended.store(true, Ordering::Relaxed);
                goes_on(&trial.world, &mut watcher).await;
            }
        }
    }
}

/// What the journal has of the broken turn is ended; then a turn runs as ever, and who watched before sees it.
async fn goes_on(world: &World, watcher: &mut crate::support::Watcher) {
    while world.start("again").await.is_err() {
        let lines = watcher.until("status idle").await;
        let ended = "error the turn could not be saved when it went on".to_owned();
        assert!(lines.contains(&ended) && lines.contains(&"turn-sealed".to_owned()), "{lines:?}");
    }
    let lines = watcher.until("turn-sealed").await;
    assert!(lines.contains(&"user-message again".to_owned()), "{lines:?}");
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
    watcher.until("status idle").await;
    assert_eq!(world.status().await, ConversationStatus::Idle);
    let history = world.history().await;
    for id in ["a", "b"] {
        let count =
            |kind: &str| history.iter().filter(|line| line.starts_with(&format!("{kind} {id}"))).count();
        assert_eq!(count("tool-call"), count("tool-result"), "{history:?}");
    }
    let seqs: Vec<u64> = world.chunks().await.iter().map(|chunk| chunk.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_begin_leaves_nothing() {
    let trial = Trial::new(0, Mishap::Fails, false);
    let error = trial.world.start("hi").await.unwrap_err().to_string();
    assert!(error.contains("disk full"), "{error}");
    assert!(trial.world.orchestrator.conversations().await.unwrap().is_empty());
    let lines = trial.world.say("again").await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
}
