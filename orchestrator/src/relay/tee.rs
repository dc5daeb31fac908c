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

use super::tape::Tape;
use crate::upstream::Passed;

pub(super) struct Tee {
    pub(super) events: BoxStream<'static, Passed>,
    pub(super) tape: Arc<Tape>,
}

impl Stream for Tee {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        loop {
            if !ready!(self.tape.poll_room(cx)) {
                let text = "the answer is too long to be kept, and nobody is there to take it";
                return Poll::Ready(Some(StreamEvent::Failed(Failure::new(Category::Internal, false, text))));
            }
            let Some(event) = ready!(self.events.poll_next_unpin(cx)) else { return Poll::Ready(None) };
            match event {
                Passed::Head(status, headers) => self.tape.head(status, headers),
                Passed::Piece(piece) => self.tape.piece(piece),
                Passed::Cut => self.tape.cut(),
                Passed::Fact(fact) => {
                    if fact == StreamEvent::Opaque {
                        self.tape.show();
                    }
                    return Poll::Ready(Some(fact));
                }
            }
        }
    }
}
