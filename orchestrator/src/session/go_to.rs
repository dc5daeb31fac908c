//! Moving a turn that waits: to another of its targets, or to a turn with another model that takes its place.

use everturn_kernel::{Effects, Input, NoRetry, Target, Turn};
use everturn_wire::QueuedMessage;

use super::{Ports, TurnSettings, TurnTask};
use crate::{conversation::Conversation, model::Choice, new_id};

/// Where a turn goes when somebody names a model or route.
pub(super) enum Way {
    /// Its kernel knows how: with this input it goes on, or goes to one of its own targets.
    Same(Input),
    /// A turn with this model or route takes its place.
    Other(Choice),
}

impl Way {
    /// The way of a turn with these targets, run with `current`, to the model or route of that id. `None` where there is no
    /// such model or route.
    pub(super) fn find(ports: &Ports, current: &Choice, targets: &[Target], id: &str) -> Option<Self> {
        if let Some(index) = targets.iter().position(|target| target.name == id) {
            return Some(Self::Same(Input::GoTo(index)));
        }
        if current.id() == id {
            return Some(Self::Same(Input::RetryNow));
        }
        ports.models.choose(Some(id), None).ok().map(Self::Other)
    }
}

/// The turn that takes the place of one that was sealed to make way for it. What that one was to supersede is passed on as
/// long as it has no chunks; so are the messages that wait.
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
    settings.definition.approvals = old.definition.approvals;
    settings.definition.trace = old.definition.trace.clone();
    // It was asked for with the message; else that of the new model or route holds.
    if let Some(report) = &old.definition.final_report {
        settings.definition.final_report = Some(report.clone());
    }
    if let Some(scope) = &old.definition.request {
        settings.bring(scope.clone());
    }
    let (mut effects, now) = (Effects::new(), ports.clock.now());
    let of_turn = settings.of_turn(ports);
    let mut turn = Turn::begin_again(new_id::turn(), of_turn, sealed.id().clone(), now, &mut effects);
    turn.choose_first_target(now, &ports.informed(settings.schedule.clone()), &mut effects);
    for message in queue {
        turn.handle(now, Input::Steer(message.clone()), &NoRetry, &mut effects);
    }
    TurnTask { turn, effects, settings, owed: super::PendingReplies::default() }
}
