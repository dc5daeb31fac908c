//! What is known of waits: none is shorter than the provider's hint, none longer than was decided.

use std::collections::HashMap;

use everturn_wire::ConversationId;

use super::book::Time;

/// How much later than decided a call may come, in milliseconds: many may be due at once, and the timer has a pace.
const LATE_MS: u64 = 1_000;
/// So often the timer looks at its clock, in milliseconds: a suspend is noticed by then.
const LOOK_MS: u64 = 60_000;

/// The last failure of each conversation that can pass, and the wait after it.
#[derive(Default)]
pub(super) struct Waits(HashMap<ConversationId, Failed>);

/// A provider call failed in a way that can pass.
struct Failed {
    /// Of which place in the script; that of another conversation is not known.
    place: Option<(String, usize)>,
    at: u64,
    life: usize,
    hint_ms: u64,
    /// The wait that is durable.
    decided_ms: Option<u64>,
    /// It may end early.
    skipped: bool,
}

impl Waits {
    pub(super) fn failed(&mut self, id: &ConversationId, place: (String, usize), time: &Time, hint_ms: u64) {
        let (at, life) = (time.now(), time.life);
        let failed = Failed { place: Some(place), at, life, hint_ms, decided_ms: None, skipped: false };
        self.0.insert(id.clone(), failed);
    }

    /// A wait became durable.
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

    /// A wait became durable that another conversation learnt of: nothing of this one failed.
    pub(super) fn shared(&mut self, id: &ConversationId, time: &Time, decided_ms: u64) {
        let place = self.0.remove(id).and_then(|failed| failed.place);
        let (at, life, decided_ms) = (time.now(), time.life, Some(decided_ms));
        // It ends early when the target answers somebody else.
        self.0.insert(id.clone(), Failed { place, at, life, hint_ms: 0, decided_ms, skipped: true });
    }

    /// The turn is sealed: the next call is of another turn, which owes nothing to this wait.
    pub(super) fn sealed(&mut self, id: &ConversationId) {
        self.0.remove(id);
    }

    /// Someone skips the wait.
    pub(super) fn skipped(&mut self, id: &ConversationId) {
        if let Some(failed) = self.0.get_mut(id) {
            failed.skipped = true;
        }
    }

    /// A call comes. Says whether it ends a wait.
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
            // The process may have ended before it was decided, or the journal failed.
            let same = failed.life == time.life && !was_unsaved;
            return if same { Err(format!("{id}: asked again without a wait")) } else { Ok(false) };
        };
        let waited = now - failed.at;
        if waited < decided_ms && !failed.skipped {
            return Err(format!("{id}: waited {waited} ms, {decided_ms} ms were decided"));
        }
        let due = if time.set_back > 0 {
            // What is left is not known any more: at worst it begins anew with the process.
            failed.at.max(time.life_began) + decided_ms
        } else {
            (failed.at + decided_ms).max(time.life_began)
        };
        // Nobody could come while the machine was suspended, and the timer looks only now and then.
        let due = time.woke_up.map_or(due, |woke_up| due.max(woke_up) + LOOK_MS);
        // A turn that could not be saved is tried again later, and how much later depends on how many there are.
        if now > due + LATE_MS && !was_unsaved {
            return Err(format!("{id}: asked at {now}, due was {due} (decided: {decided_ms} ms)"));
        }
        Ok(true)
    }
}
