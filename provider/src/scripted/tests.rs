//! The script is followed.

use everturn_kernel::{FinishReason, Op};
use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::*;

fn request(attempt: u32) -> Request {
    Request {
        op: Op { step: 0, attempt },
        model: "m".into(),
        messages: Vec::new(),
        tools: [].into(),
        parameters: Default::default(),
        max_output_tokens: None,
        reasoning_effort: None,
        eager_calls: false,
        trace: None,
    }
}

fn text(text: &str) -> StreamEvent {
    StreamEvent::Text(text.into())
}

const STOP: StreamEvent = StreamEvent::Finished(FinishReason::Stop);

/// Returns the events of a call without waits.
fn told(provider: &Scripted, attempt: u32) -> Vec<StreamEvent> {
    provider.stream(request(attempt)).collect().now_or_never().expect("nothing to wait for")
}

#[test]
fn calls_are_used_in_order_and_the_last_repeats() {
    let provider = Scripted::new([vec![text("a")], vec![text("b"), STOP]]);
    assert_eq!(told(&provider, 0), [text("a")]);
    assert_eq!(told(&provider.clone(), 1), [text("b"), STOP]);
    assert_eq!(told(&provider, 2), [text("b"), STOP]);
    assert_eq!(provider.calls(), 3);
    let attempts: Vec<_> = provider.requests().iter().map(|request| request.op.attempt).collect();
    assert_eq!(attempts, [0, 1, 2]);
}

#[test]
fn a_script_may_end() {
    let provider = Scripted::new([vec![STOP]]).once();
    assert_eq!(told(&provider, 0), [STOP]);
    let after = told(&provider, 1);
    let [StreamEvent::Failed(failure)] = after.as_slice() else { panic!("{after:?}") };
    assert_eq!((failure.category, failure.retryable), (Category::Internal, false));
    assert_eq!(failure.message, "the script has 1 calls, this is call 2");
}

#[test]
fn only_the_latest_requests_are_remembered() {
    let provider = Scripted::new([vec![STOP]]);
    for attempt in 0..=Scripted::REMEMBERED as u32 {
        drop(provider.stream(request(attempt)));
    }
    let requests = provider.requests();
    assert_eq!((requests.len(), requests[0].op.attempt), (Scripted::REMEMBERED, 1));
}

#[tokio::test(start_paused = true)]
async fn a_pause_waits() {
    let minute = Duration::from_secs(60);
    let provider = Scripted::new([vec![Cue::Pause(minute), STOP.into()]]);
    let begun = Instant::now();
    assert_eq!(provider.stream(request(0)).next().await, Some(STOP));
    assert_eq!(begun.elapsed(), minute);
}

#[test]
fn a_hanging_call_yields_nothing_and_does_not_end() {
    let provider = Scripted::new([vec![text("a").into(), Cue::Hang, STOP.into()]]);
    let mut stream = provider.stream(request(0));
    assert_eq!(stream.next().now_or_never(), Some(Some(text("a"))));
    assert_eq!(stream.next().now_or_never(), None);
}

#[test]
#[should_panic(expected = "boom")]
fn a_panic_is_one() {
    told(&Scripted::new([vec![Cue::Panic("boom".into())]]), 0);
}
