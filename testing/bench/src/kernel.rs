//! The kernel alone: one delta through `handle`.

use std::{hint::black_box, time::Instant};

use anyhow::Result;
use everturn_kernel::{Effects, Input, Millis, NoRetry, Prompt, Settings, StreamEvent, Turn};

const DELTAS: u32 = 2_000_000;

/// Prints nanoseconds per delta, without the creation of the delta.
pub(crate) fn measure() -> Result<()> {
    let making = time(|| {
        black_box(delta());
    });
    let mut effects = Effects::new();
    let mut turn = Turn::begin("t".into(), Settings::default(), Prompt::default(), Millis(0), &mut effects);
    effects.drain();
    let op = everturn_kernel::Op::default();
    let handling = time(|| {
        turn.handle(Millis(1), Input::Provider(op, delta()), &NoRetry, &mut effects);
        effects.drain().for_each(|effect| {
            black_box(effect);
        });
    });
    println!("{:.1}", handling - making);
    Ok(())
}

fn delta() -> StreamEvent {
    StreamEvent::Text(String::from("word "))
}

fn time(mut work: impl FnMut()) -> f64 {
    let started = Instant::now();
    for _ in 0..DELTAS {
        work();
    }
    started.elapsed().as_nanos() as f64 / f64::from(DELTAS)
}
