//! Limits on memory.

use everturn_orchestrator::MemoryLimits;

use super::*;

#[test]
fn memory_is_limited_for_one_conversation_and_for_all() {
    let limits = |table: &str| {
        let MemoryLimits { conversation, total } = Case::new(&format!("[memory]\n{table}")).config().memory;
        (conversation >> 20, total >> 20)
    };
    assert_eq!(limits(""), (128, 512));
    assert_eq!(limits("conversation_mib = 64\ntotal_mib = 4096"), (64, 4096));
    assert_eq!(limits("total_mib = 100"), (100, 100));
    assert_eq!(limits("conversation_mib = 1000"), (1000, 1000));
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let problem = |table: &str| Case::new(&format!("[memory]\n{table}")).problem();
    for (table, expected) in [
        ("total_mib = 0", "config.toml:2: the limit must be at least 1 MiB"),
        (
            "total_mib = 10\nconversation_mib = 11",
            "config.toml:3: `conversation_mib` is more than `total_mib`",
        ),
        ("mib = 7", "unknown field `mib`"),
    ] {
        let problem = problem(table);
        assert!(problem.contains(expected), "{problem}");
    }
}
