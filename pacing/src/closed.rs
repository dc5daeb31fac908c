//! What a refusal means for other calls: none is made until it is over; then one finds out whether the target answers.

use everturn_kernel::Millis;
use everturn_wire::TurnId;

use crate::{Because, Ticket, saved::Known};

/// Waits between probes if the provider gave no hint, in milliseconds; the last one repeats.
const PROBES_MS: [u64; 6] = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];

/// Waits between calls that look for the network, in milliseconds; the last one repeats.
const UNREACHED_MS: [u64; 4] = [5_000, 10_000, 20_000, 30_000];

/// How long others wait for a call that is finding out, in milliseconds: its answer may take minutes to begin.
const PROBE_MS: u64 = 30_000;

/// How much later this node asks if another one was refused, in milliseconds: that one asks first.
const LATER_MS: u64 = 2_000;

/// How long another node is believed to be asking unless it says so again, in milliseconds.
const BELIEVED_MS: u64 = 15_000;

/// Whether a target may be asked after a refusal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed {
    /// When it was refused last.
    at: Millis,
    /// Nobody asks before this, because the provider said so, or there is no network.
    pub(crate) hint_ends: Option<Millis>,
    /// When the next probe may be made.
    pub(crate) probe_at: Option<Millis>,
    /// Whether it cannot be reached because there is no network.
    pub(crate) is_offline: bool,
    /// The turn that was refused: it follows its own schedule.
    pub(crate) refused: Option<TurnId>,
    /// The call that is finding out, and when it began.
    probe: Option<(Ticket, Millis)>,
    /// Until when another node is believed to be finding out.
    probed_elsewhere: Option<Millis>,
    /// The last call made before the refusal: refusals of earlier calls are part of the same event.
    after: Option<Ticket>,
    pub(crate) misses: usize,
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
            (Some(at), _) if now < at && self.refused.as_ref() == Some(turn) => State::Hinted(at),
            (Some(at), probe_at) if now < at => State::Hinted(at.max(probe_at.unwrap_or(at))),
            _ if self.probed_until(now).is_some() => State::Probed,
            (_, Some(at)) if now < at && self.refused.as_ref() != Some(turn) => State::Refused(at),
            (None, None) => State::Open,
            _ => State::MayProbe,
        }
    }

    /// Returns until when others wait because a call is finding out, here or at another node.
    pub(crate) fn probed_until(&self, now: Millis) -> Option<Millis> {
        let here = self.probe.map(|(_, began)| began.plus(PROBE_MS));
        here.max(self.probed_elsewhere).filter(|until| now < *until)
    }

    /// Returns the reason why others wait: this one, unless there is no network.
    pub(crate) fn because(&self, refused: Because) -> Because {
        if self.is_offline { Because::Offline } else { refused }
    }

    /// Whether the only refusal so far said when to ask again.
    pub(crate) fn is_hint_over(&self) -> bool {
        self.hint_ends.is_some() && self.misses == 1 && !self.is_offline
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
        if self.is_offline {
            *self = Self::default();
        }
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
        (self.at, self.probed_elsewhere) = (now, None);
    }

    /// Another refusal of the same event: the longest hint counts.
    pub(crate) fn refused_too(&mut self, hint_ms: Option<u64>, now: Millis) {
        let Some(at) = hint_ms.map(|ms| now.plus(ms)) else { return };
        self.hint_ends = self.hint_ends.max(Some(at));
        self.probe_at = self.probe_at.max(Some(at));
    }

    /// A call reached nobody. If several do at once, the first one decides. Returns when one may look for the network.
    pub(crate) fn unreached(&mut self, last: Ticket, now: Millis) -> Millis {
        if let Some(at) = self.hint_ends.filter(|at| self.is_offline && now < *at) {
            return at;
        }
        let misses = if self.is_offline { self.misses } else { 0 };
        let at = now.plus(UNREACHED_MS[misses.min(UNREACHED_MS.len() - 1)]);
        *self = Self {
            at: now,
            hint_ends: Some(at),
            probe_at: Some(at),
            is_offline: true,
            after: Some(last),
            misses: misses + 1,
            ..Self::default()
        };
        at
    }

    /// A turn of another node was refused, and that node asks first, after `probe_ms`.
    pub(crate) fn refused_elsewhere(
        &mut self,
        turn: &TurnId,
        at: Millis,
        hint_ms: Option<u64>,
        probe_ms: u64,
        last: Ticket,
        now: Millis,
    ) {
        let is_known = self.probe_at.is_some() && at.0 <= self.at.0 + LATER_MS;
        if self.is_offline || self.probe.is_some() || is_known {
            return;
        }
        self.hint_ends = self.hint_ends.max(hint_ms.map(|ms| now.plus(ms)));
        self.probe_at = self.probe_at.max(Some(now.plus(probe_ms.max(hint_ms.unwrap_or(0))).plus(LATER_MS)));
        (self.at, self.after, self.probed_elsewhere) = (at.max(self.at), Some(last), None);
        (self.refused, self.misses) = (Some(turn.clone()), self.misses + 1);
    }

    /// Another node is finding out.
    pub(crate) fn probed_elsewhere(&mut self, now: Millis) {
        if self.probe_at.is_some() && self.probe.is_none() && !self.is_offline {
            self.probed_elsewhere = Some(now.plus(BELIEVED_MS));
        }
    }

    /// Another node was answered when it had asked at this time. Returns whether that opens the target.
    pub(crate) fn accepted_elsewhere(&mut self, asked_at: Millis) -> bool {
        let opens = self.probe_at.is_some() && asked_at >= self.at && !self.is_offline;
        if opens {
            *self = Self { after: self.after, ..Self::default() };
        }
        opens
    }

    pub(crate) fn probes(&mut self, ticket: Ticket, now: Millis) {
        self.probe = Some((ticket, now));
    }

    /// Whether this call is finding out.
    pub(crate) fn is_probe(&self, ticket: Ticket) -> bool {
        self.probe.is_some_and(|(probe, _)| probe == ticket)
    }

    /// Whether others wait for a call of this node that is finding out.
    pub(crate) fn is_probed(&self, now: Millis) -> bool {
        self.probe.is_some_and(|(_, began)| now < began.plus(PROBE_MS))
    }

    /// The outcome of a call stays unknown: the next turn finds out.
    pub(crate) fn left(&mut self, ticket: Ticket) {
        if self.is_probe(ticket) {
            self.probe = None;
        }
    }

    /// A call was accepted. Returns whether that opens the target: the call was made after the refusal.
    pub(crate) fn accepted(&mut self, ticket: Ticket) -> bool {
        let is_later = self.after.is_none_or(|after| ticket > after);
        let opens = is_later && self.probe_at.is_some();
        if opens {
            *self = Self { after: self.after, ..Self::default() };
        }
        opens
    }

    /// The turn that was refused no longer wants to call: if only its schedule decided, others need not wait for it.
    pub(crate) fn forget(&mut self, turn: &TurnId, now: Millis) {
        if self.refused.as_ref() == Some(turn) {
            self.refused = None;
            self.probe_at = self.probe_at.map(|at| at.min(self.hint_ends.unwrap_or(now)));
        }
    }

    /// Restores what an earlier process knew.
    pub(crate) fn restored(known: &Known, at: Millis, probe_at: Millis) -> Self {
        let Known { hint_ends, is_offline, misses, .. } = *known;
        let refused = known.refused.clone();
        Self { at, hint_ends, probe_at: Some(probe_at), refused, is_offline, misses, ..Self::default() }
    }

    pub(crate) fn closed_at(&self) -> Millis {
        self.at
    }
}
