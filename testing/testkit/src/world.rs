//! A world: a turn, its environment, and a log.

use std::sync::Arc;

use everturn_kernel::{
    Effects, Ended, Input, Millis, NoRetry, RetryStrategy, Schedule, Snapshot, Turn, Want, run_turn,
};
use everturn_wire::TurnId;

use crate::{Clock, FakeSleep, Invariants, Log, Nap, Run, START, Script, ScriptedHost, Violation};

/// Maximum number of processes of a run. No script needs more unless it makes no progress.
const MOST_PROCESSES: u32 = 10_000;

/// A turn, its environment, and a log.
///
/// [`run`](Self::run) plays the script to its end, whatever happens. [`begin`](Self::begin) and
/// [`recover`](Self::recover) run a single process, for tests that inspect the state in between.
///
/// ```
/// use everturn_kernel::Input;
/// use everturn_testkit::{Nap, Run, Script, World, beat};
///
/// let script = Script::one_step([beat::overloaded(), beat::says("Hello")]);
/// let mut world = World::new(Script { nap: Nap::Endless, ..script });
/// assert!(matches!(world.begin(), Run::Stuck), "nothing ends the sleep");
/// world.clock().advance(2_000); // the process ended; this one comes two seconds later
/// world.nap(Nap::Whole);
/// assert!(matches!(world.recover(), Run::Sealed(_)));
/// assert_eq!(world.log().sleeps(), [5_000, 3_000]);
/// world.check();
/// ```
pub struct World {
    script: Script,
    clock: Clock,
    log: Log,
    host: ScriptedHost,
    schedule: Option<Arc<dyn Schedule + Send + Sync>>,
    nap: Nap,
    /// How the last process ended; `None` before the first.
    last: Option<Last>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Sealed,
    /// Left until this time, if any, or until an input arrives.
    Left(Option<Millis>),
    Crashed,
    Stuck,
}

impl World {
    /// Creates a world in which this script begins at [`START`].
    pub fn new(script: Script) -> Self {
        let (clock, log) = (Clock::new(START), Log::new(START));
        let host = ScriptedHost::new(script.clone(), clock.clone(), log.clone());
        let schedule = script.schedule.clone().map(|delays| Arc::new(delays) as _);
        Self { nap: script.nap, script, clock, log, host, schedule, last: None }
    }

    /// Replaces the script's schedule.
    #[must_use]
    pub fn with_schedule(self, schedule: impl Schedule + Send + Sync + 'static) -> Self {
        Self { schedule: Some(Arc::new(schedule)), ..self }
    }

    /// Removes the retry strategy from now on.
    pub fn without_strategy(&mut self) {
        self.schedule = None;
    }

    /// Sets how sleeps behave from now on.
    pub fn nap(&mut self, nap: Nap) {
        self.nap = nap;
    }

    /// Makes the process end at this point, counted from 0 and from now; see [`ScriptedHost::crash_at`].
    pub fn crash_at(&mut self, point: u32) {
        self.host.crash_at(point);
    }

    /// Disables further crashes.
    pub fn crash_never(&mut self) {
        self.host.crash_never();
    }

    /// Returns the number of points passed at which the process could have ended, counted from the last call of
    /// [`crash_at`](Self::crash_at) or [`crash_never`](Self::crash_never).
    pub fn points(&self) -> u32 {
        self.host.points()
    }

    /// Adds an input from outside, which the next process handles first.
    pub fn say(&mut self, input: Input) {
        self.say_in(0, input);
    }

    /// Schedules an input from outside in this many milliseconds, after all inputs scheduled until then.
    pub fn say_in(&mut self, after_ms: u64, input: Input) {
        self.host.say_in(after_ms, input);
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the last saved turn.
    pub fn saved(&self) -> Option<Snapshot> {
        self.host.saved()
    }

    /// Plays the script to its end, from its beginning or from where an earlier process left it. After a crash, a new
    /// process continues from the last save. A turn that was left is resumed when its wait is over or an input arrives.
    /// At the end, the turn is sealed or all tasks are stuck.
    ///
    /// # Panics
    /// After 10,000 processes: the turn makes no progress.
    pub fn run(&mut self) -> Run {
        for _ in 0..MOST_PROCESSES {
            let run = match self.last {
                None => self.begin(),
                Some(Last::Left(until)) => {
                    let Some(next) = self.host.next_said().into_iter().chain(until).min() else {
                        self.last = Some(Last::Stuck);
                        return Run::Stuck;
                    };
                    self.clock.advance(next.since(self.clock.now()));
                    self.recover()
                }
                Some(Last::Sealed | Last::Crashed | Last::Stuck) => self.recover(),
            };
            if !matches!(self.last, Some(Last::Left(_) | Last::Crashed)) {
                return run;
            }
        }
        panic!("{MOST_PROCESSES} processes made no progress:\n{}", self.transcript());
    }

    /// Runs the first process, which drives the script's turn from its beginning.
    pub fn begin(&mut self) -> Run {
        let mut effects = Effects::new();
        let (settings, prompt) = (self.script.settings.clone(), self.script.prompt.clone());
        let mut turn = Turn::begin(TurnId::from("t"), settings, prompt, START, &mut effects);
        if let Some(schedule) = &self.schedule {
            turn.choose_first_target(START, schedule, &mut effects);
        }
        self.drive(turn, effects)
    }

    /// Runs a new process, which continues from the last save, or starts again if there is none.
    ///
    /// # Panics
    /// If the saved turn cannot be restored.
    pub fn recover(&mut self) -> Run {
        self.host.restart();
        let Some(saved) = self.saved() else { return self.begin() };
        let mut turn = Turn::restore(saved).expect("today's snapshot is restored");
        let mut effects = Effects::new();
        match &self.schedule {
            Some(schedule) => turn.handle(self.clock.now(), Input::Recover, schedule.as_ref(), &mut effects),
            None => turn.handle(self.clock.now(), Input::Recover, &NoRetry, &mut effects),
        }
        self.drive(turn, effects)
    }

    fn drive(&mut self, mut turn: Turn, mut effects: Effects) -> Run {
        let retry = self.schedule.clone().map(|schedule| {
            FakeSleep::shared(schedule, self.clock.clone()).logged(self.log.clone()).nap(self.nap)
        });
        let retry = retry.as_ref().map(|retry| retry as &dyn RetryStrategy);
        let ended = self.clock.run(run_turn(&mut turn, &mut effects, &mut self.host, retry));
        let run = match ended {
            Some(Ok(Ended::Sealed)) => Run::Sealed(turn),
            Some(Ok(Ended::Left(want))) => Run::Left(turn, want),
            Some(Ok(ended)) => panic!("an unknown end: {ended:?}"),
            Some(Err(_)) => Run::Crashed,
            None if self.clock.is_stopped() => Run::Crashed,
            None => Run::Stuck,
        };
        self.last = Some(match &run {
            Run::Sealed(_) => Last::Sealed,
            Run::Left(_, Want::Wake(_, until)) => Last::Left(Some(*until)),
            Run::Left(_, Want::Person { until, .. }) => Last::Left(*until),
            Run::Left(..) | Run::Stuck => Last::Stuck,
            Run::Crashed => Last::Crashed,
        });
        run
    }

    /// Checks the [invariants](Invariants) of everything that happened so far.
    ///
    /// # Errors
    /// Returns the first violation.
    pub fn checked(&self) -> Result<(), Violation> {
        let mut invariants = Invariants::new(&self.script.settings).checking(&self.script.checks);
        let mut checked = Ok(());
        self.log.each(|at, fact| {
            if checked.is_ok() {
                checked = invariants.see(at, fact);
            }
        });
        checked?;
        if self.last == Some(Last::Sealed) { invariants.end() } else { Ok(()) }
    }

    /// Checks the [invariants](Invariants) like [`Self::checked`].
    ///
    /// # Panics
    /// If an invariant is violated, with the transcript.
    #[track_caller]
    pub fn check(&self) {
        if let Err(violation) = self.checked() {
            panic!("{violation}; transcript:\n{}", self.transcript());
        }
    }

    /// Returns what happened so far, one line per fact; see [`Log::transcript`]. Also says if all tasks are stuck.
    pub fn transcript(&self) -> String {
        let stuck = if self.last == Some(Last::Stuck) { "(deadlock: every task waits)\n" } else { "" };
        self.log.transcript() + stuck
    }
}

/// Plays a script to its end, checks the [invariants](Invariants) and returns the transcript.
///
/// ```
/// use everturn_testkit::{Script, play};
///
/// assert_eq!(
///     play(&Script::default()),
///     r#"    0 | User text text="Hi"
///     0 user-message text="Hi"
///     0 turn-start
///     0 > call 0.0
///     0 text-delta delta="Hello"
///     0 step-complete decodeMs=0 genTotalMs=0 ttftMs=0
///     0 | Assistant text text="Hello"
///     0 done durationMs=0 firstTokenMs=0 reason="stop"
///     0 turn-sealed
/// "#
/// );
/// ```
///
/// # Panics
/// If an invariant is violated.
#[track_caller]
pub fn play(script: &Script) -> String {
    let mut world = World::new(script.clone());
    world.run();
    world.check();
    world.transcript()
}
