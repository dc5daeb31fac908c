//! Fallback chains that are set at run time.

use std::sync::Arc;

use everturn_orchestrator::{Builder, MemoryJournal, MemoryState, Orchestrator, StartTurn};
use everturn_provider::Scripted;
use everturn_wire::{ConversationId, RetryPatch, Value};
use serde_json::json;

use crate::support::{Watcher, World, answer, overloaded_with_hint};

fn models(scripts: &[Scripted]) -> Builder {
    let named = ["a", "b", "c"].into_iter().zip(scripts);
    named.fold(Orchestrator::builder(), |builder, (name, script)| {
        builder.model(name, "m", Arc::new(script.clone()))
    })
}

/// A model that is overloaded for a minute, each time it is asked.
fn busy() -> Scripted {
    Scripted::new((0..9).map(|_| overloaded_with_hint(60_000)))
}

fn says(name: &str) -> Scripted {
    Scripted::new((0..9).map(|_| answer(name)))
}

fn patch(settings: Value) -> RetryPatch {
    serde_json::from_value(settings).unwrap()
}

async fn set(world: &World, id: Option<&str>, settings: Value) -> Result<(), String> {
    let id = id.map(ConversationId::from);
    let changed = world.orchestrator.change_retry_settings(id.as_ref(), &patch(settings)).await;
    changed.map(drop).map_err(|error| error.to_string())
}

/// What a turn tells in that conversation.
async fn say(world: &World, start: StartTurn) -> Vec<String> {
    let id = start.conversation_id.clone().unwrap();
    let started = world.orchestrator.start(start).await.unwrap();
    let subscription = world.orchestrator.subscribe(&id, Some(started.from), true).await.unwrap();
    Watcher { subscription }.until("turn-sealed").await
}

fn to(id: &str) -> StartTurn {
    StartTurn::new("hi").conversation(id).model("a/m")
}

/// Who answered, and whether it waited for that.
fn answered(told: &[String]) -> String {
    let waits = told.iter().filter(|line| line.starts_with("provider-retry") && !line.contains(" 0 HTTP"));
    let text = told.iter().find_map(|line| line.strip_prefix("text-delta ")).unwrap_or("nobody");
    format!("{text} after {} waits", waits.count())
}

#[tokio::test(start_paused = true)]
async fn the_chain_of_the_strongest_scope_is_followed() {
    let world = World::of(models(&[busy(), says("b"), says("c")]).route(
        "r",
        ["c/m"],
        everturn_orchestrator::Patient,
    ));
    set(&world, None, json!({ "fallbackChains": { "a/m": ["b/m"] } })).await.unwrap();
    let told = say(&world, to("c1")).await;
    assert!(told.contains(&"target-switched a/m is overloaded".to_owned()), "{told:?}");
    assert_eq!(answered(&told), "b after 0 waits");
    // A conversation goes before all, a message before its conversation. A route stands for its targets.
    set(&world, Some("c1"), json!({ "fallbackChains": { "a/m": ["route/r", "b/m"] } })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "c after 0 waits");
    assert_eq!(answered(&say(&world, to("c2")).await), "b after 0 waits");
    let own = serde_json::from_value(json!({ "fallbackChains": { "a/m": ["b/m"] } })).unwrap();
    assert_eq!(answered(&say(&world, to("c1").retry(own)).await), "b after 0 waits");
    // With another preset, too.
    set(&world, Some("c1"), json!({ "preset": "interactive" })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "c after 0 waits");
    // Chains of a scope replace those of weaker ones as a whole.
    set(&world, Some("c1"), json!({ "fallbackChains": {}, "preset": null })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "nobody after 21 waits");
    set(&world, Some("c1"), json!({ "fallbackChains": null })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "b after 0 waits");
}

#[tokio::test(start_paused = true)]
async fn a_configured_chain_applies_until_a_scope_sets_chains() {
    let world = World::of(models(&[busy(), says("b"), says("c")]).fallback_chain("a/m", ["b/m"]));
    assert_eq!(answered(&say(&world, to("c1")).await), "b after 0 waits");
    let state = world.orchestrator.retry_settings(None).await.unwrap();
    assert_eq!(state.set.fallback_chains, None);
    assert_eq!(state.effective.fallback_chains.unwrap().0["a/m"], ["b/m"]);
    set(&world, None, json!({ "fallbackChains": { "a/m": ["c/m"] } })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "c after 0 waits");
    set(&world, None, json!({ "fallbackChains": {} })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "nobody after 21 waits");
    set(&world, None, json!({ "fallbackChains": null })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "b after 0 waits");
}

#[tokio::test(start_paused = true)]
async fn retries_that_are_off_in_the_configuration_can_be_turned_on() {
    let configured = || models(&[busy(), says("b")]).fallback_chain("a/m", ["b/m"]).auto_retry(false);
    let world = World::of(configured());
    assert_eq!(answered(&say(&world, to("c1")).await), "nobody after 0 waits");
    let id = ConversationId::from("c1");
    let state = world.orchestrator.retry_settings(Some(&id)).await.unwrap();
    assert_eq!((state.set.enabled, state.effective.enabled), (None, Some(false)));
    assert_eq!(world.orchestrator.status(&id).await.unwrap().auto_retry, Some(false));
    let own = serde_json::from_value(json!({ "enabled": true })).unwrap();
    assert_eq!(answered(&say(&world, to("c1").retry(own)).await), "b after 0 waits");
    set(&world, None, json!({ "enabled": true })).await.unwrap();
    assert_eq!(answered(&say(&world, to("c1")).await), "b after 0 waits");
    assert_eq!(world.orchestrator.status(&id).await.unwrap().auto_retry, Some(true));
    set(&world, None, json!({ "enabled": null })).await.unwrap();
    assert_eq!(world.orchestrator.status(&id).await.unwrap().auto_retry, Some(false));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_followed_is_refused() {
    let world = World::of(models(&[busy(), says("b")]).route("r", ["a/m"], everturn_orchestrator::Patient));
    for (chains, why) in [
        (
            json!({ "a/m": ["z/m"] }),
            r#""z/m" is not a model or route of this server; known: a/m, b/m, route/r"#,
        ),
        (json!({ "z/m": ["a/m"] }), r#"in fallbackChains, "z/m" is"#),
        (json!({ "a/m": ["b/m", "b/m"] }), "the fallback chain of a/m names b/m twice"),
        (json!({ "a/m": ["b/m", "a/m"] }), "the fallback chain of a/m leads back to it"),
        (json!({ "a/m": ["b/m", "route/r"] }), "leads back to it: route/r asks nothing else"),
        (json!({ "a/m": [] }), "the fallback chain of a/m is empty"),
    ] {
        let refused = set(&world, None, json!({ "fallbackChains": chains.clone() })).await.unwrap_err();
        assert!(refused.contains(why), "{chains}: {refused}");
        let retry = serde_json::from_value(json!({ "fallbackChains": chains })).unwrap();
        let refused = world.orchestrator.start(to("c").retry(retry)).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    assert_eq!(world.orchestrator.retry_settings(None).await.unwrap().set.fallback_chains, None);
}

#[tokio::test(start_paused = true)]
async fn they_outlive_a_restart_and_a_turn_keeps_those_it_began_with() {
    // Where a or b answers then.
    for (then, expected) in [
        ([busy(), says("b"), says("c")], "b after 1 waits"),
        ([says("a"), busy(), says("c")], "a after 1 waits"),
    ] {
        let (journal, state) = (Arc::new(MemoryJournal::new()), Arc::new(MemoryState::new()));
        let on = |scripts: &[Scripted]| models(scripts).journal(journal.clone()).state(state.clone());
        let first = World::of(on(&[busy(), busy(), says("c")]));
        set(&first, None, json!({ "fallbackChains": { "a/m": ["b/m"] } })).await.unwrap();
        let started = first.orchestrator.start(to("c1")).await.unwrap();
        let id = started.conversation_id.clone();
        let subscription = first.orchestrator.subscribe(&id, Some(started.from), true).await.unwrap();
        Watcher { subscription }.until("provider-retry 1 ").await;
        set(&first, None, json!({ "fallbackChains": { "a/m": ["c/m"] } })).await.unwrap();
        first.orchestrator.shutdown(std::time::Duration::ZERO).await;

        let second = World::of(on(&then));
        second.orchestrator.resume().await.unwrap();
        let subscription = second.orchestrator.subscribe(&id, Some(started.from), true).await.unwrap();
        let told = Watcher { subscription }.until("turn-sealed").await;
        assert_eq!(answered(&told), expected, "{told:?}");
        assert_ne!(answered(&say(&second, to("c2")).await), "b after 0 waits");
    }
}
