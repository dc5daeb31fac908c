//! Waits that end early: what the step is charged for, and how old its call is.

use std::time::Duration;

use everturn_kernel::{
    Ask, Budget, Directive, Effects, Hold, Input, Prompt, Question, Retry, Schedule, Settings, StreamEvent,
    Turn, Want,
};
use everturn_testkit::START;
use everturn_wire::{Because, Category, Failure, TurnId};
use proptest::{collection::vec, prelude::*};

use super::config;

const BUDGET_MS: u64 = 10_000_000;

/// Waits for the hint. A quota that is used up is a wall.
struct Hints;

impl Schedule for Hints {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        retry.failure.hint_ms.map(Duration::from_millis)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        let wait = Duration::from_millis(question.failure.hint_ms.unwrap_or(0));
        let mut ask = Ask::new(0, wait);
        ask.is_wall = question.failure.category == Category::QuotaExhausted;
        Directive::Ask(ask)
    }
}

/// Why a call waits.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Held,
    Refused,
    Wall,
}

impl Cause {
    fn event(self, wait_ms: u64) -> StreamEvent {
        let failed = |category| Failure { hint_ms: Some(wait_ms), ..Failure::new(category, true, "no") };
        match self {
            Self::Held => {
                let (failure, shared, because) = (failed(Category::RateLimited), true, Because::Line);
                StreamEvent::Held(Box::new(Hold {
                    failure,
                    wait_ms,
                    shared,
                    because,
                    in_budget: true,
                    open_ended: false,
                }))
            }
            Self::Refused => StreamEvent::Failed(failed(Category::RateLimited)),
            Self::Wall => StreamEvent::Failed(failed(Category::QuotaExhausted)),
        }
    }
}

/// How a wait ends.
#[derive(Clone, Copy, Debug)]
enum End {
    InTime,
    /// By a person, or because the call may be made, after this part of it in thousandths.
    Early {
        after: u64,
        by_person: bool,
    },
}

proptest! {
    #![proptest_config(config(100))]

    /// As each call fails at once, the turn has wanted it since it began, however it waited. Restarts change nothing.
    #[test]
    fn as_much_is_charged_as_was_waited(
        waits in vec(
            (
                prop_oneof![Just(Cause::Held), Just(Cause::Refused), Just(Cause::Wall)],
                1..100_000_u64,
                prop_oneof![
                    Just(End::InTime),
                    (0..1_000_u64, any::<bool>()).prop_map(|(after, by_person)| End::Early { after, by_person }),
                ],
                any::<bool>(),
            ),
            1..20,
        ),
    ) {
        let budget = Budget { max_wait_ms: Some(BUDGET_MS), deadline: None };
        let (settings, mut fx) = (Settings { budget, ..Settings::default() }, Effects::new());
        let (prompt, mut now, mut charged_ms) = (Prompt { text: "Hi".into(), ..Prompt::default() }, START, 0);
        let mut turn = Turn::begin(TurnId::from("t-1"), settings, prompt, START, &mut fx);
        for (cause, wait_ms, end, restarts) in waits {
            let Want::Stream(op) = turn.want() else { panic!("no call is wanted") };
            turn.handle(now, Input::Provider(op, cause.event(wait_ms)), &Hints, &mut fx);
            let Want::Wake(op, at) = turn.want() else { panic!("it does not wait") };
            prop_assert_eq!(at, now.plus(wait_ms));
            if restarts {
                let saved = serde_json::to_string(&turn.snapshot()).expect("it is serialized");
                turn = Turn::restore(serde_json::from_str(&saved).expect("it parses")).expect("it is restored");
                turn.handle(now, Input::Recover, &Hints, &mut fx);
            }
            let (waited_ms, input) = match (end, cause) {
                (End::Early { after, by_person: false }, Cause::Held) => (wait_ms * after / 1_000, Input::Release),
                (End::Early { after, by_person: true }, _) => (wait_ms * after / 1_000, Input::RetryNow),
                _ => (wait_ms, Input::Tick(op)),
            };
            now = now.plus(waited_ms);
            turn.handle(now, input, &Hints, &mut fx);
            charged_ms += if matches!(cause, Cause::Wall) { 0 } else { waited_ms };
            prop_assert_eq!(turn.affordable_ms(now), BUDGET_MS - charged_ms);
            prop_assert_eq!(turn.wants_since(now), START);
        }
    }
}
