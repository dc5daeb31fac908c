//! Settings, schedules and times.

use everturn_kernel::{AfterContent, Budget, Compaction, Millis, ReportRule, Settings, Target};
use proptest::{collection::vec, option, prelude::*};

use crate::{Delays, START};

const HOUR_MS: u64 = 3_600_000;

/// Settings with small limits, so that scripts reach them. `again` is the only idempotent tool. For budgets see
/// [`any_budget`], for targets [`any_targets`].
pub fn any_settings() -> impl Strategy<Value = Settings> {
    let bounds = (option::weighted(0.3, 0..4u32), 0..4u32, any::<bool>(), 0..4u32);
    let after_content = prop_oneof![Just(AfterContent::Keep), Just(AfterContent::Rewind)];
    let routes = (any_targets(), option::of(any_targets()));
    let report = option::weighted(0.3, (0..5u32).prop_map(|max_attempts| ReportRule { max_attempts }));
    let rest = (after_content, routes, report).boxed();
    (bounds, any_budget(), rest).prop_map(
        |(
            (max_steps, max_parallel_tools, eager_tools, max_recoveries),
            budget,
            (after_content, routes, final_report),
        )| {
            let (targets, others) = routes;
            Settings {
                max_steps,
                max_parallel_tools,
                eager_tools,
                idempotent_tools: vec!["again".into()],
                max_recoveries,
                budget,
                after_content,
                targets,
                compaction: others.map(|targets| Compaction { targets }),
                final_report,
            }
        },
    )
}

/// No named targets, or up to four different ones of two credentials and three models.
pub fn any_targets() -> impl Strategy<Value = Vec<Target>> {
    let target = (0..2usize, 0..3usize)
        .prop_map(|(credential, model)| Target::new(["work", "home"][credential], ["a", "b", "c"][model]));
    vec(target, 0..5).prop_map(|mut targets| {
        let mut seen = Vec::new();
        targets.retain(|target| {
            !seen.contains(target) && {
                seen.push(target.clone());
                true
            }
        });
        targets
    })
}

/// A budget of up to 200 s for the waits of a step, or none; a deadline at [`any_moment`], or none.
pub fn any_budget() -> impl Strategy<Value = Budget> {
    (option::of(0..200_000u64), option::weighted(0.3, any_moment()))
        .prop_map(|(max_wait_ms, deadline)| Budget { max_wait_ms, deadline })
}

/// Up to four waits of up to a minute, occasionally an extremely long one.
pub fn any_delays() -> impl Strategy<Value = Delays> {
    let wait = prop_oneof![6 => 0..60_000u64, 1 => Just(u64::MAX)];
    vec(wait, 0..5).prop_map(Delays::new)
}

/// A time shortly after [`START`], occasionally an hour off, or at either end of the range.
pub fn any_moment() -> impl Strategy<Value = Millis> {
    prop_oneof![
        4 => (0..200_000u64).prop_map(|ms| START.plus(ms)),
        1 => Just(Millis(0)),
        1 => Just(Millis(START.0 - HOUR_MS)),
        1 => Just(Millis(START.0 + HOUR_MS)),
        1 => Just(Millis(u64::MAX)),
    ]
}
