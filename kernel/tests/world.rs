//! A small world around a turn: time that moves only when everyone waits, a scripted model, scripted tools, a log.

mod audience;
mod clock;
mod host;
mod log;
mod patient;
mod script;

pub(crate) use audience::Audience;
pub(crate) use clock::Clock;
pub(crate) use host::{Crash, ScriptedHost};
pub(crate) use log::{Fact, Log, line};
pub(crate) use patient::{Nap, Patient};
pub(crate) use script::{
    Beat, Script, Tool, call, echo, echoes, failed, failure, finish, malformed, overloaded, says, text,
    thought, usage,
};

use everturn_kernel::{Effects, Input, Millis, NoRetry, Prompt, RetryStrategy, Snapshot, Turn, run_turn};
use everturn_wire::TurnId;

/// When every story begins.
pub(crate) const START: Millis = Millis(1_700_000_000_000);

/// A turn, its surroundings, and what they have seen.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    host: ScriptedHost,
    script: Script,
}

impl World {
    pub(crate) fn new(script: Script) -> Self {
        let (clock, log) = (Clock::new(START), Log::default());
        let host = ScriptedHost::new(script.clone(), clock.clone(), log.clone());
        Self { clock, log, host, script }
    }

    /// Lets the process end at that point of what happens, counted from 0.
    pub(crate) fn crash_at(&mut self, point: u32) {
        self.host.crash = Crash::at(point);
    }

    /// No further crash.
    pub(crate) fn crash_never(&mut self) {
        self.host.crash = Crash::never();
    }

    /// From now on sleeps behave like this.
    pub(crate) fn nap(&mut self, nap: Nap) {
        self.script.nap = nap;
    }

    /// The points at which the process could have ended so far.
    pub(crate) fn points(&self) -> u32 {
        self.host.crash.passed()
    }

    /// From now on nothing is retried.
    pub(crate) fn without_strategy(&mut self) {
        self.script.retries = false;
    }

    /// Someone outside says this now.
    pub(crate) fn hear(&mut self, input: Input) {
        self.hear_later(0, input);
    }

    /// Someone outside says this in so many milliseconds.
    pub(crate) fn hear_later(&mut self, after: u64, input: Input) {
        self.host.hear(after, input);
    }

    /// The turn as last saved.
    pub(crate) fn saved(&self) -> Option<Snapshot> {
        self.host.saved.as_deref().map(|json| serde_json::from_str(json).expect("a snapshot is read back"))
    }

    /// Drives the script's turn from its beginning. `None` = the process ended, or all wait for nothing.
    pub(crate) fn begin(&mut self) -> Option<Turn> {
        let mut effects = Effects::new();
        let prompt = Prompt { text: self.script.prompt.into(), images: self.script.images.clone() };
        let turn = Turn::begin(TurnId::from("t"), self.script.settings.clone(), prompt, START, &mut effects);
        self.drive(turn, effects)
    }

    /// A new process takes up what was saved; what was never saved begins anew.
    pub(crate) fn recover(&mut self) -> Option<Turn> {
        self.host.restart();
        let Some(saved) = self.saved() else { return self.begin() };
        let mut turn = Turn::restore(saved).expect("today's snapshot is restored");
        let mut effects = Effects::new();
        turn.handle(self.clock.now(), Input::Recover, &NoRetry, &mut effects);
        self.drive(turn, effects)
    }

    fn drive(&mut self, mut turn: Turn, mut effects: Effects) -> Option<Turn> {
        let patient = Patient::new(&self.script, self.clock.clone(), self.log.clone());
        let retry = self.script.retries.then_some(&patient as &dyn RetryStrategy);
        let running = run_turn(&mut turn, &mut effects, &mut self.host, retry);
        let ended = self.clock.clone().run(running)?;
        ended.is_ok().then_some(turn)
    }
}

/// Plays a script to its end and tells what happened, one line a fact.
pub(crate) fn play(script: &Script) -> String {
    let mut world = World::new(script.clone());
    let sealed = world.begin().is_some();
    let mut audience = Audience::new(&script.settings);
    world.log.each(|_, fact| audience.see(fact));
    if sealed {
        audience.leave();
    }
    let mut story = world.log.story(START);
    if !sealed {
        story.push_str("(all wait for nothing)\n");
    }
    story
}
