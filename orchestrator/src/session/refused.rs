//! A turn whose next save the journal refuses for good: it ends with that, once, and is not asked for again.

use everturn_kernel::{Effects, Input, NoRetry, Turn};
use everturn_wire::{Category, Failure};

use super::{Ports, TurnSettings, TurnTask, turn_task::PendingReplies};
use crate::{conversation::Conversation, journal::JournalError};

/// The turn as it was saved last, ending with a failure: to try the same save again would fail the same way, and to ask the
/// model again would be paid for again. `None` where nothing of the turn was saved.
pub(super) async fn end(
    ports: &Ports,
    conversation: &Conversation,
    settings: TurnSettings,
    why: &JournalError,
) -> Option<TurnTask> {
    let stored = ports.journal.load(&conversation.id).await.ok().flatten()?;
    // Someone else wrote: it is theirs.
    let is_ours = stored.version == conversation.state().record.version;
    let mut turn = Turn::restore(stored.turn.filter(|_| is_ours)?.snapshot).ok()?;
    conversation.drop_told();
    let (mut effects, now) = (Effects::new(), ports.clock.now());
    let failure = Failure {
        advice: Some("Ask for a shorter answer, or split the request.".to_owned()),
        ..Failure::new(Category::Internal, false, format!("the answer could not be saved: {why}"))
    };
    turn.handle(now, Input::Unsaved(failure), &NoRetry, &mut effects);
    Some(TurnTask { turn, effects, settings, owed: PendingReplies::default() })
}
