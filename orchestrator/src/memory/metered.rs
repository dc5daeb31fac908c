//! A provider call whose answer is counted.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use everturn_kernel::StreamEvent;
use everturn_wire::Failure;
use futures_core::Stream;
use futures_util::StreamExt as _;

use super::{Account, UNIT, weight::of_call};

/// The events of a call. Reads no more than there is room for: if a limit is reached, the call fails.
pub(crate) struct Metered<S> {
    events: S,
    account: Account,
    /// Bytes of text, and of everything else that was yielded.
    text: usize,
    rest: usize,
    /// Bytes that the adapter has collected for events that it yields later.
    collected: usize,
    /// The size for which there is room.
    granted: usize,
    gives_way: Arc<AtomicBool>,
    is_over: bool,
}

impl<S> Metered<S> {
    pub(crate) fn new(events: S, account: Account) -> Self {
        let gives_way = Arc::default();
        Self { events, account, text: 0, rest: 0, collected: 0, granted: 0, gives_way, is_over: false }
    }

    fn count(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Text(text) | StreamEvent::Reasoning(text) => self.text += text.len(),
            StreamEvent::Echo(echo) => self.rest += everturn_ports::weight::of_echo(echo),
            StreamEvent::ToolCall(call) => self.rest += of_call(call),
            StreamEvent::Collected(bytes) => self.collected += bytes,
            _ => {}
        }
    }

    /// Returns the size of the answer. What was collected is part of what is yielded later.
    fn size(&self) -> usize {
        self.text + self.rest.max(self.collected)
    }

    /// Asks for room if the answer has grown by enough. The text that is shown is held twice.
    fn poll_room(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failure>> {
        let size = self.size();
        if size < self.granted + UNIT {
            return Poll::Ready(Ok(()));
        }
        if let Some(failure) = self.account.excess(size) {
            return Poll::Ready(Err(failure));
        }
        ready!(self.account.poll_grow(size + self.text, &self.gives_way, cx))?;
        self.granted = size;
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream<Item = StreamEvent> + Unpin> Stream for Metered<S> {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        loop {
            let room = match this.gives_way.load(Ordering::Relaxed) {
                true => Err(this.account.no_room()),
                false => ready!(this.poll_room(cx)),
            };
            if let Err(failure) = room {
                this.is_over = true;
                return Poll::Ready(Some(StreamEvent::Failed(failure)));
            }
            let Some(event) = ready!(this.events.poll_next_unpin(cx)) else { return Poll::Ready(None) };
            this.count(&event);
            if !matches!(event, StreamEvent::Collected(_)) {
                return Poll::Ready(Some(event));
            }
        }
    }
}

impl<S> Drop for Metered<S> {
    fn drop(&mut self) {
        if self.granted > 0 {
            self.account.end_answer();
        }
    }
}
