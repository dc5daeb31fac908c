//! What real nodes do is something that the model may do.
//!
//! Three orchestrators share a log on virtual time ([`cluster`]); what can be seen from outside is noted ([`record`]), and the
//! model is searched for a course that looks the same ([`accept`]).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod accept;
mod cluster;
mod record;

use std::collections::BTreeSet;

use accept::accepts;
use cluster::{Kind, Ran};
use record::Seen;

/// The number of runs of each kind in each test run.
const RUNS: u64 = 60;

fn is_accepted(ran: &Ran, what: &str) {
    if let Err(why) = accepts(ran) {
        let lines: Vec<_> = ran.trace.iter().map(|(at, seen)| format!("{at} {seen:?}")).collect();
        panic!("{what}:\n{}\n{why}", lines.join("\n"));
    }
}

fn are_accepted(runs: u64) {
    let mut met = BTreeSet::new();
    for kind in Kind::ALL {
        for seed in 0..runs {
            let ran = cluster::run(kind, seed);
            is_accepted(&ran, &format!("{kind:?}, seed {seed}"));
            met.extend(ran.trace.iter().map(|(_, seen)| match seen {
                Seen::Stored(stored) if stored.number == 2 => "a second turn".to_owned(),
                Seen::Stored(stored) => format!("stored by {}", stored.node),
                Seen::Told(told) => format!("told {told:?}"),
                seen => format!("{seen:?}").split('(').next().unwrap_or_default().to_owned(),
            }));
        }
    }
    for case in [
        "Asked",
        "Begun",
        "CutOff",
        "Due",
        "GaveUp",
        "Killed",
        "Started",
        "Unheard",
        "a second turn",
        "stored by 2",
        "told Some(true)",
        "told Some(false)",
    ] {
        assert!(met.contains(case), "{case} is missing: {met:?}");
    }
}

#[test]
fn real_nodes_do_what_the_model_may_do() {
    are_accepted(RUNS);
}

#[test]
#[ignore = "takes minutes"]
fn real_nodes_do_what_the_model_may_do_in_many_runs() {
    are_accepted(10 * RUNS);
}

#[test]
fn what_is_left_out_or_repeated_is_noticed() {
    let mut checked = 0;
    for seed in 0..RUNS / 4 {
        let ran = cluster::run(Kind::Tool, seed);
        let is_fault = |seen: &Seen| {
            matches!(seen, Seen::GaveUp(_) | Seen::CutOff(_) | Seen::Unheard(_) | Seen::Killed(_))
        };
        if ran.trace.iter().any(|(_, seen)| is_fault(seen)) {
            // Then it may be possible in another way.
            continue;
        }
        checked += 1;
        for (line, (_, seen)) in ran.trace.iter().enumerate().skip(1) {
            if matches!(seen, Seen::Stored(_) | Seen::Started(..)) {
                let mut less = ran.trace.clone();
                less.remove(line);
                assert!(accepts(&Ran { trace: less, ..ran.clone() }).is_err(), "seed {seed} without {line}");
                let mut more = ran.trace.clone();
                more.insert(line, more[line]);
                assert!(accepts(&Ran { trace: more, ..ran.clone() }).is_err(), "seed {seed}, {line} twice");
            }
        }
    }
    assert!(checked > 0, "a fault in every run");
}

#[test]
fn a_stop_reaches_a_turn_whose_node_has_not_learned_yet_that_it_began() {
    let ran = cluster::early_stop();
    let told = ran.trace.iter().filter(|(_, seen)| *seen == Seen::Told(Some(true))).count();
    assert_eq!(told, 2, "{:?}", ran.trace);
    let stops = |seen: &Seen| matches!(seen, Seen::Stored(stored) if stored.facts.stops);
    assert!(ran.trace.iter().any(|(_, seen)| stops(seen)), "{:?}", ran.trace);
    is_accepted(&ran, "an early stop");
}
