//! A scripted provider call.

use std::{
    future::pending,
    pin::Pin,
    task::{Context, Poll},
};

use everturn_kernel::{Op, StreamEvent};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};

use crate::{Beat, Clock, Fact, Log, crash::Crash};

/// Plays these beats. The process may end before each of them, and after the last.
pub(super) fn play(
    op: Op,
    beats: Vec<Beat>,
    clock: Clock,
    log: Log,
    crash: Crash,
) -> impl Stream<Item = StreamEvent> + Send {
    let state = (beats.into_iter(), clock, log, crash);
    let stream = stream::unfold(state, move |(mut beats, clock, log, crash)| async move {
        loop {
            if crash.is_now() {
                clock.stop();
                pending::<()>().await;
            }
            match beats.next()? {
                Beat::Say(event) => {
                    if let StreamEvent::Failed(failure) = &event {
                        log.note(clock.now(), Fact::Failed(op, failure.clone()));
                    }
                    return Some((event, (beats, clock, log, crash)));
                }
                Beat::Wait(ms) => clock.sleep(ms).await,
                Beat::Hang => pending().await,
            }
        }
    });
    Once { stream: stream.boxed(), over: false }
}

/// A stream that panics if polled after its end or its terminal event.
struct Once {
    stream: BoxStream<'static, StreamEvent>,
    over: bool,
}

impl Stream for Once {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        assert!(!self.over, "a stream was polled after its end");
        let next = self.stream.poll_next_unpin(cx);
        use StreamEvent::{Failed, Finished, NearlyFull, Summary};
        self.over =
            matches!(next, Poll::Ready(None | Some(Finished(_) | Failed(_) | NearlyFull | Summary(_))));
        next
    }
}
