//! The seat: who drives a conversation, one at a time.
//!
//! ```text
//!             claim                              panic, or the journal failed
//!   Empty --------------> Taken ----------------------------------> Lost
//!     ^                   |  ^  |                                (loaded anew)
//!     '----- release -----'  |  '---- park ----.
//!                            |                 v
//!                            '--- command, --- Parked        Unreadable
//!                                 or its wait is over     (as it was loaded)
//! ```
//!
//! What always holds:
//!
//! - There is one [`Inbox`] while the seat is taken, and none else: two never drive one conversation.
//! - An unsealed turn is parked in the seat, or whoever has the seat drives it. It is never in both places, and never in
//!   none.
//! - To look who is there, and to send a command there or take the parked turn up with it, is one act under one lock. So
//!   is to look whether commands came, and to leave. A command that was taken is therefore taken in by a turn that is not
//!   sealed, unless the seat is lost: then who sent it may ask why.
//! - From a lost seat nothing leads back. The conversation is loaded anew, as after a crash, with a seat of its own.
//! - A turn that cannot be read never leaves the seat: every command is told why.
//!
//! The lock is the last one taken: nothing is called under it that takes another or may panic.

use std::sync::Arc;

use everturn_kernel::{Input, Millis, RestoreError, Turn, Wait};
use everturn_wire::ConversationStatus;
use tokio::sync::mpsc;

use super::{AfterTurn, Control, Inbox, LeftoverMessages, control::MAX_QUEUE, sync::Mutex};
use crate::{Definition, shutdown::Shutdown};

/// Who drives a conversation.
pub(super) struct Seat {
    inner: Mutex<Inner>,
    /// Looked at under the lock, under which a shutdown looks for writers after it has begun: so it misses none.
    shutdown: Arc<Shutdown>,
}

struct Inner {
    occupancy: Occupancy,
    /// How often it was taken.
    claims: u64,
}

enum Occupancy {
    /// No turn is unsealed.
    Empty,
    /// An unsealed turn waits, as it was saved.
    Parked(Box<Parked>),
    /// An unsealed turn that this program cannot read.
    Unreadable(RestoreError),
    /// Someone drives.
    Taken(Occupant),
    /// Whoever drove is gone without leaving. What the conversation is now, the journal knows.
    Lost,
}

/// Whoever drives, as others see it.
struct Occupant {
    /// Boxed, as the channel makes room for many at once.
    control: mpsc::Sender<Box<Control>>,
    /// Close the conversation when the turn is sealed.
    closing: bool,
    /// The turn is sealed and seen to be, but the seat is not left yet.
    sealed: bool,
}

/// An unsealed turn that nobody drives.
pub(crate) struct Parked {
    pub(crate) turn: Turn,
    /// What it waits for.
    pub(crate) wait: Wait,
    pub(crate) definition: Definition,
}

/// Where a command went.
pub(super) enum Sent {
    /// To whoever drives.
    Taken,
    /// Into the inbox of whoever drives this turn from now on.
    WithTurn(Box<Parked>, Inbox),
    /// Nowhere: there is no turn, or only one that is sealed.
    NoTurn,
}

/// Why the seat is not to be had, or a command not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    ShuttingDown,
    /// Someone drives, a turn is parked, or too many commands wait.
    Busy,
    /// Too many messages wait.
    Full,
    /// The parked turn must stay as it is.
    Parked,
    Unreadable(RestoreError),
    Lost,
}

impl Seat {
    pub(super) fn new(turn: Option<Result<Parked, RestoreError>>, shutdown: Arc<Shutdown>) -> Self {
        let occupancy = match turn {
            None => Occupancy::Empty,
            Some(Ok(parked)) => Occupancy::Parked(Box::new(parked)),
            Some(Err(error)) => Occupancy::Unreadable(error),
        };
        Self { inner: Mutex::new(Inner { occupancy, claims: 0 }), shutdown }
    }

    /// How often it was taken so far, if nobody has it and no turn is parked.
    pub(super) fn vacancy(&self) -> Option<u64> {
        let inner = self.inner.lock();
        matches!(inner.occupancy, Occupancy::Empty).then_some(inner.claims)
    }

    /// Takes it for a new turn; where `claims` are given, only if it was taken no more often.
    pub(super) fn claim(&self, claims: Option<u64>) -> Result<Inbox, Refused> {
        let mut inner = self.inner.lock();
        self.check_open()?;
        match inner.occupancy {
            Occupancy::Empty if claims.is_none_or(|claims| claims == inner.claims) => {
                Ok(self.take(&mut inner).0)
            }
            Occupancy::Lost => Err(Refused::Lost),
            _ => Err(Refused::Busy),
        }
    }

    /// Sends a command to whoever drives; takes a parked turn up with it, if it may. `waiting`: so many messages wait
    /// already.
    pub(super) fn send(
        &self,
        control: Box<Control>,
        waiting: usize,
        may_take_up: bool,
    ) -> Result<Sent, Refused> {
        let mut inner = self.inner.lock();
        let is_full = |on_their_way: usize| {
            matches!(control.input, Input::Steer(_)) && waiting + on_their_way >= MAX_QUEUE
        };
        match &mut inner.occupancy {
            Occupancy::Taken(occupant) if occupant.sealed && !control.outlives_a_turn() => Ok(Sent::NoTurn),
            // Whatever is on its way counts as a message.
            Occupancy::Taken(occupant) if is_full(occupant.on_their_way()) => Err(Refused::Full),
            Occupancy::Taken(occupant) => occupant.send(control).map(|()| Sent::Taken),
            Occupancy::Lost => Err(Refused::Lost),
            // A turn that is left as it is stays so.
            Occupancy::Empty => self.check_open().map(|()| Sent::NoTurn),
            Occupancy::Parked(_) => {
                self.check_open()?;
                if !may_take_up {
                    return Err(Refused::Parked);
                }
                if is_full(0) {
                    return Err(Refused::Full);
                }
                let (inbox, parked) = self.take(&mut inner);
                if let Occupancy::Taken(occupant) = &mut inner.occupancy {
                    // The channel is new and has room.
                    occupant.send(control)?;
                }
                Ok(parked.map_or(Sent::Taken, |parked| Sent::WithTurn(parked, inbox)))
            }
            Occupancy::Unreadable(error) => Err(Refused::Unreadable(*error)),
        }
    }

    /// Takes it for the parked turn, if the wait is over.
    pub(super) fn claim_due(&self, now: Millis) -> Result<Option<(Box<Parked>, Inbox)>, Refused> {
        let mut inner = self.inner.lock();
        match &inner.occupancy {
            Occupancy::Parked(parked) if parked.wait.lasts(now) => return Ok(None),
            Occupancy::Parked(_) => self.check_open()?,
            Occupancy::Unreadable(error) => return Err(Refused::Unreadable(*error)),
            Occupancy::Empty | Occupancy::Taken(_) | Occupancy::Lost => return Ok(None),
        }
        let (inbox, parked) = self.take(&mut inner);
        Ok(parked.map(|parked| (parked, inbox)))
    }

    /// What the parked turn waits for.
    pub(super) fn parked(&self) -> Option<Wait> {
        match &self.inner.lock().occupancy {
            Occupancy::Parked(parked) => Some(parked.wait),
            _ => None,
        }
    }

    /// Whether the conversation is to be closed after the turn.
    pub(super) fn is_closing(&self) -> bool {
        matches!(&self.inner.lock().occupancy, Occupancy::Taken(occupant) if occupant.closing)
    }

    /// Closes the conversation after what goes on now.
    pub(super) fn set_closing(&self) {
        if let Occupancy::Taken(occupant) = &mut self.inner.lock().occupancy {
            occupant.closing = true;
        }
    }

    /// Whether a turn was sealed by someone who has yet to leave.
    pub(super) fn is_sealed(&self) -> bool {
        matches!(&self.inner.lock().occupancy, Occupancy::Taken(occupant) if occupant.sealed)
    }

    /// A commit is shown; `sealed`: it left no turn. Says how many commands are on their way.
    pub(super) fn committed(&self, sealed: bool) -> usize {
        match &mut self.inner.lock().occupancy {
            Occupancy::Taken(occupant) => {
                occupant.sealed = sealed;
                occupant.on_their_way()
            }
            _ => 0,
        }
    }

    /// Leaves a turn in it as it was saved, unless a command came in: then gives it back.
    pub(super) fn park(&self, inbox: &Inbox, parked: Box<Parked>) -> Result<(), Box<Parked>> {
        let mut inner = self.inner.lock();
        match inner.occupancy {
            Occupancy::Taken(_) if inbox.is_empty() => {
                inner.occupancy = Occupancy::Parked(parked);
                Ok(())
            }
            _ => Err(parked),
        }
    }

    /// Leaves it, unless there is something to do first. `status`: the conversation's, as it was told last.
    pub(super) fn release(&self, inbox: &mut Inbox, status: ConversationStatus) -> AfterTurn {
        let mut inner = self.inner.lock();
        let Occupancy::Taken(occupant) = &mut inner.occupancy else { return AfterTurn::Nothing };
        let mut left = LeftoverMessages::default();
        left.take_in(inbox);
        if !occupant.closing && !left.messages.is_empty() {
            occupant.sealed = false;
            return AfterTurn::Turn(left);
        }
        let due = if occupant.closing { ConversationStatus::Closed } else { ConversationStatus::Idle };
        if !occupant.closing {
            left.answer();
        }
        let is_under_way = matches!(status, ConversationStatus::Active | ConversationStatus::Queued);
        if is_under_way || (occupant.closing && status != due) {
            return AfterTurn::Status(due);
        }
        inner.occupancy = Occupancy::Empty;
        AfterTurn::Nothing
    }

    /// Whoever drove is gone without leaving.
    pub(super) fn lose(&self) {
        self.inner.lock().occupancy = Occupancy::Lost;
    }

    fn check_open(&self) -> Result<(), Refused> {
        self.shutdown.check_open().map_err(|_| Refused::ShuttingDown)
    }

    /// The turn that was parked comes along.
    fn take(&self, inner: &mut Inner) -> (Inbox, Option<Box<Parked>>) {
        let (control, inbox) = Inbox::new(self.shutdown.present());
        let taken = Occupancy::Taken(Occupant { control, closing: false, sealed: false });
        inner.claims += 1;
        let parked = match std::mem::replace(&mut inner.occupancy, taken) {
            Occupancy::Parked(parked) => Some(parked),
            _ => None,
        };
        (inbox, parked)
    }
}

impl Occupant {
    /// Commands that no turn has taken in yet.
    fn on_their_way(&self) -> usize {
        self.control.max_capacity() - self.control.capacity()
    }

    fn send(&mut self, control: Box<Control>) -> Result<(), Refused> {
        let closes = control.closes;
        self.control.try_send(control).map_err(|_| Refused::Busy)?;
        // Only with the command: one that was refused closes nothing.
        self.closing |= closes;
        Ok(())
    }
}
