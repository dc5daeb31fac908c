//! Retry settings that are changed at run time: who obeys them, from when on, and how long.

use std::sync::Arc;

use everturn_orchestrator::{Error, Exponential, Journal, MemoryJournal, MemoryState, StartTurn, StateStore};
use everturn_provider::{Cue, Scripted};
use everturn_wire::{RetryPatch, RetrySettings, RetrySettingsState, Value};
use serde_json::json;
use tokio::time::Instant;

use crate::support::{Watcher, World, answer, builder, ms_since, refused};

fn patch(settings: Value) -> RetryPatch {
    serde_json::from_value(settings).unwrap()
}

fn settings(settings: Value) -> RetrySettings {
    serde_json::from_value(settings).unwrap()
}

/// Changes the settings of the world's conversation, or the global ones.
async fn set(world: &World, of_conversation: bool, change: Value) -> Result<RetrySettingsState, Error> {
    let id = of_conversation.then_some(&world.id);
    world.orchestrator.change_retry_settings(id, &patch(change)).await
}

/// The waits of a turn, in milliseconds, and how it ended.
async fn waits(mut watcher: Watcher) -> (Vec<u64>, String) {
    let lines = watcher.until("turn-sealed").await;
    let retries = lines.iter().filter_map(|line| line.strip_prefix("provider-retry "));
    let waits = retries.map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect();
    let done = lines.iter().find(|line| line.starts_with("done")).unwrap();
    (waits, done.clone())
}

async fn said(world: &World, text: &str) -> (Vec<u64>, String) {
    waits(world.say(text).await).await
}

/// Fails so often, then answers, again and again.
fn fails(times: usize) -> Vec<Vec<Cue>> {
    (0..times).map(|_| refused()).chain([answer("hello")]).collect()
}

#[tokio::test(start_paused = true)]
async fn the_next_turn_begins_with_the_global_settings() {
    let world = World::new(Scripted::new([fails(1), fails(2), fails(1)].concat()));
    assert_eq!(said(&world, "one").await.0, [5_000], "patient, as configured");
    let state = set(&world, false, json!({ "preset": "interactive", "baseDelayMs": 700 })).await.unwrap();
    assert_eq!(state.set.base_delay_ms, Some(700));
    let effective = serde_json::to_value(&state.effective).unwrap();
    let expected = json!({
        "preset": "interactive", "enabled": true, "maxRetries": 3, "baseDelayMs": 700, "maxDelayMs": 300_000,
        "jitter": 0.0, "revert": "cooldown-expiry", "afterContent": "keep", "quota": "fail",
    });
    assert_eq!(effective, expected);
    assert_eq!(said(&world, "two").await.0, [700, 1_400]);
    // Reset: as configured again.
    let state = set(&world, false, json!({ "preset": null, "baseDelayMs": null })).await.unwrap();
    assert!(state.set.is_empty());
    assert_eq!(said(&world, "three").await.0, [5_000]);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_goes_before_all_and_a_message_before_its_conversation() {
    let scripts = (0..4).flat_map(|_| fails(1));
    let world = World::new(Scripted::new(scripts));
    set(&world, false, json!({ "preset": "interactive", "baseDelayMs": 100 })).await.unwrap();
    assert_eq!(said(&world, "global").await.0, [100]);
    set(&world, true, json!({ "baseDelayMs": 200 })).await.unwrap();
    assert_eq!(said(&world, "conversation").await.0, [200]);
    let message = world.message("message").retry(settings(json!({ "baseDelayMs": 300 })));
    let started = world.orchestrator.start(message).await.unwrap();
    assert_eq!(waits(world.watch(Some(started.from)).await).await.0, [300]);
    assert_eq!(said(&world, "conversation again").await.0, [200], "a message's settings are its own");
    let status = world.orchestrator.retry_settings(Some(&world.id)).await.unwrap();
    assert_eq!((status.set.base_delay_ms, status.effective.base_delay_ms), (Some(200), Some(200)));
}

#[tokio::test(start_paused = true)]
async fn a_route_with_its_own_schedule_goes_before_the_global_settings() {
    let script = Scripted::new((0..3).flat_map(|_| fails(1)));
    let own = Exponential { base: std::time::Duration::from_millis(50), ..Exponential::interactive() };
    let route = builder(script).route("own", ["key/model"], own).plain_route("plain", ["key/model"]);
    let world = World::of(route);
    set(&world, false, json!({ "preset": "exponential", "baseDelayMs": 900, "jitter": 0 })).await.unwrap();
    for (number, (model, wait)) in [("route/own", 50), ("route/plain", 900)].into_iter().enumerate() {
        let started =
            world.orchestrator.start(StartTurn::new("hi").conversation("r").model(model)).await.unwrap();
        let subscription = world.orchestrator.subscribe(&"r".into(), Some(started.from), true).await.unwrap();
        assert_eq!(waits(Watcher { subscription }).await.0, [wait], "turn {number} on {model}");
    }
    set(&world, false, json!({ "enabled": false })).await.unwrap();
    let started = world.orchestrator.start(StartTurn::new("hi").conversation("r")).await.unwrap();
    let subscription = world.orchestrator.subscribe(&"r".into(), Some(started.from), true).await.unwrap();
    let ended = waits(Watcher { subscription }).await;
    assert_eq!(ended, (vec![], "done error".to_owned()), "a schedule says nothing about the switch");
}

/// A process over what an earlier one left.
fn process(journal: &Arc<dyn Journal>, state: &Arc<dyn StateStore>, script: &Scripted) -> World {
    World::of(builder(script.clone()).journal(journal.clone()).state(state.clone()))
}

async fn outlive_their_process(journal: Arc<dyn Journal>, state: Arc<dyn StateStore>) {
    let script = Scripted::new((0..4).flat_map(|_| fails(1)));
    let first = process(&journal, &state, &script);
    first.orchestrator.resume().await.unwrap();
    set(&first, false, json!({ "preset": "interactive", "baseDelayMs": 100 })).await.unwrap();
    assert_eq!(said(&first, "one").await.0, [100]);
    set(&first, true, json!({ "baseDelayMs": 200, "quota": "park" })).await.unwrap();
    drop(first);
    let second = process(&journal, &state, &script);
    second.orchestrator.resume().await.unwrap();
    assert_eq!(said(&second, "two").await.0, [200]);
    let kept = second.orchestrator.retry_settings(Some(&second.id)).await.unwrap();
    assert_eq!(*kept.set, settings(json!({ "baseDelayMs": 200, "quota": "park" })));
    set(&second, true, json!({ "baseDelayMs": null, "quota": null })).await.unwrap();
    set(&second, true, json!({ "enabled": false })).await.unwrap();
    drop(second);
    let third = process(&journal, &state, &script);
    third.orchestrator.resume().await.unwrap();
    assert_eq!(third.orchestrator.status(&third.id).await.unwrap().auto_retry, Some(false));
    assert_eq!(said(&third, "three").await, (vec![], "done error".to_owned()));
    set(&third, true, json!({ "enabled": null })).await.unwrap();
    assert_eq!(
        state.read("conversation/c/retry-settings").await.unwrap(),
        None,
        "nothing is kept of nothing"
    );
    // What cannot be read is as if it were not set.
    state.write("retry-settings", "{\"global\":{\"maxRetries\":\"x\"}}".to_owned()).await.unwrap();
    state.write("conversation/c/retry-settings", "{\"preset\":\"lunar\"}".to_owned()).await.unwrap();
    drop(third);
    let fourth = process(&journal, &state, &script);
    fourth.orchestrator.resume().await.unwrap();
    assert!(fourth.orchestrator.retry_settings(None).await.unwrap().set.is_empty());
    assert!(fourth.orchestrator.retry_settings(Some(&fourth.id)).await.unwrap().set.is_empty());
}

#[tokio::test(start_paused = true)]
async fn settings_outlive_their_process_in_memory() {
    outlive_their_process(Arc::new(MemoryJournal::new()), Arc::new(MemoryState::new())).await;
}

#[tokio::test(start_paused = true)]
async fn settings_without_a_store_last_as_long_as_their_process() {
    let mut world = World::new(Scripted::new([fails(1), fails(0), fails(1)].concat()));
    set(&world, false, json!({ "preset": "interactive", "baseDelayMs": 100 })).await.unwrap();
    said(&world, "one").await;
    set(&world, true, json!({ "baseDelayMs": 200 })).await.unwrap();
    // It leaves memory, and what was set stays.
    let one = std::mem::replace(&mut world.id, "other".into());
    said(&world, "elsewhere").await;
    world.id = one;
    assert_eq!(said(&world, "two").await.0, [200]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_keeps_its_schedule() {
    let (journal, state): (Arc<dyn Journal>, Arc<dyn StateStore>) =
        (Arc::new(MemoryJournal::new()), Arc::new(MemoryState::new()));
    let script = Scripted::new(fails(4));
    let world = process(&journal, &state, &script);
    world.orchestrator.resume().await.unwrap();
    set(&world, false, json!({ "preset": "interactive", "baseDelayMs": 10_000, "maxRetries": 9 }))
        .await
        .unwrap();
    let begun = Instant::now();
    let mut watcher = world.say("hi").await;
    watcher.until("provider-retry").await;
    for of_conversation in [false, true] {
        set(&world, of_conversation, json!({ "preset": "interactive", "baseDelayMs": 1, "maxRetries": 1 }))
            .await
            .unwrap();
    }
    let (waits, done) = waits(watcher).await;
    assert_eq!((waits, done.as_str()), (vec![20_000, 40_000, 80_000], "done stop"));
    assert_eq!(ms_since(begun), 150_000);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_keeps_its_schedule_in_the_next_process() {
    let (journal, state): (Arc<dyn Journal>, Arc<dyn StateStore>) =
        (Arc::new(MemoryJournal::new()), Arc::new(MemoryState::new()));
    let script = Scripted::new(fails(2));
    let first = process(&journal, &state, &script);
    first.orchestrator.resume().await.unwrap();
    set(&first, false, json!({ "enabled": false })).await.unwrap();
    let own = json!({ "preset": "exponential", "baseDelayMs": 30_000, "jitter": 0, "enabled": true });
    let started = first.orchestrator.start(first.message("hi").retry(settings(own))).await.unwrap();
    first.watch(Some(started.from)).await.until("provider-retry").await;
    set(&first, false, json!({ "preset": "interactive", "baseDelayMs": 1 })).await.unwrap();
    first.orchestrator.shutdown(std::time::Duration::ZERO).await;
    drop(first);
    let second = process(&journal, &state, &script);
    second.orchestrator.resume().await.unwrap();
    let (waits, done) = waits(second.watch(Some(started.from)).await).await;
    assert_eq!(
        (waits, done.as_str()),
        (vec![30_000, 60_000], "done stop"),
        "its message said that it retries"
    );
}

/// Short waits are sat out by a task, long ones are parked.
#[tokio::test(start_paused = true)]
async fn turned_off_for_a_conversation_its_wait_ends() {
    for base_ms in [1_000, 60_000] {
        let world = World::new(Scripted::new(fails(1)));
        let preset = json!({ "preset": "interactive", "baseDelayMs": base_ms, "maxDelayMs": 0 });
        set(&world, false, preset).await.unwrap();
        let (begun, mut watcher) = (Instant::now(), world.say("hi").await);
        watcher.until("provider-retry").await;
        set(&world, true, json!({ "maxRetries": 5 })).await.unwrap();
        set(&world, true, json!({ "enabled": true })).await.unwrap();
        set(&world, true, json!({ "enabled": false })).await.unwrap();
        let lines = watcher.until("turn-sealed").await;
        assert!(lines.contains(&"retry-ended 0 cancelled".to_owned()), "{lines:?}");
        assert!(lines.contains(&"done aborted".to_owned()), "{lines:?}");
        assert_eq!(ms_since(begun), 0, "at once");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_message_says_is_not_undone_by_its_conversation() {
    let world = World::new(Scripted::new([fails(0), fails(1)].concat()));
    said(&world, "hi").await;
    let message = world.message("try").retry(settings(json!({ "enabled": true })));
    let started = world.orchestrator.start(message).await.unwrap();
    let mut watcher = world.watch(Some(started.from)).await;
    watcher.until("provider-retry").await;
    set(&world, true, json!({ "enabled": false })).await.unwrap();
    assert_eq!(waits(watcher).await.1, "done stop");
    let message = world.message("not").retry(settings(json!({ "enabled": true, "maxRetries": 1 })));
    let why = world.orchestrator.start(message).await.unwrap_err().to_string();
    assert!(
        why.contains("maxRetries has no effect with the preset that is in effect here, patient"),
        "{why}"
    );
}

#[tokio::test(start_paused = true)]
async fn on_in_a_conversation_beats_off_for_all() {
    let world = World::new(Scripted::new([fails(0), fails(1), fails(1)].concat()));
    said(&world, "hi").await;
    set(&world, false, json!({ "enabled": false })).await.unwrap();
    set(&world, true, json!({ "enabled": true })).await.unwrap();
    assert_eq!(said(&world, "again").await.0, [5_000]);
    assert_eq!(world.orchestrator.status(&world.id).await.unwrap().auto_retry, Some(true));
    set(&world, true, json!({ "enabled": null })).await.unwrap();
    assert!(said(&world, "and again").await.0.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_obeyed_is_refused_and_changes_nothing() {
    let world = World::of(builder(Scripted::new(fails(0))).schedule(Exponential::default()));
    said(&world, "hi").await;
    let mut changes = world.orchestrator.retry_settings_changes();
    for (change, why) in [
        (json!({}), "no setting is named"),
        (json!({ "maxRetries": 1001 }), "maxRetries is 1001: write a number from 0 to 1000"),
        (json!({ "jitter": 1.5 }), "jitter is 1.5"),
        (
            json!({ "baseDelayMs": 400_000 }),
            "baseDelayMs, is 400000 ms here, but maxDelayMs allows 300000 ms",
        ),
        (
            json!({ "revert": "never" }),
            "revert has no effect with the preset that is in effect here, exponential",
        ),
        (json!({ "preset": "patient", "baseDelayMs": 5 }), "set preset to exponential or interactive"),
        (json!({ "preset": "lunar" }), "preset must be one of the words: patient"),
    ] {
        for of_conversation in [false, true] {
            let error = set(&world, of_conversation, change.clone()).await.unwrap_err();
            assert!(error.to_string().contains(why), "{change}: {error}");
        }
    }
    assert!(world.orchestrator.retry_settings(None).await.unwrap().set.is_empty());
    assert!(changes.try_recv().is_err(), "nothing is told");
    let missing =
        world.orchestrator.change_retry_settings(Some(&"no".into()), &RetryPatch::enabled(true)).await;
    assert!(matches!(missing, Err(Error::UnknownConversation { .. })));
    let state = set(&world, true, json!({ "maxRetries": 0 })).await.unwrap();
    assert_eq!(*changes.try_recv().unwrap(), state);
}

#[tokio::test(start_paused = true)]
async fn jitter_spreads_the_waits_of_turns_that_fail_together() {
    let world = World::new(Scripted::new((0..20).flat_map(|_| fails(1))));
    set(&world, false, json!({ "preset": "interactive", "jitter": 0.5 })).await.unwrap();
    let mut all = std::collections::BTreeSet::new();
    for number in 0..20 {
        let (waits, _) = said(&world, &number.to_string()).await;
        assert!((1_000..=3_000).contains(&waits[0]), "{waits:?}");
        all.extend(waits);
    }
    assert!(all.len() > 15, "{all:?}");
}
