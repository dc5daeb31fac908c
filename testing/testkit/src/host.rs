//! A scripted host. The process may end at any point.

mod call;
mod tool;

use std::{
    collections::VecDeque,
    error, fmt,
    future::pending,
    mem,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use async_trait::async_trait;
use everturn_kernel::{
    Answer, Arguments, Check, Checked, Effect, Effects, FINAL_REPORT, Host, Input, Millis, Op, ReviewAnswer,
    ReviewAttempt, Snapshot, StreamEvent, ToolAnswer, ToolCall, Turn, Want,
};
use everturn_wire::{EventBody, ForcedBy};
use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{BoxStream, StreamExt},
};

use crate::{Clock, Fact, Log, Person, START, Script, crash::Crash};

/// Tool output that the turn has not handled yet.
type Printed = Arc<Mutex<VecDeque<Input>>>;

/// The process ended at the point given to [`ScriptedHost::crash_at`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crashed;

impl fmt::Display for Crashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the process ended here, as the test asked for")
    }
}

impl error::Error for Crashed {}

/// A host that plays a [`Script`]: model, tools, people, and a disk with one snapshot. It records everything in a
/// [`Log`]. [`World`](crate::World) contains one. Use it directly to test your own driver.
pub struct ScriptedHost {
    script: Script,
    clock: Clock,
    log: Log,
    crash: Crash,
    /// The last saved turn.
    saved: Option<Snapshot>,
    /// The index of the scripted attempt for the first call of the current series of retries, and of the last one
    /// played. A summary starts a new series within a step.
    base: (u32, u32),
    played: u32,
    /// The step of the last call; whether the current series has made a call; and its waits before its first call, which
    /// are published as retries but follow no attempt.
    step: u32,
    has_asked: bool,
    waits_before: u32,
    /// Remaining inputs from outside.
    outside: VecDeque<(u64, Input)>,
    /// Inputs that were delivered but not saved yet. After a crash, they are delivered again.
    unsaved: Vec<(u64, Input)>,
    /// Wakes the host for the next input from outside.
    next: Option<BoxFuture<'static, ()>>,
    printed: Printed,
}

impl ScriptedHost {
    /// Creates a host that plays this script on this clock.
    pub fn new(script: Script, clock: Clock, log: Log) -> Self {
        let outside = script.outside.iter().cloned().collect();
        let (crash, printed) = (Crash::never(), Arc::default());
        let (base, played, unsaved) = ((0, 0), 0, Vec::new());
        Self {
            script,
            clock,
            log,
            crash,
            saved: None,
            base,
            played,
            step: 0,
            has_asked: false,
            waits_before: 0,
            outside,
            unsaved,
            next: None,
            printed,
        }
    }

    /// Makes the process end at this point, counted from 0 and from now. Points are: before and after each commit, each
    /// beat of a stream, and the start of each tool.
    pub fn crash_at(&mut self, point: u32) {
        self.crash = Crash::at(point);
    }

    /// Disables further crashes. Points are counted from 0 again.
    pub fn crash_never(&mut self) {
        self.crash = Crash::never();
    }

    /// Returns the number of points passed at which the process could have ended.
    pub fn points(&self) -> u32 {
        self.crash.passed()
    }

    /// Starts a new process, which has only what was saved. Inputs that were delivered but never saved are delivered
    /// again.
    pub fn restart(&mut self) {
        self.next = None;
        self.printed = Arc::default();
        for said in self.unsaved.drain(..).rev() {
            self.outside.push_front(said);
        }
        self.note(Fact::Restarted);
    }

    /// Returns the last saved turn, written as JSON and parsed again; `None` if it was never saved.
    ///
    /// # Panics
    /// If the snapshot cannot be written or parsed.
    pub fn saved(&self) -> Option<Snapshot> {
        let json = serde_json::to_string(self.saved.as_ref()?).expect("a snapshot is JSON");
        Some(serde_json::from_str(&json).expect("the snapshot parses"))
    }

    /// Schedules an input from outside in this many milliseconds, after all inputs already scheduled until then.
    pub fn say_in(&mut self, after_ms: u64, input: Input) {
        let at = self.clock.now().since(START) + after_ms;
        let place = self.outside.partition_point(|(earlier, _)| *earlier <= at);
        self.outside.insert(place, (at, input));
        self.next = None;
    }

    /// Lets the script's person answer a request for approval.
    fn answer(&mut self, event: &EventBody) {
        let (Some(Person { after_ms, allows }), EventBody::ApprovalRequested { step_id, tool_call_id, .. }) =
            (self.script.person, event)
        else {
            return;
        };
        // A script has only one turn.
        let (step, call_id) = (step_id.step().unwrap_or_default(), tool_call_id.clone());
        let answer = Answer { step, call_id, allows, whole_tool: false, reason: None, name: None, via: None };
        self.say_in(after_ms, Input::Answer(Box::new(answer)));
    }

    /// Follows the series of retries. A new one within a step continues with the step's next attempt.
    fn follow_series(&mut self, event: &EventBody) {
        match event {
            EventBody::ReportForced { by: ForcedBy::MaxSteps, .. } => return,
            EventBody::CompactionStarted { step_id, .. } | EventBody::ReportForced { step_id, .. } => {
                let step = step_id.step().unwrap_or_default();
                self.base = (step, if step == self.step { self.played + 1 } else { 0 });
            }
            EventBody::StepComplete { .. } | EventBody::CompactionCompleted { .. } => {}
            EventBody::ProviderRetry { .. } => {
                self.waits_before += u32::from(!self.has_asked);
                return;
            }
            _ => return,
        }
        (self.has_asked, self.waits_before) = (false, 0);
    }

    /// Returns when the next input from outside is due.
    pub(crate) fn next_said(&self) -> Option<Millis> {
        self.outside.front().map(|(at, _)| START.plus(*at))
    }

    fn note(&self, fact: Fact) {
        self.log.note(self.clock.now(), fact);
    }

    fn publish(&mut self, effects: &mut Effects) {
        for effect in effects.drain() {
            if let Effect::Tell(event) = &effect {
                self.answer(event);
                self.follow_series(event);
            }
            self.note(match effect {
                Effect::Tell(event) => Fact::Told(event),
                Effect::Keep(role, chunk) => Fact::Kept(role, chunk),
            });
        }
    }
}

#[async_trait]
impl Host for ScriptedHost {
    type Error = Crashed;

    fn now(&self) -> Millis {
        self.clock.now()
    }

    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), Crashed> {
        if self.crash.is_now() {
            return Err(Crashed);
        }
        self.saved = Some(turn.snapshot());
        self.unsaved.clear();
        self.note(Fact::Saved);
        self.publish(effects);
        if self.crash.is_now() { Err(Crashed) } else { Ok(()) }
    }

    fn tell(&mut self, _: &Turn, effects: &mut Effects) {
        assert!(!effects.is_empty() && !effects.is_binding(), "published without being saved: {effects:?}");
        self.note(Fact::Unsaved);
        self.publish(effects);
    }

    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.note(Fact::Called(op, turn.target().map(|target| target.name.clone())));
        // Select the answer by step and number of retries, so that a call interrupted by a crash gets the same answer
        // again.
        let retries = turn.retry().map_or(0, |retry| retry.attempt + 1) - self.waits_before;
        (self.step, self.has_asked) = (op.step, true);
        let beats = if turn.is_summarizing() {
            self.script.summary_beats(retries)
        } else {
            let (step, base) = self.base;
            self.played = retries + if step == op.step { base } else { 0 };
            self.script.beats(op.step, self.played)
        };
        call::play(op, beats, self.clock.clone(), self.log.clone(), self.crash.clone()).boxed()
    }

    fn run_tool(&mut self, _: &Turn, step: u32, call: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        self.note(Fact::Ran { step, id: call.id.clone(), name: call.name.clone() });
        let tool = self.script.tools.iter().find(|tool| tool.name == call.name).cloned();
        let running = tool::Running::new(&self.clock, &self.log, &self.crash, &self.printed);
        match tool {
            Some(tool) => running.run(tool, call.id.clone()).boxed(),
            None => running.refuse(call.name.clone()).boxed(),
        }
    }

    fn check(&mut self, call: &ToolCall) -> Checked {
        if let (FINAL_REPORT, Arguments::Parsed(report)) = (call.name.as_str(), &call.arguments) {
            let is_valid = report.get("valid") != Some(&false.into());
            return Check::Report((!is_valid).then(|| "it is not valid".into())).into();
        }
        let check = self.script.checks.iter().find(|(name, _)| *name == call.name);
        check.map(|(_, check)| check.clone().into()).unwrap_or_default()
    }

    fn review(
        &mut self,
        _: &Turn,
        call: &ToolCall,
        attempt: ReviewAttempt,
    ) -> BoxFuture<'static, ReviewAnswer> {
        let (id, deadline) = (call.id.clone(), attempt.deadline);
        self.note(Fact::Reviewed { id, attempt: attempt.number, deadline });
        let answers = &self.script.reviewer;
        let answer = answers.get(attempt.number as usize).or(answers.last()).cloned();
        let (clock, crash, log, id) =
            (self.clock.clone(), self.crash.clone(), self.log.clone(), call.id.clone());
        async move {
            if crash.is_now() {
                clock.stop();
                pending::<()>().await;
            }
            let Some((after_ms, answer)) = answer else { return pending().await };
            clock.sleep(after_ms).await;
            log.note(clock.now(), Fact::Assessed { id, answer: answer.clone() });
            answer
        }
        .boxed()
    }

    fn sleep(&self, left: Duration) -> BoxFuture<'static, ()> {
        let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        self.clock.sleep(left).boxed()
    }

    fn leaves(&mut self, want: Want) -> bool {
        let now = self.clock.now();
        // An input wakes the turn, so the host does not leave a turn with a pending input.
        let hears = self.next_said().is_some_and(|at| at <= now);
        let waits = match want {
            Want::Wake(_, until) => until > now,
            Want::Person { until, .. } => until.is_none_or(|until| until > now),
            _ => false,
        };
        self.script.parks && !hears && waits
    }

    fn poll_inbox(&mut self, cx: &mut Context<'_>) -> Poll<Input> {
        if let Some(output) = self.printed.lock().expect("no one panics while printing").pop_front() {
            return Poll::Ready(output);
        }
        while let Some((at, _)) = self.outside.front() {
            let left = START.plus(*at).since(self.clock.now());
            if left == 0
                && let Some((at, input)) = self.outside.pop_front()
            {
                self.next = None;
                self.unsaved.push((at, input.clone()));
                self.note(Fact::Heard(input.clone()));
                return Poll::Ready(input);
            }
            let clock = &self.clock;
            if self.next.get_or_insert_with(|| clock.sleep(left).boxed()).poll_unpin(cx).is_pending() {
                return Poll::Pending;
            }
            self.next = None;
        }
        Poll::Pending
    }
}

/// Yields once, so that new output is handled.
async fn let_others_look() {
    let mut asked = false;
    std::future::poll_fn(|cx| {
        if mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
