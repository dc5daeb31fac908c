//! A session: the supervised task that runs a conversation's turns, one after another, until none is left or one is
//! parked.

mod branch;
mod enter;
mod go_to;
mod host;
mod image;
mod missing;
mod model_call;
mod ports;
mod refused;
mod request;
mod review;
mod settle;
mod side_call;
mod summary;
mod turn_task;

#[cfg(test)]
mod tests;

use std::{mem, panic::AssertUnwindSafe, sync::Arc};

use everturn_kernel::{Effects, Ended, Host, Input, NoRetry, Turn, run_turn};
use everturn_wire::{Category, Failure};
use futures_util::FutureExt;

use crate::{
    conversation::{Conversation, Parked, Parking, Seated},
    journal::{JournalError, Version},
    panic::panic_text,
    telemetry::GaugeGuard,
    timed_retry::TimedRetry,
};
use host::TurnHost;

pub(crate) use branch::{Fork, NoFork, fork, loose_end, standing, user_messages};
pub(crate) use enter::{begin, go_on_if_due, may_continue, send};
pub(crate) use ports::Ports;
pub(crate) use request::may_summarize;
pub(crate) use review::{ModelReviewer, Reviews};
pub(crate) use settle::close_idle;
pub(crate) use side_call::{SideCall, Unanswered};
pub(crate) use turn_task::{TurnSettings, TurnTask};

/// Runs turns until none is left or one is parked, then leaves the seat. Turns are boxed, because this future would hold each
/// several times.
async fn run(ports: Arc<Ports>, mut seated: Seated, first: Box<TurnTask>) {
    let conversation = seated.conversation.clone();
    let begun_at = conversation.state().record.version;
    let mut next = Some(first);
    // Whether the journal permanently rejected the last save.
    let mut is_refused = false;
    while let Some(mut task) = next.take() {
        let TurnTask { turn, effects, settings, owed, opening } = &mut *task;
        let _active = GaugeGuard::active_turn();
        if ports.permissions.may_ask(&settings.tools) {
            read_grants(&ports, &conversation).await;
        }
        let (owed, opening) = (mem::take(owed), mem::take(opening));
        let mut host =
            TurnHost::new(&ports, &conversation, &mut seated.inbox, turn, settings.clone(), owed, opening);
        let retry = TimedRetry {
            switch: Some(ports.retry.switch(settings.definition.configured.auto_retry, &conversation.retry)),
            ..ports.timed(settings.policy.clone())
        };
        if let Err(error) = drive(&conversation, turn, effects, &mut host, &retry).await {
            if ports.peers.is_some() && matches!(error, JournalError::Stale { .. }) {
                tracing::info!(conversation = %conversation.id, turn = %turn.id(), "another server has taken a turn over");
            } else {
                tracing::error!(conversation = %conversation.id, turn = %turn.id(), %error, "a turn could not be saved");
            }
            let owed = host.into_owed();
            // Only once: if the failed turn's end is rejected too, the journal rejects everything.
            if error.is_permanent() && !is_refused {
                is_refused = true;
                next = refused::end(&ports, &conversation, settings.clone(), &error).await.map(Box::new);
            }
            if next.is_some() {
                continue;
            }
            // A turn saves before it does anything, so this one cannot have harmed its process. One that ran counts: else a journal
            // that takes only small appends would let it call its model for ever.
            if begun_at > Version::default() && conversation.state().record.version == begun_at {
                conversation.note_unrun();
            }
            seated.lose(error.clone());
            // After `lose`, so that a caller that retries at once reloads the conversation.
            owed.refuse(error);
            return;
        }
        is_refused = false;
        next = host.take_next();
        if next.is_some() {
            continue;
        }
        drop(host);
        if turn.outcome().is_none() {
            let TurnTask { turn, effects, settings, .. } = *task;
            let (wait, definition) = (turn.wait(), settings.definition.clone());
            match seated.park(Box::new(Parked { turn, wait, definition })) {
                Parking::Parked | Parking::Lost => return,
                Parking::Commanded(parked) => {
                    next = Some(Box::new(TurnTask::of(parked.turn, effects, settings)));
                    continue;
                }
            }
        }
        let left = match settle::settle(&ports, &mut seated).await {
            Ok(left) => left,
            Err(error) => {
                tracing::error!(conversation = %conversation.id, %error, "a status could not be saved");
                return seated.lose(error);
            }
        };
        if !left.messages.is_empty()
            && let Err(error) = ports.read_settings(&conversation).await
        {
            tracing::warn!(conversation = %conversation.id, %error, "settings could not be read again");
        }
        next = TurnTask::queued(&ports, &conversation, left, task.settings).map(Box::new);
    }
}

/// Reads which tools are allowed for the whole conversation.
async fn read_grants(ports: &Ports, conversation: &Conversation) {
    let (grants, own) = (&ports.permissions.grants, &conversation.grants);
    let read = match ports.peers {
        Some(_) => grants.read_again(&conversation.id, own).await,
        None => grants.read(&conversation.id, own).await.map(drop),
    };
    if let Err(error) = read {
        tracing::warn!(conversation = %conversation.id, %error, "allowed tools cannot be read: people are asked");
    }
}

/// Drives one turn to its seal. A panic, whether in the kernel or in injected code, seals this turn and affects no
/// other.
async fn drive(
    conversation: &Conversation,
    turn: &mut Turn,
    effects: &mut Effects,
    host: &mut TurnHost<'_>,
    retry: &TimedRetry,
) -> Result<(), JournalError> {
    let driven = AssertUnwindSafe(run_turn(turn, effects, host, Some(retry))).catch_unwind().await;
    let Err(panic) = driven else { return driven.unwrap_or(Ok(Ended::Sealed)).map(drop) };
    let failure =
        Failure::new(Category::Internal, false, format!("the turn broke: {}", panic_text(panic.as_ref())));
    tracing::error!(conversation = %conversation.id, turn = %turn.id(), error = failure.message, "a turn panicked");
    turn.handle(host.now(), Input::Fault(failure), &NoRetry, effects);
    host.commit(turn, effects).await
}
