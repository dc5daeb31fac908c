//! One turn, from the message to its end: events in, keys in, a view out.

use std::time::Duration;

use anyhow::Result;
use everturn_wire::{Command, ConversationId, ServerMessage};
use tokio::time::{Instant, sleep};

use super::{
    key::{Key, Keys},
    link::{Link, News, TRIES},
    story::{Ending, Story},
    view::{Line, Status, View},
};

/// How often what depends on the time is looked at.
const REFRESH: Duration = Duration::from_millis(100);

/// How long a turn may take to end after it was told to.
const PATIENCE: Duration = Duration::from_secs(3);

/// A turn that is shown while it runs.
pub(super) struct Turn<'a> {
    pub(super) conversation_id: &'a ConversationId,
    pub(super) link: &'a mut Link,
    pub(super) view: &'a mut dyn View,
    story: Story,
    /// When it was told to end.
    stopping: Option<Instant>,
}

impl<'a> Turn<'a> {
    /// Sends the message.
    pub(super) async fn begin(
        conversation_id: &'a ConversationId,
        message: String,
        model: Option<String>,
        link: &'a mut Link,
        view: &'a mut dyn View,
    ) -> Result<Self> {
        let story = Story::of(message.clone());
        let send = Command::ChatSend {
            conversation_id: Some(conversation_id.clone()),
            message,
            model,
            images: None,
            reasoning_effort: None,
            extensions: Some(true),
        };
        link.send(send).await?;
        view.begin()?;
        view.status(Status::Asking)?;
        Ok(Self { conversation_id, link, view, story, stopping: None })
    }

    /// Shows it to its end.
    pub(super) async fn run(mut self, keys: &mut Keys<'_>) -> Result<Ending> {
        let ended = self.follow(keys).await;
        self.view.end()?;
        ended
    }

    async fn follow(&mut self, keys: &mut Keys<'_>) -> Result<Ending> {
        loop {
            let ended = tokio::select! {
                news = self.link.next() => self.hear(news?)?,
                key = keys.next() => self.press(key).await?,
                () = sleep(REFRESH) => {
                    self.view.refresh()?;
                    let overdue = self.stopping.is_some_and(|since| since.elapsed() > PATIENCE);
                    overdue.then_some(Ending::Interrupted)
                }
            };
            if let Some(ending) = ended {
                return Ok(ending);
            }
        }
    }

    fn hear(&mut self, news: News) -> Result<Option<Ending>> {
        match news {
            News::Lost(tried) => self.view.status(Status::Reconnecting { tried, of: TRIES })?,
            News::Back => self.story.resume(self.view)?,
            News::Said(message) => match *message {
                ServerMessage::ChatDelta { event, .. } if event.conversation_id == *self.conversation_id => {
                    return Ok(self.story.take(event, self.view)?);
                }
                ServerMessage::ChatError { message, .. } | ServerMessage::Error { message } => {
                    self.view.end()?;
                    self.view.line(&Line::Error(message))?;
                    return Ok(Some(Ending::Refused));
                }
                ServerMessage::ChatDelta { .. } | ServerMessage::StatusChanged { .. } => {}
            },
        }
        Ok(None)
    }

    async fn press(&mut self, key: Key) -> Result<Option<Ending>> {
        let conversation_id = self.conversation_id.clone();
        match key {
            Key::RetryNow if self.story.is_waiting() => {
                self.story.skip_wait(self.view)?;
                self.link.send(Command::RetryNow { conversation_id }).await?;
            }
            Key::RetryNow => {}
            Key::Cancel if self.stopping.is_some() => {}
            Key::Cancel if self.story.is_waiting() => {
                self.link.send(Command::RetryAbort { conversation_id }).await?;
            }
            Key::Cancel => self.stop(conversation_id).await?,
            Key::Stop if self.story.interrupted => return Ok(Some(Ending::Interrupted)),
            Key::Stop => {
                self.story.interrupted = true;
                self.stop(conversation_id).await?;
            }
        }
        Ok(None)
    }

    async fn stop(&mut self, conversation_id: ConversationId) -> Result<()> {
        self.stopping = Some(Instant::now());
        self.view.status(Status::Stopping)?;
        self.link.send(Command::ChatStop { conversation_id }).await
    }
}
