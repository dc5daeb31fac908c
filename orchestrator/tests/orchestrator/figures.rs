//! What is counted is what is durable.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use everturn_provider::Scripted;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};

use crate::{
    storage::{Mishap, Storage},
    support::{World, answer, builder, refused},
};

/// Keeps what is counted, by name.
#[derive(Clone, Default)]
struct Figures(Arc<Mutex<BTreeMap<String, u64>>>);

struct One(Figures, String);

impl CounterFn for One {
    fn increment(&self, by: u64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += by;
    }

    fn absolute(&self, _: u64) {}
}

impl Recorder for Figures {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::new(One(self.clone(), key.name().to_owned())))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// What is counted of a turn that is refused once, where the journal fails before that append.
fn counted(fails: usize) -> BTreeMap<String, u64> {
    let figures = Figures::default();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    with_local_recorder(&figures, || {
        runtime.block_on(async {
            let plan = move |n| if n == fails { Mishap::Fails } else { Mishap::Nothing };
            let provider = Scripted::new([refused(), answer("hello"), answer("again")]);
            let world = World::of(builder(provider).journal(Storage::new(plan)));
            let begun = world.start("hi").await;
            if begun.is_err() {
                world.start("hi").await.unwrap();
            }
            let mut watcher = world.watch(Some("0".parse().unwrap())).await;
            loop {
                match watcher.subscription.next().await {
                    Ok(frame) if frame.ends_turn() => return,
                    // It goes on when the journal does.
                    Ok(_) | Err(_) => {}
                }
            }
        });
    });
    let counted = figures.0.lock().unwrap();
    let is_of_turns = |name: &str| ["call", "wait", "review"].iter().all(|word| !name.contains(word));
    let of_turns = counted.iter().filter(|(name, _)| is_of_turns(name));
    of_turns.map(|(name, count)| (name.clone(), *count)).collect()
}

#[test]
fn what_the_journal_refused_is_not_counted() {
    let calm = counted(usize::MAX);
    let names =
        ["everturn_retries_scheduled_total", "everturn_turns_sealed_total", "everturn_turns_started_total"];
    assert_eq!(calm, names.map(|name| (name.to_owned(), 1)).into());
    assert_eq!(counted(0), calm, "a turn that could not begin is not counted as begun");
    assert_eq!(counted(2), calm, "a seal that could not be saved is not counted");
}
