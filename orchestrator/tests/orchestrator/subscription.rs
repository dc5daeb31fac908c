//! Watchers: whatever they come from, whenever they come, they are told the same.

use std::{iter::repeat_n, sync::Arc, time::Duration};

use everturn_orchestrator::{Caller, Cursor, Error, Frame, Scope, StartTurn};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{CallerName, EventBody};
use futures_util::future::join_all;
use tokio::{task::yield_now, time::timeout};

use crate::support::{World, answer, event, finish, lines, refused, refused_with_hint, text};

/// The events after a cursor as one text: what was streamed, and the others by their names.
fn story(frames: &[Frame]) -> String {
    let bodies = frames.iter().map(|frame| event(frame).body);
    bodies
        .map(|body| match body {
            EventBody::TextDelta { delta } => delta,
            EventBody::TurnSealed => "<sealed>".to_owned(),
            other => format!("<{}>", crate::support::line(&other)),
        })
        .collect()
}

async fn rest(world: &World, cursor: Cursor) -> Vec<Frame> {
    world.watch(Some(cursor)).await.frames().await
}

fn talkative() -> Scripted {
    let words = ["He", "llo ", "wörld", " ", "🦀🦀", "\"\\\n", "é", "end"];
    Scripted::new([refused(), words.map(text).into_iter().chain([finish()]).collect()])
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_goes_on_while_somebody_watches() {
    let world = World::new(Scripted::new([refused(), answer("hello")]));
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    drop(world);
    assert!(watcher.turn().await.contains(&"done stop".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_replay_from_any_place_is_the_rest() {
    let world = World::new(talkative());
    let started = world.start("hi").await.unwrap();
    let live = rest(&world, started.from).await;
    let whole = story(&live);
    assert_eq!(story(&rest(&world, started.from).await), whole, "what is replayed is what was told");
    let end = live.last().unwrap().end();
    let texts: String =
        live.iter().filter_map(|frame| event(frame).body.delta().map(str::to_owned)).collect();
    let text_at = whole.find(&texts).unwrap();
    let first_text = |frame: &Frame| Some(frame.end().value() - event(frame).body.delta()?.len() as u64);
    let begin = live.iter().find_map(first_text).unwrap();
    for place in started.from.value()..end.value() {
        let told = story(&rest(&world, Cursor::from_value(place)).await);
        assert!(whole.ends_with(&told), "at {place}: {told}");
        let inside = place.checked_sub(begin).filter(|at| *at < texts.len() as u64);
        if let Some(at) = inside {
            let at = texts.floor_char_boundary(at as usize);
            assert_eq!(told, whole[text_at + at..], "at {place}");
        }
    }
    for frame in &live {
        let at = live.iter().position(|other| other.end() == frame.end()).unwrap();
        if at + 1 < live.len() {
            assert_eq!(story(&rest(&world, frame.end()).await), story(&live[at + 1..]), "after {at}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_late_sees_the_running_turn_from_its_start() {
    let world = World::new(Scripted::new([answer("before"), refused(), answer("hello")]));
    world.say("one").await.turn().await;
    let mut early = world.say("two").await;
    let begun = early.until("provider-retry").await;
    let mut late = world.watch(None).await;
    assert_eq!(late.until("provider-retry").await, begun);
    assert_eq!(late.turn().await, early.turn().await);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_end_is_the_end() {
    let world = World::new(Scripted::new([answer("hello")]));
    world.say("one").await.until("status idle").await;
    let mut watcher = world.watch(Some(Cursor::from_value(u64::MAX))).await;
    world.start("two").await.unwrap();
    assert_eq!(watcher.until("user-message").await, ["status active", "user-message two"]);
}

#[tokio::test(start_paused = true)]
async fn many_who_come_and_go_are_told_the_same() {
    let mut seed: u64 = 7;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut script = refused();
    script.truncate(1);
    let words = (0..2_000).map(|n| text(&format!("wörd {n} "))).chain([finish()]).collect();
    let world = Arc::new(World::new(Scripted::new([script, words])));
    let started = world.start("hi").await.unwrap();
    let watchers = (0..20).map(|_| {
        let (world, stays): (_, Vec<u64>) = (world.clone(), (0..500).map(|_| 1 + random(40)).collect());
        tokio::spawn(async move {
            let (mut told, mut cursor) = (Vec::new(), started.from);
            for stay in stays.into_iter().cycle() {
                let mut watcher = world.watch(Some(cursor)).await;
                for _ in 0..stay {
                    let frame = watcher.frame().await;
                    cursor = frame.end();
                    assert_eq!(watcher.subscription.cursor(), cursor);
                    told.push(frame);
                    if told.last().is_some_and(Frame::ends_turn) {
                        return story(&told);
                    }
                }
                yield_now().await;
            }
            unreachable!("the turn ends")
        })
    });
    let stories: Vec<String> = join_all(watchers).await.into_iter().map(Result::unwrap).collect();
    let whole = story(&rest(&world, started.from).await);
    assert!(whole.contains("wörd 1999 <step-complete>"));
    assert!(stories.iter().all(|story| *story == whole));
}

#[tokio::test(start_paused = true)]
async fn extensions_are_for_those_who_asked() {
    let world = World::new(Scripted::new([refused(), answer("hello")]));
    let started = world.start("hi").await.unwrap();
    let mut plain = world.orchestrator.subscribe(&world.id, Some(started.from), false).await.unwrap();
    let all = lines(&rest(&world, started.from).await);
    assert!(all.contains(&"retry-ended 1 recovered".to_owned()));
    let mut told = Vec::new();
    while told.last().is_none_or(|frame: &Frame| !frame.ends_turn()) {
        told.push(plain.next().await.unwrap());
    }
    assert!(told.iter().all(|frame| !frame.is_extension()));
    let base: Vec<_> = all.into_iter().filter(|line| !line.starts_with("retry-ended")).collect();
    assert_eq!(lines(&told), base);
}

/// A hundred thousand words and more.
const WORDS: usize = 200_000;

#[tokio::test(start_paused = true)]
async fn a_very_long_answer_is_whole_for_those_who_never_read_too() {
    let words = repeat_n(text("word "), WORDS).chain([finish(), Cue::Hang]).collect();
    let world = World::new(Scripted::new([words, answer("next")]));
    let mut asleep = world.say("hi").await;
    let started = asleep.subscription.cursor();
    while world.orchestrator.status(&world.id).await.unwrap().is_active {
        yield_now().await;
    }
    let sizes = |frames: &[Frame]| frames.iter().map(|frame| frame.chat_delta().len()).max().unwrap();
    for frames in [asleep.frames().await, rest(&world, started).await] {
        // Far fewer events than pieces, and none of them huge.
        assert!(
            frames.len() < WORDS / 10 && sizes(&frames) <= 68 << 10,
            "{} {}",
            frames.len(),
            sizes(&frames)
        );
        let told: usize = frames.iter().filter_map(|frame| event(frame).body.delta().map(str::len)).sum();
        assert_eq!(told, 5 * WORDS);
    }
    // The tail of what was told is trimmed by now: this comes from the journal.
    world.say("more").await.turn().await;
    let middle = Cursor::from_value(started.value() + 500_002);
    let told: usize =
        rest(&world, middle).await.iter().filter_map(|frame| event(frame).body.delta().map(str::len)).sum();
    assert!((499_990..=500_010).contains(&told), "{told}");
}

#[tokio::test(start_paused = true)]
async fn who_may_no_longer_read_is_told_nothing_more() {
    let of = |name: &str, scope| Caller::new(CallerName::parse(name).unwrap(), vec![scope]);
    for ends in ["the caller", "the proxy that named it"] {
        let (ann, proxy) = (of("ann", Scope::Chat), of("proxy", Scope::Proxy));
        let ann = ann.named_by(&proxy);
        let end = || if ends == "the caller" { ann.end() } else { proxy.end() };
        let world = World::new(Scripted::new([answer("hello")]));
        let view = world.orchestrator.seen_by(&ann);
        let turn = view.start(StartTurn::new("hi")).await.unwrap();
        let subscribe =
            || async { view.subscribe(&turn.conversation_id, Some(turn.from), true).await.unwrap() };
        let (mut waits, mut behind) = (subscribe().await, subscribe().await);
        // Until nothing more comes.
        while timeout(Duration::from_secs(1), waits.next()).await.is_ok() {}
        behind.next().await.unwrap();
        let at = behind.cursor();
        let (woken, ()) = tokio::join!(waits.next(), async {
            yield_now().await;
            end();
        });
        assert!(matches!(woken, Err(Error::TokenEnded)), "{ends}");
        for _ in 0..2 {
            assert!(matches!(waits.next().await, Err(Error::TokenEnded)), "{ends}");
            assert!(matches!(behind.next().await, Err(Error::TokenEnded)), "{ends}");
        }
        assert_eq!(behind.cursor(), at, "{ends}");
    }
}

#[test]
fn turns_are_woken_on_another_runtime_after_the_first_has_ended() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    let first = runtime();
    let world = World::new(Scripted::new([
        refused_with_hint(60_000),
        refused_with_hint(60_000),
        answer("hello"),
        answer("there"),
    ]));
    first.block_on(async {
        let lines = world.say("hi").await.until("provider-retry 1 60000").await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!lines.is_empty());
    });
    drop(first);
    runtime().block_on(async {
        let other = World { orchestrator: world.orchestrator.clone(), id: "other".into() };
        let mut watcher = world.watch(None).await;
        other.say("hi").await.until("turn-sealed").await;
        watcher.until("turn-sealed").await;
    });
}
