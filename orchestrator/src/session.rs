//! A session: the supervised task that runs a conversation's turns, one after the other, while there are any.

mod host;
mod request;

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc};

use everturn_kernel::{Effects, Host, Input, Prompt, Turn, run_turn};
use everturn_wire::{Category, Failure, QueuedMessage, TurnId};
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};

use crate::{
    Cursor, JournalError,
    conversation::{Control, Conversation},
    model::Model,
    orchestrator::Shared,
    registry,
    schedule::TimedRetry,
    telemetry::Present,
};
use host::TurnHost;

/// A turn that is about to begin.
pub(crate) struct Begin {
    pub(crate) turn_id: TurnId,
    pub(crate) prompt: Prompt,
    pub(crate) model: Model,
    pub(crate) reasoning_effort: Option<String>,
    /// Messages that wait already.
    pub(crate) queue: Vec<QueuedMessage>,
    /// Told where the turn's events begin, once it is durable.
    pub(crate) started: Option<oneshot::Sender<Cursor>>,
}

/// Runs turns until none is left, then gives the writer's place back.
pub(crate) async fn run(
    shared: Arc<Shared>,
    conversation: Arc<Conversation>,
    mut inbox: mpsc::Receiver<Box<Control>>,
    first: Begin,
) {
    let mut next = Some(first);
    while let Some(begin) = next.take() {
        let (model, reasoning_effort) = (begin.model.clone(), begin.reasoning_effort.clone());
        let _active = Present::active_turn();
        let mut host = TurnHost::new(&shared, &conversation, &mut inbox, &begin);
        host.started = begin.started;
        let (now, mut effects) = (shared.clock.now(), Effects::new());
        let mut turn = Turn::begin(begin.turn_id, shared.settings.clone(), begin.prompt, now, &mut effects);
        for message in begin.queue {
            turn.handle(now, Input::Steer(message), &everturn_kernel::NoRetry, &mut effects);
        }
        if let Err(error) = drive(&shared, &conversation, &mut turn, &mut effects, &mut host).await {
            tracing::error!(conversation = %conversation.id, turn = %turn.id(), %error, "a turn could not be saved");
            host.fail_closed(&error);
            shared.registry.forget(&conversation);
            return;
        }
        drop(host);
        let mut left = conversation.release(&mut inbox, turn.queue().to_vec()).into_iter();
        next = left.next().map(|message| Begin {
            turn_id: registry::new_turn_id(),
            prompt: Prompt { text: message.text, images: Vec::new() },
            model,
            reasoning_effort,
            queue: left.collect(),
            started: None,
        });
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
    turn.handle(host.now(), Input::Fault(failure), &everturn_kernel::NoRetry, effects);
    host.commit(turn, effects).await
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic without a message")
}
