//! Ends a turn when the journal permanently rejects its next save.

use everturn_kernel::{Effects, Input, NoRetry, Turn};
use everturn_wire::{Category, Failure};

use super::{Ports, TurnSettings, TurnTask};
use crate::{conversation::Conversation, journal::JournalError};

/// Returns the turn as last saved, ending with a failure: repeating the save would fail again, and asking the model
/// again would cost again. `None` = nothing of the turn was saved.
pub(super) async fn end(
    ports: &Ports,
    conversation: &Conversation,
    settings: TurnSettings,
    why: &JournalError,
) -> Option<TurnTask> {
    let stored = ports.journal.load(&conversation.id).await.ok().flatten()?;
    // If another process wrote to the conversation, the turn belongs to it.
    let is_ours = stored.version == conversation.state().record.version;
    let mut turn = Turn::restore(stored.turn.filter(|_| is_ours)?.snapshot).ok()?;
    conversation.drop_told();
    let (mut effects, now) = (Effects::new(), ports.clock.now());
    let failure = Failure {
        advice: Some("Ask for a shorter answer, or split the request.".to_owned()),
        ..Failure::new(Category::Internal, false, format!("the answer could not be saved: {why}"))
    };
    turn.handle(now, Input::Unsaved(failure), &NoRetry, &mut effects);
    Some(TurnTask::of(turn, effects, settings))
}
