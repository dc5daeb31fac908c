//! The conversations in memory, each loaded once.

mod loading;

use std::{sync::Arc, time::Duration};

use everturn_kernel::Millis;
use everturn_wire::{ConversationId, ModelSettings, RetrySettings};
use futures_core::{future::BoxFuture, stream::BoxStream};

use crate::{
    NodeId,
    clock::Clock,
    cluster::LiveEvent,
    conversation::{Conversation, Home, Loss, continues},
    error::Error,
    journal::{Journal, JournalError, Window},
    memory::weight,
    model_settings::ModelSettingsStore,
    retry_settings::RetryScopes,
};
use loading::{Alone, Loading};

/// Pauses after readings of a conversation whose history was not whole, in milliseconds.
const READ_AGAIN_MS: [u64; 5] = [10, 40, 150, 800, 2_000];

/// The conversations in memory.
pub(crate) struct Registry {
    journal: Arc<dyn Journal>,
    home: Home,
    clock: Arc<dyn Clock>,
    retry: Arc<RetryScopes>,
    model_settings: ModelSettingsStore,
    loading: Loading,
    /// Serializes starting turns with idempotency keys.
    keys: Loading,
    /// Serializes messages that other nodes send to a conversation's queue.
    queues: Loading,
}

/// The outcome of taking a turn over.
pub(crate) enum Adopted {
    /// The current instance.
    Now(Arc<Conversation>),
    /// It may be taken over after this time.
    After(Duration),
}

impl Registry {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        clock: Arc<dyn Clock>,
        retry: Arc<RetryScopes>,
        model_settings: ModelSettingsStore,
        home: Home,
    ) -> Self {
        let (loading, keys, queues) = (Loading::default(), Loading::default(), Loading::default());
        Self { journal, home, clock, retry, model_settings, loading, keys, queues }
    }

    /// Returns a conversation, or an error if it does not exist.
    pub(crate) async fn get(&self, id: &ConversationId) -> Result<Arc<Conversation>, Error> {
        if let Some(held) = self.home.loaded.get(id) {
            return Ok(held);
        }
        self.load_alone(id).await
    }

    /// Boxed, so that the code of loading is compiled once and not into each caller.
    fn load_alone<'a>(&'a self, id: &'a ConversationId) -> BoxFuture<'a, Result<Arc<Conversation>, Error>> {
        Box::pin(async move {
            let _alone = self.loading.alone(id).await;
            self.load(id).await?.ok_or_else(|| Error::UnknownConversation { id: id.clone() })
        })
    }

    /// Returns a conversation if it is in memory.
    pub(crate) fn held(&self, id: &ConversationId) -> Option<Arc<Conversation>> {
        self.home.loaded.get(id)
    }

    /// Returns a conversation, creating it if it does not exist.
    pub(crate) async fn get_or_make(
        &self,
        id: &ConversationId,
        now: Millis,
    ) -> Result<Arc<Conversation>, Error> {
        if let Some(held) = self.home.loaded.get(id) {
            return Ok(held);
        }
        let _alone = self.loading.alone(id).await;
        if let Some(held) = self.home.loaded.get(id) {
            return Ok(held);
        }
        let live = self.follow(id).await?;
        if let Some(loaded) = self.read(id, None).await? {
            return Ok(self.register(loaded, live));
        }
        Ok(self.register(Conversation::new(id.clone(), now, self.home.clone()), live))
    }

    /// Creates a conversation whose id was generated for it, so that the journal need not be asked. If it exists after all,
    /// its first append is stale.
    pub(crate) async fn make(&self, id: &ConversationId, now: Millis) -> Result<Arc<Conversation>, Error> {
        let live = self.follow(id).await?;
        Ok(self.register(Conversation::new(id.clone(), now, self.home.clone()), live))
    }

    /// Loads a conversation anew, to take over its unsealed turn from a node that is gone. Returns it without taking it over
    /// if that node no longer drives it: another one may have been faster. `may_continue` says after how long it may be taken
    /// over; if that is not now, nothing changes.
    ///
    /// # Errors
    /// When it does not exist, or `may_continue` refuses; then nothing changes.
    pub(crate) async fn adopt(
        &self,
        id: &ConversationId,
        from: &NodeId,
        may_continue: impl FnOnce(&Conversation) -> Result<Duration, Error>,
    ) -> Result<Adopted, Error> {
        let _alone = self.loading.alone(id).await;
        let held = self.home.loaded.get(id);
        if let Some(held) = &held
            && held.elsewhere().is_none_or(|(owner, _)| owner != *from)
        {
            return Ok(Adopted::Now(held.clone()));
        }
        // Begins before the journal is read, so that nothing in between is missed.
        let live = self.follow(id).await?;
        let adopted = self.read(id, Some(from)).await?;
        let adopted = adopted.ok_or_else(|| Error::UnknownConversation { id: id.clone() })?;
        let left = may_continue(&adopted)?;
        if !left.is_zero() {
            return Ok(Adopted::After(left));
        }
        if let Some(held) = held {
            held.lose(Loss::Moved);
        }
        Ok(Adopted::Now(self.register(adopted, live)))
    }

    /// Waits for exclusive access to load a conversation or to change what it sets.
    pub(crate) async fn alone<'r>(&'r self, id: &'r ConversationId) -> Alone<'r> {
        self.loading.alone(id).await
    }

    /// Waits for exclusive access to start a turn with an idempotency key in this conversation.
    pub(crate) async fn alone_with_key<'r>(&'r self, id: &'r ConversationId) -> Alone<'r> {
        self.keys.alone(id).await
    }

    /// Waits for exclusive access to queue a message of another node.
    pub(crate) async fn alone_with_queue<'r>(&'r self, id: &'r ConversationId) -> Alone<'r> {
        self.queues.alone(id).await
    }

    /// Returns an error if the conversation does not exist. Does not load it.
    pub(crate) async fn check(&self, id: &ConversationId) -> Result<(), Error> {
        match self.home.loaded.get(id).is_some() || self.journal.load(id).await?.is_some() {
            true => Ok(()),
            false => Err(Error::UnknownConversation { id: id.clone() }),
        }
    }

    /// Changes the retry settings of a conversation that exists, durably.
    pub(crate) async fn change_retry(
        &self,
        id: &ConversationId,
        change: impl Fn(&Conversation, &RetrySettings) -> Result<RetrySettings, Error>,
    ) -> Result<Arc<Conversation>, Error> {
        // Prevents concurrent changes and loads.
        let _alone = self.loading.alone(id).await;
        let held = self.load(id).await?.ok_or_else(|| Error::UnknownConversation { id: id.clone() })?;
        let settings = self.retry.change_of_conversation(id, |stored| change(&held, stored)).await?;
        if self.is_gone(id).await? {
            self.retry.forget(id).await?;
            return Err(Error::UnknownConversation { id: id.clone() });
        }
        held.retry.set(settings);
        Ok(held)
    }

    /// Sets what a conversation that exists sets for its model, durably.
    pub(crate) async fn set_model_settings(
        &self,
        id: &ConversationId,
        settings: &ModelSettings,
    ) -> Result<(), Error> {
        // Prevents concurrent changes and loads.
        let _alone = self.loading.alone(id).await;
        let held = self.load(id).await?.ok_or_else(|| Error::UnknownConversation { id: id.clone() })?;
        self.model_settings.write(id, settings).await?;
        if self.is_gone(id).await? {
            self.model_settings.write(id, &ModelSettings::default()).await?;
            return Err(Error::UnknownConversation { id: id.clone() });
        }
        held.model_settings.set(settings.clone());
        Ok(())
    }

    /// Whether another node has deleted a conversation that was there before a change of what it sets: the next one of that id must
    /// not inherit the change.
    async fn is_gone(&self, id: &ConversationId) -> Result<bool, Error> {
        Ok(self.home.peers.is_some() && self.journal.load(id).await?.is_none())
    }

    /// Returns all conversations in memory.
    pub(crate) fn all(&self) -> Vec<Arc<Conversation>> {
        self.home.loaded.all()
    }

    /// Loads a conversation unless another task did so in the meantime. The caller must hold the loading lock.
    async fn load(&self, id: &ConversationId) -> Result<Option<Arc<Conversation>>, Error> {
        if let Some(held) = self.home.loaded.get(id) {
            return Ok(Some(held));
        }
        // Begins before the journal is read, so that nothing in between is missed.
        let live = self.follow(id).await?;
        Ok(self.read(id, None).await?.map(|loaded| self.register(loaded, live)))
    }

    /// `adopts_from`: takes over the unsealed turn of this node.
    async fn read(
        &self,
        id: &ConversationId,
        adopts_from: Option<&NodeId>,
    ) -> Result<Option<Arc<Conversation>>, Error> {
        for pause in READ_AGAIN_MS {
            let Some(stored) = self.journal.load(id).await? else { return Ok(None) };
            let mut chunks = self.journal.chunks(id, Window::default()).await?;
            // An append in between has a head of its own, which comes with it.
            let last = stored.head.last_seq;
            chunks.truncate(chunks.partition_point(|chunk| chunk.seq <= last));
            if continues(0, &chunks, last) {
                if !self.home.memory.has_room_for(chunks.iter().map(|chunk| weight(chunk)).sum()) {
                    return Err(Error::NoMemory { id: id.clone(), total_mib: self.home.memory.total_mib() });
                }
                let read =
                    Conversation::from_journal(id.clone(), stored, chunks, self.home.clone(), adopts_from);
                read.retry.set(self.retry.of_conversation(id).await?);
                read.model_settings.set(self.model_settings.of(id).await?);
                return Ok(Some(read));
            }
            // Removed and begun again in between, or read from a server of the journal that is behind.
            self.clock.sleep(Duration::from_millis(pause)).await;
        }
        let why =
            format!("the history of conversation {id} is not whole: chunks are missing, or stored twice");
        Err(JournalError::Storage(why).into())
    }

    async fn follow(&self, id: &ConversationId) -> Result<Option<BoxStream<'static, LiveEvent>>, Error> {
        match &self.home.peers {
            Some(peers) => Ok(Some(peers.cluster.live.follow(id).await?)),
            None => Ok(None),
        }
    }

    /// Registers a conversation, which follows the other nodes from now on.
    fn register(
        &self,
        conversation: Arc<Conversation>,
        live: Option<BoxStream<'static, LiveEvent>>,
    ) -> Arc<Conversation> {
        let held = self.home.loaded.get_or_insert(conversation);
        if let Some(live) = live {
            held.follow(live, self.journal.clone(), self.clock.clone());
        }
        held
    }
}

#[cfg(test)]
mod tests;
