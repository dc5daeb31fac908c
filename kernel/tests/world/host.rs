//! What the driver needs from outside, scripted; the process may end at any point of it.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use async_trait::async_trait;
use everturn_kernel::{
    Effect, Effects, Host, Input, Millis, Op, StreamEvent, ToolAnswer, ToolCall, Turn, Want,
};
use everturn_wire::OutputStream;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream, stream::BoxStream};

use super::{Beat, Clock, Fact, Log, START, Script, Tool};

/// Counts the points at which the process can end, and says at which it does.
#[derive(Clone)]
pub(crate) struct Crash {
    passed: Arc<AtomicU32>,
    at: Option<u32>,
}

impl Crash {
    pub(crate) fn never() -> Self {
        Self { passed: Arc::new(AtomicU32::new(0)), at: None }
    }

    pub(crate) fn at(point: u32) -> Self {
        Self { at: Some(point), ..Self::never() }
    }

    pub(crate) fn passed(&self) -> u32 {
        self.passed.load(Ordering::Relaxed)
    }

    fn is_now(&self) -> bool {
        Some(self.passed.fetch_add(1, Ordering::Relaxed)) == self.at
    }
}

pub(crate) struct ScriptedHost {
    script: Script,
    clock: Clock,
    log: Log,
    pub(crate) crash: Crash,
    /// The turn as last saved, as JSON.
    pub(crate) saved: Option<String>,
    /// What is still to be said from outside.
    outside: VecDeque<(u64, Input)>,
    /// What was heard but not yet saved: it would be said again.
    unsaved: Vec<(u64, Input)>,
    /// Wakes for what comes next from outside.
    next: Option<BoxFuture<'static, ()>>,
    printed: Arc<std::sync::Mutex<VecDeque<Input>>>,
}

impl ScriptedHost {
    pub(crate) fn new(script: Script, clock: Clock, log: Log) -> Self {
        let outside = script.outside.iter().cloned().collect();
        let (crash, printed) = (Crash::never(), Arc::default());
        Self { script, clock, log, crash, saved: None, outside, unsaved: Vec::new(), next: None, printed }
    }

    /// A new process: it has what was saved and nothing else.
    pub(crate) fn restart(&mut self) {
        self.next = None;
        self.printed = Arc::default();
        for said in self.unsaved.drain(..).rev() {
            self.outside.push_front(said);
        }
    }

    /// So many milliseconds from now.
    pub(crate) fn hear(&mut self, after: u64, input: Input) {
        self.outside.push_back((self.clock.now().since(START) + after, input));
    }

    fn note(&self, fact: Fact) {
        self.log.note(self.clock.now(), fact);
    }

    fn publish(&self, effects: &mut Effects) {
        for effect in effects.drain() {
            self.note(match effect {
                Effect::Tell(event) => Fact::Told(event),
                Effect::Keep(role, chunk) => Fact::Kept(role, chunk),
            });
        }
    }

    /// The model answers by the step and by how often it was retried: a call that a crash cut off gets the same again.
    fn beats(&self, turn: &Turn, op: Op) -> Vec<Beat> {
        let snapshot = serde_json::to_value(turn.snapshot()).expect("a snapshot is JSON");
        let retries =
            snapshot["phase"]["retries"].as_u64().expect("a streaming turn counts retries") as usize;
        let retried = &self.script.steps[(op.step as usize).min(self.script.steps.len() - 1)];
        retried[retries.min(retried.len() - 1)].clone()
    }
}

#[async_trait]
impl Host for ScriptedHost {
    type Error = ();

    fn now(&self) -> Millis {
        self.clock.now()
    }

    async fn commit(&mut self, turn: &Turn, effects: &mut Effects) -> Result<(), ()> {
        if self.crash.is_now() {
            return Err(());
        }
        self.saved = Some(serde_json::to_string(&turn.snapshot()).expect("a snapshot is JSON"));
        self.unsaved.clear();
        self.note(Fact::Saved);
        self.publish(effects);
        if self.crash.is_now() { Err(()) } else { Ok(()) }
    }

    fn tell(&mut self, _: &Turn, effects: &mut Effects) {
        assert!(!effects.is_empty() && !effects.is_binding(), "told without being saved: {effects:?}");
        self.note(Fact::Unsaved);
        self.publish(effects);
    }

    fn stream(&mut self, turn: &Turn, op: Op) -> BoxStream<'static, StreamEvent> {
        self.note(Fact::Called(op));
        let state = (self.beats(turn, op).into_iter(), self.clock.clone(), self.crash.clone());
        let stream = stream::unfold(state, |(mut beats, clock, crash)| async move {
            loop {
                if crash.is_now() {
                    clock.stop();
                    std::future::pending::<()>().await;
                }
                match beats.next()? {
                    Beat::Say(event) => return Some((event, (beats, clock, crash))),
                    Beat::Wait(ms) => clock.sleep(ms).await,
                    Beat::Hang => std::future::pending().await,
                }
            }
        });
        Once { stream: stream.boxed(), over: false }.boxed()
    }

    fn run_tool(&mut self, step: u32, call: &ToolCall) -> BoxFuture<'static, ToolAnswer> {
        let (id, name) = (call.id.clone(), call.name.clone());
        self.note(Fact::Ran { step, id: id.clone(), name: name.clone() });
        let running = Started { clock: self.clock.clone(), log: self.log.clone() };
        let (clock, crash, printed) = (self.clock.clone(), self.crash.clone(), self.printed.clone());
        let tool = self.script.tools.iter().find(|tool| tool.name == name).cloned();
        async move {
            let running = running;
            if crash.is_now() {
                clock.stop();
                std::future::pending::<()>().await;
            }
            let Some(Tool { takes, prints, answer, hangs, .. }) = tool else {
                return ToolAnswer::error(format!("(tool failed: there is no tool {name:?})"));
            };
            if hangs {
                std::future::pending::<()>().await;
            }
            running.clock.sleep(takes / 2).await;
            if let Some(data) = prints {
                let output =
                    Input::ToolOutput { call_id: id, stream: OutputStream::Stdout, data: data.into() };
                printed.lock().expect("no one panics while printing").push_back(output);
                let_others_look().await;
            }
            running.clock.sleep(takes - takes / 2).await;
            answer
        }
        .boxed()
    }

    fn leaves(&mut self, want: Want) -> bool {
        self.script.parks && matches!(want, Want::Wake(_, until) if until > self.clock.now())
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
                self.note(Fact::Heard(name(&input)));
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

/// A tool that runs; when it is gone, that is noted.
struct Started {
    clock: Clock,
    log: Log,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.log.note(self.clock.now(), Fact::Stopped);
    }
}

/// A stream that may not be polled after its end or its terminal event.
struct Once {
    stream: BoxStream<'static, StreamEvent>,
    over: bool,
}

impl stream::Stream for Once {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        assert!(!self.over, "a stream was polled after its end");
        let next = self.stream.poll_next_unpin(cx);
        self.over =
            matches!(next, Poll::Ready(None | Some(StreamEvent::Finished(_) | StreamEvent::Failed(_))));
        next
    }
}

/// Lets everyone be polled once more, so that what was just printed is seen.
async fn let_others_look() {
    let mut asked = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut asked, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn name(input: &Input) -> &'static str {
    match input {
        Input::Provider(..) => "a provider speaks",
        Input::ToolOutput { .. } => "a tool prints",
        Input::ToolDone { .. } => "a tool is done",
        Input::Tick(_) => "tick",
        Input::Abort => "abort",
        Input::AbortRetry => "abort retry",
        Input::RetryNow => "retry now",
        Input::Steer(_) => "steer",
        Input::Unsteer { .. } => "unsteer",
        Input::Fault(_) => "fault",
        Input::Checkpoint => "checkpoint",
        Input::Recover => "recover",
    }
}
