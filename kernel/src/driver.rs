//! The order in which to drive a turn: handle, commit, want, next. No decisions.

mod tasks;

use alloc::boxed::Box;
use core::{
    future::poll_fn,
    task::{Context, Poll},
};

use async_trait::async_trait;
use futures_core::{future::BoxFuture, stream::BoxStream};

use crate::{
    Effects, Input, Millis, NoRetry, Op, RetryStrategy, StreamEvent, ToolAnswer, ToolCall, Turn, Want,
};
use tasks::Tasks;

/// So many facts that are there already are taken in, and their text is told together, before others get their turn: a
/// stream that never pauses must not keep a stop away. None is held back to wait for more.
const TAKEN_AT_ONCE: u32 = 32;

/// What a turn needs from outside while it is driven.
#[async_trait]
pub trait Host: Send {
    /// Why a commit can fail.
    type Error: Send;

    /// The time.
    fn now(&self) -> Millis;

    /// Makes the effects durable together with the turn's snapshot, then tells them. Takes them out.
    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Self::Error>;

    /// Tells streamed text, which need not be durable. Takes the effects out.
    fn tell(&mut self, turn: &Turn, effects: &mut Effects);

    /// Starts a provider call. Dropping the stream cancels it.
    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent>;

    /// Starts a tool. Dropping the future cancels it.
    fn run_tool(&mut self, step: u32, call: &ToolCall) -> BoxFuture<'static, ToolAnswer>;

    /// Whether to leave a turn that wants this, as it was saved: someone else goes on with it, from its snapshot. Never,
    /// unless the host says so.
    fn leaves(&mut self, _want: Want) -> bool {
        false
    }

    /// The next input from outside: a stop, a steering message, a tool's live output. Pending for ever when none come.
    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Input>;
}

/// Why [`run_turn`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The turn is sealed: [`Turn::outcome`] says how.
    Sealed,
    /// The host left the turn while it wanted this (see [`Host::leaves`]). It is as it was last committed.
    Left(Want),
}

/// Drives a turn until it is sealed, or the host leaves it, and returns which of the two. `effects` are those of
/// [`Turn::begin`], or of [`Input::Recover`] after a restore.
///
/// Without a retry strategy there is no retry. Dropping the future stops at once whatever runs; the turn as last
/// committed can be restored.
///
/// # Errors
/// When a commit fails: nothing further is told or started.
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
    loop {
        if effects.is_binding() || durable != Some(turn.revision()) {
            host.commit(turn, effects).await?;
            durable = Some(turn.revision());
        }
        let want = turn.want();
        if want == Want::Nothing {
            return Ok(Ended::Sealed);
        }
        if effects.is_empty() && host.leaves(want) {
            return Ok(Ended::Left(want));
        }
        tasks.align(turn, host);
        let input = poll_fn(|cx| {
            let next = if at_once < TAKEN_AT_ONCE { tasks.poll(cx, host) } else { yields(cx) };
            at_once = if next.is_pending() { 0 } else { at_once + 1 };
            if next.is_pending() && !effects.is_empty() {
                host.tell(turn, effects);
            }
            next
        })
        .await;
        if !effects.is_empty() && !is_delta(&input) {
            // What is known already does not wait for the commit that this may lead to.
            host.tell(turn, effects);
        }
        turn.handle(host.now(), input, retry, effects);
    }
}

fn is_delta(input: &Input) -> bool {
    matches!(input, Input::Provider(_, StreamEvent::Text(_) | StreamEvent::Reasoning(_)))
}

/// Comes back after the executor has run others.
fn yields(cx: &Context<'_>) -> Poll<Input> {
    cx.waker().wake_by_ref();
    Poll::Pending
}
