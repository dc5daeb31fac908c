//! Schedules: how long to wait before each retry. Pure.

mod exponential;
mod patient;
mod timed;

use std::sync::Arc;

use everturn_kernel::Schedule;
use everturn_wire::Value;

pub use exponential::Exponential;
pub use patient::Patient;
pub(crate) use timed::TimedRetry;

/// The schedule that was saved in this form.
///
/// # Errors
/// Its name, when this program has none of it, or not with such figures.
pub(crate) fn restore(saved: &Value) -> Result<Arc<dyn Schedule + Send + Sync>, String> {
    match saved["name"].as_str() {
        Some(Patient::NAME) => Ok(Arc::new(Patient)),
        Some(Exponential::NAME) => match Exponential::restore(saved) {
            Some(schedule) => Ok(Arc::new(schedule)),
            None => Err(format!("{} with the figures {saved}", Exponential::NAME)),
        },
        Some(name) => Err(name.to_owned()),
        None => Err(saved.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use everturn_kernel::Retry;
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
        };
        let all: [Box<dyn Schedule>; 3] =
            [Box::new(Patient), Box::<Exponential>::default(), Box::new(spread)];
        let failure = Failure::new(Category::Overloaded, true, "");
        for schedule in all {
            let again = restore(&schedule.saved().unwrap()).unwrap();
            assert_eq!(again.max_retries(), schedule.max_retries());
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
