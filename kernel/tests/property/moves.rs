//! Things that may happen to a turn, likely or not.

use everturn_kernel::{Answer, Input, Millis, Op, ReviewAnswer, StreamEvent, ToolAnswer, Turn, Want};
use everturn_testkit::strategy::{any_event, any_input, any_moment, any_review_answer, any_tool_answer};
use everturn_wire::OutputStream;
use proptest::{collection::vec, prelude::*, sample::Index};

/// Something that happens. Most moves fit the turn's phase; others are late, early or invented.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// The wanted call yields an event.
    Speak(StreamEvent),
    /// A running tool finishes.
    Answer(Index, ToolAnswer),
    /// A running tool produces output.
    Print(Index, String),
    /// A person answers a request for approval: whether the call is allowed, and whether that applies to the whole
    /// tool.
    Decide(Index, bool, bool),
    /// A reviewer answers.
    Review(Index, ReviewAnswer),
    /// The wait is over.
    WaitUntil,
    /// The clock is set.
    SetClock(Millis),
    Pass(u64),
    /// Anything at all.
    Any(Input),
}

impl Move {
    /// Converts the move to an input that fits what the turn wants.
    pub(crate) fn input(self, turn: &Turn, now: &mut Millis) -> Option<Input> {
        let running = |index: &Index| {
            let calls: Vec<_> = turn.running_calls().map(|call| call.id.clone()).collect();
            (!calls.is_empty()).then(|| index.get(&calls).clone())
        };
        match (self, turn.want()) {
            (Self::Speak(event), Want::Stream(op)) => Some(Input::Provider(op, event)),
            (Self::Speak(event), _) => Some(Input::Provider(Op::default(), event)),
            (Self::Answer(index, answer), Want::Stream(Op { step, .. }) | Want::Tools { step, .. }) => {
                Some(Input::ToolDone { step, call_id: running(&index)?, answer })
            }
            (Self::Print(index, data), _) => {
                Some(Input::ToolOutput { call_id: running(&index)?, stream: OutputStream::Stdout, data })
            }
            (Self::WaitUntil, Want::Wake(op, at)) => {
                *now = at;
                Some(Input::Tick(op))
            }
            (
                Self::WaitUntil,
                Want::Tools { step, until: Some(at) } | Want::Person { step, until: Some(at) },
            ) => {
                *now = (*now).max(at);
                Some(Input::Due { step })
            }
            (
                Self::Decide(index, allows, whole_tool),
                Want::Tools { step, .. } | Want::Person { step, .. },
            ) => {
                let asked: Vec<_> = turn.asked_calls().map(|call| call.id.clone()).collect();
                let call_id = (!asked.is_empty()).then(|| index.get(&asked).clone())?;
                let answer =
                    Answer { step, call_id, allows, whole_tool, reason: None, name: None, via: None };
                Some(Input::Answer(Box::new(answer)))
            }
            (Self::Review(index, answer), Want::Tools { step, .. }) => {
                let reviews = turn.running_reviews().map(|(call, attempt)| (call.id.clone(), attempt.number));
                let reviews: Vec<_> = reviews.collect();
                let (call_id, attempt) = (!reviews.is_empty()).then(|| index.get(&reviews).clone())?;
                Some(Input::Reviewed { step, call_id, attempt, answer: Box::new(answer) })
            }
            (Self::SetClock(at), _) => {
                *now = at;
                None
            }
            (Self::Pass(ms), _) => {
                *now = now.plus(ms);
                None
            }
            (Self::Any(input), _) => Some(input),
            (Self::Answer(..) | Self::WaitUntil | Self::Decide(..) | Self::Review(..), _) => None,
        }
    }
}

pub(crate) fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        12 => any_event().prop_map(Move::Speak),
        5 => (any::<Index>(), any_tool_answer()).prop_map(|(index, answer)| Move::Answer(index, answer)),
        1 => (any::<Index>(), "[a-b]{0,2}").prop_map(|(index, data)| Move::Print(index, data)),
        3 => any::<(Index, bool, bool)>().prop_map(|(index, allows, whole)| Move::Decide(index, allows, whole)),
        4 => (any::<Index>(), any_review_answer()).prop_map(|(index, answer)| Move::Review(index, answer)),
        4 => Just(Move::WaitUntil),
        1 => any_moment().prop_map(Move::SetClock),
        2 => (0..40_000u64).prop_map(Move::Pass),
        6 => any_input().prop_map(Move::Any),
    ]
}

pub(crate) fn any_moves() -> impl Strategy<Value = Vec<Move>> {
    vec(any_move(), 0..40)
}
