//! A property test of a turn that sleeps for up to hours, in no time: the sleep is yours, so it can be fake.
//!
//! Run with `cargo run -p everturn-kernel --example fake_sleep_property`.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::{
    Effect, Effects, FinishReason, Host, Input, Millis, Op, Prompt, Retry, RetryStrategy, Schedule, Settings,
    StreamEvent, ToolAnswer, ToolCall, Turn, run_turn,
};
use everturn_wire::{Category, DoneReason, EventBody, Failure, TurnId};
use futures_util::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use proptest::{
    collection::vec,
    test_runner::{Config, TestRunner},
};

/// The time, as far as this test goes.
type Clock = Arc<AtomicU64>;

/// Waits one minute, two, three, ... and gives up after ten retries.
struct Minutes(Clock);

impl Schedule for Minutes {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        (retry.attempt < 10).then(|| Duration::from_secs(60) * (retry.attempt + 1))
    }
}

#[async_trait]
impl RetryStrategy for Minutes {
    /// Nobody sleeps: the clock is moved.
    async fn sleep(&self, delay: Duration) {
        self.0.fetch_add(delay.as_millis() as u64, Ordering::Relaxed);
    }
}

/// A provider that is overloaded for some calls, each time with a hint, and then answers.
struct Overloaded {
    clock: Clock,
    hints: std::vec::IntoIter<u64>,
    /// What watchers were told.
    told: Vec<EventBody>,
}

#[async_trait]
impl Host for Overloaded {
    type Error = Infallible;

    fn now(&self) -> Millis {
        Millis(self.clock.load(Ordering::Relaxed))
    }

    // A real host saves `turn.snapshot()` here, together with the effects; this one just looks at them.
    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Infallible> {
        self.tell(turn, effects);
        Ok(())
    }

    fn tell(&mut self, _: &Turn, effects: &mut Effects) {
        self.told.extend(effects.drain().filter_map(|effect| match effect {
            Effect::Tell(event) => Some(event),
            Effect::Keep(..) => None,
        }));
    }

    fn stream(&mut self, _: &Turn, _: Op) -> BoxStream<'static, StreamEvent> {
        let answer = match self.hints.next() {
            Some(hint_ms) => {
                let failure = Failure::new(Category::Overloaded, true, "HTTP 529: overloaded");
                vec![StreamEvent::Failed(Failure { hint_ms: Some(hint_ms), ..failure })]
            }
            None => vec![StreamEvent::Text("Hello!".into()), StreamEvent::Finished(FinishReason::Stop)],
        };
        stream::iter(answer).boxed()
    }

    fn run_tool(&mut self, _: u32, call: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        std::future::ready(ToolAnswer::error(format!("there is no tool {}", call.name))).boxed()
    }

    fn poll_inbox(&mut self, _: &mut Context<'_>) -> Poll<Input> {
        Poll::Pending
    }
}

/// Drives a turn against a provider that fails once for each hint; what watchers were told, and how it ended.
fn drive(hints: Vec<u64>) -> (Vec<EventBody>, Turn, Clock) {
    let clock = Clock::default();
    let mut host = Overloaded { clock: clock.clone(), hints: hints.into_iter(), told: Vec::new() };
    let (prompt, mut effects) = (Prompt { text: "Hi".into(), ..Prompt::default() }, Effects::new());
    let mut turn = Turn::begin(TurnId::from("t"), Settings::default(), prompt, host.now(), &mut effects);
    let strategy = Minutes(clock.clone());
    {
        // Nothing here waits for real, so there is nothing to be woken by: it is polled until it is done.
        let mut running = pin!(run_turn(&mut turn, &mut effects, &mut host, Some(&strategy)));
        while running.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
    }
    (host.told, turn, clock)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config { failure_persistence: None, ..Config::default() };
    // For any hints of up to 15 minutes, one for each failure ...
    TestRunner::new(config).run(&vec(0..900_000u64, 0..14), |hints| {
        let (told, turn, clock) = drive(hints.clone());
        // ... each retry waits as long as the schedule says, or the provider if that is longer,
        let waits: Vec<u64> = told
            .iter()
            .filter_map(|event| match event {
                EventBody::ProviderRetry { delay_ms, .. } => Some(*delay_ms),
                _ => None,
            })
            .collect();
        let expected: Vec<u64> =
            hints.iter().take(10).zip(1..).map(|(hint, nth)| (nth * 60_000).max(*hint)).collect();
        assert_eq!(waits, expected);
        // ... that, and nothing else, is slept,
        assert_eq!(clock.load(Ordering::Relaxed), waits.iter().sum::<u64>());
        // ... the turn survives ten failures and not eleven,
        let reason = turn.outcome().map(|outcome| outcome.reason.clone());
        assert_eq!(reason, Some(if hints.len() <= 10 { DoneReason::Stop } else { DoneReason::Error }));
        // ... and whatever happened, it is sealed once, at the end.
        assert_eq!(told.iter().filter(|event| **event == EventBody::TurnSealed).count(), 1);
        assert_eq!(told.last(), Some(&EventBody::TurnSealed));
        Ok(())
    })?;
    for failures in [0, 3, 10] {
        let (_, _, clock) = drive(vec![0; failures]);
        println!("{failures:>2} failures: the turn slept {} minutes", clock.load(Ordering::Relaxed) / 60_000);
    }
    println!("The property holds, and nobody waited.");
    Ok(())
}

#[cfg(test)]
#[test]
fn the_property_holds() {
    main().expect("the property holds");
}
