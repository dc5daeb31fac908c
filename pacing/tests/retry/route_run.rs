//! Runs a turn on a route against a list of failures, without a runtime. Time passes only during waits.

use std::time::Duration;

use everturn_kernel::{
    Arguments, Budget, Directive, Effect, Effects, FinishReason, Health, Hold, Input, Millis, NextCall, Op,
    Prompt, Question, Retry, Schedule, Settings, StreamEvent, Target, ToolAnswer, ToolCall, Turn, Want,
};
use everturn_testkit::START;
use everturn_wire::{Because, Category, EventBody, Failure, TurnId};

/// Returns a transient failure of this category, with the provider's hint in milliseconds.
pub(crate) fn fails(category: Category, hint_ms: impl Into<Option<u64>>) -> Failure {
    Failure { hint_ms: hint_ms.into(), ..Failure::new(category, true, "HTTP 500: it broke") }
}

/// Returns a final failure of this category.
pub(crate) fn refuses(category: Category) -> Failure {
    Failure::new(category, false, "HTTP 400: no")
}

/// Returns targets by name: `a` is model `a` of credential `a`; `work:a` is model `a` of credential `work`.
pub(crate) fn targets(names: &str) -> Vec<Target> {
    let target = |name: &str| {
        let (credential, model) = name.split_once(':').unwrap_or((name, name));
        Target { name: name.into(), credential: credential.into(), model: model.into() }
    };
    names.split_whitespace().map(target).collect()
}

/// Something that happened on the route.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Happened {
    Called {
        at: Millis,
        target: usize,
    },
    Failed {
        at: Millis,
        target: usize,
        failure: Failure,
    },
    /// The call was put off until then.
    Held {
        until: Millis,
    },
    Told(EventBody),
}

/// A turn on a route. The health of its targets is kept outside, as a host does.
pub(crate) struct RouteRun<P> {
    policy: P,
    pub(crate) health: Health,
    pub(crate) turn: Turn,
    pub(crate) now: Millis,
    pub(crate) happened: Vec<Happened>,
    fx: Effects,
}

/// A policy that is given the health of the targets.
struct Knowing<'a, P>(&'a P, &'a Health);

impl<P: Schedule> Schedule for Knowing<'_, P> {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.0.delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        self.0.decide(&question.knowing(self.1))
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        self.0.next_target(&call.knowing(self.1))
    }

    fn counts_replies(&self) -> bool {
        self.0.counts_replies()
    }

    fn max_retries(&self) -> Option<u32> {
        self.0.max_retries()
    }
}

impl<P: Schedule> RouteRun<P> {
    /// Creates a turn over these targets.
    pub(crate) fn new(targets: Vec<Target>, policy: P) -> Self {
        Self::within(Budget::default(), targets, policy)
    }

    /// Creates a turn with a budget.
    pub(crate) fn within(budget: Budget, targets: Vec<Target>, policy: P) -> Self {
        let mut fx = Effects::new();
        let settings = Settings { targets, budget, ..Settings::default() };
        let turn = Turn::begin(TurnId::from("t"), settings, Prompt::default(), START, &mut fx);
        let mut run = Self { policy, health: Health::new(), turn, now: START, happened: Vec::new(), fx };
        run.publish();
        run.called();
        run
    }

    fn index(&self) -> usize {
        let target = self.turn.target().expect("the turn has targets");
        self.turn.settings().targets.iter().position(|other| other == target).expect("it is one of them")
    }

    /// Fails the wanted call and passes the wait that follows. Returns whether the turn continues.
    pub(crate) fn fail(&mut self, failure: Failure) -> bool {
        self.fail_while(failure, |_, _| ())
    }

    /// Fails the wanted call. No time passes.
    pub(crate) fn fail_now(&mut self, failure: Failure) {
        let Want::Stream(op) = self.turn.want() else { panic!("no call is wanted") };
        self.health.note(self.now, &self.turn.target().expect("it has targets").clone(), &failure);
        self.tell(Input::Provider(op, StreamEvent::Failed(failure)));
        if let Want::Wake(op, at) = self.turn.want()
            && at <= self.now
        {
            self.tell(Input::Tick(op));
        }
    }

    /// Like [`Self::fail`], while others learn something about the targets.
    pub(crate) fn fail_while(
        &mut self,
        failure: Failure,
        meanwhile: impl FnOnce(&mut Health, Millis),
    ) -> bool {
        let Want::Stream(op) = self.turn.want() else { return false };
        self.health.note(self.now, &self.turn.target().expect("it has targets").clone(), &failure);
        self.happened.push(Happened::Failed { at: self.now, target: self.index(), failure: failure.clone() });
        self.tell(Input::Provider(op, StreamEvent::Failed(failure)));
        if let Want::Wake(op, at) = self.turn.want() {
            meanwhile(&mut self.health, self.now);
            // A wait that is not a hold cannot be released, and no wait ends early.
            self.tell_in_vain(Input::Release);
            if at > self.now {
                self.tell_in_vain(Input::Tick(op));
            }
            self.now = at;
            self.tell(Input::Tick(op));
        }
        self.turn.outcome().is_none()
    }

    /// Puts off the wanted call for `wait_ms`, or until it is released. Returns whether the turn continues.
    pub(crate) fn hold(&mut self, wait_ms: u64, opens_after: Option<u64>) -> bool {
        let Want::Stream(op) = self.turn.want() else { return false };
        let failure = fails(Category::RateLimited, None);
        let hold = Hold {
            failure,
            wait_ms,
            shared: true,
            because: Because::Hint,
            in_budget: true,
            open_ended: false,
        };
        self.happened.push(Happened::Held { until: self.now.plus(wait_ms) });
        self.tell(Input::Provider(op, StreamEvent::Held(Box::new(hold))));
        let Want::Wake(held, at) = self.turn.want() else { return self.turn.outcome().is_none() };
        assert_eq!((held.step, at), (op.step, self.now.plus(wait_ms)), "it waits as long as it is told");
        match opens_after.filter(|after| *after < wait_ms) {
            Some(after) => {
                self.now = self.now.plus(after);
                self.tell_in_vain(Input::Tick(held));
                self.tell(Input::Release);
            }
            None => {
                self.now = at;
                self.tell(Input::Tick(held));
            }
        }
        assert!(matches!(self.turn.want(), Want::Stream(_)), "nothing but a call follows");
        true
    }

    /// Handles an input that does not apply.
    fn tell_in_vain(&mut self, input: Input) {
        let (turn, told) = (self.turn.clone(), self.happened.len());
        self.tell(input);
        assert_eq!((&turn, told), (&self.turn, self.happened.len()), "it changes nothing");
    }

    /// Lets the wanted call request a tool that takes this long, which ends the step.
    pub(crate) fn step(&mut self, takes_ms: u64) {
        let Want::Stream(op) = self.turn.want() else { panic!("no call is wanted") };
        self.health.clear(self.now, &self.turn.target().expect("it has targets").clone());
        let call = ToolCall {
            id: "a".into(),
            name: "read".into(),
            arguments: Arguments::Parsed(serde_json::Value::Null),
            echo: None,
        };
        self.tell(Input::Provider(op, StreamEvent::ToolCall(call)));
        self.tell(Input::Provider(op, StreamEvent::Finished(FinishReason::ToolCalls)));
        self.now = self.now.plus(takes_ms);
        self.tell(Input::ToolDone { step: op.step, call_id: "a".into(), answer: ToolAnswer::ok("42") });
    }

    /// Lets the wanted call answer.
    pub(crate) fn answer(&mut self) {
        let Want::Stream(op) = self.turn.want() else { panic!("no call is wanted") };
        self.health.clear(self.now, &self.turn.target().expect("it has targets").clone());
        self.tell(Input::Provider(op, StreamEvent::Text("Hello".into())));
        self.tell(Input::Provider(op, StreamEvent::Finished(FinishReason::Stop)));
    }

    /// Handles an input, and checks that a turn saved and restored before it does the same.
    pub(crate) fn tell(&mut self, input: Input) {
        let before = self.turn.want();
        let policy = Knowing(&self.policy, &self.health);
        let saved = serde_json::to_string(&self.turn.snapshot()).expect("a snapshot is JSON");
        let snapshot = serde_json::from_str(&saved).expect("a snapshot is read back");
        let mut restored = Turn::restore(snapshot).expect("today's snapshot is restored");
        let mut fx = Effects::new();
        restored.handle(self.now, input.clone(), &policy, &mut fx);
        self.turn.handle(self.now, input, &policy, &mut self.fx);
        assert_eq!(restored, self.turn, "the same is decided after a restart");
        self.publish();
        if before != self.turn.want() {
            self.called();
        }
    }

    fn called(&mut self) {
        if let Want::Stream(Op { .. }) = self.turn.want() {
            self.happened.push(Happened::Called { at: self.now, target: self.index() });
        }
    }

    fn publish(&mut self) {
        self.happened.extend(self.fx.drain().filter_map(|effect| match effect {
            Effect::Tell(event) => Some(Happened::Told(event)),
            Effect::Keep(..) => None,
        }));
    }

    /// Returns what happened, in words: calls, waits, switches and ends.
    pub(crate) fn transcript(&self) -> String {
        let word = |happened: &Happened| match happened {
            Happened::Called { target, .. } => {
                Some(format!("call {}", self.turn.settings().targets[*target].name))
            }
            Happened::Told(EventBody::ProviderRetry { delay_ms, clamped, .. }) => {
                let clamped = if *clamped == Some(true) { " clamped" } else { "" };
                (*delay_ms > 0 || !clamped.is_empty()).then(|| format!("{delay_ms}{clamped}"))
            }
            Happened::Told(EventBody::TargetRestored { to, .. }) => Some(format!("back to {to}")),
            Happened::Told(EventBody::RetryEnded { outcome, .. }) => {
                Some(serde_json::to_value(outcome).expect("JSON").as_str().expect("a word").to_owned())
            }
            Happened::Told(EventBody::Error(_)) => Some("error".into()),
            _ => None,
        };
        self.happened.iter().filter_map(word).collect::<Vec<_>>().join(", ")
    }

    /// Returns the published reasons of the switching.
    pub(crate) fn switches(&self) -> Vec<String> {
        let reason = |happened: &Happened| match happened {
            Happened::Told(EventBody::TargetSwitched { reason, .. }) => Some(reason.clone()),
            _ => None,
        };
        self.happened.iter().filter_map(reason).collect()
    }

    /// Returns the published retries.
    pub(crate) fn retries(&self) -> Vec<EventBody> {
        let retry = |happened: &Happened| match happened {
            Happened::Told(event @ EventBody::ProviderRetry { .. }) => Some(event.clone()),
            _ => None,
        };
        self.happened.iter().filter_map(retry).collect()
    }
}

/// Runs one step with these failures, followed by an answer if the turn still wants one.
pub(crate) fn run<P: Schedule>(
    names: &str,
    policy: P,
    failures: impl IntoIterator<Item = Failure>,
) -> RouteRun<P> {
    let mut run = RouteRun::new(targets(names), policy);
    for failure in failures {
        run.fail(failure);
    }
    if run.turn.outcome().is_none() {
        run.answer();
    }
    run
}
