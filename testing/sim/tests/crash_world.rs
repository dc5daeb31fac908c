//! Runs some of the worlds of `crash-world`, which can run any number.

mod worlds;

use everturn_sim::crash;

const WORLDS: u64 = 120;

#[test]
fn no_crash_loses_or_doubles_anything() {
    let cases = [
        "a call ends the turn",
        "a call is allowed",
        "a call is denied",
        "a call is interrupted",
        "a crash after an append",
        "a crash at a time",
        "a crash before an append",
        "a crash in a tool",
        "a crash in mid-stream",
        "a crash while a person is asked",
        "a failure with a hint",
        "a history is summarized",
        "a history is too long",
        "a message is queued",
        "a running conversation is closed",
        "a shutdown",
        "a step is rewound",
        "a tool runs again",
        "a turn is stopped",
        "a wait ends",
        "a wait is skipped",
        "a world is compared with a calm one",
        "the journal fails",
        "the clock is set back while a process runs",
        "the machine is suspended",
    ];
    worlds::all_go_well(WORLDS, "", |seed| crash::run(seed, false), &cases);
}

#[test]
fn the_same_seed_gives_the_same_trace_to_the_letter() {
    worlds::are_replayed(|seed| crash::run(seed, true).trace);
}

#[test]
fn worlds_that_found_something_go_well() {
    for seed in [1_003_556, 2_020_827] {
        let wrong = crash::run(seed, false).wrong;
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    }
}
