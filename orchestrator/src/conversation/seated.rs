//! The right to drive a conversation.

use std::{pin::pin, sync::Arc};

use everturn_kernel::{Millis, Wait};
use everturn_wire::ConversationId;

use super::{
    AfterTurn, Control, Conversation, Inbox, Loss, Parked,
    seat::{Parking, Refused, Sent},
};
use crate::{Error, JournalError};

/// The right to drive a conversation. Dropping it other than through the methods below counts as a crash: the
/// conversation then resumes from its last save.
pub(crate) struct Seated {
    pub(crate) conversation: Arc<Conversation>,
    pub(crate) inbox: Inbox,
    /// Whether the seat was given back.
    left: bool,
}

/// The result of sending a command.
pub(crate) enum Command {
    /// Sent to the driver.
    Sent,
    /// The turn was parked and must now be driven; the command is in its inbox.
    WithTurn(Box<Parked>, Seated),
    /// There is no turn for the command.
    NoTurn,
}

/// How often a conversation's seat had been taken when it was last seen vacant.
#[derive(Clone, Copy)]
pub(crate) struct Vacancy(Option<u64>);

impl Conversation {
    /// Takes the seat for a new turn.
    ///
    /// # Errors
    /// When a session drives, a turn is parked, the conversation was lost or the orchestrator is shutting down.
    pub(crate) fn claim(self: &Arc<Self>) -> Result<Seated, Error> {
        let inbox = self.seat.claim(None).map_err(|refused| self.refusal(refused))?;
        Ok(self.seated(inbox))
    }

    /// Like [`claim`](Self::claim), but only if the seat was not taken since then.
    pub(crate) fn claim_since(self: &Arc<Self>, vacancy: Vacancy) -> Result<Seated, Error> {
        let claims = self.check_vacant(vacancy)?;
        let inbox = self.seat.claim(Some(claims)).map_err(|refused| self.refusal(refused))?;
        Ok(self.seated(inbox))
    }

    /// Returns an error if the seat was not vacant then; otherwise how often it had been taken.
    pub(crate) fn check_vacant(&self, vacancy: Vacancy) -> Result<u64, Error> {
        let claims = vacancy.0.ok_or_else(|| self.refusal(Refused::Busy));
        // Report the current obstacle, as if the claim were made now.
        claims.or_else(|busy| self.check_kept().and(Err(busy)))
    }

    /// Records whether the seat is vacant. Must be called before reading anything that decides about a claim.
    pub(crate) fn vacancy(&self) -> Vacancy {
        Vacancy(self.seat.vacancy())
    }

    /// Whether nobody has the seat.
    pub(crate) fn is_vacant(&self) -> bool {
        self.seat.vacancy().is_some()
    }

    /// Takes the seat for the parked turn, if its wait is over.
    ///
    /// # Errors
    /// When the turn cannot be read, or the orchestrator is shutting down.
    pub(crate) fn claim_due(self: &Arc<Self>, now: Millis) -> Result<Option<(Box<Parked>, Seated)>, Error> {
        let due = self.seat.claim_due(now).map_err(|refused| self.refusal(refused))?;
        Ok(due.map(|(parked, inbox)| {
            self.set_timer(parked.wait, false);
            (parked, self.seated(inbox))
        }))
    }

    /// Sends a command to the driver; may take up a parked turn to do so.
    ///
    /// # Errors
    /// When the command was refused.
    pub(crate) fn send(self: &Arc<Self>, control: Control, may_take_up: bool) -> Result<Command, Error> {
        let waiting = self.state().live.queue.len();
        let sent = self.seat.send(Box::new(control), waiting, may_take_up);
        Ok(match sent.map_err(|refused| self.refusal(refused))? {
            Sent::Taken => Command::Sent,
            Sent::WithTurn(parked, inbox) => {
                self.set_timer(parked.wait, false);
                Command::WithTurn(parked, self.seated(inbox))
            }
            Sent::NoTurn => Command::NoTurn,
        })
    }

    /// Puts a turn that waits for this into the timer index if it is parked now, and otherwise removes it. To be called after
    /// each change: if several are made at once, the last call leaves the index as the seat is.
    pub(super) fn set_timer(&self, wait: Wait, mut is_parked: bool) {
        loop {
            match wait.until() {
                Some(until) if is_parked => self.home.timers.wake_at(until.at, self.id.clone()),
                None if is_parked => {}
                _ => self.home.timers.remove(wait, &self.id),
            }
            let was = std::mem::replace(&mut is_parked, self.seat.waits_for(wait));
            if is_parked == was {
                return;
            }
        }
    }

    /// Wakes a parked turn whose wait is not over at its end.
    pub(crate) fn wake_later(&self, now: Millis) {
        if let Some(wait) = self.seat.parked().filter(|wait| wait.lasts(now)) {
            self.set_timer(wait, true);
        }
    }

    /// Returns what the parked turn waits for.
    pub(crate) fn parked(&self) -> Option<Wait> {
        self.seat.parked()
    }

    /// Returns what `read` returns for the parked turn.
    pub(crate) fn read_parked<T>(&self, read: impl FnOnce(&Parked) -> T) -> Option<T> {
        self.seat.read_parked(read)
    }

    /// Whether the conversation closes after the turn.
    pub(crate) fn is_closing(&self) -> bool {
        self.seat.is_closing()
    }

    /// Waits until the driver of a sealed turn has left the seat, so that a client that has seen the end finds it
    /// vacant.
    pub(crate) async fn settled(&self) {
        loop {
            let mut changed = pin!(self.grew.notified());
            // Register before checking, so that no notification is missed.
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
            Refused::Elsewhere => Error::Elsewhere { id },
            Refused::Unreadable(why) => Error::Unreadable { id, why: why.to_string() },
            Refused::Lost => self.check_kept().err().unwrap_or(Error::Broken { id }),
        }
    }
}

impl Seated {
    /// Parks the turn and leaves the seat, unless a command arrived in the meantime.
    pub(crate) fn park(&mut self, parked: Box<Parked>) -> Parking {
        let wait = parked.wait;
        let parking = self.conversation.seat.park(&self.inbox, parked);
        self.left = !matches!(parking, Parking::Commanded(_));
        if matches!(parking, Parking::Parked) {
            crate::sync::moment();
            self.conversation.set_timer(wait, true);
        }
        parking
    }

    /// Closes the conversation with the next release.
    pub(crate) fn close(&self) {
        self.conversation.seat.set_closing();
    }

    /// Leaves the seat, unless something must be done first.
    pub(crate) fn release(&mut self) -> AfterTurn {
        let conversation = &self.conversation;
        // Before leaving: only the holder of the seat changes these.
        let status = {
            let mut state = conversation.state();
            state.live.queue.clear();
            state.record.head.status
        };
        let rest = conversation.seat.release(&mut self.inbox, status);
        if let AfterTurn::Turn(left) = &rest {
            // The first message becomes the next turn.
            conversation.state().live.queue = left.messages.iter().skip(1).cloned().collect();
        }
        self.left = matches!(rest, AfterTurn::Nothing);
        conversation.grew.notify_waiters();
        rest
    }

    /// Marks the conversation as deleted.
    pub(crate) fn delete(mut self) {
        self.left = true;
        self.conversation.lose(Loss::Deleted);
    }

    /// Marks the conversation as lost because the journal failed, or because another node wrote to it.
    pub(crate) fn lose(mut self, why: JournalError) {
        self.left = true;
        self.conversation.lose(match why {
            JournalError::Stale { .. } if self.conversation.home.peers.is_some() => Loss::Moved,
            why => Loss::Unsaved(why),
        });
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        if !self.left {
            self.conversation.lose(Loss::Broken);
        }
    }
}
