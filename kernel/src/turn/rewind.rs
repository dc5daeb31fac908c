//! Rewinding: withdrawing part of an answer before the step is streamed again.

use core::mem;

use everturn_wire::{EventBody, Failure, Role, StepId};

use super::{Turn, streaming::drop_idle_echoes};
use crate::{
    AfterContent, Effects, ToolAnswer,
    call::{CallState, OpenCall, WITHDRAWN},
    phase::{Phase, Piece, Streaming},
};

impl Turn {
    /// Whether the shown part of this step may be withdrawn. Not once a tool has started.
    pub(super) fn may_rewind(&self, streaming: &Streaming) -> bool {
        let is_pending = |open: &OpenCall| open.state == CallState::Pending;
        self.settings.after_content == AfterContent::Rewind && streaming.calls.iter().all(is_pending)
    }

    /// Withdraws what was shown of this step, if anything was. Its tokens still count.
    pub(super) fn take_back(&mut self, failure: &Failure, fx: &mut Effects) {
        match &self.phase {
            Phase::Streaming(streaming) if streaming.first_token_at.is_some() => {
                self.rewind(&failure.message, fx);
            }
            _ => self.settle_own_usage(fx),
        }
    }

    /// Withdraws what was shown of this step, also what is not known any more.
    pub(super) fn rewind(&mut self, reason: &str, fx: &mut Effects) {
        self.settle_own_usage(fx);
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        if streaming.first_token_at.is_some() {
            self.withdrawn = mem::take(&mut streaming.pieces);
        }
        let step_id = StepId::new(&self.id, streaming.op.step);
        // For those who cannot take back what they were told: there, each call gets one result.
        for open in &streaming.calls {
            fx.tell(open.result_event(&step_id, &ToolAnswer::error(WITHDRAWN), None));
        }
        fx.tell(EventBody::StepRewound { step_id, reason: reason.into() });
    }

    /// Restores what was withdrawn if the step ends before anything replaced it.
    pub(super) fn bring_back(&mut self, fx: &mut Effects) {
        let is_replaced = match &self.phase {
            Phase::Backoff(_) => false,
            Phase::Streaming(streaming) => streaming.first_token_at.is_some(),
            Phase::Tools(_) | Phase::Sealed(_) => true,
        };
        let mut pieces = mem::take(&mut self.withdrawn);
        if is_replaced {
            return;
        }
        drop_idle_echoes(&mut pieces);
        for piece in pieces {
            match piece.clone() {
                Piece::Text(delta) => fx.tell(EventBody::TextDelta { delta }),
                Piece::Thinking { text, .. } if text.is_empty() => {}
                Piece::Thinking { text: delta, .. } => fx.tell(EventBody::ReasoningDelta { delta }),
            }
            fx.keep(Role::Assistant, piece.into_chunk());
        }
    }
}
