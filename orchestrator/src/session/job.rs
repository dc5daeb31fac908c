//! A job: a turn for a session to drive, new or taken up again.

use everturn_kernel::{Effects, Input, NoRetry, Prompt, RestoreError, Turn};
use everturn_wire::{Category, Failure, TurnId};
use tokio::sync::oneshot;

use crate::{
    Cursor, Definition, JournalError, TurnRecord, conversation::Left, model::Model, orchestrator::Shared,
    registry,
};

/// A turn for a session to drive.
pub(crate) struct Job {
    pub(super) turn: Turn,
    pub(super) effects: Effects,
    pub(super) settings: TurnSettings,
    pub(super) owed: Owed,
}

/// What is owed when a turn begins.
#[derive(Default)]
pub(super) struct Owed {
    /// Told where the turn's events begin, once it is durable, or why it cannot be.
    pub(super) started: Option<oneshot::Sender<Result<Cursor, JournalError>>>,
    /// Answered once what begins the turn is durable.
    pub(super) taken: Vec<oneshot::Sender<()>>,
}

/// What a turn asks its model with.
#[derive(Clone)]
pub(crate) struct TurnSettings {
    pub(crate) model: Model,
    pub(crate) definition: Definition,
    /// Whether watchers still believe that messages wait: the turn's first commit tells them what does.
    pub(crate) tell_queue: bool,
}

impl Job {
    /// A new turn.
    pub(crate) fn begin(
        shared: &Shared,
        id: TurnId,
        prompt: Prompt,
        settings: TurnSettings,
        started: oneshot::Sender<Result<Cursor, JournalError>>,
    ) -> Self {
        let owed = Owed { started: Some(started), ..Owed::default() };
        Self { owed, ..Self::new(shared, id, prompt, settings) }
    }

    /// A turn that tries another one again.
    pub(crate) fn retry(
        shared: &Shared,
        id: TurnId,
        again: TurnId,
        settings: TurnSettings,
        started: oneshot::Sender<Result<Cursor, JournalError>>,
    ) -> Self {
        let mut effects = Effects::new();
        let turn = Turn::begin_again(id, shared.settings.clone(), again, shared.clock.now(), &mut effects);
        Self { turn, effects, settings, owed: Owed { started: Some(started), ..Owed::default() } }
    }

    /// The first of the messages that are left over from a turn, as the next turn. The others wait on.
    pub(super) fn queued(shared: &Shared, left: Left, settings: TurnSettings) -> Option<Self> {
        let Left { messages, taken } = left;
        let mut left = messages.into_iter();
        let prompt = Prompt { text: left.next()?.text, images: Vec::new() };
        // It follows the turn: what that one replaced is replaced.
        let definition = Definition { supersedes: None, ..settings.definition };
        let settings = TurnSettings { tell_queue: left.len() == 0, definition, ..settings };
        let mut job = Self::new(shared, registry::new_turn_id(), prompt, settings);
        job.owed.taken = taken;
        for message in left {
            job.turn.handle(shared.clock.now(), Input::Steer(message), &NoRetry, &mut job.effects);
        }
        Some(job)
    }

    /// A turn that is in the journal, unsealed.
    ///
    /// # Errors
    /// When it was saved by a later version of this program.
    pub(crate) fn again(
        shared: &Shared,
        record: TurnRecord,
        asked: Option<&str>,
    ) -> Result<Option<Self>, RestoreError> {
        let mut turn = Turn::restore(record.snapshot)?;
        // Without any model there is nothing to go on with: the turn stays as it is.
        let Ok(model) = shared.models.choose(None, asked) else { return Ok(None) };
        let input = match asked {
            Some(asked) if asked != model.id => {
                fault(&format!("the model {asked} of this turn is no longer configured"))
            }
            _ => Input::Recover,
        };
        let mut effects = Effects::new();
        turn.handle(shared.clock.now(), input, &NoRetry, &mut effects);
        let settings = TurnSettings { model, definition: record.definition, tell_queue: false };
        Ok(Some(Self { turn, effects, settings, owed: Owed::default() }))
    }

    fn new(shared: &Shared, id: TurnId, prompt: Prompt, settings: TurnSettings) -> Self {
        let mut effects = Effects::new();
        let turn = Turn::begin(id, shared.settings.clone(), prompt, shared.clock.now(), &mut effects);
        Self { turn, effects, settings, owed: Owed::default() }
    }
}

fn fault(message: &str) -> Input {
    Input::Fault(Failure::new(Category::Internal, false, message))
}
