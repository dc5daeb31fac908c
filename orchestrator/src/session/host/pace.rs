//! When a turn's call is made.

use everturn_kernel::{Schedule as _, Turn, Want};

use super::TurnHost;
use crate::{
    model::Model,
    pacing::{Asker, Pace, size},
    usage::Figures,
};

impl TurnHost<'_> {
    pub(super) fn pace(&self, turn: &Turn, model: &Model) -> Pace {
        let now = self.shared.clock.now();
        // A turn without retries is not held either.
        let shares_limits = !self.settings.policy.ignores_holds() && self.is_retried();
        let price = self.shared.usage.price(&model.target);
        Pace {
            pacing: self.shared.pacing.clone(),
            clock: self.shared.clock.clone(),
            model: model.id.clone(),
            asker: Asker {
                turn: self.turn_id.clone(),
                caller: self.conversation.id.caller_name(),
                conversation: Some(self.conversation.id.clone()),
                since: turn.wants_since(now),
                priority: self.settings.definition.priority.max(self.settings.model.priority()),
                size: size(&self.tokens(model), price.as_ref()),
                price,
            },
            // A person who asks for a call knows what has changed.
            rejection: match turn.is_asked_by_person() {
                true => None,
                false => self.shared.health.rejection(now, &model.target),
            },
            insists: turn.is_asked_by_person() || !shares_limits,
            waits_for_caller: self.is_retried(),
            parks_for_caller: true,
            affordable_ms: turn.affordable_ms(now),
            // On a route, `health::watched` reports more than this.
            health: turn.target().is_none().then(|| (self.shared.health.clone(), model.target.clone())),
            // With several targets, another one may be reachable.
            waits_for_network: shares_limits && turn.settings().targets.len() < 2,
        }
    }

    fn is_retried(&self) -> bool {
        let message = self.settings.definition.configured.auto_retry;
        self.shared.retry.switch(message, &self.conversation.retry).is_on()
    }

    /// Estimates the tokens of a call.
    fn tokens(&self, model: &Model) -> Figures {
        let max_output = self.settings.definition.configured.max_output_tokens.map_or(u64::MAX, u64::from);
        let output = self.shared.pacing.usual_output(&model.id).min(max_output);
        let input = self.expected_tokens(model);
        let cache_read = self.shared.pacing.usual_cached(&model.id, input);
        Figures { input, cache_read, output, ..Figures::default() }
    }

    /// Gives up the turn's place in line once it is sealed.
    pub(super) fn leave_line(&self, turn: &Turn) {
        if matches!(turn.want(), Want::Nothing) {
            let target = turn.target().map_or(self.settings.model.id(), |target| &target.name);
            self.shared.pacing.forget(target, &self.turn_id, self.shared.clock.now());
        }
    }
}
