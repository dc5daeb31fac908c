//! Events of providers and answers of tools.

use everturn_kernel::{
    Approval, Arguments, Assessment, Check, CheckedCall, FINAL_REPORT, FinishReason, Hold, Limits, Op,
    ReviewAnswer, Silence, StreamEvent, Summary, Told, ToolAnswer, ToolCall, What,
};
use everturn_wire::{Because, Category, Echo, Failure, Usage, Value};
use proptest::{collection, option, prelude::*, sample};

/// A diagnosed failure of any category. Most are retryable. About half have a hint, usually of up to 90 s, occasionally
/// an extremely long one.
pub fn any_failure() -> impl Strategy<Value = Failure> {
    let category = prop_oneof![
        Just(Category::RateLimited),
        Just(Category::Overloaded),
        Just(Category::ServerError),
        Just(Category::Network),
        Just(Category::Timeout),
        Just(Category::InvalidResponse),
        Just(Category::QuotaExhausted),
        Just(Category::ContextOverflow),
        Just(Category::Auth),
        Just(Category::Unknown),
    ];
    let hint = prop_oneof![8 => 0..90_000u64, 1 => Just(u64::MAX)];
    let retryable = prop::bool::weighted(0.85);
    (category, option::of(hint), retryable).prop_map(|(category, hint_ms, retryable)| Failure {
        hint_ms,
        ..Failure::new(category, retryable, "HTTP 500: it broke")
    })
}

/// Any event of a provider's stream, including its end.
pub fn any_event() -> impl Strategy<Value = StreamEvent> {
    prop_oneof![
        12 => any_progress(),
        5 => any_finish_reason().prop_map(StreamEvent::Finished),
        5 => any_failure().prop_map(StreamEvent::Failed),
        1 => any_hold().prop_map(|hold| StreamEvent::Held(Box::new(hold))),
        1 => Just(StreamEvent::NearlyFull),
        2 => any_summary(),
    ]
    .boxed()
}

/// A summary, possibly empty.
pub fn any_summary() -> impl Strategy<Value = StreamEvent> {
    ("[s ]{0,3}", 0..9u64)
        .prop_map(|(text, keeps_from)| StreamEvent::Summary(Box::new(Summary { text, keeps_from })))
}

/// A hold of up to a minute, occasionally an extremely long one.
pub fn any_hold() -> impl Strategy<Value = Hold> {
    let wait = prop_oneof![8 => 0..60_000u64, 1 => Just(u64::MAX)];
    let (any_bool, charged) = (any::<bool>(), any::<[bool; 2]>());
    (any_failure(), wait, any_bool, charged).prop_map(
        |(failure, wait_ms, shared, [in_budget, open_ended])| {
            let because = if shared { Because::Refused } else { Because::Offline };
            Hold { failure, wait_ms, shared, because, in_budget, open_ended }
        },
    )
}

/// Up to three limits, with arbitrary numbers.
pub fn any_limits() -> impl Strategy<Value = Limits> {
    let kinds = vec![What::Requests, What::Tokens, What::InputTokens, What::OutputTokens];
    let numbers = (option::of(any::<u64>()), any::<u64>(), any::<u64>());
    let told = |(what, (limit, remaining, reset_ms))| Told { what, limit, remaining, reset_ms };
    collection::vec((sample::select(kinds), numbers).prop_map(told), 0..4).prop_map(Limits)
}

/// Any event of a provider's stream except its end. Texts may be empty, and calls may share ids.
pub fn any_progress() -> impl Strategy<Value = StreamEvent> {
    prop_oneof![
        4 => "[a-c ]{0,3}".prop_map(StreamEvent::Text),
        2 => "[x-z]{0,3}".prop_map(StreamEvent::Reasoning),
        2 => any_echo().prop_map(StreamEvent::Echo),
        5 => any_tool_call().prop_map(StreamEvent::ToolCall),
        2 => (any_tool_call(), any_check())
            .prop_map(|(call, check)| StreamEvent::Checked(Box::new(CheckedCall { call, checked: check.into() }))),
        1 => any_usage().prop_map(StreamEvent::Usage),
        1 => any_silence().prop_map(StreamEvent::Silent),
        1 => any_limits().prop_map(StreamEvent::Limits),
    ]
    .boxed()
}

fn any_silence() -> impl Strategy<Value = Silence> {
    (0..90_000u64, option::of(0..300_000u64), any::<bool>()).prop_map(|(silent_ms, left_ms, alive)| Silence {
        silent_ms,
        left_ms,
        alive,
    })
}

/// A call of `read`, `slow`, `again` (the tools of [`any_script`](super::any_script)), `nothing` (which does not
/// exist), or a report. Its arguments may be malformed.
pub fn any_tool_call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![
        3 => (0..9u32).prop_map(|n| Arguments::Parsed(Value::from(n))),
        1 => Just(Arguments::Parsed(Value::Object([("valid".into(), false.into())].into_iter().collect()))),
        1 => Just(Arguments::Malformed { raw: "{".into(), reason: "cut".into() }),
    ];
    let name = prop_oneof![Just("read"), Just("slow"), Just("again"), Just("nothing"), Just(FINAL_REPORT)];
    (any_call_id(), name, arguments, option::weighted(0.3, any_echo()))
        .prop_map(|(id, name, arguments, echo)| ToolCall { id, name: name.into(), arguments, echo })
}

/// A check that ends by itself or by an answer.
pub fn any_check() -> impl Strategy<Value = Check> {
    let approval = || option::of(0..40_000u64).prop_map(|within_ms| Approval { reason: None, within_ms });
    prop_oneof![
        4 => approval().prop_map(Check::Person),
        4 => (0..100_000u64, option::of(approval()))
            .prop_map(|(within_ms, otherwise)| Check::Review { within_ms, otherwise }),
        1 => Just(Check::Refused("(tool failed: denied)".into())),
        1 => Just(Check::Caller),
    ]
    // Boxed because strategies are moved by value, and the stack of a debug build is small.
    .boxed()
}

/// The result of a review attempt.
pub fn any_review_answer() -> impl Strategy<Value = ReviewAnswer> {
    prop_oneof![
        3 => any::<bool>().prop_map(|allows| ReviewAnswer::Assessed(Assessment { allows, ..Assessment::default() })),
        1 => Just(ReviewAnswer::Unreadable("no JSON".into())),
        2 => any_failure().prop_map(ReviewAnswer::Failed),
        // Long enough to end a review soon.
        1 => (any_failure(), 5_000..90_000u64)
            .prop_map(|(failure, hint_ms)| ReviewAnswer::Held(Failure { hint_ms: Some(hint_ms), ..failure })),
    ]
    .boxed()
}

/// Opaque provider data.
pub fn any_echo() -> impl Strategy<Value = Echo> {
    (0..9u32).prop_map(|n| Echo { origin: "api host".into(), data: n.into() })
}

/// The id of a call: one of few, so that some collide; possibly empty.
pub fn any_call_id() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("a"), Just("b"), Just("a-2"), Just("call"), Just("")].prop_map(Into::into)
}

/// The id of one of the first provider calls.
pub fn any_op() -> impl Strategy<Value = Op> {
    (0..3u32, 0..4u32).prop_map(|(step, attempt)| Op { step, attempt })
}

/// The answer of a tool, successful or not, possibly empty.
pub fn any_tool_answer() -> impl Strategy<Value = ToolAnswer> {
    (any::<bool>(), "[a-b]{0,2}").prop_map(|(is_error, content)| ToolAnswer {
        content,
        is_error,
        images: Vec::new(),
    })
}

/// Token counts, occasionally the largest possible.
pub fn any_usage() -> impl Strategy<Value = Usage> {
    let count = || prop_oneof![8 => 0..100u64, 1 => Just(u64::MAX)];
    (count(), count(), option::of(count())).prop_map(|(input_tokens, output_tokens, cache_read_tokens)| {
        Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_write_tokens: None,
            reasoning_tokens: None,
        }
    })
}

/// Why a model stopped, including provider-specific words, some of which are reserved here.
pub fn any_finish_reason() -> impl Strategy<Value = FinishReason> {
    prop_oneof![
        3 => Just(FinishReason::Stop),
        4 => Just(FinishReason::ToolCalls),
        1 => Just(FinishReason::Length),
        1 => Just(FinishReason::ContentFilter),
        1 => prop_oneof![Just("error"), Just("aborted"), Just("max-steps"), Just("done"), Just("length")]
            .prop_map(|word| FinishReason::Other(word.into())),
    ]
}
