//! Journals: what they must do, and what becomes of turns when they do not.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_orchestrator::{
    Cursor, Error, Frame, Journal, MemoryJournal, Page, StartTurn, StoredEvent, kernel::Millis,
};
use everturn_provider::{Cue, Scripted};
use everturn_wire::ConversationStatus;
use tokio::time::{sleep, timeout};

use crate::{
    storage::{Mishap, Storage},
    support::{
        Watcher, World, answer, ask, builder, lines, overloaded_with_hint, refused, refused_with_hint, text,
    },
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

    async fn is_well_formed(&self) {
        let history = self.world.history().await;
        for id in ["a", "b"] {
            let count =
                |kind: &str| history.iter().filter(|line| line.starts_with(&format!("{kind} {id}"))).count();
            assert_eq!(count("tool-call"), count("tool-result"), "{history:?}");
        }
        let seqs: Vec<u64> = self.world.chunks().await.iter().map(|chunk| chunk.seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    }

    /// Every event in the journal, but those of streamed text.
    async fn kept(&self) -> HashSet<Vec<u8>> {
        let events = self.storage.events(&self.world.id, Cursor::default(), usize::MAX).await.unwrap();
        events.into_iter().map(|event| event.json.to_vec()).collect()
    }

    /// Nothing was told that is not in the journal, but streamed text.
    async fn told_nothing_else(&self, frames: &[Frame]) {
        let (told, kept) = (lines(frames), self.kept().await);
        for (frame, line) in frames.iter().zip(&told) {
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
    trial.told_nothing_else(&frames).await;
    trial.storage.appends()
}

/// Everything that is told until the journal's failure is.
async fn until_lost(watcher: &mut Watcher) -> (Vec<Frame>, String) {
    let mut frames = Vec::new();
    loop {
        match watcher.subscription.next().await {
            Ok(frame) => frames.push(frame),
            Err(error) => {
                assert!(matches!(error, Error::NotSaved { .. }), "{error}");
                return (frames, error.to_string());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_be_saved_goes_on_when_it_can_and_has_one_end() {
    let count = appends().await;
    assert!(count >= 8, "{count}");
    let unknown = "may or may not have been saved";
    for (mishap, why, may_last) in [
        (Mishap::Fails, "the journal failed: disk full", true),
        (Mishap::Rival, "by someone else", true),
        (Mishap::Unknown { landed: false }, unknown, true),
        (Mishap::Unknown { landed: true }, unknown, false),
    ] {
        for (lasting, at) in
            [false, may_last].into_iter().flat_map(|lasting| (1..count).map(move |at| (lasting, at)))
        {
            let trial = Trial::new(at, mishap.clone(), lasting);
            let mut watcher = trial.world.say("hi").await;
            let (mut frames, error) = until_lost(&mut watcher).await;
            assert!(error.contains(why), "append {at}: {error}");
            trial.told_nothing_else(&frames).await;
            if lasting {
                // Tried again, it fails again, and nothing is told that did not happen.
                let (more, _) = until_lost(&mut watcher).await;
                assert!(more.is_empty(), "append {at}: {:?}", lines(&more));
            }
            trial.mended.store(true, Ordering::Relaxed);
            let cursor = watcher.subscription.cursor();
            frames.extend(watcher.frames().await);
            let told = lines(&frames);
            for once in ["user-message", "done", "turn-sealed"] {
                let times = told.iter().filter(|line| line.starts_with(once)).count();
                assert_eq!(times, 1, "append {at}, {once}: {told:?}");
            }
            assert!(told.contains(&"done stop".to_owned()), "append {at}: {told:?}");
            // Who comes back with its cursor is told the same as who stayed.
            let again = trial.world.watch(Some(cursor)).await.frames().await;
            assert!(told.ends_with(&lines(&again)), "append {at}: {told:?}");
            trial.is_well_formed().await;
            assert!(trial.world.say("again").await.turn().await.contains(&"done stop".to_owned()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_whose_first_save_is_not_confirmed_goes_on_if_it_was_written() {
    for landed in [true, false] {
        let trial = Trial::new(0, Mishap::Unknown { landed }, false);
        let error = trial.world.start("hi").await.unwrap_err().to_string();
        assert!(error.contains("may or may not have been saved"), "{error}");
        sleep(Duration::from_secs(600)).await;
        let listed = trial.world.orchestrator.conversations(Page::default()).await.unwrap().0;
        assert_eq!(listed.len(), usize::from(landed));
        if landed {
            assert_eq!(trial.world.status().await, ConversationStatus::Idle);
            assert_eq!(trial.world.history().await.last().unwrap(), "text well");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_looks_elsewhere_every_second_goes_on_after_a_failed_save() {
    let trial = Trial::new(2, Mishap::Fails, false);
    let mut watcher = trial.world.say("hi").await;
    until_lost(&mut watcher).await;
    let ends = async {
        // Each second, the future of `next` is dropped.
        loop {
            if let Ok(frame) = timeout(Duration::from_secs(1), watcher.subscription.next()).await
                && frame.unwrap().ends_turn()
            {
                return;
            }
        }
    };
    timeout(Duration::from_secs(60), ends).await.expect("the subscription goes on");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_could_not_be_saved_is_not_said_to_be_queued() {
    let storage = Storage::new(|n| if n == 1 { Mishap::Fails } else { Mishap::Nothing });
    let hangs = vec![text("hel"), Cue::Hang];
    let world = World::of(builder(Scripted::new([hangs, answer("hello")])).journal(storage));
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    let error = world.orchestrator.enqueue(&world.id, "and then".to_owned(), None).await.unwrap_err();
    assert!(matches!(error, Error::NotSaved { .. }), "{error}");
    until_lost(&mut watcher).await;
    let told = watcher.until("turn-sealed").await;
    assert!(told[0].starts_with("step-rewound") && told.contains(&"text-delta hello".to_owned()), "{told:?}");
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

/// Each time, the turn is taken up again as if its process had ended, which it may do only a few times.
#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_however_often_it_is_not_confirmed_that_it_was_saved() {
    let storage = Storage::new(|n| match n {
        1 => Mishap::Fails,
        2..=12 => Mishap::Unknown { landed: true },
        _ => Mishap::Nothing,
    });
    let hangs = vec![text("hel"), Cue::Hang];
    let world = World::of(builder(Scripted::new([hangs, answer("hello")])).journal(storage));
    world.say("hi").await.until("text-delta").await;
    world.orchestrator.enqueue(&world.id, "and then".to_owned(), None).await.unwrap_err();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

/// A disk may have room for small appends only. A turn must not call its model for ever then.
#[tokio::test(start_paused = true)]
async fn a_turn_whose_answers_cannot_be_saved_is_given_up() {
    let storage = Storage::new(|n| if n % 2 == 1 { Mishap::Fails } else { Mishap::Nothing });
    let model = Scripted::new(vec![answer("hello"); 20]);
    let world = World::of(builder(model.clone()).journal(storage));
    world.say("hi").await;
    sleep(Duration::from_secs(600)).await;
    assert!(world.history().await.last().unwrap().contains("6 times"), "{:?}", world.history().await);
    assert_eq!(model.calls(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_cannot_begin_leaves_nothing() {
    let trial = Trial::new(0, Mishap::Fails, false);
    let error = trial.world.start("hi").await.unwrap_err().to_string();
    assert!(error.contains("disk full"), "{error}");
    assert!(trial.world.orchestrator.conversations(Page::default()).await.unwrap().0.is_empty());
    let lines = trial.world.say("again").await.turn().await;
    assert!(lines.contains(&"done stop".to_owned()), "{lines:?}");
}

/// A journal that takes so many appends, then none until it is mended.
fn full_after(appends: usize) -> (Arc<Storage>, Arc<AtomicBool>) {
    let mended = Arc::new(AtomicBool::new(false));
    let is_mended = mended.clone();
    let is_full = move |n| n >= appends && !is_mended.load(Ordering::Relaxed);
    (Storage::new(move |n| if is_full(n) { Mishap::Fails } else { Mishap::Nothing }), mended)
}

#[tokio::test(start_paused = true)]
async fn whoever_asks_has_a_failing_journal_tried_no_more_often_later() {
    let (storage, mended) = full_after(2);
    let world = World::of(builder(Scripted::new([refused(), answer("hello")])).journal(storage.clone()));
    let mut watcher = world.say("hi").await;
    until_lost(&mut watcher).await;
    for _ in 0..500 {
        // Each takes the turn up, as nothing keeps it from going on, and it fails.
        assert_eq!(world.status().await, ConversationStatus::Active);
        sleep(Duration::from_millis(100)).await;
    }
    let before = storage.appends();
    sleep(Duration::from_secs(60)).await;
    let tries = storage.appends() - before;
    assert!((5..=7).contains(&tries), "{tries} tries in a minute");
    mended.store(true, Ordering::Relaxed);
    watcher.until("turn-sealed").await;
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

#[tokio::test(start_paused = true)]
async fn many_turns_that_are_due_do_not_storm_a_failing_journal() {
    const TURNS: usize = 2_000;
    // Each begins, and waits.
    let (storage, mended) = full_after(2 * TURNS);
    let calls = std::iter::repeat_n(overloaded_with_hint(60_000), TURNS);
    let provider = Scripted::new(calls.chain(std::iter::repeat_n(answer("hello"), TURNS)));
    let orchestrator = builder(provider.clone()).journal(storage.clone()).build();
    for n in 0..TURNS {
        let world = World { orchestrator: orchestrator.clone(), id: format!("c{n}").as_str().into() };
        world.say("hi").await.until("provider-retry").await;
    }
    sleep(Duration::from_secs(120)).await;
    let before = storage.appends();
    sleep(Duration::from_secs(600)).await;
    let tries = storage.appends() - before;
    assert!((500..=700).contains(&tries), "{tries} tries in ten minutes");
    assert_eq!(provider.calls(), TURNS, "no model is asked for what cannot be saved");
    // Mended, they are all done soon.
    mended.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(storage.unsealed(Millis(u64::MAX)).await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_when_a_command_could_not_be_saved() {
    // The appends are: a turn, its wait, and the command that wakes it.
    let storage = Storage::new(|n| if n == 2 { Mishap::Fails } else { Mishap::Nothing });
    let calls = [refused_with_hint(60_000), answer("hello")];
    let world = World::of(builder(Scripted::new(calls)).journal(storage));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    let error = world.orchestrator.enqueue(&world.id, "and then".to_owned(), None).await.unwrap_err();
    assert!(matches!(error, Error::NotSaved { .. }), "{error}");
    drop(watcher);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.history().await, ["text hi", "text hello"]);
    let figures = world.orchestrator.metrics(&world.id).await.unwrap();
    let took = figures[0].duration_ms.unwrap();
    assert!((60_000..=61_000).contains(&took), "{took} ms");
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_conversation_was_deleted_is_not_looked_for_for_ever() {
    let storage = Storage::new(|_| Mishap::Nothing);
    let world = World::of(builder(Scripted::new([refused_with_hint(60_000)])).journal(storage.clone()));
    world.say("hi").await.until("provider-retry").await;
    storage.emptied.store(true, Ordering::Relaxed);
    let before = storage.loads();
    sleep(Duration::from_secs(3_600)).await;
    assert_eq!(storage.loads() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_conversation_is_not_looked_for() {
    let storage = Storage::new(|_| Mishap::Nothing);
    let world = World::of(builder(Scripted::new([answer("hello")])).journal(storage.clone()));
    world.orchestrator.start(StartTurn::new("hi")).await.unwrap();
    assert_eq!(storage.loads(), 0);
    world.start("an id that the caller gives may exist").await.unwrap();
    assert_eq!(storage.loads(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_panics_as_it_is_read_has_failed_and_wakes_turns_later() {
    let storage = Storage::new(|_| Mishap::Nothing);
    let calls = [refused_with_hint(60_000), answer("hello")];
    let world = World::of(builder(Scripted::new(calls)).journal(storage.clone()));
    world.say("hi").await.until("provider-retry").await;
    storage.breaks.store(true, Ordering::Relaxed);
    let error = world.orchestrator.status(&world.id).await.unwrap_err().to_string();
    assert!(error.contains("it panicked: the journal broke"), "{error}");
    storage.breaks.store(true, Ordering::Relaxed);
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.history().await, ["text hi", "text hello"]);
}

/// The journal lets events go with their turn.
#[tokio::test(start_paused = true)]
async fn what_begins_a_turn_is_behind_the_seal_of_the_one_before() {
    let storage = Storage::new(|_| Mishap::Nothing);
    let calls = [vec![text("hel"), Cue::Hang], vec![Cue::Hang]];
    let world = World::of(builder(Scripted::new(calls)).journal(storage.clone()));
    let mut watcher = world.say("hi").await;
    watcher.until("text-delta").await;
    assert!(!world.enqueue("and then").await);
    assert!(world.stop().await);
    watcher.until("user-message and then").await;
    let commit = storage.sealed();
    let text = |events: &[StoredEvent]| {
        events.iter().map(|event| String::from_utf8_lossy(&event.json).into_owned()).collect::<String>()
    };
    let (of_sealed, of_next) = (text(&commit.events), text(&commit.next_events));
    assert!(of_sealed.contains("turn-sealed") && !of_sealed.contains("user-message"), "{of_sealed}");
    assert!(of_next.contains("user-message") && commit.turn.is_some(), "{of_next}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_journal_refuses_ends_its_turn_and_is_not_asked_for_again() {
    // Each save of the turn in turn; the last one, its end, passes.
    for refused_at in 1..6 {
        let calls = [refused(), ask("gated", &["a"]), answer("too much"), answer("fine")];
        let provider = Scripted::new(calls);
        let storage = Storage::new(move |n| if n == refused_at { Mishap::Refuses } else { Mishap::Nothing });
        let tool = Gated::new();
        tool.gate.add_permits(100);
        let world = World::of(builder(provider.clone()).tool(tool).journal(storage.clone()));
        let mut watcher = world.say("hi").await;
        let lines = watcher.until("turn-sealed").await;
        let end = [
            "error the answer could not be saved: the journal refuses this: too large",
            "step-complete",
            "done error",
            "turn-sealed",
        ];
        let ends = lines.iter().rev().take(4).rev().map(String::as_str).collect::<Vec<_>>();
        assert!(ends == end || ends[1..] == [end[0], end[2], end[3]], "{refused_at}: {lines:?}");
        let asked = provider.calls();
        // What was told and not saved was taken back: both see the same.
        let told: Vec<_> = lines.iter().filter(|line| line.starts_with("text-delta")).collect();
        let rewound = "step-rewound the answer could not be saved: the journal refuses this: too large";
        assert!(told.is_empty() || lines.iter().any(|line| line == rewound), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("restart")), "nothing was restarted: {lines:?}");
        let history = world.history().await;
        assert!(history.last().unwrap().starts_with("error the answer could not be saved"), "{history:?}");
        assert_eq!(history.iter().filter(|line| line.starts_with("error")).count(), 1);
        // Nothing is tried again by itself, and the conversation goes on.
        sleep(Duration::from_secs(120)).await;
        assert_eq!(provider.calls(), asked);
        assert_eq!(world.status().await, ConversationStatus::Idle);
        world.start("more").await.unwrap();
        // Who reconnects with any cursor is led on.
        let mut late = world.watch(Some(Cursor::default())).await;
        assert!(late.until("turn-sealed").await.contains(&end[0].to_owned()));
    }
}
