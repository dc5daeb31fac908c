//! Starting a turn.

mod request;

use std::{sync::Arc, time::Duration};

use everturn_kernel::{AfterContent, Millis, Prompt};
use everturn_wire::{AgentEvent, ConversationId, ModelSettings, QueuedMessage, RetrySettings, TurnId};
use futures_core::future::BoxFuture;
use tokio::task::JoinHandle;

use super::{Orchestrator, StartTurn, Started, command::check, request_key::RequestKey};
use crate::{
    Cursor, Error, JournalError, RequestScope, Version,
    conversation::{Conversation, Seated},
    new_id, report,
    request_history::RequestHistory,
    session::{self, TurnSettings, TurnTask, standing},
};
use request::{check_choice, check_scope};

/// Number of events to read at a time when searching for the start of a turn.
const EVENTS: usize = 512;

/// Delay before starting a turn again after another node wrote to the conversation.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A validated request.
#[derive(Clone)]
struct Checked {
    start: StartTurn,
    given: Option<RequestHistory>,
    turn_id: TurnId,
    key: Option<Keyed>,
    /// Whether the conversation's id was generated for this request: then nothing is stored under it.
    is_new: bool,
    /// The message, if it was to be queued.
    queued: Option<QueuedMessage>,
}

/// The key of a request, in a journal that is shared.
#[derive(Clone)]
struct Keyed {
    key: RequestKey,
    /// The version of the conversation up to which it has started no turn.
    unused: Version,
}

/// Whether a key has started a turn.
pub(super) enum Begun {
    With(Started),
    /// Not up to this version of the conversation.
    Not(Version),
}

/// Waits for a start on a task of its own.
async fn started(task: JoinHandle<Result<Started, Error>>) -> Result<Started, Error> {
    match task.await {
        Ok(started) => started,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Error::ShuttingDown),
    }
}

impl Orchestrator {
    /// Starts a turn. Returns when its start is durable; the turn then runs by itself. If the idempotency key has
    /// already started a turn, returns that turn, whatever its state.
    ///
    /// # Errors
    /// When the request or the model is invalid, a turn is running in the conversation, the key was used for another
    /// request, or the journal fails.
    pub fn start(&self, start: StartTurn) -> BoxFuture<'_, Result<Started, Error>> {
        // Boxed here, so that its code is compiled once and not into each caller.
        Box::pin(self.start_requested(start))
    }

    async fn start_requested(&self, start: StartTurn) -> Result<Started, Error> {
        let given = start.history.as_deref().map(RequestHistory::read).transpose()?;
        check(&start)?;
        check_scope(&start)?;
        start.retry.as_ref().map_or(Ok(()), RetrySettings::check)?;
        start.final_report.as_ref().map_or(Ok(()), report::check)?;
        let check = |settings: &ModelSettings| settings.check().map_err(|why| Error::BadMessage { why });
        start.model_settings.as_ref().map_or(Ok(()), check)?;
        let key = RequestKey::of(&start)?;
        let id = conversation(&start, key.as_ref())?;
        let Some(key) = key else {
            let is_new = start.conversation_id.is_none();
            return self
                .start_in(
                    &id,
                    Checked { start, given, turn_id: new_id::turn(), key: None, is_new, queued: None },
                )
                .await;
        };
        // In its own task: it completes even if this future is dropped, and a repeated request waits for its outcome.
        let this = self.clone();
        let starting = async move {
            let [of_key, _] = key.conversations();
            let _alone = this.registry.alone_with_key(&of_key).await;
            let unused = match this.find_begun(&id, &key).await? {
                Begun::With(begun) => return Ok(begun),
                Begun::Not(unused) => unused,
            };
            let claim = match start.conversation_id {
                Some(_) => Some(this.claim_key(&id, &key).await?),
                None => None,
            };
            let turn_id = key.turn_id();
            let keyed = this.ports.peers.is_some().then_some(Keyed { key, unused });
            let checked = Checked { start, given, turn_id, key: keyed, is_new: false, queued: None };
            let started = this.start_in(&id, checked).await;
            if let Some(claim) = claim.filter(|_| started.is_err()) {
                this.give_up_key(&claim).await;
            }
            started
        };
        started(tokio::spawn(starting)).await
    }

    async fn start_in(&self, id: &ConversationId, mut checked: Checked) -> Result<Started, Error> {
        self.ports.shutdown.check_open()?;
        // Checked first, so that an unknown model does not create a conversation.
        let model =
            self.ports.models.of(id.caller_name().as_ref()).choose(checked.start.model.as_deref(), None)?;
        self.ports.models.now().check_parameters(&model, &checked.start.parameters)?;
        let Some(_) = &self.ports.peers else {
            let conversation = self.open(id, checked.is_new).await?;
            session::go_on_if_due(&self.ports, &conversation)?;
            return self.begin_checked(&conversation, checked).await;
        };
        loop {
            let conversation = self.open(id, std::mem::take(&mut checked.is_new)).await?;
            self.ports.read_settings(&conversation).await?;
            let conversation = self.rouse(conversation).await?;
            session::go_on_if_due(&self.ports, &conversation)?;
            match self.begin_checked(&conversation, checked.clone()).await {
                // Another node began a turn first, so that this conversation is busy, or will be in a moment.
                Err(Error::Journal(JournalError::Stale { .. }) | Error::Elsewhere { .. }) => {}
                // It began a turn while the key was looked for, and has sealed it. Perhaps with this key.
                Err(Error::Busy { .. }) if checked.key.is_some() && conversation.is_vacant() => {}
                begun => return begun,
            }
            drop(conversation);
            self.ports.clock.sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns a conversation, creating it if it does not exist.
    async fn open(&self, id: &ConversationId, is_new: bool) -> Result<Arc<Conversation>, Error> {
        let now = self.ports.clock.now();
        if is_new { self.registry.make(id, now).await } else { self.registry.get_or_make(id, now).await }
    }

    /// Starts a turn with a message that no turn could queue. In a cluster, it is published as queued before: a node that got no
    /// reply searches the events for it.
    pub(super) async fn begin(
        &self,
        conversation: &Arc<Conversation>,
        start: StartTurn,
        message: &QueuedMessage,
    ) -> Result<Started, Error> {
        let queued = self.ports.peers.is_some().then(|| message.clone());
        let turn_id = new_id::turn();
        let checked = Checked { start, given: None, turn_id, key: None, is_new: false, queued };
        self.begin_checked(conversation, checked).await
    }

    async fn begin_checked(
        &self,
        conversation: &Arc<Conversation>,
        checked: Checked,
    ) -> Result<Started, Error> {
        conversation.settled().await;
        let Checked { start, given, turn_id, key, queued, .. } = checked;
        // Taken before the version is read: what this instance learns later ends the vacancy, and what it does not learn makes
        // its append stale.
        let vacancy = key.as_ref().map(|_| conversation.vacancy());
        if let Some(Keyed { key, unused }) = &key
            && conversation.state().record.version != *unused
            && let Begun::With(begun) = self.begun_with(&conversation.id, key).await?
        {
            return Ok(begun);
        }
        let last_model = conversation.state().record.head.model.clone();
        let model = self
            .ports
            .models
            .of(conversation.id.caller_name().as_ref())
            .choose(start.model.as_deref(), last_model.as_deref())?;
        self.check_retry(conversation, &model, start.retry.as_ref())?;
        let own = start.model_settings.clone().map(ModelSettings::trimmed);
        let mut settings = {
            let (effort, retry) = (start.reasoning_effort.clone(), start.retry.as_ref());
            TurnSettings::of_message(&self.ports, conversation, model, effort, None, retry, own.as_ref())
        };
        (settings.definition.approvals, settings.definition.priority) = (start.approvals, start.priority);
        if start.whole && start.retry.as_ref().is_none_or(|retry| retry.after_content.is_none()) {
            settings.after_content = AfterContent::Rewind;
        }
        if let Some(most) = start.budget {
            settings.budget = settings.budget.at_most(most, self.ports.clock.now());
        }
        settings.definition.trace = start.trace.clone().map(Arc::new);
        if let Some(report) = &start.final_report {
            settings.definition.final_report = Some(Arc::new(report.clone()));
        }
        if let Some(scope) = scope(&start, given.as_ref()) {
            // Checks every target of a route or fallback chain.
            self.ports.models.now().check_parameters(&settings.model, &scope.parameters)?;
            settings.bring(Arc::new(scope));
            check_choice(&settings, &start)?;
        }
        let seated = match vacancy {
            Some(vacancy) => conversation.claim_since(vacancy)?,
            None => conversation.claim()?,
        };
        let job = match given {
            Some(given) => {
                // Read after claiming the seat: only its holder adds to the history.
                let chunks = conversation.state().record.chunks.clone();
                let opening = given.over(&standing(&chunks, None));
                settings.definition.supersedes = opening.supersedes;
                TurnTask::over(&self.ports, turn_id, opening.added, given.prompt, settings)
            }
            None => {
                let prompt = Prompt { text: start.text, images: start.images };
                TurnTask::new(&self.ports, turn_id, prompt, settings)
            }
        };
        let job = match queued {
            Some(message) => job.announcing(message),
            None => job,
        };
        match own {
            Some(own) => self.begin_turn_setting(seated, job, own).await,
            None => self.begin_turn(seated, job).await,
        }
    }

    /// Begins a turn, and stores what its message sets for the conversation: not before, as one that is refused changes nothing.
    async fn begin_turn_setting(
        &self,
        seated: Seated,
        job: TurnTask,
        own: ModelSettings,
    ) -> Result<Started, Error> {
        let this = self.clone();
        // In its own task: what is taken is stored, even if this future is dropped.
        started(tokio::spawn(async move {
            let started = this.begin_turn(seated, job).await?;
            let id = &started.conversation_id;
            if let Err(error) = this.registry.set_model_settings(id, &own).await {
                tracing::warn!(conversation = %id, %error, "what a message set was not stored: it holds for its turn only");
            }
            Ok(started)
        }))
        .await
    }

    /// Begins a turn, and returns when its start is durable.
    pub(super) async fn begin_turn(&self, seated: Seated, mut job: TurnTask) -> Result<Started, Error> {
        let conversation_id = seated.conversation.id.clone();
        let (turn_id, begun) = job.started();
        session::begin(&self.ports, seated, job);
        let from = begun.await.map_err(|_| Error::NotStarted { id: conversation_id.clone() })??;
        Ok(Started { conversation_id, turn_id, from, is_new: true })
    }

    /// Returns the turn of the conversation that was started with this key.
    pub(super) async fn begun_with(&self, id: &ConversationId, key: &RequestKey) -> Result<Begun, Error> {
        let journal = &self.ports.journal;
        let Some(stored) = journal.load(id).await? else { return Ok(Begun::Not(Version::default())) };
        let running = stored.turn.map(|turn| (turn.snapshot.id().clone(), turn.from));
        let (turn_id, from) = match running.filter(|(turn_id, _)| key.began(turn_id)) {
            Some((turn_id, from)) => (turn_id, Some(from)),
            None => {
                let sealed = journal.metrics(id).await?.into_iter().map(|turn| turn.turn_id);
                let Some(turn_id) = sealed.into_iter().find(|turn_id| key.began(turn_id)) else {
                    return Ok(Begun::Not(stored.version));
                };
                (turn_id, None)
            }
        };
        if turn_id != key.turn_id() {
            let why = "for another request: send this one with a new key".to_owned();
            return Err(Error::KeyUsed { turn_id, why });
        }
        let from = match from {
            Some(from) => from,
            None => self.first_event(id, &turn_id).await?.ok_or_else(|| {
                let why =
                    format!("which has ended, and its events are no longer kept: read conversation {id}");
                Error::KeyUsed { turn_id: turn_id.clone(), why }
            })?,
        };
        Ok(Begun::With(Started { conversation_id: id.clone(), turn_id, from, is_new: false }))
    }

    /// Returns the position of a turn's first event, if it is still kept.
    async fn first_event(&self, id: &ConversationId, turn_id: &TurnId) -> Result<Option<Cursor>, Error> {
        let mut after = Cursor::default();
        loop {
            let events = self.ports.journal.events(id, after, EVENTS).await?;
            let Some(last) = events.last() else { return Ok(None) };
            after = last.end;
            let is_of = |json: &[u8]| {
                let event = serde_json::from_slice::<AgentEvent>(json);
                event.is_ok_and(|event| event.turn_id.as_ref() == Some(turn_id))
            };
            if let Some(first) = events.iter().find(|event| is_of(&event.json)) {
                return Ok(Some(first.start));
            }
        }
    }

    /// Removes ephemeral conversations whose last turn ended longer ago than
    /// [`Builder::keep_ephemeral`](crate::Builder::keep_ephemeral). Returns their number. Call it periodically.
    ///
    /// # Errors
    /// When the journal or the store of documents fails.
    pub async fn drop_ephemeral(&self) -> Result<usize, Error> {
        let keep = u64::try_from(self.ports.keep_ephemeral.as_millis()).unwrap_or(u64::MAX);
        let idle_since = Millis(self.ports.clock.now().0.saturating_sub(keep));
        let removed = self.ports.journal.drop_ephemeral(idle_since).await?;
        let mut deleted = Ok(());
        for id in &removed {
            // Another conversation may get its id. The others' are deleted all the same.
            deleted = deleted.and(self.ports.delete_documents(id).await);
        }
        deleted?;
        Ok(removed.len())
    }
}

/// Returns the id of the conversation in which to start the turn.
fn conversation(start: &StartTurn, key: Option<&RequestKey>) -> Result<ConversationId, Error> {
    match (&start.conversation_id, start.ephemeral) {
        (Some(id), ephemeral) => {
            let id = ConversationId::parse_any(id.as_str())?;
            if ephemeral && !id.is_ephemeral() {
                let why = "an ephemeral conversation gets its id here: leave conversationId out".to_owned();
                return Err(Error::BadMessage { why });
            }
            Ok(id)
        }
        (None, ephemeral) => {
            let of_caller = |id: ConversationId| start.caller.as_ref().map_or(id.clone(), |name| id.of(name));
            Ok(match (key.map(RequestKey::conversations), ephemeral) {
                (Some([lasting, _]), false) => lasting,
                (Some([_, ephemeral]), true) => ephemeral,
                (None, false) => of_caller(new_id::conversation()),
                (None, true) => of_caller(new_id::ephemeral()),
            })
        }
    }
}

/// Returns the parameters, tools and system prompt of the request, if it has any.
fn scope(start: &StartTurn, given: Option<&RequestHistory>) -> Option<RequestScope> {
    let scope = RequestScope {
        parameters: Arc::new(start.parameters.clone()),
        tools: start.tools.clone(),
        system_prompt: given.and_then(|given| given.system_prompt.clone()),
        bare: start.bare,
    };
    (scope != RequestScope::default()).then_some(scope)
}
