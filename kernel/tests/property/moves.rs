//! Things that may happen to a turn, likely or not.

use everturn_kernel::{
    Arguments, Budget, FinishReason, Input, Millis, Op, Settings, Silence, StreamEvent, ToolAnswer, ToolCall,
    Turn, Want,
};
use everturn_wire::{Category, Echo, Failure, OutputStream, QueuedMessage, Usage, Value};
use proptest::{collection::vec, option, prelude::*, sample::Index};

use crate::world::START;

/// Something that happens. Most of them fit the phase that the turn is in; others are late, early or made up.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// The call that is wanted says something.
    Speak(StreamEvent),
    /// A running tool is done.
    Answer(Index, ToolAnswer),
    /// A running tool prints.
    Print(Index, String),
    /// The wait is over.
    WaitUntil,
    /// The clock is set.
    SetClock(Millis),
    Pass(u64),
    /// Anything at all.
    Any(Input),
}

impl Move {
    /// As an input, in view of what the turn wants.
    pub(crate) fn input(self, turn: &Turn, now: &mut Millis) -> Option<Input> {
        let running = |index: &Index| {
            let calls: Vec<_> = turn.running_calls().map(|call| call.id.clone()).collect();
            (!calls.is_empty()).then(|| index.get(&calls).clone())
        };
        match (self, turn.want()) {
            (Self::Speak(event), Want::Stream(op)) => Some(Input::Provider(op, event)),
            (Self::Speak(event), _) => Some(Input::Provider(Op::default(), event)),
            (Self::Answer(index, answer), Want::Stream(Op { step, .. }) | Want::Tools { step }) => {
                Some(Input::ToolDone { step, call_id: running(&index)?, answer })
            }
            (Self::Print(index, data), _) => {
                Some(Input::ToolOutput { call_id: running(&index)?, stream: OutputStream::Stdout, data })
            }
            (Self::WaitUntil, Want::Wake(op, at)) => {
                *now = at;
                Some(Input::Tick(op))
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
            (Self::Answer(..) | Self::WaitUntil, _) => None,
        }
    }
}

pub(crate) fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        12 => any_event().prop_map(Move::Speak),
        5 => (any::<Index>(), any_answer()).prop_map(|(index, answer)| Move::Answer(index, answer)),
        1 => (any::<Index>(), "[a-b]{0,2}").prop_map(|(index, data)| Move::Print(index, data)),
        4 => Just(Move::WaitUntil),
        1 => any_moment().prop_map(Move::SetClock),
        2 => (0..40_000u64).prop_map(Move::Pass),
        6 => any_input().prop_map(Move::Any),
    ]
}

fn any_input() -> impl Strategy<Value = Input> {
    let step = 0..3u32;
    prop_oneof![
        3 => (any_op(), any_event()).prop_map(|(op, event)| Input::Provider(op, event)),
        2 => (step, any_id(), any_answer())
            .prop_map(|(step, call_id, answer)| Input::ToolDone { step, call_id, answer }),
        1 => any_id().prop_map(|call_id| Input::ToolOutput {
            call_id,
            stream: OutputStream::Stderr,
            data: "x".into()
        }),
        2 => any_op().prop_map(Input::Tick),
        1 => Just(Input::Abort),
        1 => Just(Input::AbortRetry),
        2 => Just(Input::RetryNow),
        2 => ("[mn]", "[a-b]{0,2}")
            .prop_map(|(message_id, text)| Input::Steer(QueuedMessage { message_id, text })),
        1 => "[mn]".prop_map(|message_id| Input::Unsteer { message_id }),
        1 => any_failure().prop_map(Input::Fault),
        1 => Just(Input::Checkpoint),
        3 => Just(Input::Recover),
    ]
}

fn any_event() -> impl Strategy<Value = StreamEvent> {
    prop_oneof![
        12 => any_word(),
        5 => any_reason().prop_map(StreamEvent::Finished),
        5 => any_failure().prop_map(StreamEvent::Failed),
    ]
}

/// Anything but the end of a stream.
pub(crate) fn any_word() -> impl Strategy<Value = StreamEvent> {
    prop_oneof![
        4 => "[a-c ]{0,3}".prop_map(StreamEvent::Text),
        2 => "[x-z]{0,3}".prop_map(StreamEvent::Reasoning),
        2 => any_echo().prop_map(StreamEvent::Echo),
        5 => any_call().prop_map(StreamEvent::ToolCall),
        1 => any_usage().prop_map(StreamEvent::Usage),
        1 => any_silence().prop_map(StreamEvent::Silent),
    ]
}

fn any_silence() -> impl Strategy<Value = Silence> {
    (0..90_000u64, option::of(0..300_000u64), any::<bool>()).prop_map(|(silent_ms, left_ms, alive)| Silence {
        silent_ms,
        left_ms,
        alive,
    })
}

fn any_call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![
        4 => (0..9u32).prop_map(|n| Arguments::Parsed(Value::from(n))),
        1 => Just(Arguments::Malformed { raw: "{".into(), reason: "cut".into() }),
    ];
    let name = prop_oneof![Just("read"), Just("slow"), Just("again"), Just("nothing")];
    (any_id(), name, arguments, option::weighted(0.3, any_echo()))
        .prop_map(|(id, name, arguments, echo)| ToolCall { id, name: name.into(), arguments, echo })
}

fn any_echo() -> impl Strategy<Value = Echo> {
    (0..9u32).prop_map(|n| Echo { origin: "api host".into(), data: n.into() })
}

fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("a"), Just("b"), Just("a-2"), Just("call"), Just("")].prop_map(Into::into)
}

fn any_op() -> impl Strategy<Value = Op> {
    (0..3u32, 0..4u32).prop_map(|(step, attempt)| Op { step, attempt })
}

fn any_answer() -> impl Strategy<Value = ToolAnswer> {
    (any::<bool>(), "[a-b]{0,2}").prop_map(|(is_error, content)| ToolAnswer { content, is_error })
}

fn any_usage() -> impl Strategy<Value = Usage> {
    let count = || prop_oneof![8 => 0..100u64, 1 => Just(u64::MAX)];
    (count(), count(), option::of(count())).prop_map(|(input_tokens, output_tokens, cache_read_tokens)| {
        Usage { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens: None }
    })
}

pub(crate) fn any_reason() -> impl Strategy<Value = FinishReason> {
    prop_oneof![
        3 => Just(FinishReason::Stop),
        4 => Just(FinishReason::ToolCalls),
        1 => Just(FinishReason::Length),
        1 => Just(FinishReason::ContentFilter),
        1 => prop_oneof![Just("error"), Just("aborted"), Just("max-steps"), Just("done"), Just("length")]
            .prop_map(|word| FinishReason::Other(word.into())),
    ]
}

pub(crate) fn any_failure() -> impl Strategy<Value = Failure> {
    let hint = prop_oneof![8 => 0..90_000u64, 1 => Just(u64::MAX)];
    (option::of(hint), prop::bool::weighted(0.85)).prop_map(|(hint_ms, retryable)| Failure {
        hint_ms,
        ..Failure::new(Category::ServerError, retryable, "HTTP 500")
    })
}

fn any_moment() -> impl Strategy<Value = Millis> {
    prop_oneof![
        4 => (0..200_000u64).prop_map(|ms| START.plus(ms)),
        1 => Just(Millis(0)),
        1 => Just(Millis(START.0 - 3_600_000)),
        1 => Just(Millis(START.0 + 3_600_000)),
        1 => Just(Millis(u64::MAX)),
    ]
}

pub(crate) fn any_settings() -> impl Strategy<Value = Settings> {
    let budget = (option::of(0..200_000u64), option::weighted(0.3, any_moment()))
        .prop_map(|(max_wait_ms, deadline)| Budget { max_wait_ms, deadline });
    (option::weighted(0.3, 0..4u32), 0..4u32, any::<bool>(), 0..4u32, budget).prop_map(
        |(max_steps, max_parallel_tools, eager_tools, max_recoveries, budget)| Settings {
            max_steps,
            max_parallel_tools,
            eager_tools,
            idempotent_tools: vec!["again".into()],
            max_recoveries,
            budget,
        },
    )
}

pub(crate) fn any_moves() -> impl Strategy<Value = Vec<Move>> {
    vec(any_move(), 0..40)
}
