//! The seat: who drives a conversation. At most one session does.
//!
//! ```text
//!             claim                              panic, or the journal failed
//!   Empty --------------> Taken ----------------------------------> Lost
//!     ^                   |  ^  |                                (loaded anew)
//!     '----- release -----'  |  '---- park ----.
//!                            |                 v
//!                            '--- command, --- Parked        Unreadable
//!                                 or its wait is over     (as it was loaded)
//!
//!             another node begins a turn
//!   Empty <-------------------------------> Elsewhere
//!             it seals the turn
//! ```
//!
//! Invariants:
//!
//! - There is exactly one [`Inbox`] while the seat is taken, and otherwise none: a conversation never has two drivers.
//! - An unsealed turn is either parked in the seat or driven by the holder of the seat, never both and never neither.
//! - Checking for a driver and sending it a command (or taking up the parked turn with it) happen under one lock. So do
//!   checking for pending commands and leaving. An accepted command therefore always reaches an unsealed turn, unless
//!   the seat is lost; then the sender can read the reason.
//! - While another node drives the turn, nobody here does: a command goes to that node. To take the turn over, the
//!   conversation is loaded anew.
//! - A lost seat stays lost. The conversation is reloaded, as after a crash, with a new seat.
//! - A turn that cannot be read never leaves the seat: every command is refused with the reason.
//!
//! The seat's lock is always the last one taken: code under it takes no other lock and does not panic.

use std::sync::Arc;

use everturn_kernel::{Input, Millis, RestoreError, Turn, Wait};
use everturn_wire::ConversationStatus;
use tokio::sync::mpsc;

use super::{AfterTurn, Control, Inbox, LeftoverMessages, control::MAX_QUEUE};
use crate::{Definition, NodeId, shutdown::Shutdown, sync::Mutex};

/// Who drives a conversation.
pub(super) struct Seat {
    inner: Mutex<Inner>,
    /// Checked under the lock. A shutdown looks for drivers under the same lock after it has begun, so it misses none.
    shutdown: Arc<Shutdown>,
}

struct Inner {
    occupancy: Occupancy,
    /// How often the seat was taken.
    claims: u64,
}

enum Occupancy {
    /// There is no unsealed turn.
    Empty,
    /// An unsealed turn waits, as last saved.
    Parked(Box<Parked>),
    /// An unsealed turn that this version cannot read.
    Unreadable(RestoreError),
    /// Another node drives an unsealed turn.
    Elsewhere(NodeId),
    /// A session drives.
    Taken(Occupant),
    /// The driver is gone without leaving; the journal has the current state.
    Lost,
}

/// The driver, as seen by others.
struct Occupant {
    /// Boxed because the channel preallocates many slots.
    control: mpsc::Sender<Box<Control>>,
    /// Close the conversation when the turn is sealed.
    closing: bool,
    /// The turn is sealed and published, but the seat is not left yet.
    sealed: bool,
}

/// An unsealed turn that nobody drives.
pub(crate) struct Parked {
    pub(crate) turn: Turn,
    /// What it waits for.
    pub(crate) wait: Wait,
    pub(crate) definition: Definition,
}

/// The result of parking a turn.
pub(crate) enum Parking {
    /// The seat was left.
    Parked,
    /// A command arrived in the meantime: the turn continues.
    Commanded(Box<Parked>),
    /// The seat was lost. What follows is in the journal.
    Lost,
}

/// The result of sending a command.
pub(super) enum Sent {
    /// Sent to the driver.
    Taken,
    /// Put in the inbox of the new driver of this turn.
    WithTurn(Box<Parked>, Inbox),
    /// Not sent: there is no turn, or only a sealed one.
    NoTurn,
}

/// Why a claim or a command was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    ShuttingDown,
    /// A session drives, a turn is parked, or too many commands are pending.
    Busy,
    /// Too many messages are queued.
    Full,
    /// The parked turn must not be taken up.
    Parked,
    Unreadable(RestoreError),
    Lost,
    /// Another node drives.
    Elsewhere,
}

/// What a seat does about another node's append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// Nobody here drives: the conversation follows.
    Yes,
    /// A parked turn is outdated: another node continues it.
    Outdated,
    /// A session drives. Its next append will be stale.
    Driven,
    /// The seat is lost.
    No,
}

impl Seat {
    /// `owner`: the other node that drives the turn.
    pub(super) fn new(
        turn: Option<Result<Parked, RestoreError>>,
        owner: Option<NodeId>,
        shutdown: Arc<Shutdown>,
    ) -> Self {
        let occupancy = match turn.filter(|_| owner.is_none()) {
            None => owner.map_or(Occupancy::Empty, Occupancy::Elsewhere),
            Some(Ok(parked)) => Occupancy::Parked(Box::new(parked)),
            Some(Err(error)) => Occupancy::Unreadable(error),
        };
        Self { inner: Mutex::new(Inner { occupancy, claims: 0 }), shutdown }
    }

    /// Returns the other node that drives the turn.
    pub(super) fn elsewhere(&self) -> Option<NodeId> {
        match &self.inner.lock().occupancy {
            Occupancy::Elsewhere(owner) => Some(owner.clone()),
            _ => None,
        }
    }

    /// Returns what to do about another node's append.
    pub(super) fn follows(&self) -> Follows {
        self.inner.lock().occupancy.follows()
    }

    /// Follows an append of another node; `owner`: it drives an unsealed turn. Returns false if that is not possible.
    pub(super) fn follow(&self, owner: Option<NodeId>) -> bool {
        let mut inner = self.inner.lock();
        let follows = inner.occupancy.follows() == Follows::Yes;
        if follows {
            inner.occupancy = owner.map_or(Occupancy::Empty, Occupancy::Elsewhere);
            // Whoever found the seat vacant before must look again.
            inner.claims += 1;
        }
        follows
    }

    /// Returns how often the seat was taken so far, if it is empty.
    pub(super) fn vacancy(&self) -> Option<u64> {
        let inner = self.inner.lock();
        matches!(inner.occupancy, Occupancy::Empty).then_some(inner.claims)
    }

    /// Takes the seat for a new turn; with `claims`, only if it was taken no more than that often.
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

    /// Sends a command to the driver; may take up a parked turn to do so. `waiting`: number of messages already queued.
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
            // Every pending command counts as a message.
            Occupancy::Taken(occupant) if is_full(occupant.on_their_way()) => Err(Refused::Full),
            Occupancy::Taken(occupant) => occupant.send(control).map(|()| Sent::Taken),
            Occupancy::Lost => Err(Refused::Lost),
            Occupancy::Elsewhere(_) => Err(Refused::Elsewhere),
            // During a shutdown no turn is taken up.
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
                    // The new channel has room.
                    occupant.send(control)?;
                }
                Ok(parked.map_or(Sent::Taken, |parked| Sent::WithTurn(parked, inbox)))
            }
            Occupancy::Unreadable(error) => Err(Refused::Unreadable(*error)),
        }
    }

    /// Takes the seat for the parked turn, if its wait is over.
    pub(super) fn claim_due(&self, now: Millis) -> Result<Option<(Box<Parked>, Inbox)>, Refused> {
        let mut inner = self.inner.lock();
        match &inner.occupancy {
            Occupancy::Parked(parked) if parked.wait.lasts(now) => return Ok(None),
            Occupancy::Parked(_) => self.check_open()?,
            Occupancy::Unreadable(error) => return Err(Refused::Unreadable(*error)),
            Occupancy::Empty | Occupancy::Taken(_) | Occupancy::Elsewhere(_) | Occupancy::Lost => {
                return Ok(None);
            }
        }
        let (inbox, parked) = self.take(&mut inner);
        Ok(parked.map(|parked| (parked, inbox)))
    }

    /// Returns what the parked turn waits for.
    pub(super) fn parked(&self) -> Option<Wait> {
        match &self.inner.lock().occupancy {
            Occupancy::Parked(parked) => Some(parked.wait),
            _ => None,
        }
    }

    /// Whether a turn is parked that waits for this.
    pub(super) fn waits_for(&self, wait: Wait) -> bool {
        matches!(&self.inner.lock_at_once().occupancy, Occupancy::Parked(parked) if parked.wait == wait)
    }

    /// Returns what `read` returns for the parked turn.
    pub(super) fn read_parked<T>(&self, read: impl FnOnce(&Parked) -> T) -> Option<T> {
        match &self.inner.lock().occupancy {
            Occupancy::Parked(parked) => Some(read(parked)),
            _ => None,
        }
    }

    /// Whether the conversation closes after the turn.
    pub(super) fn is_closing(&self) -> bool {
        matches!(&self.inner.lock().occupancy, Occupancy::Taken(occupant) if occupant.closing)
    }

    /// Closes the conversation after the current turn.
    pub(super) fn set_closing(&self) {
        if let Occupancy::Taken(occupant) = &mut self.inner.lock().occupancy {
            occupant.closing = true;
        }
    }

    /// Whether the turn is sealed but its driver has not left yet.
    pub(super) fn is_sealed(&self) -> bool {
        matches!(&self.inner.lock().occupancy, Occupancy::Taken(occupant) if occupant.sealed)
    }

    /// Records that a commit was published; `sealed`: no unsealed turn remains. Returns the number of pending commands.
    pub(super) fn committed(&self, sealed: bool) -> usize {
        match &mut self.inner.lock().occupancy {
            Occupancy::Taken(occupant) => {
                occupant.sealed = sealed;
                occupant.on_their_way()
            }
            _ => 0,
        }
    }

    /// Parks a turn and leaves the seat, unless a command arrived in the meantime.
    pub(super) fn park(&self, inbox: &Inbox, parked: Box<Parked>) -> Parking {
        let mut inner = self.inner.lock();
        match inner.occupancy {
            Occupancy::Taken(_) if inbox.is_empty() => {
                inner.occupancy = Occupancy::Parked(parked);
                Parking::Parked
            }
            Occupancy::Taken(_) => Parking::Commanded(parked),
            // It was taken from the driver: only a seat that was lost is.
            _ => Parking::Lost,
        }
    }

    /// Leaves the seat, unless something must be done first. `status`: the conversation's last published status.
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

    /// Marks the seat as lost: the driver is gone without leaving. Returns what a parked turn was waiting for.
    pub(super) fn lose(&self) -> Option<Wait> {
        match std::mem::replace(&mut self.inner.lock().occupancy, Occupancy::Lost) {
            Occupancy::Parked(parked) => Some(parked.wait),
            _ => None,
        }
    }

    fn check_open(&self) -> Result<(), Refused> {
        self.shutdown.check_open().map_err(|_| Refused::ShuttingDown)
    }

    /// Takes the seat and returns the turn that was parked, if any.
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

impl Occupancy {
    fn follows(&self) -> Follows {
        match self {
            Self::Empty | Self::Elsewhere(_) => Follows::Yes,
            Self::Parked(_) | Self::Unreadable(_) => Follows::Outdated,
            Self::Taken(_) => Follows::Driven,
            Self::Lost => Follows::No,
        }
    }
}

impl Occupant {
    /// The number of commands that no turn has received yet.
    fn on_their_way(&self) -> usize {
        self.control.max_capacity() - self.control.capacity()
    }

    fn send(&mut self, control: Box<Control>) -> Result<(), Refused> {
        let closes = control.closes;
        self.control.try_send(control).map_err(|_| Refused::Busy)?;
        // Only if the command was accepted.
        self.closing |= closes;
        Ok(())
    }
}
