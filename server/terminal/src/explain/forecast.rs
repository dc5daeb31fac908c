//! Predicts what a turn would do about a lasting failure, by running the kernel.

use everturn_kernel::{Effect, Effects, Input, Millis, Prompt, Schedule, Settings, StreamEvent, Turn, Want};
use everturn_wire::{EventBody, Failure};

/// Maximum number of retries simulated.
const MOST: usize = 10_000;

/// The retries of a turn that keeps failing in the same way.
#[derive(Debug, PartialEq)]
pub(super) struct Forecast {
    /// The wait before each retry, in milliseconds.
    pub(super) waits_ms: Vec<u64>,
    /// The target of each retry; empty if there is only one.
    pub(super) targets: Vec<String>,
    /// Whether there would be more retries than were simulated.
    pub(super) is_cut: bool,
    /// Why there are no further waits, if the turn gives a reason.
    pub(super) end: Option<String>,
}

impl Forecast {
    pub(super) fn of(failure: &Failure, schedule: &dyn Schedule, settings: Settings, now: u64) -> Self {
        let (mut now, mut effects, mut waits_ms) = (Millis(now), Effects::new(), Vec::new());
        let (mut targets, mut end) = (Vec::new(), None);
        let mut turn = Turn::begin("explained".into(), settings, Prompt::default(), now, &mut effects);
        let mut is_cut = false;
        loop {
            let input = match turn.want() {
                Want::Stream(op) => Input::Provider(op, StreamEvent::Failed(failure.clone())),
                Want::Wake(..) if waits_ms.len() == MOST => {
                    is_cut = true;
                    break;
                }
                Want::Wake(op, at) => {
                    waits_ms.push(at.since(now));
                    now = at;
                    Input::Tick(op)
                }
                Want::Tools { .. } | Want::Person { .. } | Want::Nothing => break,
            };
            turn.handle(now, input, schedule, &mut effects);
            for effect in effects.drain() {
                match effect {
                    Effect::Tell(EventBody::ProviderRetry { target, .. }) => targets.extend(target),
                    Effect::Tell(EventBody::Error(report)) => end = report.detail,
                    _ => {}
                }
            }
        }
        // If the simulation was cut off, one more retry is scheduled than waited for.
        targets.truncate(waits_ms.len());
        Self { waits_ms, targets, is_cut, end }
    }

    /// Returns the sum of the waits, in milliseconds.
    pub(super) fn total_ms(&self) -> u64 {
        self.waits_ms.iter().fold(0, |sum, wait| sum.saturating_add(*wait))
    }
}

#[cfg(test)]
mod tests {
    use everturn_orchestrator::{Exponential, Patient};
    use everturn_wire::Category;

    use super::*;

    fn forecast(failure: &Failure, schedule: &dyn Schedule) -> Forecast {
        let mut settings = Settings::default();
        settings.budget.max_wait_ms = Some(8 * 3_600_000);
        Forecast::of(failure, schedule, settings, 1_000)
    }

    #[test]
    fn the_patient_schedule_is_simulated() {
        let overloaded = Failure::new(Category::Overloaded, true, "");
        let patient = forecast(&overloaded, &Patient);
        assert_eq!((patient.waits_ms.len(), patient.total_ms()), (21, 27_105_000));
        assert_eq!(patient.waits_ms[..4], [5_000, 10_000, 30_000, 60_000]);
        let hinted = Failure { hint_ms: Some(8_000), ..overloaded };
        assert_eq!(forecast(&hinted, &Patient).waits_ms[..3], [8_000, 10_000, 30_000]);
    }

    #[test]
    fn a_permanent_failure_has_no_schedule() {
        let refused = Failure::new(Category::Auth, false, "");
        assert_eq!(
            forecast(&refused, &Patient),
            Forecast { waits_ms: vec![], targets: vec![], is_cut: false, end: None }
        );
        let long = Failure { hint_ms: Some(9 * 3_600_000), ..Failure::new(Category::Overloaded, true, "") };
        let forecast = forecast(&long, &Patient);
        assert!(forecast.waits_ms.is_empty());
        assert!(forecast.end.unwrap().contains("the budget leaves"));
    }

    #[test]
    fn an_endless_schedule_is_cut() {
        let endless =
            Exponential { max_retries: u32::MAX, base: std::time::Duration::ZERO, ..Exponential::default() };
        let forecast = forecast(&Failure::new(Category::Overloaded, true, ""), &endless);
        assert!(forecast.is_cut && forecast.waits_ms.len() == MOST);
    }
}
