//! Checks waits: none is shorter than the provider's hint, and none longer than decided.

use std::collections::HashMap;

use everturn_wire::ConversationId;

use super::time::Time;

/// How much later than decided a call may come, in milliseconds: many may be due at once, and the timer limits its
/// rate.
const LATE_MS: u64 = 1_000;
/// Interval at which the timer checks its clock, in milliseconds. A suspend is noticed by then.
const LOOK_MS: u64 = 60_000;

/// The last transient failure of each conversation, and the wait after it.
#[derive(Default)]
pub(super) struct Waits(HashMap<ConversationId, Failed>);

/// A transient failure of a provider call.
struct Failed {
    /// Its position in the script; `None` for a failure of another conversation.
    place: Option<(String, usize)>,
    at: u64,
    life: usize,
    hint_ms: u64,
    /// The durable wait.
    decided_ms: Option<u64>,
    /// Whether it may end early.
    skipped: bool,
}

impl Waits {
    pub(super) fn failed(&mut self, id: &ConversationId, place: (String, usize), time: &Time, hint_ms: u64) {
        let (at, life) = (time.now(), time.life);
        let failed = Failed { place: Some(place), at, life, hint_ms, decided_ms: None, skipped: false };
        self.0.insert(id.clone(), failed);
    }

    /// Records a wait that became durable.
    pub(super) fn decided(&mut self, id: &ConversationId, now: u64, decided_ms: u64) -> Result<(), String> {
        let Some(failed) = self.0.get_mut(id) else {
            return Err(format!("{id} waits though nothing failed"));
        };
        match failed.decided_ms.replace(decided_ms) {
            Some(before) if before != decided_ms => {
                Err(format!("{id}: a wait of {before} ms became one of {decided_ms} ms at {now}"))
            }
            _ if decided_ms < failed.hint_ms => {
                Err(format!("{id}: waits {decided_ms} ms, the hint was {} ms", failed.hint_ms))
            }
            _ => Ok(()),
        }
    }

    /// Records a durable wait caused by another conversation; no call of this one failed.
    pub(super) fn shared(&mut self, id: &ConversationId, time: &Time, decided_ms: u64) {
        let place = self.0.remove(id).and_then(|failed| failed.place);
        let (at, life, decided_ms) = (time.now(), time.life, Some(decided_ms));
        // It ends early if the target answers another turn.
        self.0.insert(id.clone(), Failed { place, at, life, hint_ms: 0, decided_ms, skipped: true });
    }

    /// Forgets the wait of a sealed turn: the next call belongs to another turn.
    pub(super) fn sealed(&mut self, id: &ConversationId) {
        self.0.remove(id);
    }

    /// Records that somebody skips the wait.
    pub(super) fn skipped(&mut self, id: &ConversationId) {
        if let Some(failed) = self.0.get_mut(id) {
            failed.skipped = true;
        }
    }

    /// Records a call. Returns whether it ends a wait.
    pub(super) fn asked(
        &mut self,
        id: &ConversationId,
        place: &(String, usize),
        time: &Time,
    ) -> Result<bool, String> {
        let Some(failed) =
            self.0.remove(id).filter(|failed| failed.place.as_ref().is_none_or(|failed| failed == place))
        else {
            return Ok(false);
        };
        let now = time.now();
        let was_unsaved = time.unsaved.is_some_and(|unsaved| unsaved >= failed.at);
        let Some(decided_ms) = failed.decided_ms else {
            // The process may have ended before the decision, or the journal failed.
            let same = failed.life == time.life && !was_unsaved;
            return if same { Err(format!("{id}: asked again without a wait")) } else { Ok(false) };
        };
        let waited = now - failed.at;
        if waited < decided_ms && !failed.skipped {
            return Err(format!("{id}: waited {waited} ms, {decided_ms} ms were decided"));
        }
        let due = if time.set_back > 0 {
            // The rest is unknown; at worst the wait starts again with the process, and nobody looked at the clock between a
            // suspend and its being set back, which hides the suspend.
            failed.at.max(time.life_began) + decided_ms + time.suspended
        } else {
            (failed.at + decided_ms).max(time.life_began)
        };
        // Nothing could run while the machine was suspended, and the timer checks only at intervals.
        let due = time.woke_up.map_or(due, |woke_up| due.max(woke_up) + LOOK_MS);
        // A turn that could not be saved is tried again later, after a delay that depends on how many there are.
        if now > due + LATE_MS && !was_unsaved {
            return Err(format!("{id}: asked at {now}, due was {due} (decided: {decided_ms} ms)"));
        }
        Ok(true)
    }
}
