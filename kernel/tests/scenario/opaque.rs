//! Content that only the host can read.

use everturn_kernel::{FinishReason, StreamEvent};
use everturn_testkit::{
    Beat, Script,
    beat::{finish, overloaded},
    play,
};

fn opaque() -> Beat {
    Beat::Say(StreamEvent::Opaque)
}

#[test]
fn it_is_an_answer_of_which_nothing_is_kept() {
    let answer = vec![opaque(), Beat::Wait(30), finish(FinishReason::Stop)];
    let transcript = play(&Script { steps: vec![vec![overloaded(), answer]], ..Script::default() });
    assert!(transcript.contains("retry-ended attempts=1 outcome=\"recovered\""), "{transcript}");
    assert!(transcript.contains("reason=\"stop\"") && transcript.contains("turn-sealed"), "{transcript}");
    assert!(!transcript.contains("| Assistant"), "{transcript}");
}

#[test]
fn a_failure_after_it_is_not_retried() {
    let broken = vec![opaque(), overloaded()[0].clone()];
    let transcript = play(&Script { steps: vec![vec![broken]], ..Script::default() });
    assert!(!transcript.contains("provider-retry"), "{transcript}");
    assert!(transcript.contains("reason=\"error\""), "{transcript}");
}
