//! The running work of a turn: at most one provider call or sleep, and the wanted tools.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{
    task::{Context, Poll},
    time::Duration,
};

use everturn_wire::{Category, Failure};
use futures_core::{future::BoxFuture, stream::BoxStream};

use crate::{
    Host, Input, Millis, Op, RetryStrategy, ReviewAnswer, ReviewAttempt, StreamEvent, ToolAnswer, ToolCall,
    Turn, Want,
};

/// The running work of a turn. `align` starts wanted work and drops unwanted work.
pub(super) struct Tasks<'r> {
    retry: &'r dyn RetryStrategy,
    call: Option<(Op, BoxStream<'static, StreamEvent>)>,
    wait: Option<Sleep<'r>>,
    tools: Vec<Running>,
    reviews: Vec<Reviewing>,
}

/// What happens when a sleep ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alarm {
    Call(Op),
    Checks { step: u32 },
}

struct Sleep<'r> {
    alarm: Alarm,
    at: Millis,
    sleep: Option<BoxFuture<'r, ()>>,
}

struct Running {
    step: u32,
    call_id: String,
    answer: BoxFuture<'static, ToolAnswer>,
}

struct Reviewing {
    step: u32,
    call_id: String,
    attempt: u32,
    answer: BoxFuture<'static, ReviewAnswer>,
}

impl<'r> Tasks<'r> {
    pub(super) fn new(retry: &'r dyn RetryStrategy) -> Self {
        Self { retry, call: None, wait: None, tools: Vec::new(), reviews: Vec::new() }
    }

    /// Stops unwanted work and starts wanted work.
    pub(super) fn align<H: Host>(&mut self, turn: &Turn, host: &mut H) {
        let (op, wake) = match turn.want() {
            Want::Stream(op) => (Some(op), None),
            Want::Wake(op, at) => (None, Some((Alarm::Call(op), at))),
            Want::Tools { step, until } | Want::Person { step, until } => {
                (None, until.map(|at| (Alarm::Checks { step }, at)))
            }
            Want::Nothing => (None, None),
        };
        if self.call.as_ref().map(|(op, _)| *op) != op {
            self.call = op.map(|op| (op, host.stream(turn, op)));
        }
        if self.wait.as_ref().map(|wait| (wait.alarm, wait.at)) != wake {
            self.wait = wake.map(|(alarm, at)| Sleep { alarm, at, sleep: None });
        }
        self.align_tools(turn, host);
        self.align_reviews(turn, host);
    }

    fn align_reviews<H: Host>(&mut self, turn: &Turn, host: &mut H) {
        let Want::Tools { step, .. } = turn.want() else { return self.reviews.clear() };
        let same = |review: &Reviewing, call: &ToolCall, attempt: ReviewAttempt| {
            review.step == step && review.call_id == call.id && review.attempt == attempt.number
        };
        self.reviews
            .retain(|review| turn.running_reviews().any(|(call, attempt)| same(review, call, attempt)));
        for (call, attempt) in turn.running_reviews() {
            if !self.reviews.iter().any(|review| same(review, call, attempt)) {
                let (call_id, answer) = (call.id.clone(), host.review(turn, call, attempt));
                self.reviews.push(Reviewing { step, call_id, attempt: attempt.number, answer });
            }
        }
    }

    fn align_tools<H: Host>(&mut self, turn: &Turn, host: &mut H) {
        let step = match turn.want() {
            Want::Stream(op) => op.step,
            Want::Tools { step, .. } => step,
            Want::Wake(..) | Want::Person { .. } | Want::Nothing => return self.tools.clear(),
        };
        self.tools
            .retain(|tool| tool.step == step && turn.running_calls().any(|call| call.id == tool.call_id));
        for call in turn.running_calls() {
            if !self.tools.iter().any(|tool| tool.call_id == call.id) {
                let (call_id, answer) = (call.id.clone(), host.run_tool(turn, step, call));
                self.tools.push(Running { step, call_id, answer });
            }
        }
    }

    /// Polls for the next input. Commands come first, so that a flood of text does not delay a stop.
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
        for at in 0..self.reviews.len() {
            if let Poll::Ready(answer) = self.reviews[at].answer.as_mut().poll(cx) {
                let Reviewing { step, call_id, attempt, .. } = self.reviews.swap_remove(at);
                return Poll::Ready(Input::Reviewed { step, call_id, attempt, answer: Box::new(answer) });
            }
        }
        if let Some(wait) = &mut self.wait
            && let Poll::Ready(alarm) = wait.poll(self.retry, cx, host)
        {
            return Poll::Ready(match alarm {
                Alarm::Call(op) => Input::Tick(op),
                Alarm::Checks { step } => Input::Due { step },
            });
        }
        self.poll_call(cx)
    }

    /// Polls only the provider call for the next input.
    pub(super) fn poll_call(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        let Some((op, stream)) = &mut self.call else { return Poll::Pending };
        let op = *op;
        stream
            .as_mut()
            .poll_next(cx)
            .map(|event| Input::Provider(op, event.unwrap_or_else(|| StreamEvent::Failed(truncated()))))
    }
}

impl<'r> Sleep<'r> {
    /// Sleeps until the given time, repeatedly if necessary, because a sleep may end early.
    fn poll<H: Host>(&mut self, retry: &'r dyn RetryStrategy, cx: &mut Context<'_>, host: &H) -> Poll<Alarm> {
        let left = Duration::from_millis(self.at.since(host.now()));
        let sleep = self.sleep.get_or_insert_with(|| match self.alarm {
            Alarm::Call(_) => retry.sleep(left),
            Alarm::Checks { .. } => host.sleep(left),
        });
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.sleep = None;
        if host.now() >= self.at {
            return Poll::Ready(self.alarm);
        }
        // Yield between sleeps, so that a sleep that always returns early does not starve other tasks.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn truncated() -> Failure {
    let message = "the provider's stream ended without a terminal event";
    Failure::new(Category::InvalidResponse, true, message)
}
