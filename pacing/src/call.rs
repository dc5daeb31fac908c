//! A call that is to be made, and the answer to the question whether it may be.

use everturn_kernel::Millis;
use everturn_wire::{Because, CallerName, Priority, TurnId};

use crate::What;

/// A call that a turn wants to make.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The turn.
    pub turn: &'a TurnId,
    /// The caller that the turn belongs to: callers take turns. `None` = the administrator, or nobody.
    pub caller: Option<&'a CallerName>,
    /// Since when the turn has wanted to make this call: calls are admitted by age.
    pub since: Millis,
    /// Who goes first.
    pub priority: Priority,
    /// The estimated size.
    pub size: Size,
}

/// The size of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Tokens that are sent.
    pub input: u64,
    /// Those of them that are read from a cache: limits on input tokens do not count them.
    pub cached: u64,
    /// Tokens that are answered.
    pub output: u64,
    /// What it costs, in millionths of the currency that prices are in; without a price, nothing.
    pub money: u64,
}

impl Size {
    /// Returns how much of this kind of limit the call uses up.
    pub(crate) fn of(self, what: What) -> u64 {
        match what {
            What::Requests => 1,
            What::Tokens => self.input.saturating_add(self.output),
            What::InputTokens => self.input.saturating_sub(self.cached),
            What::OutputTokens => self.output,
        }
    }
}

/// The name of an admitted call. Later calls have greater ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(crate) u64);

/// Whether a call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may be made now. Report what becomes of it.
    Go(Ticket),
    /// It has to wait.
    Wait(Wait),
}

/// How long to wait, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When to ask again at the latest: an estimate. [`crate::Pacer::let_go`] may name the turn earlier.
    pub until: Millis,
    /// The reason.
    pub because: Because,
}
