//! Writes an answer to its tape, and yields what the turn learns.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use everturn_kernel::StreamEvent;
use everturn_wire::{Category, Failure};
use futures_core::{Stream, stream::BoxStream};
use futures_util::StreamExt as _;

use super::call::Call;
use crate::upstream::Passed;

pub(super) struct Tee {
    events: BoxStream<'static, Passed>,
    call: Arc<Call>,
    /// Whether the upstream has said how the call ended.
    is_over: bool,
}

impl Tee {
    pub(super) fn new(events: BoxStream<'static, Passed>, call: Arc<Call>) -> Self {
        Self { events, call, is_over: false }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        // Cut off by us: what has arrived is neither an answer nor a refusal.
        if !self.is_over {
            self.call.tape.withdraw();
        }
    }
}

impl Stream for Tee {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        loop {
            if !ready!(self.call.tape.poll_room(cx)) {
                let text = "the answer is too long to be kept, and nobody is there to take it";
                return Poll::Ready(Some(StreamEvent::Failed(Failure::new(Category::Internal, false, text))));
            }
            let Some(event) = ready!(self.events.poll_next_unpin(cx)) else { return Poll::Ready(None) };
            match event {
                Passed::Head(status, headers) => self.call.tape.head(status, headers),
                Passed::LastIsNext => self.call.tape.last_is_next(),
                Passed::Piece(piece) => match self.call.tape.piece(piece) {
                    0 => {}
                    more => return Poll::Ready(Some(StreamEvent::Collected(more))),
                },
                Passed::Cut => self.call.tape.cut(),
                Passed::Fact(fact) => {
                    self.is_over |= matches!(fact, StreamEvent::Finished(_) | StreamEvent::Failed(_));
                    if matches!(fact, StreamEvent::Opaque) {
                        self.call.tape.show();
                        self.call.tell();
                    }
                    return Poll::Ready(Some(fact));
                }
            }
        }
    }
}
