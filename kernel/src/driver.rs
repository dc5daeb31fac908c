//! The driver of a turn: handle, commit, want, repeat. It makes no decisions.

mod tasks;

use alloc::boxed::Box;
use core::{
    future::{pending, poll_fn, ready},
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use everturn_wire::{Category, Failure};
use futures_core::{future::BoxFuture, stream::BoxStream};

use crate::{
    Checked, CheckedCall, Effects, Input, Millis, NoRetry, Op, RetryStrategy, ReviewAnswer, ReviewAttempt,
    StreamEvent, ToolAnswer, ToolCall, Turn, Want,
};
use tasks::Tasks;

/// Maximum number of ready inputs per batch. The text of a batch is published together. The limit keeps a stream that
/// never pauses from delaying a stop. No input waits for a batch to fill.
const TAKEN_AT_ONCE: u32 = 32;

/// What the driver of a turn needs from outside.
#[async_trait]
pub trait Host: Send {
    /// The error of a failed commit.
    type Error: Send;

    /// Returns the current time.
    fn now(&self) -> Millis;

    /// Saves the effects together with the turn's snapshot, then publishes them. Drains `effects`.
    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Self::Error>;

    /// Publishes streamed text, which need not be durable. Drains `effects`.
    fn tell(&mut self, turn: &Turn, effects: &mut Effects);

    /// Starts a provider call. Dropping the stream cancels it.
    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent>;

    /// Starts a tool, the first time or again after a recovery. Dropping the future cancels it.
    fn run_tool(&mut self, turn: &Turn, step: u32, call: &ToolCall) -> BoxFuture<'static, ToolAnswer>;

    /// Returns what must happen before a call runs, and any decision already made. Called once, when the call arrives.
    /// Default: every call may run.
    fn check(&mut self, _call: &ToolCall) -> Checked {
        Checked::default()
    }

    /// Starts an attempt of a review. Dropping the future cancels it. Default: fails, because there is no reviewer.
    fn review(
        &mut self,
        _turn: &Turn,
        _call: &ToolCall,
        _attempt: ReviewAttempt,
    ) -> BoxFuture<'static, ReviewAnswer> {
        let failure = Failure::new(Category::NotFound, false, "there is no reviewer");
        Box::pin(ready(ReviewAnswer::Failed(failure)))
    }

    /// Sleeps until a check expires or the next attempt of a review is due. May return early. Default: never returns,
    /// so checks do not expire.
    fn sleep(&self, _left: Duration) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }

    /// Whether [`run_turn`] should return with the turn in its saved state, so that something else continues it from
    /// the snapshot. Default: never.
    fn leaves(&mut self, _want: Want) -> bool {
        false
    }

    /// Polls for the next external input: a stop, a steering message, a tool's live output. Pending while there is
    /// none.
    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Input>;
}

/// The reason why [`run_turn`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The turn is sealed; see [`Turn::outcome`].
    Sealed,
    /// The host left the turn, which had this want (see [`Host::leaves`]). The turn is in its last committed state.
    Left(Want),
}

/// Drives a turn until it is sealed or the host leaves it, and returns which happened. `effects` are those of
/// [`Turn::begin`], or of [`Input::Recover`] after a restore.
///
/// Without a retry strategy nothing is retried. Dropping the future stops all running work at once; the turn can be
/// restored from its last commit.
///
/// # Errors
/// Returns the host's error when a commit fails. Nothing is published or started after that.
pub async fn run_turn<H: Host>(
    turn: &mut Turn,
    effects: &mut Effects,
    host: &mut H,
    retry: Option<&dyn RetryStrategy>,
) -> Result<Ended, H::Error> {
    let retry = retry.unwrap_or(&NoRetry);
    let mut tasks = Tasks::new(retry);
    let mut durable = None;
    let mut at_once = 0;
    let mut is_text = false;
    loop {
        if effects.is_binding() || durable != Some(turn.revision()) {
            host.commit(turn, effects).await?;
            durable = Some(turn.revision());
            at_once = 0;
        }
        // Streamed text does not change the wants.
        if !is_text {
            let want = turn.want();
            if want == Want::Nothing {
                return Ok(Ended::Sealed);
            }
            if effects.is_empty() && host.leaves(want) {
                return Ok(Ended::Left(want));
            }
            tasks.align(turn, host);
        }
        let input = poll_fn(|cx| {
            let next = match at_once {
                TAKEN_AT_ONCE.. => yields(cx),
                // Everything else was polled just before, so it wakes this task when it is ready.
                1.. if is_text => tasks.poll_call(cx),
                _ => tasks.poll(cx, host),
            };
            at_once = if next.is_pending() { 0 } else { at_once + 1 };
            if next.is_pending() && !effects.is_empty() {
                host.tell(turn, effects);
            }
            next
        })
        .await;
        is_text = is_delta(&input);
        if !effects.is_empty() && !is_text {
            // Publish pending text before the commit that this input may cause.
            host.tell(turn, effects);
        }
        let input = checked(input, host);
        turn.handle(host.now(), input, retry, effects);
    }
}

/// Asks the host to check a tool call as it arrives.
fn checked<H: Host>(input: Input, host: &mut H) -> Input {
    match input {
        Input::Provider(op, StreamEvent::ToolCall(call)) => {
            let checked = host.check(&call);
            let event = match checked == Checked::default() {
                true => StreamEvent::ToolCall(call),
                false => StreamEvent::Checked(Box::new(CheckedCall { call, checked })),
            };
            Input::Provider(op, event)
        }
        input => input,
    }
}

fn is_delta(input: &Input) -> bool {
    matches!(input, Input::Provider(_, StreamEvent::Text(_) | StreamEvent::Reasoning(_)))
}

/// Yields to the executor once.
fn yields(cx: &Context<'_>) -> Poll<Input> {
    cx.waker().wake_by_ref();
    Poll::Pending
}
