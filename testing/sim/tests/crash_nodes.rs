//! Runs some of the worlds of `crash-world --nodes 3`, which can run any number.

mod worlds;

use everturn_sim::crash::nodes;

const WORLDS: u64 = 100;
const RESTLESS: u64 = 40;

#[test]
fn no_fault_of_a_node_loses_or_doubles_anything() {
    let cases = [
        "a call is allowed",
        "a call is cut off",
        "a call is denied",
        "a call is interrupted",
        "a call is saved",
        "a failure with a hint",
        "a message is queued",
        "a node freezes before a call",
        "a node is cut off",
        "a node is cut off in part",
        "a node is killed",
        "a node shuts down",
        "a step is rewound",
        "a tool runs",
        "a tool runs again",
        "a turn is stopped",
        "a wait ends",
        "a wait is given up",
        "a wait is skipped",
        "an append fails",
        "an append is stored late",
        "the answer to an append is lost",
        "the log has no leader",
    ];
    worlds::all_go_well(WORLDS, " --nodes 3", |seed| nodes::run(seed, 3, false), &cases);
}

#[test]
fn watchers_that_go_back_read_the_same_log() {
    worlds::all_go_well(RESTLESS, " --nodes 3 --restless", |seed| nodes::run_restless(seed, 3, false), &[]);
}

/// Seeds that once found a bug: a turn that was stored late and that nobody drove; a watcher that missed what was stored late, or
/// was told it twice; a message said twice, as its request hung at one node and was repeated at another, or came twice; queued
/// messages said twice, and messages taken back that were reported as queued, as the reply was lost.
const ONCE_FAILED: [u64; 11] =
    [3, 8, 101, 50_141, 60_379, 60_722, 111_114, 111_477, 120_666, 121_211, 150_442];

#[test]
fn what_once_failed_goes_well() {
    for seed in ONCE_FAILED {
        let verdict = nodes::run(seed, 3, false);
        assert!(verdict.wrong.is_empty(), "seed {seed}: {:#?}", verdict.wrong);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_at_every_node() {
    worlds::are_replayed(|seed| nodes::run(seed, 3, true).trace);
}
