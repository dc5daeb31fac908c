//! A silent provider: subscribers are told, and a person may repeat the call.

use everturn_kernel::{Input, Silence, StreamEvent};
use insta::assert_snapshot;

use everturn_testkit::{
    Beat, Script,
    beat::{overloaded, says, text, usage},
    play,
};

/// Returns an attempt that reports silence after 20 s and then never continues.
fn silent() -> Vec<Beat> {
    let silence = Silence { silent_ms: 20_000, left_ms: Some(280_000), alive: false };
    vec![Beat::Wait(20_000), Beat::Say(StreamEvent::Silent(silence)), Beat::Hang]
}

#[test]
fn a_person_repeats_the_call_instead_of_waiting() {
    let outside = vec![(30_000, Input::RetryNow), (30_000, Input::RetryNow)];
    let script = Script { steps: vec![vec![silent(), says("Hello")]], outside, ..Script::default() };
    assert_snapshot!(play(&script), @r#"
        0 | User text text="Hi"
        0 user-message text="Hi"
        0 turn-start
        0 > call 0.0
    20000 provider-silent alive=false givesUpAt=1700000300000 silentMs=20000
    30000 > retry now
    30000 provider-retry attempt=0 category="timeout" delayMs=0 message="no answer for 30 s; asked again by a person"
    30000 status retry=asking/0 status="active"
    30000 > call 0.1
    30000 > retry now
    30000 retry-ended attempts=1 outcome="recovered"
    30000 text-delta delta="Hello"
    30000 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
    30000 | Assistant text text="Hello"
    30000 done durationMs=30000 firstTokenMs=30000 reason="stop"
    30000 turn-sealed
    "#);
}

#[test]
fn a_persons_retry_does_not_count_against_the_schedule() {
    let answers = vec![silent(), overloaded(), overloaded(), says("Hello")];
    let outside = vec![(30_000, Input::RetryNow)];
    let transcript = play(&Script { steps: vec![answers], outside, ..Script::default() });
    let lines: Vec<_> =
        transcript.lines().filter(|line| line.contains("sleep") || line.contains("attempt")).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    30000 provider-retry attempt=0 category="timeout" delayMs=0 message="no answer for 30 s; asked again by a person"
    30000 provider-retry attempt=1 category="overloaded" code="429" delayMs=5000 maxAttempts=22 message="HTTP 429: busy"
    30000 > sleep 5000
    35000 provider-retry attempt=2 category="overloaded" code="429" delayMs=10000 maxAttempts=22 message="HTTP 429: busy"
    35000 > sleep 10000
    45000 retry-ended attempts=3 outcome="recovered"
    "#);
}

#[test]
fn without_a_notice_of_silence_no_call_is_repeated() {
    let outside = vec![(19_999, Input::RetryNow), (40_000, Input::Abort)];
    let script = Script { steps: vec![vec![silent(), says("Hello")]], outside, ..Script::default() };
    let transcript = play(&script);
    assert!(!transcript.contains("> call 0.1"), "{transcript}");
}

#[test]
fn a_call_that_has_shown_content_is_not_repeated() {
    for shown in [text("Hel"), usage(3, 0)] {
        let beats = [vec![shown], silent()].concat();
        let outside = vec![(30_000, Input::RetryNow), (40_000, Input::Abort)];
        let script = Script { steps: vec![vec![beats]], outside, ..Script::default() };
        let transcript = play(&script);
        assert!(transcript.contains("provider-silent") && !transcript.contains("> call 0.1"), "{transcript}");
    }
}

#[test]
fn a_retried_call_that_is_silent_can_be_cancelled_like_its_wait() {
    let outside = vec![(6_000, Input::AbortRetry), (6_001, Input::AbortRetry)];
    let script = Script { steps: vec![vec![overloaded(), silent()]], outside, ..Script::default() };
    let transcript = play(&script);
    let end: Vec<_> = transcript.lines().skip_while(|line| !line.contains("> sleep")).collect();
    assert_snapshot!(end.join("\n"), @r#"
       0 > sleep 5000
    5000 status retry=asking/0 status="active"
    5000 > call 0.1
    6000 > abort retry
    6000 retry-ended attempts=1 message="Retry cancelled" outcome="cancelled"
    6000 done durationMs=6000 reason="aborted"
    6000 turn-sealed
    "#);
}

#[test]
fn the_first_call_is_not_a_retry_to_cancel() {
    let outside = vec![(30_000, Input::AbortRetry), (40_000, Input::Abort)];
    let script = Script { steps: vec![vec![silent()]], outside, ..Script::default() };
    let transcript = play(&script);
    assert!(transcript.contains("40000 done"), "{transcript}");
}
