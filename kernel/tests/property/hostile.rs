//! The turn alone, given any input in any order at any time.

use everturn_kernel::{
    Answer, Assessment, Effect, Effects, FinishReason, Input, Millis, Op, Prompt, ReviewAnswer, Settings,
    Snapshot, StreamEvent, ToolAnswer, Turn, Wait, Want,
};
use everturn_wire::{Category, EventBody, RetryPhase, TurnId};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    config,
    moves::{Move, any_moves},
};
use everturn_testkit::{
    Delays, Invariants, START,
    strategy::{any_delays, any_settings},
};

proptest! {
    #![proptest_config(config(16_000))]

    #[test]
    fn nothing_breaks_a_turn(settings in any_settings(), schedule in any_delays(), moves in any_moves(), stop in any::<bool>()) {
        Trial::new(settings, schedule, false).run(moves, stop);
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn the_revision_changes_with_everything_that_must_be_saved(settings in any_settings(), schedule in any_delays(), moves in any_moves()) {
        Trial::new(settings, schedule, true).run(moves, false);
    }
}

/// A turn under test. After each input, all invariants are checked.
struct Trial {
    turn: Turn,
    now: Millis,
    schedule: Delays,
    settings: Settings,
    fx: Effects,
    invariants: Invariants,
    /// Whether to check the saved form too, which takes longer.
    saved: bool,
}

impl Trial {
    fn new(settings: Settings, schedule: Delays, saved: bool) -> Self {
        let mut fx = Effects::new();
        let prompt = Prompt { text: "Hi".into(), ..Prompt::default() };
        let turn = Turn::begin(TurnId::from("t"), settings.clone(), prompt, START, &mut fx);
        let invariants = Invariants::new(&settings);
        let mut trial = Self { turn, now: START, schedule, settings, fx, invariants, saved };
        trial.publish();
        trial.invariants.asked(Op::default()).expect("the first call");
        trial
    }

    fn run(mut self, moves: Vec<Move>, stop: bool) {
        for next in moves {
            if let Some(input) = next.input(&self.turn, &mut self.now) {
                self.tell(&input);
            }
        }
        if stop {
            self.tell(&Input::Abort);
        }
        self.finish_undisturbed();
        self.invariants.end().expect("the end");
        self.tell(&Input::Recover);
        self.tell(&Input::Abort);
    }

    /// Drives the turn from its present state to its end without further disturbances.
    fn finish_undisturbed(&mut self) {
        for _ in 0..200 {
            match self.turn.want() {
                Want::Stream(op) => {
                    self.tell(&Input::Provider(op, StreamEvent::Text("x".into())));
                    self.tell(&Input::Provider(op, StreamEvent::Finished(FinishReason::Stop)));
                }
                Want::Wake(op, at) => {
                    self.now = at;
                    self.tell(&Input::Tick(op));
                }
                Want::Tools { step, until } => {
                    let running = self.turn.running_calls().next().map(|call| call.id.clone());
                    let review = self.turn.running_reviews().next();
                    let review = review.map(|(call, attempt)| (call.id.clone(), attempt.number));
                    if let Some(call_id) = running {
                        self.tell(&Input::ToolDone { step, call_id, answer: ToolAnswer::ok("x") });
                    } else if let Some((call_id, attempt)) = review {
                        let answer = Box::new(ReviewAnswer::Assessed(Assessment::default()));
                        self.tell(&Input::Reviewed { step, call_id, attempt, answer });
                    } else {
                        self.now = self.now.max(until.expect("a review goes on"));
                        self.tell(&Input::Due { step });
                    }
                }
                Want::Person { step, .. } => {
                    let call_id = self.turn.asked_calls().next().expect("a person is asked").id.clone();
                    let answer = Answer {
                        step,
                        call_id,
                        allows: true,
                        whole_tool: false,
                        reason: None,
                        name: None,
                        via: None,
                    };
                    self.tell(&Input::Answer(Box::new(answer)));
                }
                Want::Nothing => return,
            }
        }
        panic!("the turn does not end: {:?}", self.turn.want());
    }

    fn tell(&mut self, input: &Input) {
        let before = self.turn.clone();
        let applies = applies(&before, input, self.now);
        self.turn.handle(self.now, input.clone(), &self.schedule, &mut self.fx);
        if !applies {
            assert_eq!(self.turn, before, "changed by an inapplicable input: {input:?}");
            assert!(self.fx.is_empty(), "an inapplicable input had effects: {input:?}");
        }
        self.check_wants();
        self.check_retry(&before, input);
        self.check_saved(&before, input);
        if matches!(
            input,
            Input::Provider(
                _,
                StreamEvent::Text(_)
                    | StreamEvent::Reasoning(_)
                    | StreamEvent::Echo(_)
                    | StreamEvent::Usage(_)
                    | StreamEvent::Reported(_)
            )
        ) {
            assert_eq!(self.turn.revision(), before.revision(), "streamed text moves the revision");
        }
        self.publish();
        if let Want::Stream(op) = self.turn.want()
            && before.want() != Want::Stream(op)
        {
            assert!(!matches!(before.want(), Want::Stream(old) if old >= op), "an op is used again: {op}");
            self.invariants.asked(op).expect("the call");
        }
    }

    fn check_wants(&self) {
        let turn = &self.turn;
        let running = turn.running_calls().count();
        assert!(running <= self.settings.max_parallel_tools.max(1) as usize, "{running} tools run");
        match turn.want() {
            Want::Tools { until, .. } => {
                let reviews = turn.running_reviews().count();
                assert!(running + reviews > 0 || until.is_some(), "the turn waits for tools, but none runs");
            }
            Want::Person { .. } => {
                assert!(
                    running == 0 && turn.asked_calls().count() > 0,
                    "the turn waits for people, but none is asked"
                );
            }
            Want::Stream(_) => {
                assert!(running == 0 || self.settings.eager_tools, "tools run before the end of the stream");
            }
            Want::Wake(..) | Want::Nothing => assert_eq!(running, 0),
        }
        assert_eq!(turn.want(), turn.want());
        assert_eq!(turn.want() == Want::Nothing, turn.outcome().is_some());
        assert_eq!(matches!(turn.want(), Want::Person { .. }), matches!(turn.wait(), Wait::Person { .. }));
        let waits = turn.retry().is_some_and(|retry| retry.phase == RetryPhase::Waiting);
        assert_eq!(waits, matches!(turn.want(), Want::Wake(..)));
    }

    /// Checks that a wait is never shorter than the schedule or the provider asked for, and ends on time.
    fn check_retry(&mut self, before: &Turn, input: &Input) {
        if let (Want::Stream(failed), Want::Wake(next, at)) = (before.want(), self.turn.want()) {
            assert_eq!(next, Op { step: failed.step, attempt: failed.attempt + 1 });
            let series = |turn: &Turn| (turn.is_summarizing(), turn.must_report_now(), turn.is_cut_down());
            if series(before) != series(&self.turn) {
                // What begins a new series may wait for an older hint. The invariants of scripts check that.
                return;
            }
            if let Input::Provider(_, StreamEvent::Held(hold)) = input
                && is_held(&self.turn)
            {
                let wait_ms = hold.wait_ms.min(1 << 52);
                let left = before.affordable_ms(self.now);
                let is_cut = hold.open_ended && hold.in_budget && left > 0;
                let wait_ms = if is_cut { wait_ms.min(left) } else { wait_ms };
                assert_eq!(at, self.now.plus(wait_ms), "the hold");
                return;
            }
            let attempt = self.turn.retry().expect("a waiting turn knows its retry").attempt;
            // Retries requested by a person are not the schedule's.
            let scheduled = self.schedule.get(attempt - asked(&self.turn)).expect("it was scheduled");
            let hint = match input {
                Input::Provider(_, StreamEvent::Failed(failure)) => {
                    let resets = failure.category == Category::QuotaExhausted && failure.hint_ms.is_some();
                    assert!(failure.retryable || resets, "a failure that stays is retried");
                    failure.hint_ms.unwrap_or(0)
                }
                _ => 0,
            };
            let asked = scheduled.max(hint).min(1 << 52);
            assert_eq!(at, self.now.plus(asked), "the wait");
        }
        if let (Want::Stream(op), Want::Stream(next)) = (before.want(), self.turn.want())
            && op.step == next.step
            && op != next
        {
            let summary = before.is_summarizing() != self.turn.is_summarizing();
            let report = self.turn.must_report_now();
            assert!(
                summary || report || matches!(input, Input::RetryNow | Input::GoTo(_) | Input::Recover),
                "asked again by {input:?}"
            );
            assert_eq!(next.attempt, op.attempt + 1);
        }
        if let (Want::Wake(op, at), Want::Wake(next, then)) = (before.want(), self.turn.want()) {
            assert!(op == next && then <= at, "a wait got longer");
        }
    }

    fn check_saved(&self, before: &Turn, input: &Input) {
        let moved = self.turn.revision() != before.revision();
        assert!(self.turn.revision() >= before.revision(), "the revision goes back");
        assert!(moved || before.want() == self.turn.want(), "the phase changed, the revision did not");
        if !self.saved {
            return;
        }
        let json = serde_json::to_string(&self.turn.snapshot()).expect("a snapshot is JSON");
        let snapshot: Snapshot = serde_json::from_str(&json).expect("a snapshot is read back");
        let restored = Turn::restore(snapshot).expect("today's snapshot is restored");
        assert_eq!(restored, self.turn, "saved and restored");
        let eager = self.settings.eager_tools;
        let must = applies(before, input, self.now) && *input == Input::Checkpoint;
        assert_eq!(
            moved,
            must || lasting(before, eager) != lasting(&self.turn, eager),
            "the revision changes exactly if the durable state does, or on a checkpoint"
        );
    }

    fn publish(&mut self) {
        let mut binding = false;
        let was = self.fx.is_binding();
        for effect in self.fx.drain() {
            binding |= !matches!(&effect, Effect::Tell(event) if event.is_delta());
            if let Effect::Tell(EventBody::ProviderRetry { delay_ms, next_at, .. }) = &effect {
                assert_eq!(*next_at, Some(self.now.plus(*delay_ms).0));
            }
            self.invariants.see_effect(&effect).expect("the effect");
        }
        assert_eq!(was, binding, "effects are binding if there is more than deltas");
        assert!(!self.fx.is_binding() && self.fx.is_empty());
    }
}

/// Whether an input may change anything, according to its documentation.
fn applies(turn: &Turn, input: &Input, now: Millis) -> bool {
    let want = turn.want();
    let runs = |id: &str| turn.running_calls().any(|call| call.id == id);
    let waits = matches!(want, Want::Wake(..));
    let queued = |id: &str| turn.queue().iter().any(|message| message.message_id == id);
    want != Want::Nothing
        && match input {
            Input::Provider(op, _) => want == Want::Stream(*op),
            Input::ToolAsks { call_id, .. } => runs(call_id),
            Input::ToolOutput { call_id, data, .. } => runs(call_id) && !data.is_empty(),
            Input::ToolDone { step, call_id, .. } => {
                let current = match want {
                    Want::Stream(op) => op.step,
                    Want::Tools { step, .. } => step,
                    Want::Wake(..) | Want::Person { .. } | Want::Nothing => return false,
                };
                current == *step && runs(call_id)
            }
            Input::Tick(op) => matches!(want, Want::Wake(next, at) if next == *op && now >= at),
            Input::RetryNow | Input::MoveAway => waits || is_silent(turn),
            Input::GoTo(target) => (waits || is_silent(turn)) && *target < turn.settings().targets.len(),
            Input::Release => is_held(turn),
            Input::AbortRetry => turn.retry().is_some(),
            Input::Steer(message) => !queued(&message.message_id) && !message.text.is_empty(),
            Input::Unsteer { message_id } => queued(message_id),
            Input::Checkpoint => !waits,
            Input::Answer(answer) => {
                is_step(want, answer.step) && turn.asked_calls().any(|call| call.id == answer.call_id)
            }
            Input::Reviewed { step, call_id, attempt, .. } => {
                let mut reviews = turn.running_reviews();
                is_step(want, *step)
                    && reviews.any(|(call, review)| call.id == *call_id && review.number == *attempt)
            }
            Input::ReviewerSwitched(switch) => {
                is_step(want, switch.step)
                    && turn.running_reviews().any(|(call, _)| call.id == switch.call_id)
            }
            Input::Due { step } => match want {
                Want::Tools { until, .. } | Want::Person { until, .. } => {
                    is_step(want, *step) && until.is_some_and(|until| now >= until)
                }
                _ => false,
            },
            Input::Abort | Input::Fault(_) | Input::Unsaved(_) | Input::Recover => true,
            _ => panic!("a new input: {input:?}"),
        }
}

/// Whether the turn is at the tools of this step.
fn is_step(want: Want, step: u32) -> bool {
    matches!(want, Want::Tools { step: current, .. } | Want::Person { step: current, .. } if current == step)
}

/// Whether the turn waits because its call was put off.
fn is_held(turn: &Turn) -> bool {
    let saved = serde_json::to_value(turn.snapshot()).expect("a snapshot is JSON");
    saved["phase"]["held"] == true
}

/// Whether subscribers were told that the call is silent, and nothing else.
fn is_silent(turn: &Turn) -> bool {
    let phase = serde_json::to_value(turn.snapshot()).expect("a snapshot is JSON")["phase"].take();
    phase["isSilent"] == true && phase["firstTokenAt"].is_null() && phase["usage"].is_null()
}

/// Returns how many retries of the step a person requested while the provider was silent.
fn asked(turn: &Turn) -> u32 {
    let phase = serde_json::to_value(turn.snapshot()).expect("a snapshot is JSON")["phase"].take();
    phase["uncounted"].as_u64().unwrap_or(0).try_into().expect("few")
}

/// Returns the saved form without what is streamed again after a crash.
fn lasting(turn: &Turn, eager: bool) -> Value {
    let mut json = serde_json::to_value(turn.snapshot()).expect("a snapshot is JSON");
    json["revision"].take();
    // Derived from the rest.
    json["version"].take();
    json["firstTokenAt"].take();
    if json["phase"]["state"] == "streaming" {
        for streamed in ["pieces", "firstTokenAt", "usage", "isSilent"] {
            json["phase"][streamed].take();
        }
        if !eager {
            json["phase"]["calls"].take();
        }
    }
    json
}
