//! What is kept of a target for the next process.

use alloc::vec::Vec;

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use crate::Told;

/// What a process knows of a target that the next one needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// When this was.
    pub at: Millis,
    /// When the target last answered.
    pub answered_at: Option<Millis>,
    /// When it last refused a call, if it has not answered since.
    pub closed_at: Option<Millis>,
    /// Until when nobody asks it.
    pub hint_ends: Option<Millis>,
    /// When one call may find out whether it answers again.
    pub probe_at: Option<Millis>,
    /// The turn that was refused: it need not wait for `probe_at`.
    pub refused: Option<TurnId>,
    /// Whether it cannot be reached because there is no network.
    pub is_offline: bool,
    /// How often in a row it was asked in vain.
    pub misses: usize,
    /// What is left of the limits that it reported. The time of a reset counts from `at`.
    pub limits: Vec<Told>,
}
