//! What the pacer achieves with simulated providers, beside what others do.

use everturn_sim::pacing::{Load, PolicyKind, Scenario, Tells, run, scenarios};

/// What must be achieved with each seed: the share of capacity used at least, and of calls refused at most. Where that is less than
/// 0.9 and 0.05, `notes/pacing.md` says so.
fn goal(scenario: &Scenario) -> Option<(f64, f64)> {
    let (name, load) = (scenario.name, &scenario.load.name);
    if !load.starts_with("500 turns at once") || name.starts_with("600") {
        return None;
    }
    Some(match (scenario.tells, load.ends_with("servers")) {
        (Tells::All, false) => (0.95, 0.01),
        (Tells::All, true) if name.starts_with("bucket of 5") => (0.95, 0.10),
        (Tells::All, true) => (0.95, 0.025),
        (_, false) if name.starts_with("bucket of 5") => (0.85, 0.15),
        (_, false) => (0.90, 0.06),
        (_, true) if name.starts_with("bucket") => (0.80, 0.19),
        (_, true) if name.starts_with("overload") => (0.72, 0.08),
        (_, true) => (0.88, 0.08),
    })
}

#[test]
fn capacity_is_used_and_few_calls_are_refused() {
    let mut checked = 0;
    for scenario in scenarios() {
        let Some((used, refused)) = goal(&scenario) else { continue };
        for seed in 1..=3 {
            let best = run(&scenario, PolicyKind::Oracle, seed);
            let ours = run(&scenario, PolicyKind::Ours, seed);
            let what = format!("{}, {}, {}, {seed}", scenario.name, scenario.tells, scenario.load.name);
            assert_eq!(ours.unserved, 0, "{what}");
            assert!(ours.used(&best) >= used, "{what}: {:.3} used", ours.used(&best));
            assert!(ours.refused_share() <= refused, "{what}: {:.3} refused", ours.refused_share());
        }
        checked += 1;
    }
    assert_eq!(checked, 36, "rows");
}

/// Whether the provider refuses calls whatever is asked of it.
fn is_random(scenario: &Scenario) -> bool {
    scenario.name.ends_with("at random")
}

#[test]
fn refusals_that_holding_back_does_not_change_hold_nobody_back_for_long() {
    for scenario in scenarios().into_iter().filter(is_random) {
        for seed in 1..=3 {
            let best = run(&scenario, PolicyKind::Oracle, seed);
            let ours = run(&scenario, PolicyKind::Ours, seed);
            let what = format!("{}, {}, {}, {seed}", scenario.name, scenario.tells, scenario.load.name);
            // A hint holds everybody, however often it comes.
            let least = if scenario.tells == Tells::WrongHint { 0.6 } else { 0.99 };
            assert_eq!(ours.unserved, 0, "{what}");
            assert!(ours.used(&best) >= least, "{what}: {:.3} used", ours.used(&best));
        }
    }
}

#[test]
fn everybody_is_served_with_fewer_refusals_than_by_others() {
    // A wrong hint makes others ask a hundred thousand times, which takes long to play.
    let is_compared = |scenario: &Scenario| scenario.tells != Tells::WrongHint && !is_random(scenario);
    for scenario in scenarios().into_iter().filter(is_compared) {
        let ours = run(&scenario, PolicyKind::Ours, 3);
        let what = format!("{}, {}, {}", scenario.name, scenario.tells, scenario.load.name);
        assert_eq!(ours.unserved, 0, "{what}");
        for other in [PolicyKind::FullJitter, PolicyKind::AwsAdaptive] {
            let theirs = run(&scenario, other, 3);
            let (ours, theirs) = (ours.refused_share(), theirs.refused_share());
            assert!(ours <= theirs + 0.001, "{what}: {ours:.3}, {} {theirs:.3}", other.name());
        }
    }
}

#[test]
fn an_interactive_call_waits_no_longer_beside_background_calls() {
    let all = scenarios();
    let of = |name: &str, load: &str| {
        let fits = |scenario: &&Scenario| {
            scenario.name.starts_with(name)
                && scenario.tells == Tells::All
                && scenario.load.name.starts_with("20 interactive")
                && scenario.load.name.contains("beside") == load.contains("beside")
        };
        run(all.iter().find(fits).expect("a scenario"), PolicyKind::Ours, 1)
    };
    for name in ["60 a minute, fixed", "bucket of 60"] {
        let (alone, beside) = (of(name, "alone").wait_ms(0.99), of(name, "beside").wait_ms(0.99));
        assert!(beside <= 2 * alone, "{name}: {beside} ms beside background calls, {alone} ms alone");
    }
}

/// The greedy caller wants 1,000 calls at once, each of the others 20, and a provider allows 60 a minute.
#[test]
fn a_greedy_caller_makes_each_of_the_others_wait_at_most_half_as_long_again() {
    let all = scenarios();
    let beside_greedy = all.iter().filter(|scenario| scenario.load.name.contains("beside one with"));
    let mut checked = 0;
    for (scenario, seed) in beside_greedy.flat_map(|scenario| (1..=2).map(move |seed| (scenario, seed))) {
        let is_alone = |other: &&Scenario| {
            (other.name, other.tells) == (scenario.name, scenario.tells)
                && scenario.load.name.starts_with(&format!("{}, beside", other.load.name))
        };
        let alone = run(all.iter().find(is_alone).expect("a scenario"), PolicyKind::Ours, seed);
        let beside = run(scenario, PolicyKind::Ours, seed);
        for (beside, alone) in beside.callers_ms().zip(alone.callers_ms()) {
            let what =
                format!("{}, {}, {seed}: {beside:?} ms, alone {alone:?}", scenario.name, scenario.tells);
            assert!(2 * beside.0 <= 3 * alone.0 && 2 * beside.1 <= 3 * alone.1, "{what}");
            checked += 1;
        }
    }
    assert!(checked >= 8 * 2 * 9, "{checked} callers");
}

/// Nine callers want 27 calls a minute of 60 when a tenth one wants 1,000 at once: that teaches the limit, and they go on.
#[test]
fn callers_that_come_now_and_then_wait_for_seconds_beside_a_greedy_one() {
    let is_sixty = |scenario: &&Scenario| {
        scenario.name.starts_with("60 a minute") && scenario.load.name == "500 turns at once"
    };
    let mut checked = 0;
    for (scenario, seed) in scenarios().iter().filter(is_sixty).flat_map(|it| (1..=2).map(move |n| (it, n))) {
        let mut scenario = scenario.clone();
        scenario.load = Load::steady_callers(3.0, 12, seed).beside_greedy(1_000, 120_000);
        let ran = run(&scenario, PolicyKind::Ours, seed);
        let what = format!("{}, {}, {seed}", scenario.name, scenario.tells);
        assert!(ran.refused_share() <= 0.1, "{what}: {} refused", ran.refused_share());
        for (mean_ms, longest_ms) in ran.callers_ms() {
            assert!(mean_ms <= 20_000, "{what}: {mean_ms} ms, at most {longest_ms}");
            checked += 1;
        }
    }
    assert_eq!(checked, 8 * 2 * 9, "callers");
}

#[test]
fn a_run_is_the_same_each_time() {
    let scenario = &scenarios()[1];
    let runs = [0, 1].map(|_| run(scenario, PolicyKind::Ours, 5));
    assert_eq!(
        (runs[0].calls, runs[0].refused, runs[0].last_ms),
        (runs[1].calls, runs[1].refused, runs[1].last_ms)
    );
}
