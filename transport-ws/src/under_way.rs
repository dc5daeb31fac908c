//! The commands of a socket that are under way.

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

/// Stops and the like that may be under way beside as many other commands as there may be.
const URGENT: usize = 16;
/// How long no command is read while there are as many as there may be. Then one more is refused, so that a stop is read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The commands of a socket that are under way: those of one conversation one after the other, but a stop at once. They
/// go on by themselves, also for a while when this is dropped.
pub(crate) struct UnderWay<P: Protocol> {
    protocol: P,
    limits: SocketLimits,
    count: usize,
    /// Where they come in when they have ended; no more than there are under way.
    done: (UnboundedSender<Done<P>>, UnboundedReceiver<Done<P>>),
    /// Of each conversation those that have not ended.
    lanes: HashMap<ConversationId, Vec<Ticket>>,
    next: u64,
    /// Streams that there will be when these are done, and were not before.
    promised: usize,
    /// Bytes of the frames that these came in, but for the urgent ones.
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

/// Says whether a command did what it should.
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

    /// When there is room although nothing was done.
    pub(crate) fn room_at(&self) -> Option<Instant> {
        self.full_since.filter(|_| !self.has_room()).map(|since| since + PATIENCE)
    }

    /// Begins to carry out a command. An answer there is only when that cannot be, an error when the frame makes no sense.
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
        // An urgent one holds no more than the name of its conversation, however long its frame was.
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
            // Then a turn is meant that was about to begin.
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

    /// The next command that ends. Pending while none is under way. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> Done<P> {
        match self.done.1.recv().await {
            Some(done) => done,
            // Never: the other end is beside it.
            None => pending().await,
        }
    }

    /// Does for the socket what is left to do. Returns the answer, if there is one.
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

    /// Whether there is no room for one more that stands so to the others.
    fn is_full(&self, urgency: Urgency) -> bool {
        if urgency == Urgency::Urgent {
            return self.count >= self.limits.commands + URGENT;
        }
        // Twice the longest command, so that one that is long never waits for a short one.
        self.count >= self.limits.commands || self.bytes >= 2 * self.limits.command
    }

    fn look(&mut self) {
        self.full_since =
            self.is_full(Urgency::Ordered).then(|| self.full_since.unwrap_or_else(Instant::now));
    }
}

/// Waits until all of these have ended; says whether any did what it should.
async fn all_ended(commands: Vec<Ended>) -> bool {
    let ended = join_all(commands).await;
    if ended.iter().any(Result::is_err) {
        // It was given up as the socket is gone. So is who waits for it, rather than carried out without it.
        return pending().await;
    }
    ended.contains(&Ok(true))
}
