//! Taking back part of an answer, after which the step is streamed again.

use everturn_wire::{EventBody, Failure};

use super::Turn;
use crate::{
    AfterContent, Effects,
    call::{CallState, OpenCall},
    phase::{Phase, Streaming},
};

impl Turn {
    /// Whether what was shown of this step may be taken back. A tool that has started cannot be.
    pub(super) fn may_rewind(&self, streaming: &Streaming) -> bool {
        let is_pending = |open: &OpenCall| open.state == CallState::Pending;
        self.settings.after_content == AfterContent::Rewind && streaming.calls.iter().all(is_pending)
    }

    /// Takes back what was shown of this step. Its tokens were spent.
    pub(super) fn take_back(&mut self, failure: &Failure, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        let (usage, step) = (streaming.usage.take(), streaming.op.step);
        let is_shown = streaming.first_token_at.is_some();
        self.settle_usage(usage, &self.step_id(step), fx);
        if is_shown {
            fx.tell(EventBody::StepRewound { step_id: self.step_id(step), reason: failure.message.clone() });
        }
    }
}
