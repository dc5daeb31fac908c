//! Successful answers: order, timings, tokens, reasons, stops.

use everturn_kernel::{FinishReason, Input, Prompt, StreamEvent};
use everturn_wire::{Image, Usage};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Fact, Script, World,
    beat::{call, finish, overloaded, says, text, usage},
    play,
};

#[test]
fn a_turn_without_trouble() {
    let answer = vec![
        Beat::Wait(120),
        Beat::Say(StreamEvent::Reasoning("hm, ".into())),
        Beat::Say(StreamEvent::Reasoning("yes".into())),
        Beat::Wait(30),
        text("Hel"),
        text(""),
        text("lo"),
        usage(10, 2),
        usage(10, 4),
        finish(FinishReason::Stop),
    ];
    assert_snapshot!(play(&Script { steps: vec![vec![answer]], ..Script::default() }), @r#"
      0 | User text text="Hi"
      0 user-message text="Hi"
      0 turn-start
      0 > call 0.0
    120 reasoning-delta delta="hm, "
    120 reasoning-delta delta="yes"
    150 text-delta delta="Hel"
    150 text-delta delta="lo"
    150 usage usage={"inputTokens":10,"outputTokens":4}
    150 step-complete decodeMs=30 genTotalMs=150 ttftMs=120
    150 | Assistant thinking text="hm, yes"
    150 | Assistant text text="Hello"
    150 done contextSize=14 durationMs=150 firstTokenMs=120 reason="stop" usage={"inputTokens":10,"outputTokens":4}
    150 turn-sealed
    "#);
}

#[test]
fn the_time_to_the_first_token_is_that_of_the_last_attempt() {
    let slow = vec![Beat::Wait(70), text("Hello"), finish(FinishReason::Stop)];
    let transcript = play(&Script { steps: vec![vec![overloaded(), slow]], ..Script::default() });
    assert!(transcript.contains(" 5070 step-complete decodeMs=0 genTotalMs=70 ttftMs=70"), "{transcript}");
}

#[test]
fn tokens_are_summed_and_the_context_is_that_of_the_last_step() {
    let asks = vec![call("a", "read"), usage(100, 20), finish(FinishReason::ToolCalls)];
    let answer = vec![text("Hello"), usage(130, 7), finish(FinishReason::Stop)];
    let mut world = World::new(Script { steps: vec![vec![asks], vec![answer]], ..Script::default() });
    let turn = world.begin().sealed().expect("the turn ends");
    let transcript = world.log().transcript();
    let done = "done contextSize=137 durationMs=10 firstTokenMs=0 reason=\"stop\" usage={\"inputTokens\":230,\"outputTokens\":27}";
    assert!(transcript.contains(done), "{transcript}");
    let sum = Usage { input_tokens: 230, output_tokens: 27, ..Usage::default() };
    assert_eq!((turn.usage(), turn.context_size(), turn.steps()), (Some(sum), Some(137), 2));
}

#[test]
fn the_providers_finish_reason_is_published() {
    let other = |word: &str| FinishReason::Other(word.into());
    for (reason, told) in [
        (FinishReason::Stop, "stop"),
        (FinishReason::ToolCalls, "tool-calls"),
        (FinishReason::Length, "length"),
        (FinishReason::ContentFilter, "content-filter"),
        (other("end_turn"), "end_turn"),
        (other("length"), "length"),
        // These words are reserved here.
        (other("error"), "provider-error"),
        (other("aborted"), "provider-aborted"),
        (other("max-steps"), "provider-max-steps"),
    ] {
        let transcript =
            play(&Script { steps: vec![vec![vec![text("x"), finish(reason)]]], ..Script::default() });
        assert!(transcript.contains(&format!("reason=\"{told}\"")), "{transcript}");
    }
}

#[test]
fn a_stop_keeps_the_partial_text_and_what_it_used_so_far() {
    let speaks = vec![text("Hel"), usage(10, 1), usage(10, 2), Beat::Hang];
    let script = Script {
        steps: vec![vec![speaks]],
        outside: vec![(50, Input::Abort), (60, Input::Abort)],
        ..Script::default()
    };
    assert_snapshot!(play(&script), @r#"
     0 | User text text="Hi"
     0 user-message text="Hi"
     0 turn-start
     0 > call 0.0
     0 text-delta delta="Hel"
    50 > abort
    50 usage usage={"inputTokens":10,"outputTokens":2}
    50 | Assistant text text="Hel"
    50 done contextSize=12 durationMs=50 firstTokenMs=0 reason="aborted" usage={"inputTokens":10,"outputTokens":2}
    50 turn-sealed
    "#);
}

#[test]
fn a_stop_of_a_retried_call_ends_its_series() {
    let script = Script {
        steps: vec![vec![overloaded(), vec![Beat::Hang]]],
        outside: vec![(5_100, Input::Abort)],
        ..Script::default()
    };
    let transcript = play(&script);
    assert!(transcript.contains(" 5100 retry-ended attempts=1 outcome=\"cancelled\""), "{transcript}");
}

#[test]
fn a_prompt_may_consist_of_an_image() {
    let images = vec![Image { url: "https://x/y.png".into(), mime_type: None }];
    let transcript = play(&Script {
        prompt: Prompt { text: String::new(), images },
        steps: vec![vec![says("a cat")]],
        ..Script::default()
    });
    assert!(
        transcript.starts_with("    0 | User image url=\"https://x/y.png\"\n    0 user-message text=\"\"\n"),
        "{transcript}"
    );
}

#[test]
fn events_after_the_end_are_ignored() {
    let chatty = vec![text("Hello"), finish(FinishReason::Stop), text("more"), finish(FinishReason::Length)];
    let calm = play(&Script { steps: vec![vec![says("Hello")]], ..Script::default() });
    assert_eq!(play(&Script { steps: vec![vec![chatty]], ..Script::default() }), calm);
}

/// A hundred deltas that are ready at once.
fn flood() -> Script {
    let mut pieces = vec![text("x"); 100];
    pieces.push(finish(FinishReason::Stop));
    Script { steps: vec![vec![pieces]], ..Script::default() }
}

#[test]
fn a_flood_of_text_does_not_delay_a_stop() {
    let transcript = play(&Script { outside: vec![(0, Input::Abort)], ..flood() });
    assert!(!transcript.contains("text-delta") && transcript.contains("reason=\"aborted\""), "{transcript}");
}

#[test]
fn a_flood_of_text_is_published_in_batches() {
    let mut world = World::new(flood());
    world.begin().sealed().expect("the turn ends");
    let facts = world.log().pick(|fact| Some(fact.clone()));
    let batches: Vec<_> = facts
        .split(|fact| matches!(fact, Fact::Saved | Fact::Unsaved))
        .map(|batch| {
            batch.iter().filter(|fact| matches!(fact, Fact::Told(event) if event.is_delta())).count()
        })
        .filter(|deltas| *deltas > 0)
        .collect();
    // The last ones are published with the end of the step.
    assert_eq!(batches, [32, 32, 32, 4]);
}
