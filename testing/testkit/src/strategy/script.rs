//! Whole scripts.

use everturn_kernel::{Budget, Check, FinishReason, ReviewAnswer, StreamEvent, ToolAnswer};
use everturn_wire::Failure;
use proptest::{collection::vec, prelude::*};

use super::{
    any_check, any_failure, any_finish_reason, any_hold, any_outside, any_progress, any_review_answer,
    any_settings, any_summary,
};
use crate::{Beat, Nap, Person, Script, Tool, beat};

/// A script of up to four steps with up to three attempts each: failures with and without hints, empty, truncated or
/// malformed answers, tool calls, people who stop, steer or skip a wait, sleeps that end early, and parked waits. The
/// turn always ends.
pub fn any_script() -> impl Strategy<Value = Script> {
    (any_calm_script(), any_outside(), any_nap(), prop::bool::weighted(0.2))
        .prop_map(|(script, outside, nap, parks)| Script { outside, nap, parks, ..script })
}

/// [`any_script`] without disturbances: full sleeps, no inputs from outside, no parking.
pub fn any_calm_script() -> impl Strategy<Value = Script> {
    let attempts = vec(prop_oneof![3 => any_refusal(), 1 => any_attempt()], 0..3);
    let step = (attempts, any_attempt()).prop_map(|(mut attempts, last)| {
        attempts.push(last);
        attempts
    });
    let summaries = (vec(any_refusal(), 0..3), any_summary_attempt()).prop_map(|(mut attempts, last)| {
        attempts.push(last);
        attempts
    });
    // Boxed because strategies are moved by value, and the stack of a debug build is small.
    let (summaries, step) = (summaries.boxed(), step.boxed());
    let story = (any_settings(), vec(step, 1..4), summaries, any_checks());
    story.prop_map(|(mut settings, mut steps, summaries, checked)| {
        let Checked { checks, reviewer, person } = checked;
        // Most deadlines would be over before the script begins.
        settings.budget = Budget { deadline: None, ..settings.budget };
        steps.push(vec![vec![beat::text("end"), beat::finish(FinishReason::Stop)]]);
        Script { settings, steps, summaries, tools: tools(), checks, reviewer, person, ..Script::default() }
    })
}

/// What is checked, and by whom. Every check ends.
#[derive(Clone, Debug)]
struct Checked {
    checks: Vec<(String, Check)>,
    reviewer: Vec<(u64, ReviewAnswer)>,
    person: Option<Person>,
}

fn any_checks() -> impl Strategy<Value = Checked> {
    let check = || prop_oneof![2 => Just(None), 1 => any_check().prop_map(Some)];
    let reviewer = vec((0..30_000u64, any_review_answer()), 0..4);
    let person = (0..30_000u64, any::<bool>()).prop_map(|(after_ms, allows)| Person { after_ms, allows });
    ([check(), check(), check()], reviewer, person).prop_map(|(checks, reviewer, person)| {
        let names = ["read", "slow", "again"].map(String::from);
        let checks = names.into_iter().zip(checks).filter_map(|(name, check)| Some((name, check?))).collect();
        Checked { checks, reviewer, person: Some(person) }
    })
}

/// One attempt of a model: up to five beats with pauses, then an end, a failure or a truncation.
pub fn any_attempt() -> impl Strategy<Value = Vec<Beat>> {
    let piece = prop_oneof![
        4 => any_progress().prop_map(Beat::Say),
        1 => (0..60u64).prop_map(Beat::Wait),
    ];
    let end = prop_oneof![
        8 => any_finish_reason().prop_map(|reason| Some(beat::finish(reason))),
        1 => any_failure().prop_map(|failure| Some(beat::failed(failure))),
        1 => Just(None),
    ];
    (vec(piece, 0..6), end).prop_map(|(mut beats, end)| {
        beats.extend(end);
        beats
    })
}

/// One attempt of a model to make a summary.
fn any_summary_attempt() -> impl Strategy<Value = Vec<Beat>> {
    prop_oneof![
        4 => any_summary().prop_map(|summary| vec![Beat::Wait(20), Beat::Say(summary)]),
        1 => any_failure().prop_map(|failure| vec![beat::failed(failure)]),
        1 => any_attempt(),
    ]
    .boxed()
}

/// A sleep that ends, on time or early.
pub fn any_nap() -> impl Strategy<Value = Nap> {
    prop_oneof![Just(Nap::Whole), Just(Nap::Half)]
}

fn any_refusal() -> impl Strategy<Value = Vec<Beat>> {
    let failure = any_failure().prop_map(|failure| Failure { retryable: true, ..failure });
    prop_oneof![
        4 => failure.prop_map(|failure| vec![beat::failed(failure)]),
        1 => (0..50u64).prop_map(|ms| vec![Beat::Wait(ms)]),
        1 => any_hold().prop_map(|hold| vec![Beat::Say(StreamEvent::Held(Box::new(hold)))]),
        2 => Just(beat::overflow()),
    ]
    .boxed()
}

fn tools() -> Vec<Tool> {
    vec![
        Tool::new("read", 10, ToolAnswer::ok("42")).printing("reading"),
        Tool::new("slow", 100, ToolAnswer::ok("")),
        Tool::new("again", 25, ToolAnswer::error("no")),
    ]
}
