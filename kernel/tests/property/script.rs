//! Whole stories through the driver: random models, tools and people.

use everturn_kernel::{Input, Op, StreamEvent, ToolAnswer};
use everturn_wire::{EventBody, Failure, QueuedMessage};
use proptest::{collection::vec, prelude::*};

use super::{
    config,
    moves::{any_failure, any_reason, any_settings, any_word},
};
use crate::world::{Audience, Beat, Fact, Nap, Script, Tool, World, failed};

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn every_story_has_its_end(script in any_script(), outside in any_outside(), halves in any::<bool>()) {
        let nap = if halves { Nap::Half } else { Nap::Whole };
        let script = Script { outside, nap, ..script };
        let mut world = World::new(script.clone());
        world.begin().expect("it ends");
        let mut audience = Audience::new(&script.settings);
        world.log.each(|_, fact| audience.see(fact));
        audience.leave();
        check_calls(&world);
        check_tools(&world, &script);
        check_waits(&world, nap);
    }
}

/// Calls reported = calls made; each has a name of its own, and they go on.
fn check_calls(world: &World) {
    let calls = world.log.calls();
    assert!(calls.windows(2).all(|pair| pair[0] < pair[1]), "{calls:?}");
    let mut expected = Op::default();
    for call in calls {
        assert!(
            call == expected || call == Op { step: expected.step + 1, attempt: 0 },
            "{call} after {expected}"
        );
        expected = Op { step: call.step, attempt: call.attempt + 1 };
    }
}

/// Every tool starts at most once per call, after its start was saved, and never too many at once.
fn check_tools(world: &World, script: &Script) {
    let (mut started, mut running, mut saved, mut ended) = (Vec::new(), 0, false, None);
    let mut events = 0;
    world.log.each(|_, fact| match fact {
        Fact::Saved => saved = true,
        Fact::Told(EventBody::StepComplete { .. }) => ended = Some(events),
        Fact::Told(_) => events += 1,
        Fact::Ran { step, id, .. } => {
            assert!(saved, "a tool starts before that is saved");
            assert!(
                script.settings.eager_tools || ended.is_some(),
                "a tool starts before the end of the stream"
            );
            assert!(!started.contains(&(*step, id.clone())), "{step}/{id} starts twice");
            started.push((*step, id.clone()));
            running += 1;
            assert!(running <= script.settings.max_parallel_tools.max(1), "too many run at once");
        }
        Fact::Stopped => {
            running -= 1;
            saved = false;
        }
        Fact::Called(_) => (saved, ended) = (false, None),
        Fact::Unsaved | Fact::Kept(..) | Fact::Slept(_) | Fact::Heard(_) => {}
    });
    assert_eq!(running, 0, "a tool outlives its turn");
}

/// Each retry is saved and told, then slept for, and not otherwise.
fn check_waits(world: &World, nap: Nap) {
    let mut due = None;
    world.log.each(|_, fact| match fact {
        Fact::Told(EventBody::ProviderRetry { delay_ms, .. }) => due = Some(*delay_ms),
        Fact::Slept(ms) => {
            assert_eq!(Some(*ms), due, "slept for");
            due = (nap == Nap::Half).then_some(ms / 2);
        }
        _ => {}
    });
}

/// A story without anyone outside.
pub(crate) fn any_script() -> impl Strategy<Value = Script> {
    let attempts = vec(prop_oneof![3 => any_refusal(), 1 => any_speech()], 0..3);
    let step = (attempts, any_speech()).prop_map(|(mut attempts, last)| {
        attempts.push(last);
        attempts
    });
    (any_settings(), vec(step, 1..4)).prop_map(|(mut settings, mut steps)| {
        // The clock of a story is not the one of the hostile moves.
        settings.budget.deadline = None;
        let end = vec![
            Beat::Say(StreamEvent::Text("end".into())),
            Beat::Say(StreamEvent::Finished(everturn_kernel::FinishReason::Stop)),
        ];
        steps.push(vec![end]);
        Script { settings, steps, tools: tools(), ..Script::default() }
    })
}

fn tools() -> Vec<Tool> {
    vec![
        Tool { prints: Some("reading"), ..Tool::new("read", 10, ToolAnswer::ok("42")) },
        Tool::new("slow", 100, ToolAnswer::ok("")),
        Tool::new("again", 25, ToolAnswer::error("no")),
    ]
}

fn any_refusal() -> impl Strategy<Value = Vec<Beat>> {
    let failure = any_failure().prop_map(|failure| Failure { retryable: true, ..failure });
    prop_oneof![
        4 => failure.prop_map(|failure| vec![failed(failure)]),
        1 => (0..50u64).prop_map(|ms| vec![Beat::Wait(ms)]),
    ]
}

fn any_speech() -> impl Strategy<Value = Vec<Beat>> {
    let beat = prop_oneof![
        4 => any_word().prop_map(Beat::Say),
        1 => (0..60u64).prop_map(Beat::Wait),
    ];
    let end = prop_oneof![
        8 => any_reason().prop_map(|reason| Some(Beat::Say(StreamEvent::Finished(reason)))),
        1 => any_failure().prop_map(|failure| Some(failed(failure))),
        1 => Just(None),
    ];
    (vec(beat, 0..6), end).prop_map(|(mut beats, end)| {
        beats.extend(end);
        beats
    })
}

/// What people say, and when.
fn any_outside() -> impl Strategy<Value = Vec<(u64, Input)>> {
    let input = prop_oneof![
        2 => Just(Input::RetryNow),
        1 => Just(Input::Abort),
        1 => Just(Input::AbortRetry),
        3 => ("[mn]", "[a-b]{0,2}").prop_map(|(message_id, text)| Input::Steer(QueuedMessage { message_id, text })),
        1 => "[mn]".prop_map(|message_id| Input::Unsteer { message_id }),
        1 => any_failure().prop_map(Input::Fault),
    ];
    let when = prop_oneof![0..300u64, 0..60_000u64];
    vec((when, input), 0..5).prop_map(|mut said| {
        said.sort_by_key(|(at, _)| *at);
        said
    })
}
