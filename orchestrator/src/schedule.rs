//! Schedules: how long to wait before each retry. Pure.

mod patient;
mod timed;

use std::sync::Arc;

use everturn_kernel::{Cycling, Exponential, Handover, Schedule, Walls};
use everturn_wire::Value;

pub use patient::Patient;
pub(crate) use timed::TimedRetry;

/// Restores a saved schedule.
///
/// # Errors
/// Returns its name if this program does not know it, or does not accept its parameters.
pub(crate) fn restore(saved: &Value) -> Result<Arc<dyn Schedule + Send + Sync>, String> {
    fn shared(schedule: impl Schedule + Send + Sync + 'static) -> Arc<dyn Schedule + Send + Sync> {
        Arc::new(schedule)
    }
    let Some(name) = saved["name"].as_str() else { return Err(saved.to_string()) };
    let schedule = match name {
        Patient::NAME => Some(shared(Patient)),
        Exponential::NAME | Exponential::INTERACTIVE => Exponential::restore(saved).map(shared),
        Cycling::NAME => Cycling::restore(saved).map(shared),
        Walls::NAME => return Ok(shared(Walls(restore(&saved["schedule"])?))),
        Handover::NAME => return Ok(shared(Handover(restore(&saved["schedule"])?))),
        _ => return Err(name.to_owned()),
    };
    schedule.ok_or_else(|| format!("{name} with the figures {saved}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use everturn_kernel::{Retry, Switches};
    use everturn_wire::{Category, Failure};

    use super::*;

    #[test]
    fn a_schedule_is_the_same_in_the_next_process() {
        let spread = Exponential {
            base: Duration::from_millis(1_500),
            max_delay: None,
            max_retries: 7,
            jitter: 0.25,
            seed: u64::MAX,
            switches: None,
        };
        let quick = Exponential {
            base: Duration::from_millis(5),
            max_delay: None,
            max_retries: 9,
            jitter: 0.3,
            seed: 7,
            switches: Some(Switches { reverts: false }),
        };
        let all: [Box<dyn Schedule>; 8] = [
            Box::new(Patient),
            Box::<Exponential>::default(),
            Box::new(spread),
            Box::new(Exponential::interactive()),
            Box::new(quick),
            Box::new(Cycling { max_attempts: 7, clamp_hints: false, sticky: true }),
            Box::new(Handover(spread)),
            Box::new(Walls(Handover(Patient))),
        ];
        let failure = Failure::new(Category::Overloaded, true, "");
        for schedule in all {
            let again = restore(&schedule.saved().unwrap()).unwrap();
            assert_eq!(again.max_retries(), schedule.max_retries());
            assert_eq!(again.chooses_targets(), schedule.chooses_targets());
            for attempt in 0..25 {
                let retry = Retry::new(attempt, &failure).of_turn(&"t".into());
                assert_eq!(again.delay_for(&retry), schedule.delay_for(&retry), "retry {attempt}");
            }
            assert_eq!(again.saved(), schedule.saved());
        }
    }

    #[test]
    fn what_is_not_known_is_named() {
        let unknown = restore(&serde_json::json!({ "name": "lunar" })).map(drop);
        assert_eq!(unknown, Err("lunar".to_owned()));
        let odd = restore(&serde_json::json!({ "name": "exponential", "baseMs": "soon" })).map(drop);
        assert!(odd.unwrap_err().contains("soon"));
    }
}
