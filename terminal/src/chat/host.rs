//! The server that a chat goes through, and the conversation that it is about.

use anyhow::Result;
use everturn_console::Hidden;
use everturn_wire::{ConversationId, TurnId};
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::{directory::Directory, server::Server};
use crate::{
    args,
    remote::{Address, Remote},
};

/// Has the unsealed turn of a conversation go on.
pub type Resume = Box<dyn Fn(ConversationId) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// The server that is talked through.
pub struct Host {
    pub(super) server: Server,
    /// What a person is told about it.
    pub(super) name: String,
    /// What else they should know.
    pub(super) notes: Vec<String>,
    pub(super) kept: Kept,
    resume: Option<Resume>,
}

/// Where conversations are when the client has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// At the server of this name, where turns go on.
    AtServer(String),
    /// In a file, which `everturn chat` opens again with these words.
    InFile(String),
    /// They end with this process.
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
    /// What a person is told about it.
    pub name: String,
    /// What else they should know.
    pub notes: Vec<String>,
    /// Where its conversations are when it has ended.
    pub kept: Kept,
    /// Has a turn of an earlier process go on: by itself it leaves them alone.
    pub resume: Resume,
}

impl Host {
    /// The server that was named.
    ///
    /// # Errors
    /// When that is not an address.
    pub fn named(server: &str, token: Option<Hidden>) -> Result<Self> {
        let (name, kept) = (server.to_owned(), Kept::AtServer(server.to_owned()));
        let server = Server { address: Address::parse(server)?, token };
        Ok(Self { server, name, notes: Vec::new(), kept, resume: None })
    }

    /// A private one.
    ///
    /// # Errors
    /// When it has no address.
    pub fn private(private: Private) -> Result<Self> {
        let Private { url, token, name, notes, kept, resume } = private;
        let server = Server { address: Address::parse(&url)?, token: Some(token) };
        Ok(Self { server, name, notes, kept, resume: Some(resume) })
    }

    /// The conversation that is asked for, else a new one.
    pub(super) async fn conversation(&self, args: &args::Chat) -> Result<Found> {
        let directory = Directory(Remote::new(&self.server.address, self.server.token.as_ref())?);
        let id = match (&args.conversation, &args.new_conversation) {
            (Some(asked), _) => directory.find(asked).await?,
            (None, Some(name)) => return Ok(Found::new(directory.check_free(name).await?)),
            (None, None) if args.continues => directory.latest().await?,
            (None, None) => return Ok(Found::new(ConversationId::from(Uuid::now_v7().to_string()))),
        };
        let last = Last { failed: directory.failed(&id).await?, message: directory.last_message(&id).await? };
        Ok(Found { is_active: directory.is_active(&id).await?, id, last, is_new: false })
    }

    /// Has its unsealed turn go on, where only this does that.
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
    /// A turn runs or waits.
    pub(super) is_active: bool,
    pub(super) is_new: bool,
}

impl Found {
    fn new(id: ConversationId) -> Self {
        Self { id, last: Last::default(), is_active: false, is_new: true }
    }
}

/// What can be asked again.
#[derive(Default)]
pub(super) struct Last {
    /// The last turn, if it failed or was stopped.
    pub(super) failed: Option<TurnId>,
    /// The `seq` of the last message.
    pub(super) message: Option<u64>,
}
