//! The moves of `cycling` over several steps, against a plain model of them.

use std::collections::HashMap;

use everturn_kernel::{Millis, Want};
use everturn_pacing::Cycling;
use everturn_testkit::strategy::any_failure;
use everturn_wire::{Category, Failure};
use proptest::{collection::vec, prelude::*};

use super::{
    random::any_route,
    route_run::{Happened, RouteRun},
};
use everturn_testkit::strategy::config;

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn cycling_goes_round_within_a_step_and_begins_each_step_as_it_is_set(
        route in any_route(),
        (max_attempts, clamp_hints, sticky) in (1..6u32, any::<bool>(), any::<bool>()),
        steps in vec((vec(any_failure(), 0..5), 0..90_000u64), 1..5),
    ) {
        let cycling = Cycling { max_attempts, clamp_hints, sticky };
        let mut model = Model { targets: route.len(), cycling, current: 0, out: Vec::new(), hints: HashMap::new() };
        let mut run = RouteRun::new(route, cycling);
        for (failures, takes_ms) in steps {
            let (at, target) = last_call(&run);
            prop_assert_eq!(target, model.begin(at), "{}", run.transcript());
            for (failure, failed) in failures.into_iter().zip(1..) {
                let (at, _) = (run.now, model.fail(run.now, &failure));
                let goes_on = run.fail(failure.clone());
                let Some(next) = model.next(failed, &failure) else {
                    prop_assert!(!goes_on, "{}", run.transcript());
                    return Ok(());
                };
                prop_assert!(goes_on && at <= run.now, "{}", run.transcript());
                let (at, target) = last_call(&run);
                prop_assert_eq!(target, next, "{}", run.transcript());
                model.ask(at, next);
            }
            run.step(takes_ms);
        }
    }
}

/// Returns the time and the target of the wanted call.
fn last_call(run: &RouteRun<Cycling>) -> (Millis, usize) {
    assert!(matches!(run.turn.want(), Want::Stream(_)));
    let call = run.happened.iter().rev().find_map(|fact| match fact {
        Happened::Called { at, target } => Some((*at, *target)),
        _ => None,
    });
    call.expect("a call was made")
}

struct Model {
    targets: usize,
    cycling: Cycling,
    current: usize,
    /// The targets that failed for good in this step.
    out: Vec<usize>,
    /// When the hints of targets expire.
    hints: HashMap<usize, Millis>,
}

impl Model {
    /// Returns the target of the first call of a step.
    fn begin(&mut self, at: Millis) -> usize {
        self.out.clear();
        let first = if self.cycling.sticky { self.current } else { 0 };
        let order = (first..self.targets).chain(0..first);
        let is_free = |index: &usize| self.hints.get(index).is_none_or(|until| *until <= at);
        let target = order.clone().find(is_free).expect("the one that answered can be asked");
        self.ask(at, target);
        target
    }

    fn ask(&mut self, _: Millis, target: usize) {
        self.hints.remove(&target);
        self.current = target;
    }

    fn fail(&mut self, at: Millis, failure: &Failure) {
        if failure.category != Category::ContextOverflow {
            let wait_ms = failure.hint_ms.unwrap_or(0).min(1 << 52);
            self.hints.insert(self.current, at.plus(wait_ms));
        }
    }

    /// Returns the next target after this many failures of the step; `None` if the step ends.
    fn next(&mut self, failed: u32, failure: &Failure) -> Option<usize> {
        use Category::{Auth, ContextOverflow, NotFound, Permission, QuotaExhausted, ServerError};
        let is_refused = matches!(failure.category, Auth | NotFound | Permission | QuotaExhausted);
        let drops = is_refused || (!failure.retryable && failure.category != ContextOverflow);
        if (!failure.retryable && !drops) || failed >= self.cycling.max_attempts {
            return None;
        }
        if failure.category == ServerError && failure.retryable {
            return Some(self.current);
        }
        if drops {
            self.out.push(self.current);
        }
        let order = (self.current + 1..self.targets).chain(0..=self.current);
        order.into_iter().find(|index| !self.out.contains(index))
    }
}
