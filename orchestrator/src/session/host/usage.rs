//! Counts what a turn uses, once its commit is durable.

use everturn_kernel::{Millis, Target, Turn};

use super::TurnHost;
use crate::usage::Figures;

impl TurnHost<'_> {
    /// `used`: what the calls in a commit used.
    pub(super) fn count_usage(&self, turn: &Turn, mut used: Figures, now: Millis) {
        used.add(&Figures::of_ended(turn));
        let caller = self.conversation.id.caller();
        match (&self.model, turn.target()) {
            (Some(model), _) => self.shared.usage.add(caller, &model.target, now, &used),
            (None, Some(target)) => self.shared.usage.add(caller, target, now, &used),
            (None, None) => {
                let model = self.settings.model.id().to_owned();
                let target = Target { name: model.clone(), credential: String::new(), model };
                self.shared.usage.add(caller, &target, now, &used);
            }
        }
    }
}
