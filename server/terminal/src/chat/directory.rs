//! Looks up conversations of a server and their state.

use anyhow::{Context as _, Result, bail};
use everturn_wire::{
    Chunk, ConversationId, ConversationList, ConversationState, ConversationSummary, DoneReason,
    HistoryWindow, Role, StoredChunk, TurnId, TurnMetricsList,
};
use serde::de::DeserializeOwned;

use crate::{conversations::selection, remote::Remote};

/// Maximum number of pages searched for a prefix; our server returns 500 conversations per page.
const PAGES: usize = 200;

/// The conversations of a server.
pub(super) struct Directory<'a>(pub(super) Remote<'a>);

/// A message and its answer.
pub(super) struct Exchange {
    pub(super) message: String,
    pub(super) answer: String,
}

impl Directory<'_> {
    /// The conversation with this id, or the only one whose id has this prefix.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub(super) async fn find(&self, asked: &str) -> Result<ConversationId> {
        let start = selection::start(asked)?;
        if let Ok(id) = ConversationId::parse_any(start)
            && self.has(&id).await?
        {
            return Ok(id);
        }
        let ids = self.ids().await?;
        let ids: Vec<&str> = ids.iter().map(ConversationId::as_str).collect();
        let found = selection::among(&ids, start)?.with_context(|| {
            format!(
                "there is no conversation whose id begins with {start}: check the id, or begin one of that name with \
                 --new-conversation"
            )
        })?;
        Ok(ConversationId::parse_any(found)?)
    }

    /// Checks a name for a new conversation.
    ///
    /// # Errors
    /// When the name is not valid or already in use.
    pub(super) async fn check_free(&self, name: &str) -> Result<ConversationId> {
        let id = ConversationId::parse_any(name)?;
        if self.has(&id).await? {
            bail!("there is already a conversation {name}: continue it with --conversation {name}");
        }
        Ok(id)
    }

    /// The most recently used conversation.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn latest(&self) -> Result<ConversationId> {
        let page: Option<ConversationList> = self.get("/conversations").await?;
        let latest = page.and_then(|page| page.into_iter().next());
        Ok(latest.context("there is no conversation to continue yet: say something first")?.id)
    }

    /// The list's entry for a conversation, if it is among the most recently used.
    pub(super) async fn summary(&self, id: &ConversationId) -> Result<Option<ConversationSummary>> {
        let page: Option<ConversationList> = self.get("/conversations").await?;
        Ok(page.and_then(|page| page.into_iter().find(|conversation| conversation.id == *id)))
    }

    /// The most recently used conversations, the latest first.
    pub(super) async fn latest_ones(&self) -> Result<ConversationList> {
        let page: Option<ConversationList> = self.get("/conversations").await?;
        page.context("the server has no list of conversations: upgrade it")
    }

    /// Whether a turn runs or waits in a conversation.
    pub(super) async fn is_active(&self, id: &ConversationId) -> Result<bool> {
        let state: Option<ConversationState> = self.get(&format!("/conversations/{id}/status")).await?;
        Ok(state.is_some_and(|state| state.is_active))
    }

    /// The last turn, if it ended in an error or was stopped.
    pub(super) async fn failed(&self, id: &ConversationId) -> Result<Option<TurnId>> {
        let list: Option<TurnMetricsList> = self.get(&format!("/conversations/{id}/metrics")).await?;
        let last = list.and_then(|mut list| list.turns.pop());
        let has_failed = |reason: &DoneReason| matches!(reason, DoneReason::Error | DoneReason::Aborted);
        Ok(last.filter(|turn| turn.reason.as_ref().is_some_and(has_failed)).map(|turn| turn.turn_id))
    }

    /// The `seq` of the last user message that was not superseded, among the newest chunks.
    pub(super) async fn last_message(&self, id: &ConversationId) -> Result<Option<u64>> {
        let chunks = self.newest(id).await?;
        Ok(last_user(&chunks).map(|place| chunks[place].seq))
    }

    /// The last user message, and the text that answers it.
    pub(super) async fn last_exchange(&self, id: &ConversationId) -> Result<Option<Exchange>> {
        let chunks = self.newest(id).await?;
        let Some(place) = last_user(&chunks) else { return Ok(None) };
        let text = |stored: &StoredChunk| match &*stored.chunk {
            Chunk::Text { text } => Some(text.clone()),
            _ => None,
        };
        let message = text(&chunks[place]).unwrap_or_default();
        let said = chunks[place + 1..].iter().filter(|stored| stored.role == Role::Assistant);
        let answer: Vec<String> = said.filter_map(text).collect();
        Ok(Some(Exchange { message, answer: answer.join("\n\n") }))
    }

    async fn newest(&self, id: &ConversationId) -> Result<Vec<StoredChunk>> {
        let window: Option<HistoryWindow> = self.get(&format!("/conversations/{id}")).await?;
        Ok(window.map(|window| window.chunks).unwrap_or_default())
    }

    /// The ids of all conversations, the most recently used first.
    async fn ids(&self) -> Result<Vec<ConversationId>> {
        let mut ids = Vec::new();
        let mut next = Some("/conversations".to_owned());
        for _ in 0..PAGES {
            let Some(path) = next.take() else { return Ok(ids) };
            let mut answer = self.0.get(&path).await?.context("the server has no list")?;
            next = answer.next.take();
            let page: ConversationList = answer.read()?;
            ids.extend(page.into_iter().map(|conversation| conversation.id));
        }
        bail!("there are too many conversations to search them: write the whole id");
    }

    async fn has(&self, id: &ConversationId) -> Result<bool> {
        let found: Option<serde_json::Value> = self.get(&format!("/conversations/{id}/status")).await?;
        Ok(found.is_some())
    }

    /// Sends a GET request; `None` if the resource does not exist.
    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        self.0.get(path).await?.map(|answer| answer.read()).transpose()
    }
}

/// The index of the last user message that was not superseded.
fn last_user(chunks: &[StoredChunk]) -> Option<usize> {
    let stands = |seq: u64| {
        !chunks.iter().any(|later| later.seq > seq && later.supersedes.is_some_and(|from| from <= seq))
    };
    chunks.iter().rposition(|stored| stored.role == Role::User && stands(stored.seq))
}
