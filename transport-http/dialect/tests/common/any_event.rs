//! Events in any order, including orders that no turn produces.

use everturn_wire::Value;
use proptest::{prelude::*, sample::select};
use serde_json::json;

/// An event of any kind.
pub(crate) fn any_event() -> impl Strategy<Value = Value> {
    let word = "[a-z \"\\\\\n\r\u{2028}é\u{0}]{0,6}";
    let of_text = (select(vec!["text-delta", "reasoning-delta"]), word)
        .prop_map(|(kind, delta)| json!({ "type": kind, "delta": delta }));
    let reasons =
        vec!["stop", "tool-calls", "length", "content-filter", "max-steps", "error", "aborted", "end_turn"];
    let done = (select(reasons), any::<bool>()).prop_map(|(reason, counts)| {
        let mut done = json!({ "type": "done", "reason": reason });
        if counts {
            done["usage"] = json!({ "inputTokens": 7, "outputTokens": u64::MAX });
        }
        done
    });
    let kinds = vec![
        "step-complete",
        "step-rewound",
        "tool-call",
        "tool-call",
        "tool-result",
        "tool-output",
        "approval-requested",
        "approval-resolved",
        "review-started",
        "compaction-started",
    ];
    let of_step = (select(kinds), 0..2_u32, select(vec!["a", "b\n"]), any::<bool>(), any::<bool>()).prop_map(
        |(kind, step, call, is_error, denied)| {
            let decisions = match denied {
                true => json!([{ "by": "person", "verdict": "denied", "reason": "no" }]),
                false => json!([]),
            };
            json!({
                "type": kind, "stepId": format!("t#{step}"), "toolCallId": call, "toolName": "n\nn", "input": null,
                "content": "x", "isError": is_error, "data": "out", "stream": "stdout", "reason": "why",
                "verdict": if denied { "denied" } else { "allowed" }, "decisions": decisions, "cause": "overflow",
            })
        },
    );
    prop_oneof![
        6 => of_text,
        1 => done,
        8 => of_step,
        1 => Just(json!({ "type": "provider-retry", "attempt": 0, "delayMs": 3000, "message": "HTTP 429: {\n\"error\": \"slow\n\ndown\"}" })),
        1 => Just(json!({ "type": "retry-ended", "attempts": 1, "outcome": "recovered" })),
        1 => Just(json!({ "type": "provider-silent", "stepId": "t#0", "silentMs": 5, "alive": false })),
        1 => Just(json!({ "type": "error", "message": "no\r\n\r\ndata: {}", "category": "overloaded" })),
        1 => Just(json!({ "type": "turn-sealed" })),
        1 => Just(json!({ "type": "final-report", "success": true, "report": { "a": "b\n" } })),
        1 => Just(json!({ "type": "turn-start" })),
        1 => Just(json!({ "type": "steering", "text": "and\n" })),
        1 => Just(json!({ "type": "status", "status": "queued" })),
        1 => Just(json!({ "type": "usage", "usage": { "inputTokens": 1, "outputTokens": 1 } })),
    ]
}
