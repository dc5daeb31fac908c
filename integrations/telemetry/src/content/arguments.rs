//! The arguments of tool calls, kept until their result.

use std::collections::HashMap;

use everturn_wire::{StepId, TurnId};

/// Maximum total size of kept arguments, in bytes. Calls may wait for approval for days.
const MAX_TOTAL: usize = 16 << 20;

/// Approximate size of an entry without its arguments, in bytes.
const ENTRY: usize = 256;

/// The arguments of tool calls without a result, of all turns.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    by_turn: HashMap<TurnId, HashMap<(StepId, String), String>>,
    size: usize,
}

impl Arguments {
    /// Keeps the arguments of a call if there is room. Otherwise the span of the call has none.
    pub(crate) fn keep(
        &mut self,
        turn: &TurnId,
        step: &StepId,
        call: &str,
        written: impl FnOnce() -> String,
    ) {
        // Ids are up to the model.
        if self.size >= MAX_TOTAL || call.len() > ENTRY / 2 {
            return;
        }
        let written = written();
        self.size += written.len() + ENTRY;
        let key = (step.clone(), call.to_owned());
        if let Some(replaced) = self.by_turn.entry(turn.clone()).or_default().insert(key, written) {
            self.size -= replaced.len() + ENTRY;
        }
    }

    /// Removes and returns the arguments of a call.
    pub(crate) fn take(&mut self, turn: &TurnId, step: &StepId, call: &str) -> Option<String> {
        let of_turn = self.by_turn.get_mut(turn)?;
        let written = of_turn.remove(&(step.clone(), call.to_owned()))?;
        if of_turn.is_empty() {
            self.by_turn.remove(turn);
        }
        self.size -= written.len() + ENTRY;
        Some(written)
    }

    /// Removes the arguments of a turn.
    pub(crate) fn forget(&mut self, turn: &TurnId) {
        for written in self.by_turn.remove(turn).into_iter().flat_map(HashMap::into_values) {
            self.size -= written.len() + ENTRY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_kept_until_their_result_in_bounded_memory() {
        let (turn, other, step) = (TurnId::from("t"), TurnId::from("u"), StepId::from("t#1"));
        let mut all = Arguments::default();
        all.keep(&turn, &step, "a", || "first".to_owned());
        all.keep(&turn, &step, "a", || "again".to_owned());
        all.keep(&turn, &step, "b", || "b".to_owned());
        assert_eq!(all.take(&other, &step, "a"), None);
        assert_eq!(all.take(&turn, &step, "a").as_deref(), Some("again"));
        assert_eq!(all.take(&turn, &step, "a"), None);
        all.forget(&turn);
        assert_eq!((all.size, all.by_turn.len()), (0, 0));
        for call in 0..5_000 {
            all.keep(&turn, &step, &call.to_string(), || "x".repeat(16 << 10));
        }
        assert!(all.size <= MAX_TOTAL + (17 << 10));
        all.keep(&other, &step, &"long".repeat(100), || unreachable!("neither this is kept"));
        all.forget(&turn);
        assert_eq!(all.size, 0);
    }
}
