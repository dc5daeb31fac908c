//! Moves a waiting turn to another of its targets, or replaces it with a turn on another model.

use everturn_kernel::{Input, NoRetry, Target, Turn};
use everturn_wire::QueuedMessage;

use super::{Ports, TurnSettings, TurnTask};
use crate::{conversation::Conversation, model::Choice, new_id};

/// How a turn moves to a requested model or route.
pub(super) enum Way {
    /// The turn itself handles this input: it resumes, or moves to one of its own targets.
    Same(Box<Input>),
    /// A successor with this model or route replaces it.
    Other(Choice),
}

impl Way {
    /// Finds how a turn with these targets, running with `current`, moves to the model or route `id`. `None` = there is
    /// no such model or route.
    pub(super) fn find(ports: &Ports, current: &Choice, targets: &[Target], id: &str) -> Option<Self> {
        if let Some(index) = targets.iter().position(|target| target.name == id) {
            return Some(Self::Same(Box::new(Input::GoTo(index))));
        }
        if current.id() == id {
            return Some(Self::Same(Box::new(Input::RetryNow)));
        }
        ports.models.now().choose(Some(id), None).ok().map(Self::Other)
    }
}

/// Creates the successor of a turn that was sealed to give way. It inherits the queued messages and, if the old turn
/// has no chunks yet, what that turn was to supersede.
pub(super) fn successor(
    ports: &Ports,
    conversation: &Conversation,
    sealed: &Turn,
    old: &TurnSettings,
    choice: Choice,
    queue: &[QueuedMessage],
) -> TurnTask {
    let has_chunks = {
        let state = conversation.state();
        let first_seq = state.live.running.as_ref().map_or(u64::MAX, |running| running.first_seq);
        state.record.head.last_seq >= first_seq
    };
    let supersedes = old.definition.supersedes.filter(|_| !has_chunks);
    let effort = old.definition.reasoning_effort.clone();
    let mut settings = TurnSettings::new(ports, conversation, choice, effort, supersedes);
    // What the message set still holds.
    (settings.budget, settings.after_content) = (old.budget, old.after_content);
    settings.definition.approvals = old.definition.approvals;
    settings.definition.priority = old.definition.priority;
    settings.definition.trace = old.definition.trace.clone();
    // A report required by the message is kept; otherwise the new model or route decides.
    if let Some(report) = &old.definition.final_report {
        settings.definition.final_report = Some(report.clone());
    }
    if let Some(scope) = &old.definition.request {
        settings.bring(scope.clone());
    }
    settings.definition.summarizes = old.definition.summarizes;
    let mut job = TurnTask::retry(ports, new_id::turn(), sealed.id().clone(), settings);
    for message in queue {
        job.turn.handle(ports.clock.now(), Input::Steer(message.clone()), &NoRetry, &mut job.effects);
    }
    job
}
