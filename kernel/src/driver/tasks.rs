//! The running work of a turn: at most one provider call or one sleep, and the wanted tools.

use alloc::{string::String, vec::Vec};
use core::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use everturn_wire::{Category, Failure};
use futures_core::{Stream, future::BoxFuture, stream::BoxStream};

use crate::{Host, Input, Millis, Op, RetryStrategy, StreamEvent, ToolAnswer, Turn, Want};

/// The running work of a turn. It is kept in step with the turn's wants; unwanted work is dropped.
pub(super) struct Tasks<'r> {
    retry: &'r dyn RetryStrategy,
    call: Option<(Op, BoxStream<'static, StreamEvent>)>,
    wait: Option<Sleep<'r>>,
    tools: Vec<Running>,
}

struct Sleep<'r> {
    op: Op,
    at: Millis,
    sleep: Option<BoxFuture<'r, ()>>,
}

struct Running {
    step: u32,
    call_id: String,
    answer: BoxFuture<'static, ToolAnswer>,
}

impl<'r> Tasks<'r> {
    pub(super) fn new(retry: &'r dyn RetryStrategy) -> Self {
        Self { retry, call: None, wait: None, tools: Vec::new() }
    }

    /// Stops unwanted work and starts wanted work.
    pub(super) fn align<H: Host>(&mut self, turn: &Turn, host: &mut H) {
        let (op, wake) = match turn.want() {
            Want::Stream(op) => (Some(op), None),
            Want::Wake(op, at) => (None, Some((op, at))),
            Want::Tools { .. } | Want::Nothing => (None, None),
        };
        if self.call.as_ref().map(|(op, _)| *op) != op {
            self.call = op.map(|op| (op, host.stream(turn, op)));
        }
        if self.wait.as_ref().map(|wait| (wait.op, wait.at)) != wake {
            self.wait = wake.map(|(op, at)| Sleep { op, at, sleep: None });
        }
        self.align_tools(turn, host);
    }

    fn align_tools<H: Host>(&mut self, turn: &Turn, host: &mut H) {
        let step = match turn.want() {
            Want::Stream(op) => op.step,
            Want::Tools { step } => step,
            Want::Wake(..) | Want::Nothing => return self.tools.clear(),
        };
        self.tools
            .retain(|tool| tool.step == step && turn.running_calls().any(|call| call.id == tool.call_id));
        for call in turn.running_calls() {
            if !self.tools.iter().any(|tool| tool.call_id == call.id) {
                let (call_id, answer) = (call.id.clone(), host.run_tool(step, call));
                self.tools.push(Running { step, call_id, answer });
            }
        }
    }

    /// Returns the next fact. Commands come first, so that a flood of text does not delay a stop.
    pub(super) fn poll<H: Host>(&mut self, cx: &mut Context<'_>, host: &mut H) -> Poll<Input> {
        if let Poll::Ready(input) = host.poll_inbox(cx) {
            return Poll::Ready(input);
        }
        for at in 0..self.tools.len() {
            if let Poll::Ready(answer) = self.tools[at].answer.as_mut().poll(cx) {
                let Running { step, call_id, .. } = self.tools.swap_remove(at);
                return Poll::Ready(Input::ToolDone { step, call_id, answer });
            }
        }
        if let Some(wait) = &mut self.wait
            && let Poll::Ready(op) = wait.poll(self.retry, cx, host)
        {
            return Poll::Ready(Input::Tick(op));
        }
        match &mut self.call {
            Some((op, stream)) => poll_call(*op, stream.as_mut(), cx),
            None => Poll::Pending,
        }
    }
}

impl<'r> Sleep<'r> {
    /// Sleeps until the given time, repeatedly if necessary, because a sleep may end early.
    fn poll<H: Host>(&mut self, retry: &'r dyn RetryStrategy, cx: &mut Context<'_>, host: &H) -> Poll<Op> {
        let left = Duration::from_millis(self.at.since(host.now()));
        let sleep = self.sleep.get_or_insert_with(|| retry.sleep(left));
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.sleep = None;
        if host.now() >= self.at {
            return Poll::Ready(self.op);
        }
        // Yield in between, so that a sleep which always ends early starves no other task.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn poll_call(
    op: Op,
    stream: Pin<&mut (dyn Stream<Item = StreamEvent> + Send)>,
    cx: &mut Context<'_>,
) -> Poll<Input> {
    stream
        .poll_next(cx)
        .map(|event| Input::Provider(op, event.unwrap_or_else(|| StreamEvent::Failed(truncated()))))
}

fn truncated() -> Failure {
    let message = "the provider's answer ended without its terminal event";
    Failure::new(Category::InvalidResponse, true, message)
}
