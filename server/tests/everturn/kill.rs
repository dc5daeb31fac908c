//! Kills real processes at every call on their journal and at random moments, and simulates power cuts. The turn must
//! end as in an undisturbed run.

mod calling;
pub(crate) mod embedder;
mod life;
mod plan;
mod provider;
mod watcher;

use std::{env, panic::AssertUnwindSafe};

use fastrand::Rng;
use futures_util::{FutureExt as _, StreamExt as _, stream};

use crate::fault::Moment;
use life::run;
pub(crate) use plan::Program;
use plan::{End, Loss, Plan};

/// Number of servers run and killed at the same time.
const AT_ONCE: usize = 6;
/// Number of random sequences of processes, and their seed.
const CHAINS: usize = 40;
const SEED: u64 = 1;
/// Maximum difference in the number of calls between two undisturbed processes.
const SLACK: usize = 8;
/// Replays one plan instead of all; failures print it.
const REPLAY: &str = "EVERTURN_KILL";
/// The share of the plans to run, e.g. `1/3`: every third one, from the second on. The test command runs a different
/// one for each commit, because all of them take minutes. Default: all.
const SHARE: &str = "EVERTURN_KILL_SHARE";

/// Every plan must hold, and all but a few must kill.
async fn survive(plans: impl IntoIterator<Item = Plan>) {
    let replayed = env::var(REPLAY).ok().map(|text| text.parse::<Plan>().unwrap());
    let plans = match &replayed {
        Some(plan) => vec![plan.clone()],
        None => shared(plans),
    };
    let count = plans.len();
    let lived = plans.into_iter().map(async |plan| {
        let outcome = AssertUnwindSafe(run(&plan)).catch_unwind().await;
        outcome.map(|outcome| outcome.kills).map_err(|_| plan)
    });
    let outcomes: Vec<_> = stream::iter(lived).buffer_unordered(AT_ONCE).collect().await;
    let failed: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    if let [first, ..] = failed[..] {
        let all: Vec<_> = failed.iter().map(ToString::to_string).collect();
        panic!(
            "{} plans failed: {}\nreplay one: {REPLAY}={first} cargo test -p everturn --test everturn \
             kill::killed_at_every_call -- --nocapture",
            failed.len(),
            all.join(" ")
        );
    }
    let kills: usize = outcomes.iter().flatten().sum();
    eprintln!("{} plans, {kills} kills", outcomes.len());
    assert!(replayed.is_some() || kills + SLACK >= count, "{count} plans, but {kills} kills");
}

/// Returns the plans to run.
fn shared(plans: impl IntoIterator<Item = Plan>) -> Vec<Plan> {
    let share = env::var(SHARE).unwrap_or_else(|_| "0/1".to_owned());
    let read = |(number, of): (&str, &str)| Some((number.parse::<usize>().ok()?, of.parse::<usize>().ok()?));
    let (number, of) =
        share.split_once('/').and_then(read).filter(|(number, of)| number < of).unwrap_or_else(|| {
            panic!("{SHARE} is {share:?}: write it like 0/3, 1/3 or 2/3");
        });
    plans.into_iter().skip(number).step_by(of).collect()
}

/// A process that is asked to end once its turn is sealed.
const WHOLE: End = End::Call(Moment::Before, usize::MAX);

/// Returns the journal calls of an undisturbed process: while opening, during the turn, while closing.
async fn calls(program: Program, loss: Loss) -> String {
    run(&Plan { program, loss, ends: vec![WHOLE] }).await.calls.swap_remove(0)
}

/// Before every call of an undisturbed process, in the middle of every write, and after every other call that changes
/// the disk.
async fn every_call(program: Program, loss: Loss) -> Vec<Plan> {
    let calls = calls(program, loss).await;
    let moments = calls.chars().zip(1..).flat_map(|(kind, number)| {
        let other = if kind == 'w' { Moment::Torn } else { Moment::After };
        [Moment::Before, other].map(|moment| End::Call(moment, number))
    });
    moments.map(|end| Plan { program, loss, ends: vec![end] }).collect()
}

/// Kills the process before each journal call of an undisturbed process.
async fn before_every_call(program: Program) {
    let calls = calls(program, Loss::Process).await;
    let moments = (1..=calls.len()).map(|number| End::Call(Moment::Before, number));
    survive(moments.map(|end| Plan { program, loss: Loss::Process, ends: vec![end] })).await;
}

#[tokio::test]
async fn killed_at_every_call_the_turn_ends_like_an_undisturbed_one() {
    let plans = every_call(Program::Everturn, Loss::Process).await;
    survive(plans).await;
}

#[tokio::test]
async fn after_a_power_cut_at_every_call_the_turn_ends_like_an_undisturbed_one() {
    let plans = every_call(Program::Everturn, Loss::Power).await;
    survive(plans).await;
}

#[tokio::test]
async fn a_tool_s_side_effect_happens_at_most_once() {
    before_every_call(Program::Embedder).await;
}

#[tokio::test]
async fn approvals_are_neither_lost_nor_assumed() {
    let plans = every_call(Program::Asking, Loss::Process).await;
    survive(plans).await;
}

/// From when a call is shown until both have results. Before and after that, nothing differs from a turn with other
/// tools.
#[tokio::test]
#[ignore = "needs Node and what `cargo xtask test` installs, which runs it"]
async fn no_mcp_call_runs_twice() {
    let (program, loss) = (Program::Calling, Loss::Process);
    let calm = run(&Plan { program, loss, ends: vec![WHOLE] }).await;
    let mut heard = calm.heard.iter();
    let (_, first) = heard.find(|(kind, _)| kind == "tool-call").unwrap();
    // Published after its commit.
    let (_, last) = heard.rfind(|(kind, _)| kind == "tool-result").unwrap();
    let moments = (*first..=*last).map(|number| End::Call(Moment::Before, number));
    let plans: Vec<_> = moments.map(|end| Plan { program, loss, ends: vec![end] }).collect();
    assert!(replays() || plans.len() > SLACK, "{calm:?}");
    survive(plans).await;
}

#[tokio::test]
async fn a_history_is_summarized_once_and_no_tool_runs_twice() {
    before_every_call(Program::Compacting).await;
}

#[tokio::test]
async fn a_report_is_requested_and_printed_once() {
    before_every_call(Program::Reporting).await;
}

#[tokio::test]
async fn a_call_is_handed_to_its_caller_once() {
    before_every_call(Program::Handing).await;
}

#[tokio::test]
async fn killed_repeatedly_the_turn_ends_like_an_undisturbed_one() {
    let mut random = Rng::with_seed(SEED);
    let plans: Vec<_> = (0..CHAINS).map(|_| chain(&mut random)).collect();
    survive(plans).await;
}

/// Returns two to four processes, each of which may end anywhere.
fn chain(random: &mut Rng) -> Plan {
    let program =
        random.choice([Program::Everturn, Program::Embedder, Program::Asking, Program::Compacting]).unwrap();
    let loss = random.choice([Loss::Process, Loss::Power]).unwrap();
    let end = |random: &mut Rng| match random.bool() {
        true => End::Events(random.usize(0..16)),
        false => End::Call(random.choice(Moment::ALL).unwrap().0, random.usize(1..140)),
    };
    let ends = (0..random.usize(2..=4)).map(|_| end(random)).collect();
    Plan { program, loss, ends }
}

/// Whether one plan is replayed instead of all.
fn replays() -> bool {
    env::var_os(REPLAY).is_some()
}
