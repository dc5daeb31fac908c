//! Crashes at every point of random scripts: each commit (before and after it is saved), each streamed event, each
//! start of a tool.

use everturn_kernel::{
    Approval, Check, Checked, CheckedCall, Hold, Input, Outcome, ReviewAnswer, Settings, StreamEvent, Turn,
};
use everturn_testkit::{Beat, Fact, Script, World, strategy::any_calm_script};
use everturn_wire::{Chunk, EventBody, QueuedMessage, Role};
use proptest::prelude::*;

use crate::property::config;

/// How long a review may take, in milliseconds.
const REVIEW_MS: u64 = 3_600_000;

/// The only tool that may run again.
const IDEMPOTENT: &str = "again";

proptest! {
    #![proptest_config(config(150))]

    /// Without eager tools, the outcome is exactly that of an uninterrupted run.
    #[test]
    fn a_crashed_run_ends_like_an_uninterrupted_one(script in any_calm_script(), steered in any::<bool>(), second in any::<prop::sample::Index>()) {
        let script = patient_with_crashes(script, false);
        let message = QueuedMessage { message_id: "m".into(), text: "quickly".into() };
        let outside = steered.then_some((0, Input::Steer(message))).into_iter().collect();
        let script = Script { outside, ..script };
        let mut calm = World::new(script.clone());
        let end = calm.begin().sealed().expect("the turn ends");
        let points = calm.points();
        for first in 0..points {
            let second = second.index(points as usize) as u32;
            for crashes in [vec![first], vec![first, second]] {
                let (world, turn) = crashed(&script, &crashes);
                let context = format!("crashes at {crashes:?}");
                assert_eq!(end.outcome(), turn.outcome(), "{context}");
                assert_same_history(&calm, &world, &context);
                assert_eq!(end.queue(), turn.queue(), "{context}");
                assert_eq!(retries(&calm), retries(&world), "{context}");
                check(&script, &world, &turn, crashes.len());
                let calls = world.log().calls().len();
                assert!((calm.log().calls().len()..=calm.log().calls().len() + crashes.len()).contains(&calls), "{context}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(150))]

    /// With eager tools, a step may end early with the results it has. Everything else still holds.
    #[test]
    fn eager_tools_run_at_most_once(script in any_calm_script()) {
        let script = patient_with_crashes(script, true);
        let mut calm = World::new(script.clone());
        calm.begin().sealed().expect("the turn ends");
        for first in 0..calm.points() {
            let (world, turn) = crashed(&script, &[first]);
            check(&script, &world, &turn, 1);
        }
    }
}

proptest! {
    #![proptest_config(config(500))]

    /// A parking host behaves like a process that ends in each wait and restarts when the wait is over.
    #[test]
    fn a_run_whose_waits_are_parked_ends_the_same(script in any_calm_script()) {
        let mut calm = World::new(script.clone());
        let end = calm.begin().sealed().expect("the turn ends");
        let mut world = World::new(Script { parks: true, ..script });
        let turn = world.run().sealed().expect("the turn ends");
        world.check();
        assert_eq!(end.outcome(), turn.outcome());
        assert_eq!(calm.log().history(), world.log().history());
        assert_eq!((retries(&calm), calm.log().calls()), (retries(&world), world.log().calls()));
    }
}

fn patient_with_crashes(script: Script, eager_tools: bool) -> Script {
    // A call that a crash interrupted has failed. A report beside it would be kept and would not end the turn.
    let must_report = script.settings.final_report.is_some();
    let may_run_again: &[&str] =
        if must_report { &["read", "slow", "nothing", IDEMPOTENT] } else { &[IDEMPOTENT] };
    let idempotent_tools = may_run_again.iter().copied().map(Into::into).collect();
    // Otherwise a review is put off until its time is over, of which a crash takes a part. Then it failed, or timed out.
    let mut reviewer = script.reviewer;
    for (_, answer) in &mut reviewer {
        if let ReviewAnswer::Held(failure) = answer {
            failure.hint_ms = Some(REVIEW_MS);
        }
    }
    Script {
        reviewer,
        settings: Settings { max_recoveries: 9, eager_tools, idempotent_tools, ..script.settings },
        checks: script.checks.into_iter().map(|(name, check)| (name, with_long_timeout(check))).collect(),
        steps: script
            .steps
            .into_iter()
            .map(|step| step.into_iter().map(answer_with_long_checks).collect())
            .collect(),
        ..script
    }
}

/// Returns the same model answer, with enough time for what a crash makes it repeat.
fn answer_with_long_checks(beats: Vec<Beat>) -> Vec<Beat> {
    let answer_beat = |beat| match beat {
        Beat::Say(StreamEvent::Checked(call)) => {
            let CheckedCall { call, checked } = *call;
            let checked = Checked { check: checked.check.map(with_long_timeout), ..checked };
            Beat::Say(StreamEvent::Checked(Box::new(CheckedCall { call, checked })))
        }
        // One that is cut to what is left takes it all, and nothing is left for what a crash makes it repeat.
        Beat::Say(StreamEvent::Held(hold)) => {
            Beat::Say(StreamEvent::Held(Box::new(Hold { open_ended: false, ..*hold })))
        }
        beat => beat,
    };
    beats.into_iter().map(answer_beat).collect()
}

/// Returns the same check, with enough time for what a crash makes it repeat.
fn with_long_timeout(check: Check) -> Check {
    let patient = |approval: Approval| Approval { within_ms: None, ..approval };
    match check {
        Check::Person(approval) => Check::Person(patient(approval)),
        Check::Review { otherwise, .. } => {
            Check::Review { within_ms: REVIEW_MS, otherwise: otherwise.map(patient) }
        }
        refused => refused,
    }
}

/// Runs the script while the process ends at these points, each counted from the last restart.
fn crashed(script: &Script, crashes: &[u32]) -> (World, Turn) {
    let mut world = World::new(script.clone());
    let mut turn = None;
    for (nth, point) in crashes.iter().enumerate() {
        world.crash_at(*point);
        turn = if nth == 0 { world.begin() } else { world.recover() }.sealed();
    }
    world.crash_never();
    let turn = turn.or_else(|| world.recover().sealed()).expect("the turn ends");
    (world, turn)
}

fn check(script: &Script, world: &World, turn: &Turn, crashes: usize) {
    world.check();
    assert!(turn.outcome().is_some_and(|Outcome { reason, .. }| !reason.as_str().is_empty()));
    let interrupted = world.log().history().iter().filter(|(_, chunk)| is_interrupted(chunk)).count();
    let most = crashes * script.settings.max_parallel_tools.max(1) as usize;
    assert!(interrupted <= most, "{interrupted} calls interrupted by {crashes} crashes");
}

/// Asserts that the histories are equal, except for the results of calls that a crash interrupted.
fn assert_same_history(calm: &World, crashed: &World, context: &str) {
    let (calm, crashed) = (history(calm), history(crashed));
    assert_eq!(calm.len(), crashed.len(), "{context}: {crashed:?}");
    for ((calm_role, calm), (role, chunk)) in calm.iter().zip(&crashed) {
        assert_eq!(calm_role, role, "{context}");
        match (calm, chunk) {
            (Chunk::ToolResult { tool_call_id, step_id, .. }, chunk) if is_interrupted(chunk) => {
                let Chunk::ToolResult { tool_call_id: id, step_id: step, tool_name, .. } = chunk else {
                    unreachable!()
                };
                assert_eq!((tool_call_id, step_id), (id, step), "{context}");
                assert_ne!(tool_name, IDEMPOTENT, "{context}: a tool that may run again is not interrupted");
            }
            _ => assert_eq!(calm, chunk, "{context}"),
        }
    }
}

/// Returns what is kept. Sorts the results of one message, whose order depends on which tool finishes first.
fn history(world: &World) -> Vec<(Role, Chunk)> {
    let mut history = world.log().history();
    for message in history.chunk_by_mut(|(a, _), (b, _)| a == b) {
        message.sort_by_key(|(_, chunk)| match chunk {
            Chunk::ToolResult { step_id, tool_call_id, .. } => Some((step_id.clone(), tool_call_id.clone())),
            _ => None,
        });
    }
    history
}

fn is_interrupted(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::ToolResult { content, .. } if content.contains("interrupted by a restart"))
}

fn retries(world: &World) -> Vec<(u32, u64)> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ProviderRetry { attempt, delay_ms, .. }) => Some((*attempt, *delay_ms)),
        _ => None,
    })
}
