//! What a turn was doing when something happened to it, as far as its journal knows.

use everturn_orchestrator::{
    Journal as _, MemoryJournal,
    kernel::{Turn, Want},
};
use everturn_wire::ConversationId;
use futures_util::FutureExt as _;

/// No turn is under way.
pub(super) const IDLE: &str = "idle";

/// A turn waits for a person alone.
pub(super) const ASKED: &str = "asking a person";

/// Every phase of a turn.
pub const PHASES: [&str; 5] = ["asking", "waiting", "running tools", ASKED, IDLE];

/// Returns what a conversation is doing; `None` if it has not begun.
pub(super) fn of(kept: &MemoryJournal, id: &ConversationId) -> Option<&'static str> {
    let stored = kept.load(id).now_or_never()?.ok()??;
    let Some(record) = stored.turn else { return Some(IDLE) };
    let turn = Turn::restore(record.snapshot).ok()?;
    let [asking, waiting, tools, ..] = PHASES;
    Some(match turn.want() {
        Want::Stream(_) => asking,
        Want::Wake(..) => waiting,
        Want::Tools { .. } => tools,
        Want::Person { .. } => ASKED,
        Want::Nothing => IDLE,
    })
}
