//! Retries the last turn, or answers an earlier user message again.

use everturn_kernel::Prompt;
use everturn_wire::{
    ApprovalMode, Chunk, ConversationId, DoneReason, Image, RetrySettings, TurnId, TurnMetrics,
};

use super::{Orchestrator, StartTurn, Started, command::check};
use crate::{
    Error,
    conversation::Conversation,
    journal::Inherited,
    new_id,
    session::{self, Fork, NoFork, TurnSettings, TurnTask},
};

/// A request to retry the last turn or to answer a user message again: [`RetryTurn::last`] or [`RetryTurn::message`],
/// then whatever differs from the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RetryTurn {
    /// The conversation's last turn; refused if it is no longer the last. Required without `seq`: then this turn is
    /// repeated, and must have ended in an error or been stopped.
    pub turn_id: Option<TurnId>,
    /// The `seq` of a user message to answer again.
    pub seq: Option<u64>,
    /// With `seq`: a new text for that message.
    pub text: Option<String>,
    /// With `text`: the images of that message. Default: those that it has.
    pub images: Option<Vec<Image>>,
    /// The model or route, by its id. Default: the conversation's last one. Later turns of the conversation use it,
    /// too.
    pub model: Option<String>,
    /// The reasoning effort of the new turn. Default: as in the turn that is repeated, or that contains the message.
    pub reasoning_effort: Option<String>,
    /// Retry settings of the new turn only. They override those of its conversation.
    pub retry: Option<RetrySettings>,
    /// What happens to calls that need a person's approval. Default: as in the turn that is repeated, or that contains
    /// the message.
    pub approvals: Option<ApprovalMode>,
}

impl RetryTurn {
    /// Repeats the last turn.
    pub fn last(turn_id: impl Into<TurnId>) -> Self {
        Self { turn_id: Some(turn_id.into()), ..Self::default() }
    }

    /// Answers again the user message that has a chunk with this `seq`.
    pub fn message(seq: u64) -> Self {
        Self { seq: Some(seq), ..Self::default() }
    }

    /// Refuses the request unless this is still the conversation's last turn.
    #[must_use]
    pub fn after(self, turn_id: impl Into<TurnId>) -> Self {
        Self { turn_id: Some(turn_id.into()), ..self }
    }

    /// Replaces the text of the message.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// Sets the model or route.
    #[must_use]
    pub fn model(self, model: impl Into<String>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// Sets retry settings for the new turn only.
    #[must_use]
    pub fn retry(self, settings: RetrySettings) -> Self {
        Self { retry: Some(settings), ..self }
    }

    /// Sets what happens to calls that need a person's approval.
    #[must_use]
    pub fn approvals(self, mode: ApprovalMode) -> Self {
        Self { approvals: Some(mode), ..self }
    }
}

/// How to start the new turn.
struct Asked {
    beginning: Beginning,
    supersedes: Option<u64>,
    /// The mode of the turn that is repeated, or that contains the message.
    approvals: Option<ApprovalMode>,
    /// What that turn's request set.
    inherited: Inherited,
}

/// How the new turn begins.
enum Beginning {
    /// Repeats this turn over the same history.
    Again(TurnId),
    /// Begins with this user message.
    Message(Prompt),
}

impl Orchestrator {
    /// Repeats the conversation's last turn over the same history, if it ended in an error or was stopped. Its last
    /// output stays visible to people, but is not sent to the model. Returns when the new turn's start is durable. If the future is
    /// dropped, the new turn may have begun or not; if it has, it goes on.
    ///
    /// # Errors
    /// When the conversation does not exist, the turn is not its last one or ended well, another turn is running, or
    /// the journal fails.
    pub async fn retry(&self, id: &ConversationId, turn_id: &TurnId) -> Result<Started, Error> {
        self.retry_with(id, RetryTurn::last(turn_id.clone())).await
    }

    /// Like [`Self::retry`], or answers a user message again, optionally with another text. What follows the message
    /// stays visible to people; the model receives the history up to it, then the new turn.
    ///
    /// # Errors
    /// As for [`Self::retry`]. Also when the model or route does not exist, the conversation has no such user message,
    /// a later version replaced it, or the new text or a retry setting is invalid.
    pub async fn retry_with(&self, id: &ConversationId, what: RetryTurn) -> Result<Started, Error> {
        self.ports.shutdown.check_open()?;
        if what.approvals == Some(ApprovalMode::Unknown) {
            return Err(Error::BadRetry { why: "approvals must be \"ask\" or \"deny\"".to_owned() });
        }
        let conversation = self.find(id).await?;
        conversation.settled().await;
        self.ports.read_settings(&conversation).await?;
        // Taken before the reads that follow, so that a turn that begins in between is noticed.
        let vacancy = conversation.vacancy();
        let turns = self.ports.journal.metrics(id).await?;
        let Asked { beginning, supersedes, approvals, inherited } = match what.seq {
            Some(seq) => {
                conversation.check_vacant(vacancy)?;
                fork(&conversation, &turns, seq, &what)?
            }
            None => last(&conversation, &turns, &what)?,
        };
        let last_model = conversation.state().record.head.model.clone();
        let model = self
            .ports
            .models
            .of(conversation.id.caller_name().as_ref())
            .choose(what.model.as_deref(), last_model.as_deref())?;
        self.check_retry(&conversation, &model, what.retry.as_ref())?;
        // Whoever tries again may have mended a key.
        self.ports.health.forget_rejected_keys();
        let retry = what.retry.as_ref();
        let mut settings =
            TurnSettings::of_message(&self.ports, &conversation, model, None, supersedes, retry, None);
        settings.inherit(inherited);
        if what.reasoning_effort.is_some() {
            settings.definition.reasoning_effort.clone_from(&what.reasoning_effort);
        }
        if let Some(scope) = &settings.definition.request {
            self.ports.models.now().check_parameters(&settings.model, &scope.parameters)?;
        }
        let seated = conversation.claim_since(vacancy)?;
        settings.definition.approvals = what.approvals.or(approvals).unwrap_or_default();
        let job = match beginning {
            Beginning::Again(again) => TurnTask::retry(&self.ports, new_id::turn(), again, settings),
            Beginning::Message(prompt) => TurnTask::new(&self.ports, new_id::turn(), prompt, settings),
        };
        self.begin_turn(seated, job).await
    }
}

/// Repeats the last turn, and determines what that supersedes.
fn last(conversation: &Conversation, turns: &[TurnMetrics], what: &RetryTurn) -> Result<Asked, Error> {
    let bad = |why: &str| Error::BadRetry { why: why.to_owned() };
    let turn_id = what.turn_id.as_ref().ok_or_else(|| bad("name the turn, or a user message by its seq"))?;
    let last = last_turn(turns, turn_id)?;
    if what.text.is_some() {
        return Err(bad("name the user message that the new text is for by its seq"));
    }
    if !matches!(last.reason, None | Some(DoneReason::Error | DoneReason::Aborted)) {
        let why = "it ended neither in an error nor by a stop".to_owned();
        return Err(Error::NotTriedAgain { turn_id: turn_id.clone(), why });
    }
    let chunks = conversation.state().record.chunks.clone();
    let (approvals, inherited) = (last.approvals, Inherited::read(last.request.as_deref()));
    // What comes before a summary that failed is the answer of another turn.
    let supersedes = session::loose_end(&chunks).filter(|_| !inherited.summarizes);
    Ok(Asked { beginning: Beginning::Again(turn_id.clone()), supersedes, approvals, inherited })
}

fn last_turn<'t>(turns: &'t [TurnMetrics], turn_id: &TurnId) -> Result<&'t TurnMetrics, Error> {
    turns.last().filter(|turn| turn.turn_id == *turn_id).ok_or_else(|| Error::NotTriedAgain {
        turn_id: turn_id.clone(),
        why: "it is not the last turn of its conversation".to_owned(),
    })
}

/// Answers a user message again, and determines what that supersedes.
fn fork(
    conversation: &Conversation,
    turns: &[TurnMetrics],
    seq: u64,
    what: &RetryTurn,
) -> Result<Asked, Error> {
    if let Some(turn_id) = &what.turn_id {
        last_turn(turns, turn_id)?;
    }
    let chunks = conversation.state().record.chunks.clone();
    let Fork { message, after, before } = session::fork(&chunks, turns, seq).map_err(|why| match why {
        NoFork::Unknown(last) => {
            Error::BadRetry { why: format!("there is no chunk {seq}, the last one is {last}") }
        }
        NoFork::NotOfUser(role) => {
            Error::BadRetry { why: format!("chunk {seq} is no user message, its role is {role:?}") }
        }
        NoFork::Superseded => Error::Superseded { seq },
    })?;
    // The turn that contains the message, or else the last one, which ended after it.
    let range = |turn: &TurnMetrics| Some(turn.first_seq?..=turn.last_seq?);
    let of_message = turns.iter().find(|turn| range(turn).is_some_and(|range| range.contains(&seq)));
    let of_message = of_message.or(turns.last());
    let approvals = of_message.and_then(|turn| turn.approvals);
    let inherited = Inherited::read(of_message.and_then(|turn| turn.request.as_deref()));
    // The message is answered, whatever came after it.
    let inherited = Inherited { summarizes: false, ..inherited };
    if let Some(text) = &what.text {
        let images = message.iter().filter_map(|chunk| match &**chunk {
            Chunk::Image { url, mime_type } => Some(Image { url: url.clone(), mime_type: mime_type.clone() }),
            _ => None,
        });
        let images = what.images.clone().unwrap_or_else(|| images.collect());
        let start = StartTurn::new(text.clone()).images(images);
        check(&start)?;
        let prompt = Prompt { text: start.text, images: start.images };
        return Ok(Asked {
            beginning: Beginning::Message(prompt),
            supersedes: Some(before),
            approvals,
            inherited,
        });
    }
    let again = of_message
        .map(|turn| turn.turn_id.clone())
        .ok_or_else(|| Error::BadRetry { why: format!("nothing is known of the turn of chunk {seq}") })?;
    Ok(Asked { beginning: Beginning::Again(again), supersedes: after, approvals, inherited })
}
