//! The native protocol: commands in, events out.

use axum::extract::ws::Message;
use everturn_orchestrator::{Error, Frame, View};
use everturn_wire::{Command, CommandError, ConversationId};

use crate::{
    command::{self, Outcome, carry_out},
    feeds::Feeds,
    message,
    protocol::{Asked, News, Protocol, Read, Urgency},
    watch::Watches,
};

/// Maximum length of a message's id in a refusal, in bytes. No longer one is ever queued.
const MAX_MESSAGE_ID: usize = 128;

/// The native protocol: commands in, events out.
#[derive(Clone)]
pub(crate) struct Native {
    pub(crate) orchestrator: View,
}

/// What a refusal names.
pub(crate) struct About {
    conversation_id: Option<ConversationId>,
    /// The message to queue.
    message_id: Option<String>,
}

/// The events of the watched conversations, and other messages for the peer.
pub(crate) struct Told {
    watches: Watches,
    feeds: Feeds,
}

impl Protocol for Native {
    type Command = Command;
    type About = About;
    type Outcome = Outcome;
    type News = Told;

    const GOODBYE: &'static str = "the server is shutting down: reconnect with the last cursor";

    fn news(&self) -> Told {
        Told { watches: Watches::default(), feeds: Feeds::new(self.orchestrator.clone()) }
    }

    fn read(&self, frame: &str, news: &mut Told) -> Read<Command, About> {
        let command = match Command::parse(frame) {
            Ok(command) => command,
            Err(error) => return not_understood(&error),
        };
        let named = command::conversation(&command).map(|id| ConversationId::parse_any(id.as_str()));
        let id = match named.transpose() {
            Ok(id) => id,
            Err(invalid) => return Read::Refused(message::refusal(None, &invalid.to_string())),
        };
        let urgency = command::urgency(&command);
        let watching = urgency == Urgency::Starts || matches!(command, Command::ChatSubscribe { .. });
        let adds_stream = watching && id.as_ref().is_none_or(|id| news.watches.get(id).is_none());
        let message_id = command::queued(&command).filter(|id| id.len() <= MAX_MESSAGE_ID).map(str::to_owned);
        let about = About { conversation_id: id.clone(), message_id };
        Read::Command(Asked { command, about, conversation: id, urgency, adds_stream })
    }

    async fn carry_out(&self, command: Command) -> Result<Outcome, String> {
        carry_out(&self.orchestrator.doing(command.name()), command).await.map_err(|error| error.to_string())
    }

    fn has_reached(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Done)
    }

    fn settle(outcome: Outcome, Told { watches, .. }: &mut Told) -> Option<Message> {
        match outcome {
            Outcome::Done | Outcome::Nobody => {}
            Outcome::Unwatch(id) => watches.remove(&id),
            Outcome::Watch { id, subscription, extensions } => {
                watches.insert(id, subscription, extensions);
            }
            Outcome::Follow { id, subscription, extensions } => {
                match (watches.get(&id), extensions) {
                    (None, _) => watches.insert(id, subscription, extensions.unwrap_or(false)),
                    // Takes effect at once, so that no later command is undone by it.
                    (Some(watch), Some(extensions)) if watch.extensions != extensions => {
                        let subscription = subscription.after(watch.cursor);
                        watches.insert(id, subscription, extensions);
                    }
                    (Some(_), _) => {}
                }
            }
        }
        None
    }

    fn refuse(about: About, why: &str, _: &mut Told) -> Message {
        message::refusal_of(about.conversation_id, about.message_id, why)
    }

    fn full(limit: usize) -> String {
        format!(
            "this socket has reached its limit of {limit} watched conversations: unsubscribe from some first"
        )
    }

    fn complaint(why: &str) -> Option<Message> {
        Some(message::error(why))
    }
}

impl News for Told {
    async fn next(&mut self, streams_first: bool) -> Message {
        let Self { watches, feeds } = self;
        loop {
            let fed = if streams_first {
                tokio::select! {
                    biased;
                    (id, event) = watches.next() => return told(id, event),
                    fed = feeds.next() => fed,
                }
            } else {
                tokio::select! {
                    biased;
                    fed = feeds.next() => fed,
                    (id, event) = watches.next() => return told(id, event),
                }
            };
            if let Some(message) = feeds.message(fed, watches) {
                return message;
            }
        }
    }

    fn streams(&self) -> usize {
        self.watches.len()
    }
}

fn told(id: ConversationId, event: Result<Frame, Error>) -> Message {
    match event {
        Ok(frame) => message::event(&frame),
        Err(error) => message::refusal(Some(id), &error.to_string()),
    }
}

fn not_understood(error: &CommandError) -> Read<Command, About> {
    match error {
        CommandError::BadFields { conversation_id, .. } => {
            let id = conversation_id.as_ref().and_then(|id| ConversationId::parse_any(id.as_str()).ok());
            Read::Refused(message::refusal(id, &error.to_string()))
        }
        CommandError::NotJson(_) | CommandError::NoType | CommandError::UnknownType { .. } => {
            Read::NotUnderstood(error.to_string())
        }
    }
}
