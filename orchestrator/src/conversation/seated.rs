//! The right to drive a conversation.

use std::{pin::pin, sync::Arc};

use everturn_kernel::{Millis, Wait};
use everturn_wire::ConversationId;

use super::{
    AfterTurn, Control, Conversation, Inbox, Loss, Parked,
    seat::{Refused, Sent},
};
use crate::{Error, JournalError};

/// The right to drive a conversation, for as long as it is held. Who lets go of it in any other way than those below
/// broke: then the conversation goes on from what was saved last, as after a crash.
pub(crate) struct Seated {
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) inbox: Inbox,
    /// It is given back.
    left: bool,
}

/// What became of a command.
pub(crate) enum Command {
    /// Whoever drives takes it in.
    Sent,
    /// The turn was parked: it is to be driven, the command is in its inbox.
    WithTurn(Box<Parked>, Seated),
    /// There is no turn that it could be for.
    NoTurn,
}

/// How often a conversation's seat was taken, as someone saw it while nobody had it.
#[derive(Clone, Copy)]
pub(crate) struct Vacancy(Option<u64>);

impl Conversation {
    /// Takes the seat for a new turn.
    ///
    /// # Errors
    /// When someone drives, a turn is parked, the conversation was lost, or it is being shut down.
    pub(crate) fn claim(self: &Arc<Self>) -> Result<Seated, Error> {
        let inbox = self.seat.claim(None).map_err(|refused| self.refusal(refused))?;
        Ok(self.seated(inbox))
    }

    /// The same, if nobody drove since then.
    pub(crate) fn claim_since(self: &Arc<Self>, vacancy: Vacancy) -> Result<Seated, Error> {
        let claims = self.check_vacant(vacancy)?;
        let inbox = self.seat.claim(Some(claims)).map_err(|refused| self.refusal(refused))?;
        Ok(self.seated(inbox))
    }

    /// Refuses where somebody had the seat then. Says how often it was taken so far.
    pub(crate) fn check_vacant(&self, vacancy: Vacancy) -> Result<u64, Error> {
        let claims = vacancy.0.ok_or_else(|| self.refusal(Refused::Busy));
        // Whatever is in the way is told as if it were asked for now.
        claims.or_else(|busy| self.check_kept().and(Err(busy)))
    }

    /// To be asked before what is read to decide on a claim.
    pub(crate) fn vacancy(&self) -> Vacancy {
        Vacancy(self.seat.vacancy())
    }

    /// Takes the seat for the parked turn, if its wait is over.
    ///
    /// # Errors
    /// When it cannot be read, or is being shut down.
    pub(crate) fn claim_due(self: &Arc<Self>, now: Millis) -> Result<Option<(Box<Parked>, Seated)>, Error> {
        let due = self.seat.claim_due(now).map_err(|refused| self.refusal(refused))?;
        Ok(due.map(|(parked, inbox)| (parked, self.seated(inbox))))
    }

    /// Sends a command to whoever drives; takes a parked turn up with it, if it may.
    ///
    /// # Errors
    /// When the command was not taken.
    pub(crate) fn send(self: &Arc<Self>, control: Control, may_take_up: bool) -> Result<Command, Error> {
        let waiting = self.state().live.queue.len();
        let sent = self.seat.send(Box::new(control), waiting, may_take_up);
        Ok(match sent.map_err(|refused| self.refusal(refused))? {
            Sent::Taken => Command::Sent,
            Sent::WithTurn(parked, inbox) => Command::WithTurn(parked, self.seated(inbox)),
            Sent::NoTurn => Command::NoTurn,
        })
    }

    /// What a parked turn waits for.
    pub(crate) fn parked(&self) -> Option<Wait> {
        self.seat.parked()
    }

    /// Whether it is to be closed after the turn.
    pub(crate) fn is_closing(&self) -> bool {
        self.seat.is_closing()
    }

    /// Waits until who sealed a turn has left: who has seen its end must find it gone.
    pub(crate) async fn settled(&self) {
        loop {
            let mut changed = pin!(self.grew.notified());
            // Listens before it looks, so that nothing falls in between.
            changed.as_mut().enable();
            if !self.seat.is_sealed() {
                return;
            }
            changed.await;
        }
    }

    fn seated(self: &Arc<Self>, inbox: Inbox) -> Seated {
        Seated { conversation: self.clone(), inbox, left: false }
    }

    fn refusal(&self, refused: Refused) -> Error {
        let id: ConversationId = self.id.clone();
        match refused {
            Refused::ShuttingDown => Error::ShuttingDown,
            Refused::Busy => Error::Busy { id },
            Refused::Full => Error::QueueFull { id, limit: super::control::MAX_QUEUE },
            Refused::Parked => Error::NoModel { id },
            Refused::Unreadable(why) => Error::Unreadable { id, why: why.to_string() },
            Refused::Lost => self.check_kept().err().unwrap_or(Error::Broken { id }),
        }
    }
}

impl Seated {
    /// Leaves the turn as it was saved, unless a command came in: then gives it back.
    pub(crate) fn park(&mut self, parked: Box<Parked>) -> Result<(), Box<Parked>> {
        self.conversation.seat.park(&self.inbox, parked)?;
        self.left = true;
        Ok(())
    }

    /// Closes the conversation with what is done next.
    pub(crate) fn close(&self) {
        self.conversation.seat.set_closing();
    }

    /// Leaves, unless there is something to do first.
    pub(crate) fn release(&mut self) -> AfterTurn {
        let conversation = &self.conversation;
        // Only who has the seat changes these: so before it is left.
        let status = {
            let mut state = conversation.state();
            state.live.queue.clear();
            state.record.head.status
        };
        let rest = conversation.seat.release(&mut self.inbox, status);
        if let AfterTurn::Turn(left) = &rest {
            // The first one is the next turn.
            conversation.state().live.queue = left.messages.iter().skip(1).cloned().collect();
        }
        self.left = matches!(rest, AfterTurn::Nothing);
        conversation.grew.notify_waiters();
        rest
    }

    /// The conversation is no longer in the journal.
    pub(crate) fn delete(mut self) {
        self.left = true;
        self.conversation.lose(Loss::Deleted);
    }

    /// The journal failed.
    pub(crate) fn lose(mut self, why: JournalError) {
        self.left = true;
        self.conversation.lose(Loss::Unsaved(why));
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        if !self.left {
            self.conversation.lose(Loss::Broken);
        }
    }
}
