//! The running commands of a socket.

use std::collections::HashMap;

use axum::extract::ws::Message;
use everturn_wire::ConversationId;
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
    protocol::{Asked, News as _, Protocol, Read, Urgency},
    task::{self, Begun},
};

/// Maximum number of urgent commands in addition to the limit for other commands.
const URGENT: usize = 16;
/// How long reading pauses at the limit. Then one more command is read and refused, so that a stop is read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The running commands of a socket. Those of one conversation run one after the other, but a stop runs at once. They
/// continue for a while after this is dropped.
pub(crate) struct UnderWay<P: Protocol> {
    protocol: P,
    limits: SocketLimits,
    count: usize,
    /// Receives finished commands; never more than are running.
    done: (UnboundedSender<Done<P>>, UnboundedReceiver<Done<P>>),
    /// The unfinished commands of each conversation.
    lanes: HashMap<ConversationId, Vec<Ticket>>,
    next: u64,
    /// Number of streams that these commands will add.
    promised: usize,
    /// Size of the frames of these commands in bytes, without urgent ones.
    bytes: usize,
    full_since: Option<Instant>,
}

/// A command that has ended.
pub(crate) type Done<P> = task::Done<<P as Protocol>::Outcome, <P as Protocol>::About>;

/// A command that others may wait for.
struct Ticket {
    number: u64,
    starts: bool,
    ended: Ended,
}

/// Resolves to whether a command took effect.
type Ended = Shared<oneshot::Receiver<bool>>;

impl<P: Protocol> UnderWay<P> {
    pub(crate) fn new(protocol: P, limits: SocketLimits) -> Self {
        Self {
            protocol,
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

    /// Starts a command. Returns an answer only if it is rejected, and an error if the frame is invalid.
    pub(crate) fn begin(&mut self, frame: &str, news: &mut P::News) -> Result<Option<Message>, String> {
        let asked = match self.protocol.read(frame, news) {
            Read::Command(asked) => asked,
            Read::Done => return Ok(None),
            Read::Refused(answer) => return Ok(Some(answer)),
            Read::NotUnderstood(why) => return Err(why),
        };
        if self.is_full(asked.urgency) {
            let why = "too many commands of this socket are under way: wait until some are done";
            return Ok(Some(P::refuse(asked.about, why, news)));
        }
        let limit = self.limits.subscriptions;
        if asked.adds_stream && news.streams() + self.promised >= limit {
            let why = P::full(limit);
            return Ok(Some(P::refuse(asked.about, &why, news)));
        }
        // An urgent command keeps only the name of its conversation, however long its frame was.
        let bytes = if asked.urgency == Urgency::Urgent { 0 } else { frame.len() };
        self.push(asked, bytes);
        Ok(None)
    }

    fn push(&mut self, asked: Asked<P::Command, P::About>, bytes: usize) {
        let Asked { command, about, conversation: id, urgency, adds_stream: promised } = asked;
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
        let protocol = self.protocol.clone();
        let carried_out = async move {
            if urgency != Urgency::Urgent {
                all_ended(before).await;
                return protocol.carry_out(command).await;
            }
            let outcome = protocol.carry_out(command.clone()).await;
            if outcome.as_ref().is_ok_and(P::has_reached) {
                return outcome;
            }
            // It was meant for a turn that was about to begin.
            match all_ended(before).await {
                true => protocol.carry_out(command).await,
                false => outcome,
            }
        };
        self.count += 1;
        self.promised += usize::from(promised);
        self.bytes += bytes;
        task::begin(carried_out, Begun { number, about, id, promised, bytes }, self.done.0.clone(), ended);
        self.look();
    }

    /// Returns the next command that finishes. Pending while none is running. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Done<P> {
        match self.done.1.recv().await {
            Some(done) => done,
            // Unreachable, because the sender is stored beside it.
            None => pending().await,
        }
    }

    /// Applies the result of a command to the socket. Returns the answer, if any.
    pub(crate) fn end(&mut self, done: Done<P>, news: &mut P::News) -> Option<Message> {
        let task::Done { begun: Begun { number, about, id, promised, bytes }, outcome } = done;
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
            Ok(outcome) => P::settle(outcome, news),
            Err(why) => Some(P::refuse(about, &why, news)),
        }
    }

    /// Whether there is no room for another command of this urgency.
    fn is_full(&self, urgency: Urgency) -> bool {
        if urgency == Urgency::Urgent {
            return self.count >= self.limits.commands.saturating_add(URGENT);
        }
        // Twice the maximum length, so that a long command never waits for a short one.
        self.count >= self.limits.commands || self.bytes >= self.limits.command.saturating_mul(2)
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
