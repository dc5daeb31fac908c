//! The running commands of a socket.

use std::collections::HashMap;

use axum::extract::ws::Message;
use everturn_orchestrator::Orchestrator;
use everturn_wire::{Command, CommandError, ConversationId};
use futures_util::{
    FutureExt as _,
    future::{Shared, join_all, pending},
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    time::{Duration, Instant},
};

use crate::{
    SocketLimits,
    command::{self, Outcome, Urgency, carry_out},
    message,
    task::{self, Begun, Done},
    watch::Watches,
};

/// Maximum number of urgent commands in addition to the limit for other commands.
const URGENT: usize = 16;
/// How long reading pauses at the limit. Then one more command is read and refused, so that a stop is read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The running commands of a socket. Those of one conversation run one after the other, but a stop runs at once. They
/// continue for a while after this is dropped.
pub(crate) struct UnderWay {
    orchestrator: Orchestrator,
    limits: SocketLimits,
    count: usize,
    /// Receives finished commands; never more than are running.
    done: (UnboundedSender<Done>, UnboundedReceiver<Done>),
    /// The unfinished commands of each conversation.
    lanes: HashMap<ConversationId, Vec<Ticket>>,
    next: u64,
    /// Number of conversations that will be watched once these commands are done, and were not before.
    promised: usize,
    /// Size of the frames of these commands in bytes, without urgent ones.
    bytes: usize,
    full_since: Option<Instant>,
}

/// A command that others may wait for.
struct Ticket {
    number: u64,
    starts: bool,
    ended: Ended,
}

/// Resolves to whether a command took effect.
type Ended = Shared<oneshot::Receiver<bool>>;

impl UnderWay {
    pub(crate) fn new(orchestrator: Orchestrator, limits: SocketLimits) -> Self {
        Self {
            orchestrator,
            limits,
            count: 0,
            done: unbounded_channel(),
            lanes: HashMap::new(),
            next: 0,
            promised: 0,
            bytes: 0,
            full_since: None,
        }
    }

    /// Whether another command may be read.
    pub(crate) fn has_room(&self) -> bool {
        self.full_since.is_none_or(|since| since.elapsed() >= PATIENCE)
    }

    /// Returns when there will be room even if no command finishes.
    pub(crate) fn room_at(&self) -> Option<Instant> {
        self.full_since.filter(|_| !self.has_room()).map(|since| since + PATIENCE)
    }

    /// Starts a command. Returns an answer only if it is refused.
    pub(crate) fn begin(&mut self, frame: &str, watches: &Watches) -> Option<Message> {
        let command = match Command::parse(frame) {
            Ok(command) => command,
            Err(error) => return Some(not_understood(&error)),
        };
        let named = command::conversation(&command).map(|id| ConversationId::parse(id.as_str()));
        let id = match named.transpose() {
            Ok(id) => id,
            Err(invalid) => return Some(message::refusal(None, &invalid.to_string())),
        };
        let urgency = command::urgency(&command);
        if self.is_full(urgency) {
            let why = "too many commands of this socket are under way: wait until some are done";
            return Some(message::refusal(id, why));
        }
        let watching = urgency == Urgency::Starts || matches!(command, Command::ChatSubscribe { .. });
        let promised = watching && id.as_ref().is_none_or(|id| watches.get(id).is_none());
        let limit = self.limits.subscriptions;
        if promised && watches.len() + self.promised >= limit {
            let why =
                format!("this socket watches {limit} conversations already: unsubscribe from some first");
            return Some(message::refusal(id, &why));
        }
        // An urgent command keeps only the name of its conversation, however long its frame was.
        let bytes = if urgency == Urgency::Urgent { 0 } else { frame.len() };
        self.push(command, urgency, id, promised, bytes);
        None
    }

    fn push(
        &mut self,
        command: Command,
        urgency: Urgency,
        id: Option<ConversationId>,
        promised: bool,
        bytes: usize,
    ) {
        let (ended, is_ended) = oneshot::channel();
        self.next += 1;
        let number = self.next;
        let mut before = Vec::new();
        if let Some(id) = &id {
            let lane = self.lanes.entry(id.clone()).or_default();
            let waited = lane.iter().filter(|ticket| urgency != Urgency::Urgent || ticket.starts);
            before.extend(waited.map(|ticket| ticket.ended.clone()));
            lane.push(Ticket { number, starts: urgency == Urgency::Starts, ended: is_ended.shared() });
        }
        let orchestrator = self.orchestrator.clone();
        let carried_out = async move {
            if urgency != Urgency::Urgent {
                all_ended(before).await;
                return carry_out(&orchestrator, command).await;
            }
            let outcome = carry_out(&orchestrator, command.clone()).await;
            if let Ok(Outcome::Done) = outcome {
                return outcome;
            }
            // It was meant for a turn that was about to begin.
            match all_ended(before).await {
                true => carry_out(&orchestrator, command).await,
                false => outcome,
            }
        };
        self.count += 1;
        self.promised += usize::from(promised);
        self.bytes += bytes;
        task::begin(carried_out, Begun { number, id, promised, bytes }, self.done.0.clone(), ended);
        self.look();
    }

    /// Returns the next command that finishes. Pending while none is running. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Done {
        match self.done.1.recv().await {
            Some(done) => done,
            // Unreachable, because the sender is stored beside it.
            None => pending().await,
        }
    }

    /// Finishes a command on the socket's side. Returns an answer only if the command failed.
    pub(crate) fn end(&mut self, done: Done, watches: &mut Watches) -> Option<Message> {
        let Done { begun: Begun { number, id, promised, bytes }, outcome } = done;
        self.count -= 1;
        self.promised -= usize::from(promised);
        self.bytes -= bytes;
        if let Some(id) = &id
            && let Some(lane) = self.lanes.get_mut(id)
        {
            lane.retain(|ticket| ticket.number != number);
            if lane.is_empty() {
                self.lanes.remove(id);
            }
        }
        self.look();
        match outcome {
            Ok(Outcome::Done | Outcome::Nobody) => {}
            Ok(Outcome::Unwatch(id)) => watches.remove(&id),
            Ok(Outcome::Watch { id, subscription, extensions }) => {
                watches.insert(id, subscription, extensions);
            }
            Ok(Outcome::Follow { id, subscription, extensions }) => {
                match (watches.get(&id), extensions) {
                    (None, _) => watches.insert(id, subscription, extensions.unwrap_or(false)),
                    // At once, so that it does not undo a later command.
                    (Some(watch), Some(extensions)) if watch.extensions != extensions => {
                        let subscription = subscription.after(watch.cursor);
                        watches.insert(id, subscription, extensions);
                    }
                    (Some(_), _) => {}
                }
            }
            Err(why) => return Some(message::refusal(id, &why)),
        }
        None
    }

    /// Whether there is no room for another command of this urgency.
    fn is_full(&self, urgency: Urgency) -> bool {
        if urgency == Urgency::Urgent {
            return self.count >= self.limits.commands + URGENT;
        }
        // Twice the maximum length, so that a long command never waits for a short one.
        self.count >= self.limits.commands || self.bytes >= 2 * self.limits.command
    }

    fn look(&mut self) {
        self.full_since =
            self.is_full(Urgency::Ordered).then(|| self.full_since.unwrap_or_else(Instant::now));
    }
}

/// Waits until all of these have ended. Returns whether any of them took effect.
async fn all_ended(commands: Vec<Ended>) -> bool {
    let ended = join_all(commands).await;
    if ended.iter().any(Result::is_err) {
        // It was cancelled because the socket is gone. Its successors are cancelled too, rather than executed without
        // it.
        return pending().await;
    }
    ended.contains(&Ok(true))
}

fn not_understood(error: &CommandError) -> Message {
    match error {
        CommandError::BadFields { conversation_id, .. } => {
            let id = conversation_id.as_ref().and_then(|id| ConversationId::parse(id.as_str()).ok());
            message::refusal(id, &error.to_string())
        }
        CommandError::NotJson(_) | CommandError::NoType | CommandError::UnknownType { .. } => {
            message::error(&error.to_string())
        }
    }
}
