//! A session: the supervised task that runs a conversation's turns, one after the other, while there are any that do
//! more than wait.

mod host;
mod job;
mod request;
mod settle;

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use everturn_kernel::{Effects, Host, Input, NoRetry, Turn, run_turn};
use everturn_wire::{Category, Failure};
use futures_util::FutureExt;

use crate::{
    JournalError, Version,
    conversation::{Conversation, Inbox},
    orchestrator::Shared,
    schedule::TimedRetry,
    telemetry::Present,
    timer,
};
use host::TurnHost;
use job::Owed;
pub(crate) use job::{Job, TurnSettings};
pub(crate) use settle::close_idle;

/// Runs turns until none is left or one is parked, then gives the writer's place back.
pub(crate) async fn run(shared: Arc<Shared>, conversation: Arc<Conversation>, mut inbox: Inbox, first: Job) {
    let mut next = Some(first);
    while let Some(Job { mut turn, mut effects, settings, owed }) = next.take() {
        let _active = Present::active_turn();
        let mut host =
            TurnHost::new(&shared, &conversation, &mut inbox, turn.id().clone(), settings.clone(), owed);
        if let Err(error) = drive(&shared, &conversation, &mut turn, &mut effects, &mut host).await {
            tracing::error!(conversation = %conversation.id, turn = %turn.id(), %error, "a turn could not be saved");
            lose(&shared, &conversation, error.clone());
            // Who tries again at once finds it let go of.
            host.refuse(error);
            return;
        }
        next = host.take_next();
        if next.is_some() {
            continue;
        }
        drop(host);
        if turn.outcome().is_none() {
            if conversation.park(&inbox, &turn, &settings.definition) {
                if let Some(until) = turn.wait().until() {
                    timer::wake_at(&shared, until.at, conversation.id.clone());
                }
                return;
            }
            // A command came in the meantime.
            next = Some(Job { turn, effects, settings, owed: Owed::default() });
            continue;
        }
        let left = match settle::settle(&shared, &conversation, &mut inbox).await {
            Ok(left) => left,
            Err(error) => {
                tracing::error!(conversation = %conversation.id, %error, "a status could not be saved");
                lose(&shared, &conversation, error);
                return;
            }
        };
        next = Job::queued(&shared, left, settings);
    }
}

/// The journal failed. Those who watch are told; the turn goes on from what was saved last, now and then tried until it
/// can be.
fn lose(shared: &Arc<Shared>, conversation: &Conversation, why: JournalError) {
    shared.registry.forget(conversation);
    let is_known = conversation.state().version > Version::default();
    conversation.lose(why);
    if is_known {
        timer::try_again(shared, conversation.id.clone());
    }
}

/// Drives one turn to its seal. A panic on the way, in the machine or in what it was given, seals this turn and
/// touches no other.
async fn drive(
    shared: &Shared,
    conversation: &Conversation,
    turn: &mut Turn,
    effects: &mut Effects,
    host: &mut TurnHost<'_>,
) -> Result<(), JournalError> {
    let retry = TimedRetry {
        schedule: shared.schedule.clone(),
        clock: shared.clock.clone(),
        enabled: [shared.auto_retry.clone(), conversation.auto_retry.clone()],
    };
    let driven = AssertUnwindSafe(run_turn(turn, effects, host, Some(&retry))).catch_unwind().await;
    let Err(panic) = driven else { return driven.unwrap_or(Ok(())) };
    let failure =
        Failure::new(Category::Internal, false, format!("the turn broke: {}", panic_text(panic.as_ref())));
    tracing::error!(conversation = %conversation.id, turn = %turn.id(), error = failure.message, "a turn panicked");
    turn.handle(host.now(), Input::Fault(failure), &NoRetry, effects);
    host.commit(turn, effects).await
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic without a message")
}
