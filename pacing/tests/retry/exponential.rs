//! Waits of `exponential`.

use std::time::Duration;

use everturn_kernel::{Retry, Schedule as _};
use everturn_pacing::Exponential;
use everturn_wire::{Category, Failure};

fn waits(schedule: &Exponential) -> Vec<u64> {
    let failure = Failure::new(Category::Overloaded, true, "");
    (0..).map_while(|n| schedule.delay_for(&Retry::new(n, &failure))).map(|d| d.as_millis() as u64).collect()
}

#[test]
fn doubles_up_to_its_cap() {
    assert_eq!(waits(&Exponential::default()), [2000, 4000, 8000]);
    let capped = Exponential { max_delay: Some(Duration::from_secs(5)), ..Default::default() };
    assert_eq!(waits(&capped), [2000, 4000, 5000]);
}

#[test]
fn jitter_stays_within_its_part_and_replays() {
    let schedule = Exponential { jitter: 0.1, seed: 7, max_retries: 40, ..Default::default() };
    let exact = waits(&Exponential { jitter: 0.0, ..schedule });
    for (wait, exact) in waits(&schedule).iter().zip(&exact) {
        assert!((*exact as f64 * 0.899..=*exact as f64 * 1.101).contains(&(*wait as f64)), "{wait} {exact}");
    }
    assert_eq!(waits(&schedule), waits(&schedule));
    assert_ne!(waits(&schedule), waits(&Exponential { seed: 8, ..schedule }));
}

#[test]
fn a_thousand_turns_that_fail_together_come_back_spread() {
    let schedule = Exponential { jitter: 0.1, ..Default::default() };
    for hint_ms in [None, Some(20_000)] {
        let failure = Failure { hint_ms, ..Failure::new(Category::RateLimited, true, "") };
        let wait = |turn: u32| {
            let retry = Retry::new(0, &failure).of_turn(&format!("turn-{turn}").as_str().into());
            assert_eq!(schedule.delay_for(&retry), schedule.delay_for(&retry), "it replays");
            schedule.delay_for(&retry).unwrap().as_millis() as u64
        };
        let mut waits: Vec<u64> = (0..1000).map(wait).collect();
        waits.sort_unstable();
        let span = waits[999] - waits[0];
        // Each tenth of the span has about a hundred: none is empty, and none has half of them.
        for part in 0..10 {
            let from = waits[0] + span * part / 10;
            let within = waits.iter().filter(|wait| (from..from + span / 10).contains(*wait)).count();
            assert!((50..200).contains(&within), "{hint_ms:?}: {within} in part {part} of {span} ms");
        }
        assert!(waits[0] >= hint_ms.unwrap_or(1_800), "never below a hint");
        assert!(waits[999] <= hint_ms.map_or(2_200, |hint| hint + hint / 50 + 1_000));
    }
}
