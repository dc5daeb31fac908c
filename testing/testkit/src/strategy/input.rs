//! Inputs of a turn.

use everturn_kernel::{Answer, Input, ReviewerSwitch};
use everturn_wire::{EventBody, OutputStream, QuestionKind, QuestionOutcome, QueuedMessage, StepId};
use proptest::{collection::vec, prelude::*};

use super::{any_call_id, any_event, any_failure, any_op, any_review_answer, any_tool_answer};

/// Any input. Most do not fit the turn's phase. For tests of the turn alone.
pub fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        3 => (any_op(), any_event()).prop_map(|(op, event)| Input::Provider(op, event)),
        2 => (0..3u32, any_call_id(), any_tool_answer())
            .prop_map(|(step, call_id, answer)| Input::ToolDone { step, call_id, answer }),
        1 => any_call_id().prop_map(|call_id| Input::ToolOutput {
            call_id,
            stream: OutputStream::Stderr,
            data: "x".into()
        }),
        1 => any_call_id().prop_map(|call_id| Input::ToolAsks { event: Box::new(settled(&call_id)), call_id }),
        2 => any_op().prop_map(Input::Tick),
        3 => (0..2u32, any_call_id(), any::<(bool, bool)>()).prop_map(|(step, call_id, (allows, whole_tool))| {
            Input::Answer(Box::new(Answer { step, call_id, allows, whole_tool, reason: None, name: None, via: None }))
        }),
        3 => (0..2u32, any_call_id(), 0..3u32, any_review_answer()).prop_map(
            |(step, call_id, attempt, answer)| Input::Reviewed { step, call_id, attempt, answer: Box::new(answer) }
        ),
        1 => (0..2u32, any_call_id()).prop_map(|(step, call_id)| {
            let (from, to, reason) = ("a/m".into(), "b/m".into(), "a/m failed".into());
            Input::ReviewerSwitched(Box::new(ReviewerSwitch { step, call_id, from, to, reason }))
        }),
        2 => (0..2u32).prop_map(|step| Input::Due { step }),
        1 => Just(Input::Abort),
        1 => Just(Input::AbortRetry),
        2 => Just(Input::RetryNow),
        1 => (0..3usize).prop_map(Input::GoTo),
        1 => Just(Input::Release),
        1 => Just(Input::MoveAway),
        2 => any_steering(),
        1 => any_failure().prop_map(Input::Fault),
        1 => any_failure().prop_map(Input::Unsaved),
        1 => Just(Input::Checkpoint),
        3 => Just(Input::Recover),
    ]
    .boxed()
}

/// Inputs from people, with their time in milliseconds after the start: up to four in the first minute.
pub fn any_outside() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let input = prop_oneof![
        2 => Just(Input::RetryNow),
        1 => Just(Input::Abort),
        1 => Just(Input::AbortRetry),
        1 => Just(Input::MoveAway),
        4 => any_steering(),
        1 => any_failure().prop_map(Input::Fault),
    ];
    let when = prop_oneof![0..300u64, 0..60_000u64];
    vec((when, input), 0..5).prop_map(|mut said| {
        said.sort_by_key(|(at, _)| *at);
        said
    })
}

/// A steering message, possibly empty, or its cancellation.
fn any_steering() -> impl Strategy<Value = Input> {
    prop_oneof![
        3 => ("[mn]", "[a-b]{0,2}")
            .prop_map(|(message_id, text)| Input::Steer(QueuedMessage { message_id, text })),
        1 => "[mn]".prop_map(|message_id| Input::Unsteer { message_id }),
    ]
}

fn settled(call_id: &str) -> EventBody {
    EventBody::QuestionSettled {
        question_id: "q".into(),
        step_id: StepId::new(&"t".into(), 0),
        tool_call_id: call_id.into(),
        outcome: QuestionOutcome::Accepted,
        asker: Some("a".into()),
        kind: Some(QuestionKind::Form),
        name: None,
        via: None,
    }
}
