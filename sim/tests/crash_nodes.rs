//! Runs some of the worlds of `crash-world --nodes 3`, which can run any number.

mod worlds;

use everturn_sim::crash::nodes;

const WORLDS: u64 = 100;

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
        "a node is cut off",
        "a node is killed",
        "a node shuts down",
        "a step is rewound",
        "a tool runs",
        "a tool runs again",
        "a turn is stopped",
        "a wait ends",
        "a wait is given up",
        "a wait is skipped",
        "the answer to an append is lost",
    ];
    worlds::all_go_well(WORLDS, " --nodes 3", |seed| nodes::run(seed, 3, false), &cases);
}

#[test]
fn the_same_seed_gives_the_same_trace_at_every_node() {
    worlds::are_replayed(|seed| nodes::run(seed, 3, true).trace);
}
