//! The server of a chat, and its conversation.

use anyhow::Result;
use everturn_wire::{ConversationId, TurnId};
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::{directory::Directory, server::Server};
use crate::{
    Hidden, args,
    remote::{Address, Remote},
};

/// Resumes the unsealed turn of a conversation.
pub type Resume = Box<dyn Fn(ConversationId) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// The server through which a chat runs.
pub struct Host {
    pub(super) server: Server,
    /// Its description for people.
    pub(super) name: String,
    /// Further notes for people.
    pub(super) notes: Vec<String>,
    pub(super) kept: Kept,
    resume: Option<Resume>,
}

/// Where conversations are kept after the client ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// At the server of this name, where turns continue.
    AtServer(String),
    /// In a file or a database, which this `everturn chat` command line opens again.
    Here(String),
    /// Nowhere: they end with this process.
    Nowhere,
}

impl Kept {
    pub(super) fn is_at_server(&self) -> bool {
        matches!(self, Self::AtServer(_))
    }
}

/// A server inside this process.
pub struct Private {
    /// Its address.
    pub url: String,
    /// Its access token.
    pub token: Hidden,
    /// Its description for people.
    pub name: String,
    /// Further notes for people.
    pub notes: Vec<String>,
    /// Where its conversations are kept after it ends.
    pub kept: Kept,
    /// Resumes a turn of an earlier process; the server does not resume turns by itself.
    pub resume: Resume,
}

impl Host {
    /// The server at this address.
    ///
    /// # Errors
    /// When the address is not valid.
    pub fn named(server: &str, token: Option<Hidden>) -> Result<Self> {
        let (name, kept) = (server.to_owned(), Kept::AtServer(server.to_owned()));
        let server = Server::new(Address::parse(server)?, token);
        Ok(Self { server, name, notes: Vec::new(), kept, resume: None })
    }

    /// A private server.
    ///
    /// # Errors
    /// When its address is not valid.
    pub fn private(private: Private) -> Result<Self> {
        let Private { url, token, name, notes, kept, resume } = private;
        let server = Server::new(Address::parse(&url)?, Some(token));
        Ok(Self { server, name, notes, kept, resume: Some(resume) })
    }

    /// The requested conversation, or a new one.
    pub(super) async fn conversation(&self, args: &args::Chat) -> Result<Found> {
        let directory = Directory(Remote::new(&self.server.address, self.server.token.as_ref())?);
        let id = match (&args.conversation, &args.new_conversation) {
            (Some(asked), _) => directory.find(asked).await?,
            (None, Some(name)) => return Ok(Found::new(directory.check_free(name).await?)),
            (None, None) if args.continues => directory.latest().await?,
            (None, None) => return Ok(Found::unnamed()),
        };
        self.found(id).await
    }

    /// The state of an existing conversation.
    pub(super) async fn found(&self, id: ConversationId) -> Result<Found> {
        let directory = Directory(Remote::new(&self.server.address, self.server.token.as_ref())?);
        let last = Last { failed: directory.failed(&id).await?, message: directory.last_message(&id).await? };
        Ok(Found { is_active: directory.is_active(&id).await?, id, last, is_new: false })
    }

    /// Resumes the conversation's unsealed turn, if the server does not do so itself.
    pub(super) async fn resume(&self, id: &ConversationId) -> Result<()> {
        match &self.resume {
            Some(resume) => resume(id.clone()).await,
            None => Ok(()),
        }
    }
}

/// A conversation.
pub(super) struct Found {
    pub(super) id: ConversationId,
    pub(super) last: Last,
    /// Whether a turn runs or waits.
    pub(super) is_active: bool,
    pub(super) is_new: bool,
}

impl Found {
    /// A new conversation that has no name yet.
    pub(super) fn unnamed() -> Self {
        Self::new(ConversationId::from(Uuid::now_v7().to_string()))
    }

    fn new(id: ConversationId) -> Self {
        Self { id, last: Last::default(), is_active: false, is_new: true }
    }
}

/// What can be retried.
#[derive(Default)]
pub(super) struct Last {
    /// The last turn, if it failed or was stopped.
    pub(super) failed: Option<TurnId>,
    /// The `seq` of the last message.
    pub(super) message: Option<u64>,
}
