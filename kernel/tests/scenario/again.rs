//! A turn that repeats another: same history, no new message.

use everturn_kernel::{Effect, Effects, FinishReason, Input, NoRetry, Op, Settings, StreamEvent, Turn, Want};
use everturn_wire::{DoneReason, EventBody, Role};

use everturn_testkit::START;

#[test]
fn a_repeated_turn_adds_no_message_and_answers() {
    let mut fx = Effects::new();
    let (id, again) = ("t-2".into(), "t-1".into());
    let mut turn = Turn::begin_again(id, Settings::default(), again, START, &mut fx);
    let begun: Vec<_> = fx.drain().collect();
    let told = EventBody::TurnStart { retry_of: Some("t-1".into()), message_seq: None, supersedes: None };
    assert_eq!(begun, [Effect::Tell(told)], "no prompt is kept or told");
    assert_eq!(turn.want(), Want::Stream(Op::default()));
    for event in [StreamEvent::Text("Hello".into()), StreamEvent::Finished(FinishReason::Stop)] {
        turn.handle(START, Input::Provider(Op::default(), event), &NoRetry, &mut fx);
    }
    assert_eq!(turn.outcome().map(|outcome| &outcome.reason), Some(&DoneReason::Stop));
    let kept: Vec<_> = fx
        .drain()
        .filter_map(|effect| match effect {
            Effect::Keep(role, _) => Some(role),
            Effect::Tell(_) => None,
        })
        .collect();
    assert_eq!(kept, [Role::Assistant]);
    assert_eq!(turn.retry_of(), Some(&"t-1".into()));
}
