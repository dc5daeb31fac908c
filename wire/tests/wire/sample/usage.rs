//! What callers used.

use everturn_wire::{UsageKey, UsageReport, UsageRow};

pub(crate) fn reports() -> [UsageReport; 2] {
    let row = UsageRow {
        caller: Some("ann".into()),
        model: Some("main/large".into()),
        target: Some("main#2/large".into()),
        day: Some("2026-09-21".into()),
        turns: 3,
        survived: 1,
        failed: 1,
        waited_ms: 45_000,
        requests: 5,
        refusals: 2,
        input_tokens: 30,
        output_tokens: 6,
        cache_read_tokens: 7,
        cache_write_tokens: 2,
        reasoning_tokens: 1,
        cost: Some(0.25),
        unpriced: Some(vec!["spare/large".into()]),
    };
    let days =
        |by| UsageReport { from: "2026-09-01".into(), to: "2026-09-21".into(), by, ..UsageReport::default() };
    [days(Vec::new()), UsageReport { rows: vec![row], ..days(UsageKey::ALL.to_vec()) }]
}
