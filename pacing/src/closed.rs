//! What a refusal means for others: nobody asks before it is over, then one finds out.

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use crate::Ticket;

/// Waits between probes if the provider gave no hint, in milliseconds; the last one repeats.
const PROBES_MS: [u64; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];

/// Whether a target may be asked after a refusal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed {
    /// Nobody asks before this, because the provider said so.
    pub(crate) hint_ends: Option<Millis>,
    /// When the next probe may be made.
    pub(crate) probe_at: Option<Millis>,
    /// The turn that was refused: it follows its own schedule.
    refused: Option<TurnId>,
    /// The call that is finding out.
    probe: Option<Ticket>,
    /// The last call made before the refusal: refusals of earlier calls are part of the same event.
    after: Option<Ticket>,
    misses: usize,
}

/// Whether the state after a refusal admits a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    /// It is the probe.
    MayProbe,
    Hinted(Millis),
    Refused(Millis),
    Probed,
}

impl Closed {
    pub(crate) fn state(&self, turn: &TurnId, now: Millis) -> State {
        match (self.hint_ends, self.probe_at) {
            (Some(at), _) if now < at => State::Hinted(at),
            _ if self.probe.is_some() => State::Probed,
            (_, Some(at)) if now < at && self.refused.as_ref() != Some(turn) => State::Refused(at),
            (None, None) => State::Open,
            _ => State::MayProbe,
        }
    }

    /// Whether a refusal of this call is part of an event that is known.
    pub(crate) fn knows(&self, ticket: Ticket) -> bool {
        self.after.is_some_and(|after| ticket <= after)
    }

    /// Closes the target, or keeps it closed. `room_at`: when a call may succeed, if something is known.
    pub(crate) fn refused(
        &mut self,
        turn: &TurnId,
        last: Ticket,
        hint_ms: Option<u64>,
        room_at: Option<Millis>,
        now: Millis,
    ) {
        let guess = now.plus(PROBES_MS[self.misses.min(PROBES_MS.len() - 1)]);
        let hint_ends = hint_ms.map(|ms| now.plus(ms));
        self.hint_ends = hint_ends.max(self.hint_ends);
        // A hint that proved too short is not believed the second time.
        let at = match hint_ends {
            Some(at) if self.misses == 0 => at,
            Some(at) => at.max(guess),
            None => room_at.unwrap_or(guess),
        };
        self.probe_at = Some(at);
        self.misses += 1;
        (self.refused, self.after, self.probe) = (Some(turn.clone()), Some(last), None);
    }

    /// Another refusal of the same event: the longest hint counts.
    pub(crate) fn refused_too(&mut self, hint_ms: Option<u64>, now: Millis) {
        let Some(at) = hint_ms.map(|ms| now.plus(ms)) else { return };
        self.hint_ends = self.hint_ends.max(Some(at));
        self.probe_at = self.probe_at.max(Some(at));
    }

    pub(crate) fn probes(&mut self, ticket: Ticket) {
        self.probe = Some(ticket);
    }

    /// Whether this call is finding out.
    pub(crate) fn is_probe(&self, ticket: Ticket) -> bool {
        self.probe == Some(ticket)
    }

    /// The outcome of a call stays unknown: the next turn finds out.
    pub(crate) fn left(&mut self, ticket: Ticket) {
        if self.probe == Some(ticket) {
            self.probe = None;
        }
    }

    /// A call was accepted. Returns whether that opens the target: the call was made after the refusal.
    pub(crate) fn accepted(&mut self, ticket: Ticket) -> bool {
        let is_later = self.after.is_none_or(|after| ticket > after);
        let opens = is_later && (self.probe_at.is_some() || self.hint_ends.is_some());
        if opens {
            *self = Self { after: self.after, ..Self::default() };
        }
        opens
    }
}
