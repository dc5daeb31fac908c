//! A bound on a call until its content begins.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use everturn_kernel::{Millis, StreamEvent};
use everturn_wire::{Category, Failure};
use futures_core::{Stream, future::BoxFuture};
use futures_util::{FutureExt as _, StreamExt as _};

use crate::clock::Clock;

/// The events of a call that fails if its content has not begun by a deadline.
pub(super) struct Within<S> {
    events: S,
    deadline: Option<BoxFuture<'static, ()>>,
}

impl<S> Within<S> {
    pub(super) fn new(events: S, clock: Arc<dyn Clock>, deadline: Millis) -> Self {
        let late = async move {
            loop {
                let left = deadline.since(clock.now());
                if left == 0 {
                    return;
                }
                clock.sleep(Duration::from_millis(left)).await;
            }
        };
        Self { events, deadline: Some(late.boxed()) }
    }
}

impl<S: Stream<Item = StreamEvent> + Unpin> Stream for Within<S> {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let polled = self.events.poll_next_unpin(cx);
        if let Poll::Ready(Some(StreamEvent::Opaque)) = polled {
            self.deadline = None;
        }
        if polled.is_pending()
            && let Some(deadline) = &mut self.deadline
            && deadline.poll_unpin(cx).is_ready()
        {
            self.deadline = None;
            let text = "no content arrived within the budget of the call";
            return Poll::Ready(Some(StreamEvent::Failed(Failure::new(Category::Timeout, false, text))));
        }
        polled
    }
}
