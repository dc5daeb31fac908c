//! HTTP requests to the server of a chat, beside the WebSocket connection.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use everturn_wire::{Answered, Command, ConversationId, Models, QuestionAnswer, QueueCancelled, Retried};
use tokio::time::timeout;

use super::{
    allowed,
    conversations::{Conversations, Named},
    directory::{Directory, Exchange},
    model_settings,
    order::Question,
    settings, tools,
    view::Line,
};
use crate::{
    Hidden,
    remote::{Address, Remote, encoded},
    wording,
};

/// Timeout of a request. It is short because nothing of a turn is shown meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

/// Larger images and PDFs do not fit into one frame, in bytes of their URLs.
const MOST_BY_SOCKET: usize = 3_000_000;

/// Maximum length of a displayed name of a conversation, in characters.
const ASKED: usize = 60;

pub(super) struct Server {
    pub(super) address: Address,
    pub(super) token: Option<Hidden>,
    /// The conversations that were listed last, by their numbers.
    listed: Mutex<Vec<ConversationId>>,
    /// What is set for a conversation before its first message.
    pub(super) first: model_settings::First,
}

impl Server {
    pub(super) fn new(address: Address, token: Option<Hidden>) -> Self {
        Self { address, token, listed: Mutex::default(), first: model_settings::First::default() }
    }

    /// Lists the latest conversations, with numbers. `current` is marked.
    pub(super) async fn conversations(&self, current: &ConversationId) -> Line {
        let told = self.among_conversations(|all| all.list(None, current)).await;
        told.map_or_else(|error| Line::Error(error.to_string()), Line::Note)
    }

    /// The conversation with this number in the last list, or with this in its title or at the beginning of its id.
    ///
    /// # Errors
    /// What to show if it is none or more than one.
    pub(super) async fn named(&self, asked: &str, current: &ConversationId) -> Result<ConversationId, Line> {
        let named = self.among_conversations(|all| match all.named(asked) {
            Named::Several(several) => Err(Line::Note(all.list(Some(&several), current))),
            Named::One(id) => Ok(Some(id)),
            Named::None => Ok(None),
        });
        let found = match named.await {
            Ok(named) => named?,
            Err(error) => return Err(Line::Error(error.to_string())),
        };
        match found {
            Some(id) => Ok(id),
            None => {
                let found = self.patiently(async |remote| Directory(remote).find(asked).await).await;
                let asked = wording::one_line(asked, ASKED);
                found.map_err(|_| {
                    Line::Error(format!(
                        "No conversation has {asked:?} in its title: /conversations lists them."
                    ))
                })
            }
        }
    }

    async fn among_conversations<T>(&self, choose: impl FnOnce(&mut Conversations) -> T) -> Result<T> {
        let all = self.patiently(async |remote| Directory(remote).latest_ones().await).await?;
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut conversations =
            Conversations { all: all.into_iter().collect(), listed: std::mem::take(&mut *listed) };
        let chosen = choose(&mut conversations);
        *listed = conversations.listed;
        Ok(chosen)
    }

    /// The server's answer, as a line to show.
    pub(super) async fn tell(&self, question: Question, id: &ConversationId) -> Line {
        let told = self.patiently(async |remote| match question {
            Question::Settings(asked) => settings::answer(asked, id, &remote).await,
            Question::ModelSettings(asked) => model_settings::answer(asked, id, &remote, &self.first).await,
            Question::Allowed(asked) => allowed::answer(asked, id, &remote).await,
            Question::Tools => tools::answer(&remote).await,
        });
        told.await.map_or_else(|error| Line::Error(error.to_string()), Line::Note)
    }

    /// The server's models and routes; the first is the default.
    pub(super) async fn models(&self) -> Result<Vec<String>> {
        let ask = async |remote: Remote<'_>| {
            let answer = remote.get("/models").await?.context("the server lists no models: upgrade it")?;
            Ok(answer.read::<Models>()?.models)
        };
        self.patiently(ask).await
    }

    /// The model or route of a conversation; `None` before it begins.
    pub(super) async fn model_of(&self, id: &ConversationId) -> Result<Option<String>> {
        self.patiently(async |remote| Ok(Directory(remote).summary(id).await?.and_then(|found| found.model)))
            .await
    }

    /// The last message of a conversation and its answer.
    pub(super) async fn last_exchange(&self, id: &ConversationId) -> Result<Option<Exchange>> {
        self.patiently(async |remote| Directory(remote).last_exchange(id).await).await
    }

    /// Whether a turn runs or waits in a conversation.
    pub(super) async fn is_active(&self, id: &ConversationId) -> Result<bool> {
        self.patiently(async |remote| Directory(remote).is_active(id).await).await
    }

    /// Begins a turn that summarizes the older part of a conversation. Returns the cursor at which it begins.
    pub(super) async fn compact(&self, id: &ConversationId) -> Result<String> {
        let path = format!("/conversations/{id}/compact");
        let ask = async |remote: Remote<'_>| {
            let answer = remote.post(&path).await?.context("there is nothing to summarize yet")?;
            Ok(answer.read::<Retried>()?.cursor)
        };
        self.patiently(ask).await
    }

    /// Sends a message with attachments that are too large for a frame, and returns the command that follows its turn instead.
    pub(super) async fn shortened(&self, command: Command) -> Result<Command> {
        match &command {
            Command::ChatSend { conversation_id: Some(id), images: Some(images), extensions, .. }
                if images.iter().map(|image| image.url.len()).sum::<usize>() > MOST_BY_SOCKET =>
            {
                let (conversation_id, extensions) = (id.clone(), *extensions);
                let cursor =
                    Some(Remote::new(&self.address, self.token.as_ref())?.start_turn(&command).await?);
                Ok(Command::ChatSubscribe { conversation_id, cursor, extensions })
            }
            _ => Ok(command),
        }
    }

    /// Answers a question of a tool. Returns false if it is too late.
    pub(super) async fn answer_question(&self, id: &ConversationId, answer: &QuestionAnswer) -> Result<bool> {
        let path = format!("/conversations/{id}/questions");
        let ask = async |remote: Remote<'_>| {
            let told = remote.post_with(&path, answer).await?;
            let told: Option<Answered> = told.map(|answer| answer.read()).transpose()?;
            Ok(told.is_some_and(|told| told.answered))
        };
        self.patiently(ask).await
    }

    /// Withdraws a queued message. Returns false if it is too late.
    pub(super) async fn take_back(&self, id: &ConversationId, message_id: &str) -> Result<bool> {
        let path = format!("/conversations/{id}/queue/{}", encoded(message_id));
        let ask = async |remote: Remote<'_>| {
            let answer = remote.delete(&path).await?;
            let cancelled: Option<QueueCancelled> = answer.map(|answer| answer.read()).transpose()?;
            Ok(cancelled.is_some_and(|told| told.cancelled))
        };
        self.patiently(ask).await
    }

    async fn patiently<'a, T>(&'a self, ask: impl AsyncFnOnce(Remote<'a>) -> Result<T>) -> Result<T> {
        let remote = Remote::new(&self.address, self.token.as_ref())?;
        let answer = timeout(PATIENCE, ask(remote)).await;
        answer.unwrap_or_else(|_| {
            Err(anyhow!("the server did not answer in {} s: try again", PATIENCE.as_secs()))
        })
    }
}
