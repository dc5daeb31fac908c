//! Leaving `Streaming`: the provider sent an event.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::mem;

use everturn_wire::{DoneReason, Echo, EventBody, RetryOutcome, Role, StepId, Usage};

use super::Turn;
use crate::{
    Checked, CheckedCall, Effects, FinishReason, Ledger, Millis, Op, Schedule, Silence, StreamEvent, Target,
    ToolAnswer, ToolCall,
    call::{INTERRUPTED, OpenCall, promote, with_unique_id},
    phase::{Phase, Piece, Streaming, Tools},
};

impl Turn {
    pub(super) fn on_provider(
        &mut self,
        now: Millis,
        op: Op,
        event: StreamEvent,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        if streaming.op != op {
            return;
        }
        if streaming.ledger.summarizing.is_some() && is_answer(&event) {
            return;
        }
        match event {
            StreamEvent::Text(delta) => {
                streaming.on_text(now, delta, &self.settings.targets, fx);
                self.note_first_token();
            }
            StreamEvent::Reasoning(delta) => {
                streaming.on_reasoning(now, delta, &self.settings.targets, fx);
                self.note_first_token();
            }
            StreamEvent::Opaque => {
                streaming.saw_content(now, &self.settings.targets, fx);
                self.note_first_token();
            }
            StreamEvent::Echo(echo) => streaming.on_echo(echo),
            StreamEvent::CallHere(id) => streaming.on_place(id),
            StreamEvent::ToolCall(call) => self.on_tool_call(now, call, Checked::default(), fx),
            StreamEvent::Checked(checked) => {
                let CheckedCall { call, checked } = *checked;
                self.on_tool_call(now, call, checked, fx);
            }
            StreamEvent::Usage(usage) => streaming.usage = Some(usage),
            StreamEvent::Reported(reported) => streaming.reported = Some(reported),
            StreamEvent::Silent(silence) => self.on_silent(now, silence, fx),
            // Only hosts use it.
            StreamEvent::Limits(_) | StreamEvent::Collected(_) => {}
            StreamEvent::Held(hold) => self.on_held(now, *hold, schedule, fx),
            StreamEvent::NearlyFull => self.on_nearly_full(now, schedule, fx),
            StreamEvent::Summary(summary) => self.on_summary(now, *summary, schedule, fx),
            StreamEvent::Finished(reason) => self.on_finished(now, &reason, schedule, fx),
            StreamEvent::Failed(failure) => {
                self.count_call();
                let failed = self.asked();
                self.hints.note(now, &failed, &failure);
                self.on_failed(now, failure, schedule, fx);
            }
        }
    }

    fn on_silent(&mut self, now: Millis, silence: Silence, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        streaming.is_silent = true;
        let Silence { silent_ms, left_ms, alive } = silence;
        let gives_up_at = left_ms.map(|left_ms| now.plus(left_ms).0);
        let step_id = StepId::new(&self.id, streaming.op.step);
        fx.tell(EventBody::ProviderSilent { step_id, silent_ms, gives_up_at, alive });
    }

    /// Counts the call that ends now, unless it is for a summary.
    pub(super) fn count_call(&mut self) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        if !mem::replace(&mut streaming.is_over, true) && streaming.ledger.summarizing.is_none() {
            self.answer_calls = self.answer_calls.saturating_add(1);
        }
    }

    fn note_first_token(&mut self) {
        if let (None, Phase::Streaming(streaming)) = (self.first_token_at, &self.phase) {
            self.first_token_at = streaming.first_token_at;
        }
    }

    fn on_tool_call(&mut self, now: Millis, call: ToolCall, checked: Checked, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        streaming.saw_content(now, &self.settings.targets, fx);
        let call = with_unique_id(call, &streaming.calls);
        let Checked { check, decision } =
            if self.reporting.is_some() { self.check_of(&call, checked) } else { checked };
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        let (check, decisions) = (check.map(Box::new), decision.into_iter().collect());
        let place = streaming.places.iter().find(|(id, _)| *id == call.id).map(|(_, place)| *place);
        let open = OpenCall { check, decisions, place, ..OpenCall::new(call) };
        fx.tell(open.called_event(&StepId::new(&self.id, streaming.op.step)));
        streaming.calls.push(open);
        self.first_token_at = self.first_token_at.or(streaming.first_token_at);
        if self.settings.eager_tools {
            promote(&mut streaming.calls, self.settings.max_parallel_tools, now);
            // Save before a tool starts, in case the process ends now.
            self.revision += 1;
        }
    }

    fn on_finished(&mut self, now: Millis, reason: &FinishReason, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        let is_empty = streaming.is_empty();
        self.count_call();
        let reason = done_reason(reason);
        if is_empty {
            return self.on_empty(now, &reason, schedule, fx);
        }
        let cut = matches!(reason, DoneReason::Length | DoneReason::ContentFilter);
        self.complete_step(now, fx);
        match &self.phase {
            Phase::Tools(tools) if tools.calls.is_empty() && self.must_report() => {
                self.on_no_call(now, &reason, schedule, fx);
            }
            Phase::Tools(tools) if tools.calls.is_empty() => self.seal(now, reason, None, fx),
            _ if cut => {
                // The last call may be truncated and still parse, so none is run.
                let why = format!("(tool failed: not run, the reply was cut off: {})", reason.as_str());
                let answer = |open: &OpenCall| if open.is_running() { INTERRUPTED } else { &why };
                self.answer_where(now, |open| Some(ToolAnswer::error(answer(open))), fx);
                match self.must_report() {
                    true => self.on_cut_calls(now, &reason, schedule, fx),
                    false => self.seal(now, reason, None, fx),
                }
            }
            _ => self.start_tools(now, schedule, fx),
        }
    }

    /// Ends the step's stream successfully: publishes usage and `step-complete`, and saves the answer. The tools run
    /// after that.
    pub(super) fn complete_step(&mut self, now: Millis, fx: &mut Effects) {
        let Some((streaming, step_id)) = self.take_stream(fx) else { return };
        fx.tell(streaming.timings(now, step_id.clone()));
        keep_answer(streaming.pieces, &streaming.calls, &step_id, fx);
        for open in &streaming.calls {
            if let Some(answer) = open.answer() {
                fx.keep(Role::Tool, open.result_chunk(&step_id, answer));
            }
        }
        let ledger = self.must_report().then(|| Box::new(Ledger { last: None, ..streaming.ledger }));
        self.enter(Phase::Tools(Tools { step: streaming.op.step, calls: streaming.calls, ledger }));
    }

    /// Ends an interrupted stream. Text stays, and so do calls with a result. Subscribers receive a result for each
    /// other call that was shown, but history drops those calls so that the next request is valid.
    pub(super) fn abandon_step(&mut self, fx: &mut Effects) {
        let Some((mut streaming, step_id)) = self.take_stream(fx) else { return };
        if streaming.calls.iter().all(|open| open.answer().is_none()) {
            drop_idle_echoes(&mut streaming.pieces);
        }
        let answered = streaming.calls.iter().filter(|open| open.answer().is_some());
        keep_answer(mem::take(&mut streaming.pieces), answered, &step_id, fx);
        let answered = streaming.calls.iter().filter_map(|open| open.answer().map(|answer| (open, answer)));
        for (open, answer) in answered {
            fx.keep(Role::Tool, open.result_chunk(&step_id, answer));
        }
        for open in streaming.calls.iter().filter(|open| open.answer().is_none()) {
            fx.tell(open.result_event(&step_id, &ToolAnswer::error(INTERRUPTED), None));
        }
    }

    /// Takes the streamed content out of the phase and adds its token counts: those told so far are charged, however the
    /// step ends. The caller enters the next phase.
    fn take_stream(&mut self, fx: &mut Effects) -> Option<(Streaming, StepId)> {
        self.count_call();
        let Phase::Streaming(streaming) = &mut self.phase else { return None };
        let empty = Streaming::new(streaming.op, streaming.ledger.clone(), streaming.since);
        let streaming = mem::replace(streaming, empty);
        let step_id = self.step_id(streaming.op.step);
        self.withdrawn = Vec::new();
        self.steps += 1;
        if streaming.ledger.summarizing.is_none() {
            self.context_size =
                streaming.usage.map(|usage| usage.input_tokens.saturating_add(usage.output_tokens));
        }
        self.settle_usage(streaming.usage, &step_id, fx);
        Some((streaming, step_id))
    }

    /// Publishes that the current call answered after retries.
    pub(super) fn tell_recovered(&self, fx: &mut Effects) {
        if let Phase::Streaming(streaming) = &self.phase {
            streaming.recovered(self.targets(), fx);
        }
    }

    /// Settles what the running call has used so far.
    pub(super) fn settle_own_usage(&mut self, fx: &mut Effects) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        let (usage, step) = (streaming.usage.take(), streaming.op.step);
        self.settle_usage(usage, &self.step_id(step), fx);
    }

    pub(super) fn settle_usage(&mut self, usage: Option<Usage>, step_id: &StepId, fx: &mut Effects) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().add(&usage);
            fx.tell(EventBody::Usage { step_id: Some(step_id.clone()), usage });
        }
    }
}

impl Streaming {
    fn on_text(&mut self, now: Millis, delta: String, targets: &[Target], fx: &mut Effects) {
        if delta.is_empty() {
            return;
        }
        self.saw_content(now, targets, fx);
        let follows_call = self.follows_call();
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) if !follows_call => text.push_str(&delta),
            _ => self.pieces.push(Piece::Text(delta.clone())),
        }
        fx.tell(EventBody::TextDelta { delta });
    }

    fn on_reasoning(&mut self, now: Millis, delta: String, targets: &[Target], fx: &mut Effects) {
        if delta.is_empty() {
            return;
        }
        self.saw_content(now, targets, fx);
        let follows_call = self.follows_call();
        match self.pieces.last_mut() {
            Some(Piece::Thinking { text, echo: None }) if !follows_call => text.push_str(&delta),
            _ => self.pieces.push(Piece::Thinking { text: delta.clone(), echo: None }),
        }
        fx.tell(EventBody::ReasoningDelta { delta });
    }

    fn on_echo(&mut self, given: Echo) {
        let follows_call = self.follows_call();
        match self.pieces.last_mut() {
            Some(Piece::Thinking { echo: echo @ None, .. }) if !follows_call => *echo = Some(given),
            _ => self.pieces.push(Piece::Thinking { text: String::new(), echo: Some(given) }),
        }
    }

    /// Notes the place of a call. Pieces after it are not joined with those before it.
    fn on_place(&mut self, id: String) {
        let place = self.pieces.len();
        match self.calls.iter_mut().find(|open| open.call.id == id) {
            Some(open) => open.place = Some(place),
            None => self.places.push((id, place)),
        }
    }

    /// Whether the next piece comes right after a call.
    fn follows_call(&self) -> bool {
        let here = self.pieces.len();
        let of_calls = self.calls.iter().filter_map(|open| open.place);
        self.places.iter().map(|(_, place)| *place).chain(of_calls).any(|place| place == here)
    }

    /// Whether the answer is empty. An echo is not content; what only the host can read is.
    fn is_empty(&self) -> bool {
        self.first_token_at.is_none()
    }

    /// Records the first token. After retries, announces their end and which target answered.
    fn saw_content(&mut self, now: Millis, targets: &[Target], fx: &mut Effects) {
        if self.first_token_at.is_some() {
            return;
        }
        self.first_token_at = Some(now);
        self.recovered(targets, fx);
    }

    /// Announces the end of retries, if there were any, and which target answered.
    fn recovered(&self, targets: &[Target], fx: &mut Effects) {
        if self.ledger.retries > 0 {
            let (attempts, outcome) = (self.ledger.made(), RetryOutcome::Recovered);
            let target = targets.get(self.ledger.target).map(|target| target.name.clone());
            fx.tell(EventBody::RetryEnded { attempts, outcome, message: None, target });
        }
    }

    pub(super) fn timings(&self, now: Millis, step_id: StepId) -> EventBody {
        let ttft_ms = self.first_token_at.map(|first| first.since(self.since));
        let decode_ms = self.first_token_at.map(|first| now.since(first));
        let gen_total_ms = ttft_ms.zip(decode_ms).map(|(a, b)| a.saturating_add(b));
        EventBody::StepComplete { step_id, ttft_ms, decode_ms, gen_total_ms, reported: self.reported.clone() }
    }
}

/// Keeps an answer in its order: a provider accepts signed reasoning only where it came.
fn keep_answer<'c>(
    pieces: Vec<Piece>,
    calls: impl IntoIterator<Item = &'c OpenCall>,
    step_id: &StepId,
    fx: &mut Effects,
) {
    let (placed, rest): (Vec<_>, Vec<_>) = calls.into_iter().partition(|open| open.place.is_some());
    let mut placed = placed.into_iter().peekable();
    for (before, piece) in pieces.into_iter().enumerate() {
        while let Some(open) = placed.next_if(|open| open.place.is_some_and(|place| place <= before)) {
            fx.keep(Role::Assistant, open.call_chunk(step_id));
        }
        fx.keep(Role::Assistant, piece.into_chunk());
    }
    for open in placed.chain(rest) {
        fx.keep(Role::Assistant, open.call_chunk(step_id));
    }
}

/// Whether the event is part of an answer. A call for a summary yields its text as a whole.
fn is_answer(event: &StreamEvent) -> bool {
    matches!(
        event,
        StreamEvent::Text(_)
            | StreamEvent::Reasoning(_)
            | StreamEvent::Opaque
            | StreamEvent::Echo(_)
            | StreamEvent::CallHere(_)
            | StreamEvent::ToolCall(_)
            | StreamEvent::Checked(_)
    )
}

/// Removes the echoes of reasoning that led to nothing, so that it is kept for people only. A provider accepts
/// reasoning only together with what followed it.
pub(super) fn drop_idle_echoes(pieces: &mut Vec<Piece>) {
    for piece in pieces.iter_mut().rev() {
        match piece {
            Piece::Text(_) => break,
            Piece::Thinking { echo, .. } => drop(echo.take()),
        }
    }
    pieces
        .retain(|piece| matches!(piece, Piece::Thinking { echo: Some(_), .. }) || !piece.words().is_empty());
}

fn done_reason(reason: &FinishReason) -> DoneReason {
    match reason {
        FinishReason::Stop => DoneReason::Stop,
        FinishReason::ToolCalls => DoneReason::ToolCalls,
        FinishReason::Length => DoneReason::Length,
        FinishReason::ContentFilter => DoneReason::ContentFilter,
        FinishReason::Other(word) => match DoneReason::from(word.clone()) {
            // Reserved for this program; a provider must not use them.
            DoneReason::Error | DoneReason::Aborted | DoneReason::MaxSteps => {
                DoneReason::Other(format!("provider-{word}"))
            }
            reason => reason,
        },
    }
}
