//! Violates each invariant on purpose, in the log of a valid turn: a check that cannot fail proves nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use everturn_kernel::{FinishReason, Millis, Op, Settings};
use everturn_testkit::{Beat, Fact, Invariants, Script, Violation, World, beat};
use everturn_wire::{Chunk, EventBody, Role};

type Facts = Vec<(Millis, Fact)>;

/// A run with an overload and a hint of eight seconds, an answer interrupted by a crash, a tool, and an answer.
fn sample_run() -> (Settings, Facts) {
    let asks = vec![
        beat::text("Let me see."),
        Beat::Wait(5),
        beat::call("a", "read"),
        beat::finish(FinishReason::ToolCalls),
    ];
    let steps = vec![vec![beat::overloaded_for(8_000), asks], vec![beat::says("42")]];
    let mut script = Script { steps, ..Script::default() };
    script.settings.budget.max_wait_ms = Some(8_000);
    crashed(script, 10)
}

/// Runs a script whose process ends once, at this point.
fn crashed(script: Script, point: u32) -> (Settings, Facts) {
    let settings = script.settings.clone();
    let mut world = World::new(script);
    world.crash_at(point);
    world.run().sealed().expect("the turn ends");
    world.check();
    let mut facts = Facts::new();
    world.log().each(|at, fact| facts.push((at, fact.clone())));
    (settings, facts)
}

fn check(settings: &Settings, facts: &Facts) -> Result<(), Violation> {
    let mut invariants = Invariants::new(settings);
    for (at, fact) in facts {
        invariants.see(*at, fact)?;
    }
    invariants.end()
}

/// Returns the index of the first matching fact.
fn at(facts: &Facts, is: impl Fn(&Fact) -> bool) -> usize {
    facts.iter().position(|(_, fact)| is(fact)).expect("the run has such a fact")
}

/// Returns the facts without the first matching one.
fn without(mut facts: Facts, is: impl Fn(&Fact) -> bool) -> Facts {
    facts.remove(at(&facts, is));
    facts
}

/// Returns the facts with the first matching one duplicated.
fn twice(mut facts: Facts, is: impl Fn(&Fact) -> bool) -> Facts {
    let at = at(&facts, is);
    facts.insert(at, facts[at].clone());
    facts
}

/// Returns the facts with the first matching one changed.
fn instead(mut facts: Facts, is: impl Fn(&Fact) -> bool, other: impl Fn(&mut Millis, &mut Fact)) -> Facts {
    let at = at(&facts, is);
    let (moment, fact) = &mut facts[at];
    other(moment, fact);
    facts
}

#[track_caller]
fn breaks(broken: impl Fn(Facts) -> Facts, expected: &str) {
    let (settings, facts) = sample_run();
    let violation = check(&settings, &broken(facts)).expect_err(expected).to_string();
    assert!(violation.contains(expected), "{violation}");
}

fn told(is: impl Fn(&EventBody) -> bool) -> impl Fn(&Fact) -> bool {
    move |fact| matches!(fact, Fact::Told(event) if is(event))
}

fn retry(event: &EventBody) -> bool {
    matches!(event, EventBody::ProviderRetry { .. })
}

fn is_text(fact: &Fact) -> bool {
    matches!(fact, Fact::Kept(Role::Assistant, Chunk::Text { .. }))
}

#[test]
fn a_valid_log_violates_no_invariant() {
    let (settings, facts) = sample_run();
    assert_eq!(check(&settings, &facts), Ok(()));
    at(&facts, |fact| *fact == Fact::Restarted);
    at(&facts, told(|event| matches!(event, EventBody::StepRewound { .. })));
    at(&facts, |fact| *fact == Fact::Slept(8_000));
}

#[test]
fn the_ends() {
    let done = told(|event| matches!(event, EventBody::Done { .. }));
    breaks(|facts| twice(facts, &done), "event after done");
    breaks(|facts| without(facts, &done), "sealed before done");
    let sealed = told(|event| *event == EventBody::TurnSealed);
    breaks(|facts| twice(facts, &sealed), "event after the seal");
    breaks(|facts| without(facts, &sealed), "not sealed");
    let prompt = told(|event| matches!(event, EventBody::UserMessage { .. }));
    breaks(|facts| without(facts, &prompt), "the prompt comes first");
    breaks(|facts| twice(facts, &prompt), "the prompt comes first");
}

#[test]
fn what_is_shown_and_what_is_kept() {
    breaks(|facts| without(facts, is_text), "the text shown is");
    breaks(|facts| twice(facts, is_text), "the text shown is");
    let rewind = told(|event| matches!(event, EventBody::StepRewound { .. }));
    breaks(|facts| without(facts, &rewind), "the end of retries that had not begun");
    let result = told(|event| matches!(event, EventBody::ToolResult { .. }));
    breaks(|facts| without(facts, &result), "never got a result");
    breaks(|facts| twice(facts, &result), "a second or unexpected result of a call");
    let kept_result = |fact: &Fact| matches!(fact, Fact::Kept(Role::Tool, _));
    breaks(|facts| without(facts, kept_result), "call 1.0 with unanswered tool calls");
    breaks(|facts| twice(facts, kept_result), "a result without its call");
    let kept_call = |fact: &Fact| matches!(fact, Fact::Kept(_, Chunk::ToolCall { .. }));
    breaks(|facts| without(facts, kept_call), "a result without its call");
    breaks(|facts| twice(facts, kept_call), "a call is kept twice");
}

#[test]
fn text_that_is_not_taken_back() {
    let answer = vec![beat::text("Hel"), Beat::Wait(5), beat::text("lo"), beat::finish(FinishReason::Stop)];
    let (settings, facts) = crashed(Script::one_step([answer]), 3);
    let facts = without(facts, told(|event| matches!(event, EventBody::StepRewound { .. })));
    let violation = check(&settings, &facts).expect_err("it is seen").to_string();
    assert_eq!(violation, "the text shown is \"HelHello\", the text kept is \"Hello\"");
}

#[test]
fn calls_and_retries() {
    let call = |fact: &Fact| matches!(fact, Fact::Called(..));
    breaks(|facts| twice(facts, call), "call 0.0, expected 0.1 or 1.0");
    let next = |fact: &Fact| *fact == Fact::Called(Op { step: 1, attempt: 0 }, None);
    let skipped = Op { step: 1, attempt: 1 };
    breaks(
        |facts| instead(facts, next, |_, fact| *fact = Fact::Called(skipped, None)),
        "call 1.1, expected 0.3 or 1.0",
    );
    breaks(|facts| twice(facts, told(retry)), "retry 0, expected retry 1");
    breaks(
        |facts| without(facts, told(|event| matches!(event, EventBody::RetryEnded { .. }))),
        "content before",
    );
}

#[test]
fn waits() {
    let other = |delay: u64| {
        move |_: &mut Millis, fact: &mut Fact| {
            if let Fact::Told(EventBody::ProviderRetry { delay_ms, .. }) = fact {
                *delay_ms = delay;
            }
        }
    };
    breaks(|facts| instead(facts, told(retry), other(7_999)), "a wait of 7999 ms after a hint of 8000 ms");
    breaks(|facts| instead(facts, told(retry), other(8_001)), "add up to 8001 ms");
    // The schedule may ask earlier on purpose if it says so.
    let (settings, facts) = sample_run();
    let clamp = |_: &mut Millis, fact: &mut Fact| {
        if let Fact::Told(EventBody::ProviderRetry { delay_ms, clamped, .. }) = fact {
            (*delay_ms, *clamped) = (7_999, Some(true));
        }
    };
    assert_eq!(check(&settings, &instead(facts, told(retry), clamp)), Ok(()));
    let sleep = |fact: &Fact| matches!(fact, Fact::Slept(_));
    breaks(
        |facts| instead(facts, sleep, |_, fact| *fact = Fact::Slept(7_000)),
        "sleeps 7000 ms, but 8000 ms",
    );
    breaks(|facts| without(facts, told(retry)), "though no retry was told");
    let early = |facts: Facts| {
        let facts = facts.into_iter().map(|(at, fact)| (Millis(at.0.min(1_700_000_007_999)), fact));
        facts.collect::<Facts>()
    };
    breaks(early, "the provider is called 1 ms before the wait ends");
}

#[test]
fn tools() {
    let run = |fact: &Fact| matches!(fact, Fact::Ran { .. });
    breaks(|facts| twice(facts, run), "read 0/a starts twice");
    let unsaved = |mut facts: Facts| {
        let start = at(&facts, run);
        let asked = facts[..start].iter().rposition(|(_, fact)| matches!(fact, Fact::Called(..))).unwrap();
        let mut nth = 0;
        facts.retain(|(_, fact)| {
            nth += 1;
            *fact != Fact::Saved || !(asked..start).contains(&(nth - 1))
        });
        facts
    };
    breaks(unsaved, "read 0/a starts before that is saved");
    let early = |facts: Facts| {
        let mut facts = facts;
        let start = facts.remove(at(&facts, run));
        let ended =
            facts.iter().position(|(_, fact)| matches!(fact, Fact::Told(EventBody::StepComplete { .. })));
        facts.insert(ended.unwrap(), start);
        facts
    };
    breaks(early, "read 0/a starts before the end of the stream");
    breaks(|facts| without(facts, |fact| *fact == Fact::Stopped), "1 tools outlive their turn");
}
